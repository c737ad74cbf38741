"""Which processors the node has, and whether it is a virtual machine, from `lscpu`."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import lines, word
from nodeready.reading import Known, Reading, Unknown

LSCPU = command("lscpu", "-J")
LSCPU_TEXT = command("lscpu", instead_of=LSCPU.name)

BARE_METAL = "none"

_KEY = re.compile(r"[A-Za-z][^:]{0,60}")
_COUNT = re.compile(r"[0-9]{1,6}")
_DEPTH = 8
# in every version lscpu counts the NUMA nodes after it has named the hypervisor
_LATER = "NUMA node(s)"

_Said = dict[str, set[str]]


class Cpu(NamedTuple):
    """The processors of one node.

    `cores_per_socket` and `threads_per_core` are what the kernel was told: a virtual machine often
    invents them. `virtualization` is what the processor offers (`VT-x`, `AMD-V`), `hypervisor` who
    runs this machine as a guest, or `BARE_METAL` where a whole output names nobody.
    """

    model: Reading[str]
    sockets: Reading[int]
    cores_per_socket: Reading[int]
    threads_per_core: Reading[int]
    logical_cpus: Reading[int]
    numa_nodes: Reading[int]
    virtualization: Reading[str]
    hypervisor: Reading[str]


def parse(data: bytes) -> Cpu | Unknown:
    r"""The processors by either form, JSON or text; unknown where there is no line or field of lscpu.

    A text may stop anywhere: what it lost is unknown. A JSON document that was cut is no document.

    >>> cpu = parse(b'''CPU(s):                             224
    ... Model name:                         Intel(R) Xeon(R) Platinum 8480C
    ... Socket(s):                          2
    ... NUMA node(s):                       2
    ... ''')
    >>> cpu.model.value, cpu.sockets.value, cpu.numa_nodes.value, cpu.hypervisor.value
    ('Intel(R) Xeon(R) Platinum 8480C', 2, 2, 'none')
    >>> parse(b'{"lscpu": [{"field": "Socket(s):", "data": "2"}]}').sockets.value
    2
    """
    if not data.strip():
        return Unknown("lscpu printed nothing")
    whole = data.lstrip().startswith(b"{")
    said = _of_json(data) if whole else _of_text(data)
    if isinstance(said, Unknown):
        return said
    if not said.keys() & {"CPU(s)", "Model name", "Socket(s)", "Architecture"}:
        return Unknown("the output has no field of lscpu")
    return Cpu(
        model=_text(said, "Model name"),
        sockets=_count(said, "Socket(s)"),
        cores_per_socket=_count(said, "Core(s) per socket"),
        threads_per_core=_count(said, "Thread(s) per core"),
        logical_cpus=_count(said, "CPU(s)"),
        numa_nodes=_count(said, "NUMA node(s)"),
        virtualization=_text(said, "Virtualization"),
        hypervisor=_hypervisor(said, whole=whole or _LATER in said),
    )


def _of_text(data: bytes) -> _Said:
    said: _Said = {}
    for line in lines(data):
        key, colon, value = line.partition(":")
        # the rest of a long list of flags is indented and has no key
        if colon and _KEY.fullmatch(key.strip()):
            said.setdefault(key.strip(), set()).add(value.strip())
    return said


def _of_json(data: bytes) -> _Said | Unknown:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return Unknown("the output of lscpu -J is no whole JSON document")
    said: _Said = {}
    level: list[Any] = found.get("lscpu", []) if isinstance(found, dict) else []
    for _ in range(_DEPTH):  # later versions nest the fields
        rows = [row for row in level if isinstance(row, dict)] if isinstance(level, list) else []
        for row in rows:
            key, value = row.get("field"), row.get("data")
            if isinstance(key, str) and isinstance(value, str):
                said.setdefault(key.strip().removesuffix(":"), set()).add(value.strip())
        level = [child for row in rows if isinstance(row.get("children"), list) for child in row["children"]]
    return said


def _text(said: _Said, key: str) -> Reading[str]:
    values = said.get(key, set())
    if len(values) > 1:
        return Unknown(f"lscpu gives {key} several values: {', '.join(sorted(values))[:200]}")
    return word(next(iter(values), None), f"{key} of lscpu")


def _count(said: _Said, key: str) -> Reading[int]:
    text = _text(said, key)
    if isinstance(text, Unknown):
        return text
    if _COUNT.fullmatch(text.value) is None or int(text.value) == 0:
        return Unknown(f"{key} of lscpu reads {text.value[:80]!r}")
    return Known(int(text.value))


def _hypervisor(said: _Said, *, whole: bool) -> Reading[str]:
    if "Hypervisor vendor" in said:
        return _text(said, "Hypervisor vendor")
    if whole:
        return Known(BARE_METAL, note="lscpu names no hypervisor")
    return Unknown("lscpu stops before the place where it names a hypervisor")
