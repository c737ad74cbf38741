"""A site's own overlay, drafted from a good node: what that node has becomes what its siblings must have."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from nodeready.expectation import Bound, BoundError, observed_json
from nodeready.node.network import Network
from nodeready.node.sources import Sources
from nodeready.quantity import Quantity, UnitError
from nodeready.reading import Known
from nodeready.render.escape import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.baseline import Baseline
    from nodeready.engine import Judging
    from nodeready.expectation import Demand
    from nodeready.node import Node
    from nodeready.reading import Reading

SOURCE = "site"
_LONGEST = 200
_JUDGED = ("pass", "advisory")
_RATES = (800, 400, 200, 100)


@dataclass(frozen=True)
class Take:
    """One row of what the overlay can take: `key` becomes `bound = { operator = what the node showed }`.

    Of several parts (GPUs, ports, drives) a `min` takes the lowest and a `max` the highest, `equals` needs
    them to agree, `one_of` takes all. A key that the baseline does not declare is left out, and so is one that
    it calls absent, unless `read` reads it: such as a version that only a site can name.
    """

    key: str
    bound: str
    operator: str
    why: str
    read: Callable[[Node], Reading[Any]] | None = None


# What the overlay can take: key -> how it is read, out of the findings unless the row says how. A new key of a
# layer is one row here.
TAKEN = (
    Take("gpu.count", "required", "equals", "a node of this site with another number of GPUs lost one"),
    Take("gpu.product", "required", "one_of", "another product than this site's nodes have was not ordered"),
    Take("memory.installed", "required", "min", "less than its siblings have means that a DIMM is missing"),
    Take("memory.dimms/count", "required", "min", "fewer DIMMs mean that one is dead", lambda node: node.dimms.count),
    Take("memory.dimms/speed", "required", "min", "slower memory feeds the GPUs late", lambda node: node.dimms.slowest),
    Take("host.cpu/sockets", "required", "equals", "half of the slots hang off each", lambda node: node.host.sockets),
    Take("host.cpu/cores", "required", "equals", "another processor was not ordered", lambda node: node.host.cores),
    Take("storage.drives/count", "required", "min", "fewer drives than its siblings have mean that one is lost"),
    Take(
        "power.supplies/count",
        "required",
        "min",
        "with fewer supplies the feed is not redundant",
        lambda node: node.bmc.supplies,
    ),
    Take("network.ports-active", "required", "min", "fewer ports than its siblings have means that a link is down"),
    Take("nvlink.links-active", "required", "equals", "another number of links than its siblings have is a fault"),
    Take("platform.os", "recommended", "equals", "nodes of one fleet are installed with one image"),
    Take(
        "consistency.vbios/version",
        "recommended",
        "equals",
        "a GPU with another VBIOS than this site's was exchanged or missed an update",
        lambda node: node.consistency.vbios_version,
    ),
    Take(
        "consistency.inforom/version",
        "recommended",
        "equals",
        "a GPU with another InfoROM image than this site's was exchanged or missed an update",
        lambda node: node.consistency.inforom_version,
    ),
    Take(
        "topology.adapters/matrix",
        "required",
        "max",
        "jobs are placed by one map for all nodes of this site",
        lambda node: node.places.as_setting.map(lambda _: 0),
    ),
    Take("driver.version", "recommended", "min", "an older driver than its siblings have was left behind"),
    Take("container.gpu-toolkit", "recommended", "min", "an older toolkit than its siblings have was left behind"),
)


@dataclass(frozen=True)
class Run:
    """The run that an overlay is taken from: its name, its host and its day, as they are written into it."""

    name: str
    host: str
    day: str

    def __str__(self) -> str:
        return visible(f"run {self.name} of host {self.host} on {self.day}", _LONGEST)


@dataclass(frozen=True)
class Draft:
    """The text of an overlay, what it takes in words, and what it could not take and why."""

    text: str
    taken: tuple[str, ...]
    left: tuple[str, ...]


def draft(run: Run, found: dict[str, Any], judging: Judging, parent: Baseline) -> Draft:
    """The overlay on `parent` that the judged node meets; `found` are the results of `judging`.

    Everything that the run was judged by beside the parent (`overrides`) is part of it.
    """
    taken, left = _Taken(run, parent), []
    for key in found["overrides"]:
        if key in parent.demands:
            taken.keep_override(judging.plan.baseline.demands[key], found["overrides"][key])
    for take in TAKEN:
        demand = parent.demands.get(take.key)
        if demand is not None and (take.read is not None or not demand.absent):
            left += taken.take(take, demand, _rows(take, demand, found, judging.node))
    settings, unset = _settings(found, judging, parent)
    head = [
        f"# A draft, made by `nodeready baseline from` out of {run}.",
        "# Read it, take out what your other nodes need not have, keep it; then judge with --baseline FILE.",
        f"title   = {_text(f'site overlay, as {run.host} was on {run.day}')}",
        f'extends = "{parent.name}@{parent.version}"',
        'status  = "draft"',
    ]
    body = [*head, *(["", "[settings]", *settings] if settings else []), *taken.lines()]
    told = [line for line in settings if not line.startswith("#")]
    return Draft("\n".join(body) + "\n", (*told, *taken.told), (*left, *unset))


class _Taken:
    """Entries of the overlay by key; the last one of a key stands."""

    def __init__(self, run: Run, parent: Baseline) -> None:
        self.run, self.parent = run, parent
        self._entries: dict[str, list[str]] = {}
        self._said: dict[str, str] = {}

    @property
    def told(self) -> list[str]:
        return list(self._said.values())

    def lines(self) -> list[str]:
        return [line for entry in self._entries.values() for line in ("", *entry)]

    def keep_override(self, demand: Demand, raw: str) -> None:
        """A bound that the run was judged by in place of the parent's."""
        if demand.required is None:
            return
        said = f"{self.run} was judged with --set {demand.key}={raw}"
        before = self.parent.demands[demand.key].required
        looser = before is not None and not demand.required.at_least_as_strict_as(before)
        self._add(demand.key, "required", demand.required, [f"# {visible(said)}"], demand.why, said if looser else "")

    def take(self, take: Take, demand: Demand, rows: list[dict[str, Any]]) -> list[str]:
        """Add what the node showed, where it is tighter than the parent; else the reason in words, if any."""
        open_row = next((row for row in rows if row["verdict"] not in _JUDGED), None)
        if not rows or open_row is not None:
            return [f"{take.key}: {visible(open_row['message'], _LONGEST) if open_row else 'it was not judged'}"]
        try:
            bound = Bound.parse({take.operator: _operand(take.operator, rows)}, demand.unit)
        except (BoundError, UnitError) as error:
            return [f"{take.key}: {visible(str(error), _LONGEST)}"]
        before: Bound | None = getattr(demand, take.bound)
        stricter = before is None or bound.at_least_as_strict_as(before)
        overridden = take.key in self._entries
        if before is not None and not overridden and (before.at_least_as_strict_as(bound) or not stricter):
            return []  # the parent demands as much already, or more
        comments = [f"# {visible(message, _LONGEST)}" for message in _messages(rows)]
        because = "" if stricter else f"{self.run} was judged with --set {take.key}"
        self._add(take.key, take.bound, bound, comments, take.why, because)
        return []

    def _add(self, key: str, kind: str, bound: Bound, comments: list[str], why: str, because: str) -> None:
        entry = [*comments, f"[{_text(key)}]", f"{kind} = {{ {bound.operator} = {_value(bound.operand)} }}"]
        entry += [f'source = "{SOURCE}"', f"why = {_text(f'{why}; as in {self.run}')}"]
        self._entries[key] = entry + ([f"loosened_because = {_text(because)}"] if because else [])
        self._said[key] = f"{key}: {kind} {visible(str(bound), _LONGEST)}"


