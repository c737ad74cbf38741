"""Which ports the node's adapters have and how they came up, from `ibstat` or `ibstatus`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import lines, word
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

IBSTAT = command("ibstat", family="network", serves=("network.ports-active",))

_ADAPTER = re.compile(r"CA '([^']{1,64})'")
_PORT = re.compile(r"Port ([0-9]{1,3}):")
_STATUS = re.compile(r"Infiniband device '([^']{1,64})' port ([0-9]{1,3}) status:")
# the line that ends a port, whole: many copies lost the newline after it
_LAST_LINE = re.compile(rb"\n[ \t]*[Ll]ink[ _]layer:[ \t]*(?:InfiniBand|Ethernet)\Z")
_NUMBERED = re.compile(r"[0-9]{1,2}: ")
_RATE = re.compile(r"([0-9]{1,5})(\.[0-9]{1,3})?(?: Gb/sec)?(?: \([^()]{1,20}\))?")
_LID = re.compile(r"0x[0-9a-fA-F]{1,8}|[0-9]{1,10}")
_COUNT = re.compile(r"[0-9]{1,3}")

# the kernel's words and ibstat's, without blanks and in lower case
_STATES = {
    "down": "Down",
    "init": "Initializing",
    "initializing": "Initializing",
    "armed": "Armed",
    "active": "Active",
    "active_defer": "ActiveDefer",
}
_PHYSICAL = {
    name.lower(): name
    for name in (
        "Sleep",
        "Polling",
        "Disabled",
        "PortConfigurationTraining",
        "LinkUp",
        "LinkErrorRecovery",
        "PhyTest",
    )
}
_LAYERS = {"infiniband": "InfiniBand", "ethernet": "Ethernet"}
_OTHER_WORDS = {"phys state": "physical state"}

# a field's texts, all that were given
Said = dict[str, list[str]]


class Port(NamedTuple):
    """One port of one adapter.

    `state` is a word such as `Active`, `Down`, `Initializing`; `physical_state` one such as `LinkUp`,
    `Polling`, `Disabled`; `link_layer` is `InfiniBand` or `Ethernet`. `rate` (Gb/s) is unknown on a
    port that is Down: the number it prints there is not one at which it runs. `adapter_type` is the
    part, such as `MT4129`; lids are 0 on Ethernet.
    """

    adapter: str
    port: int
    state: Reading[str]
    physical_state: Reading[str]
    rate: Reading[Quantity]
    link_layer: Reading[str]
    firmware: Reading[str]
    adapter_type: Reading[str]
    base_lid: Reading[int]
    sm_lid: Reading[int]


def parse(data: bytes) -> tuple[Port, ...] | Unknown:
    r"""Every port that either tool lists, in its order; unknown where there is not one.

    ibstat exits 0 and prints nothing where the node has no adapter: that is unknown here. A last line
    without its newline is dropped and its field unknown, unless it is the whole line that ends a port.
    A port that an adapter announces and does not list is there with nothing known; an output cut
    between two adapters can't be told from a whole one.

    >>> (port,) = parse(b'''CA 'mlx5_0'
    ... 	CA type: MT4129
    ... 	Number of ports: 1
    ... 	Firmware version: 28.39.1002
    ... 	Port 1:
    ... 		State: Active
    ... 		Physical state: LinkUp
    ... 		Rate: 400
    ... 		Link layer: InfiniBand''')
    >>> port.adapter, port.port, port.state.value, str(port.rate.value), port.link_layer.value
    ('mlx5_0', 1, 'Active', '400 Gb/s', 'InfiniBand')
    """
    if not data.strip():
        return Unknown("ibstat printed nothing, as it does where the node has no adapter")
    adapters: dict[str, Said] = {}
    ports: dict[tuple[str, int], Said] = {}
    said: Said = {}
    adapter = ""
    for line in lines(data + b"\n" if _LAST_LINE.search(data) else data):
        text = line.strip()
        heading = _ADAPTER.fullmatch(text)
        port = _PORT.fullmatch(text)
        status = _STATUS.fullmatch(text)
        if heading:
            adapter = heading[1]
            said = adapters.setdefault(adapter, {})
        elif port and adapter:
            said = ports.setdefault((adapter, int(port[1])), {})
        elif status:
            adapter = status[1]
            adapters.setdefault(adapter, {})
            said = ports.setdefault((adapter, int(status[2])), {})
        else:
            key, colon, value = text.partition(":")
            key = key.lower().replace("_", " ")
            if colon:
                said.setdefault(_OTHER_WORDS.get(key, key), []).append(value.strip())
    return ports_of(adapters, ports)


def ports_of(adapters: Mapping[str, Said], ports: Mapping[tuple[str, int], Said]) -> tuple[Port, ...] | Unknown:
    """The ports of some adapters from what was said of both, under ibstat's field names in lower case.

    An adapter that announces more ports than are listed gets the missing ones, with nothing known.
    """
    if not ports:
        if adapters:
            return Unknown(f"only names of adapters, nothing of their ports: {', '.join(sorted(adapters))[:200]}")
        return Unknown("the output names no adapter")
    listed: dict[str, set[int]] = {}
    for adapter, number in ports:
        listed.setdefault(adapter, set()).add(number)
    return tuple(
        _port(adapter, number, said, ports.get((adapter, number), {}))
        for adapter, said in adapters.items()
        for number in sorted(listed.get(adapter, set()) | set(range(1, _announced(said) + 1)))
    )


def _announced(said: Said) -> int:
    """How many ports an adapter says it has; it has one where it does not say."""
    counts = set(said.get("number of ports", ()))
    text = counts.pop() if len(counts) == 1 else ""
    return int(text) if _COUNT.fullmatch(text) else 1


def _port(adapter: str, number: int, of_adapter: Said, of_port: Said) -> Port:
    where = f"{adapter} port {number}"
    state = _one_of(_text(of_port, "state", where), _STATES)
    return Port(
        adapter=adapter,
        port=number,
        state=state,
        physical_state=_one_of(_text(of_port, "physical state", where), _PHYSICAL),
        rate=_rate(_text(of_port, "rate", where), state, where),
        link_layer=_one_of(_text(of_port, "link layer", where), _LAYERS),
        firmware=_text(of_adapter, "firmware version", adapter),
        adapter_type=_text(of_adapter, "ca type", adapter),
        base_lid=_lid(_text(of_port, "base lid", where)),
        sm_lid=_lid(_text(of_port, "sm lid", where)),
    )


def _text(said: Said, key: str, where: str) -> Reading[str]:
    values = set(said.get(key, ()))
    if len(values) > 1:
        return Unknown(f"{key} of {where} is given twice, with different values")
    return word(values.pop() if values else None, f"{key} of {where}")


def _one_of(text: Reading[str], words: Mapping[str, str]) -> Reading[str]:
    if isinstance(text, Unknown):
        return text
    bare = _NUMBERED.sub("", text.value, count=1).replace(" ", "").lower()
    if bare not in words:
        return Unknown(f"{text.value[:80]!r} is none of {', '.join(sorted(set(words.values())))}")
    return Known(words[bare])


def _rate(text: Reading[str], state: Reading[str], where: str) -> Reading[Quantity]:
    if isinstance(text, Unknown):
        return text
    match = _RATE.fullmatch(text.value)
    if match is None:
        return Unknown(f"rate of {where} reads {text.value[:80]!r}, which is no rate")
    if isinstance(state, Unknown):
        return Unknown(f"rate of {where} reads {text.value}, but whether it runs is unknown: {state.reason}")
    if state.value == "Down":
        return Unknown(f"{where} is Down, so {text.value} is not a rate at which it runs")
    return Known(Quantity(float(match[0].split()[0]) if match[2] else int(match[1]), "Gb/s"))


def _lid(text: Reading[str]) -> Reading[int]:
    if isinstance(text, Unknown):
        return text
    if _LID.fullmatch(text.value) is None:
        return Unknown(f"{text.value[:80]!r} is no lid")
    return Known(int(text.value, 16 if text.value.startswith("0x") else 10))
