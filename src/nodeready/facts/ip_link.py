"""Which network interfaces the node has, from `ip -j link`, and how fast they run, from sysfs."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import lines, word
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown

IP_LINK = command("ip", "-j", "link", family="network")

# the shell reads the files itself: an interface that is down refuses, and leaves a line without a value
_SCRIPT = (
    "cd /sys/class/net || exit; for f in */speed; do "
    '[ -e "$f" ] || continue; v=; IFS= read -r v 2>/dev/null <"$f"; '
    'printf \'%s:%s\\n\' "$f" "$v"; done'
)

NET_SPEED = command("sh", "-c", _SCRIPT, name="sys/class/net-speed", family="network")

_MEGABITS = re.compile(r"[0-9]{1,10}")
# the kernel's "unknown" as an unsigned number
_NO_SPEED = (0, 2**32 - 1)


class Interface(NamedTuple):
    """One interface; `operstate` is a word such as `UP` or `DOWN`, `link_type` one such as `infiniband` or `ether`."""

    name: str
    operstate: Reading[str]
    link_type: Reading[str]
    mtu: Reading[int]
    address: Reading[str]


def parse(data: bytes) -> tuple[Interface, ...] | Unknown:
    """The interfaces in the kernel's order; unknown where the document is empty, cut or something else.

    >>> (ib,) = parse(b'[{"ifname":"ibp12s0","mtu":2044,"operstate":"UP","link_type":"infiniband"}]')
    >>> ib.name, ib.operstate.value, ib.link_type.value, ib.mtu.value, ib.address.reason
    ('ibp12s0', 'UP', 'infiniband', 2044, 'the output has no address of ibp12s0')
    """
    if not data.strip():
        return Unknown("ip -j link printed nothing")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return Unknown("the output of ip -j link is no whole JSON document")
    # some versions print an empty table in the place of an interface that they filter
    tables = [table for table in found if table != {}] if isinstance(found, list) else []
    named = [table for table in tables if isinstance(table, dict) and isinstance(table.get("ifname"), str)]
    if not tables or len(named) < len(tables):
        return Unknown("the output of ip -j link is no list of interfaces")
    return tuple(_interface(table) for table in named)


def _interface(table: dict[str, Any]) -> Interface:
    name = table["ifname"]
    return Interface(
        name=name,
        operstate=_text(table, "operstate", name),
        link_type=_text(table, "link_type", name),
        mtu=_count(table, "mtu", name),
        address=_text(table, "address", name),
    )


def _text(table: dict[str, Any], key: str, name: str) -> Reading[str]:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        return Unknown(f"{key} of {name} is no text")
    return word(value, f"{key} of {name}")


def _count(table: dict[str, Any], key: str, name: str) -> Reading[int]:
    value = table.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return Known(value)
    return Unknown(f"the output has no {key} of {name}")


def parse_speeds(data: bytes) -> dict[str, Reading[Quantity]] | Unknown:
    r"""The speed of each interface by name, in Gb/s, from lines such as `eth0/speed:100000`.

    Unknown for an interface that names none (-1, nothing, 0); a last line without its newline is
    dropped, and its interface is not in the result.

    >>> speeds = parse_speeds(b"eth0/speed:100000\nib0/speed:400000\neth1/speed:-1\nlo/speed:\n")
    >>> str(speeds["eth0"].value), str(speeds["ib0"].value), speeds["eth1"].reason, speeds["lo"].reason
    ('100 Gb/s', '400 Gb/s', "speed of eth1 reads '-1'", 'speed of lo is empty')
    """
    if not data.strip():
        return Unknown("no interface names a speed")
    said: dict[str, set[str]] = {}
    for line in lines(data):
        path, colon, value = line.rpartition(":")
        parts = path.split("/")
        if colon and len(parts) >= 2 and parts[-1] == "speed" and parts[-2]:
            said.setdefault(parts[-2], set()).add(value.strip())
    if not said:
        return Unknown("no whole line of it names an interface")
    return {name: _speed(values, name) for name, values in said.items()}


def _speed(values: set[str], name: str) -> Reading[Quantity]:
    if len(values) > 1:
        return Unknown(f"speed of {name} is given twice, with different values")
    text = word(next(iter(values)), f"speed of {name}")
    if isinstance(text, Unknown):
        return text
    megabits = int(text.value) if _MEGABITS.fullmatch(text.value) else 0
    if megabits in _NO_SPEED:
        return Unknown(f"speed of {name} reads {text.value[:80]!r}")
    return Known(Quantity(megabits / 1000 if megabits % 1000 else megabits // 1000, "Gb/s"))