def _rows(take: Take, demand: Demand, found: dict[str, Any], node: Node) -> list[dict[str, Any]]:
    """What the node showed of a key: its findings, or its reading where the baseline leaves the key open."""
    if not demand.absent or take.read is None:
        return [row for row in found["findings"] if row["key"] == take.key]
    reading = take.read(node)
    known = isinstance(reading, Known)
    told = f"is {reading.value}" if isinstance(reading, Known) else f"is unknown: {reading.reason}"
    return [
        {
            "verdict": "pass" if known else "unverified",
            "observed": observed_json(demand, reading),
            "message": f"node: {demand.title} {told}",
        }
    ]


def _operand(operator: str, rows: list[dict[str, Any]]) -> Any:
    """What several parts showed as the operand of one bound; raises `BoundError` where there is none."""
    seen = [row["observed"] for row in rows]
    if any(each is None or not _is_plain(each["value"]) for each in seen):
        raise BoundError("it is no number and no short word")
    units = {each["unit"] for each in seen}
    values = [each["value"] for each in seen]
    if len(units) > 1:
        raise BoundError(f"its parts were read in several units: {', '.join(sorted(map(str, units)))}")
    unit = units.pop()
    if operator == "one_of":
        return sorted(set(values), key=str)
    if operator == "equals" or unit == "version":
        if len(set(values)) > 1:
            raise BoundError(f"its parts differ: {', '.join(map(str, dict.fromkeys(values)))}")
        value = values[0]
    else:
        value = min(values) if operator == "min" else max(values)
    if not unit or unit == "version":
        return value
    return _measure(Quantity(value, unit), down=operator == "min")


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= _LONGEST and value.isprintable()
    return isinstance(value, (int, float)) and math.isfinite(value)


def _measure(quantity: Quantity, *, down: bool) -> str:
    """A quantity as a baseline writes it, rounded to the side on which the node still meets it."""
    steps = quantity.value * 1000
    number = Decimal(math.floor(steps) if down else math.ceil(steps)) / 1000
    return f"{number.normalize():f} {quantity.unit}"


def _messages(rows: list[dict[str, Any]]) -> list[str]:
    """What the findings said, once where several parts said the same of themselves."""
    texts = dict.fromkeys(row["message"].partition(": ")[2] or row["message"] for row in rows)
    return list(texts)[:4]


def _value(operand: Any) -> str:
    """A bound's operand in TOML."""
    if isinstance(operand, tuple):
        return f"[{', '.join(map(_value, operand))}]"
    if isinstance(operand, bool):
        return "true" if operand else "false"
    if isinstance(operand, Quantity):
        return f'"{Decimal(str(operand.value)):f} {operand.unit}"'
    return str(operand) if isinstance(operand, (int, float)) else _text(str(operand))


def _text(text: str) -> str:
    """A text in TOML, on one line and without anything invisible."""
    return json.dumps(visible(text), ensure_ascii=False)


def _settings(found: dict[str, Any], judging: Judging, parent: Baseline) -> tuple[list[str], list[str]]:
    """The lines of [settings], and what could not be set and why."""
    lines, left, unset = [], [], dict(found["overrides"])
    for key, read in SETTINGS.items():
        if key not in parent.settings:
            continue
        setting, comment = read(found, judging)
        if setting:
            lines += [f"# {visible(comment)}", f"{_text(key)} = {setting}"]
            unset.pop(key, None)
        elif comment:
            left.append(f"{key}: {comment}")
    lines += [f"{_text(key)} = {_text(raw)}" for key, raw in unset.items() if key in parent.settings]
    return lines, left


def _slots(found: dict[str, Any], _: Judging) -> tuple[str, str]:
    gpus = found["node"]["gpus"]
    if not all(gpu["bus_id"] for gpu in gpus):
        return "", "the bus ids of some GPUs are unknown"
    named = ", ".join(f"{gpu['subject']} in slot {gpu['slot']}" for gpu in gpus if gpu.get("slot"))
    comment = "where nodes of this model have their GPUs: a missing one is named by its bus id"
    return f"[{', '.join(_text(gpu['bus_id']) for gpu in gpus)}]", f"{comment}{f' ({named})' if named else ''}"


def _port_rate(_: dict[str, Any], judging: Judging) -> tuple[str, str]:
    """The highest rate at which as many ports count as do now."""
    node, terms = judging.node, judging.node.sources.terms
    counted = node.network.ports_at_rate
    if not isinstance(counted, Known) or not counted.value:
        return "", ""  # the demand on the ports says why
    for rate in _RATES:
        quicker = Quantity(rate, "Gb/s")
        at_rate = Network(Sources(node.evidence, replace(terms, port_rate=quicker))).ports_at_rate
        if quicker >= terms.port_rate and isinstance(at_rate, Known) and at_rate.value == counted.value:
            return f'"{quicker}"', f"a port counts from this rate on: {counted.note}"
    return f'"{terms.port_rate}"', f"a port counts from this rate on: {counted.note}"


def _matrix(_: dict[str, Any], judging: Judging) -> tuple[str, str]:
    """How GPUs and adapters lie to each other, one text for each GPU."""
    found = judging.node.places.as_setting
    if not isinstance(found, Known):
        return "", ""  # the demand on the matrix says why
    rows = ", ".join(_text(row) for row in found.value.split(","))
    return f"[{rows}]", "how GPUs, adapters and NUMA nodes lie to each other on every node of this model"


# What is set so that the demands mean this site's parts: setting -> how it is read: (TOML value, comment or reason)
SETTINGS: dict[str, Callable[[dict[str, Any], Judging], tuple[str, str]]] = {
    "gpu.slots": _slots,
    "network.port-rate": _port_rate,
    "topology.matrix": _matrix,
}
