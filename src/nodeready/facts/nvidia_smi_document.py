"""From what a document says, path by path, to readings: the same for both forms of `nvidia-smi -q`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nodeready.facts import nvidia_smi_values as values
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.nvidia_smi import FIELDS, HEADER, PROCESS, RESET_STATUS, Field, Form, Smi
from nodeready.facts.text import no_value
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_RECOVERY = "recovery_action"
_LONGEST = 1000  # characters of a value: a flood is none


class _Look(NamedTuple):
    """Where one form has a field: the parts of each spelling."""

    spellings: list[list[str]]
    convert: Callable[[str], Any]


def _looks(fields: Mapping[str, Field], form: Form) -> dict[str, _Look]:
    return {
        name: _Look([path.split(" + ") for path in getattr(field, form)], field.convert)
        for name, field in fields.items()
    }


_HEAD: dict[Form, dict[str, _Look]] = {"xml": _looks(HEADER, "xml"), "text": _looks(HEADER, "text")}
_GPU: dict[Form, dict[str, _Look]] = {"xml": _looks(FIELDS, "xml"), "text": _looks(FIELDS, "text")}
_RESET: dict[Form, dict[str, _Look]] = {"xml": _looks(RESET_STATUS, "xml"), "text": _looks(RESET_STATUS, "text")}


class Spot:
    """A place in the tree of a document at which some field looks; all other places are passed over.

    `path` leads there from the GPU (or from the head of the document) and is empty at the root.
    """

    __slots__ = ("below", "path")

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.below: dict[str, Spot] = {}

    def grow(self, paths: Iterable[str]) -> Spot:
        """The same spot with all these paths below it."""
        for path in paths:
            spot = self
            for name in path.split("/"):
                spot = spot.below.setdefault(name, Spot(f"{spot.path}/{name}".lstrip("/")))
        return self


class Block:
    """One GPU's part of a document, or its head: texts by path, as printed.

    `complete` says that nothing of it can be missing at its end, `gap` that something could be missing
    before. `processes` holds the entries of the list of processes and `list_open` is true while more of
    them could follow.
    """

    def __init__(self, label: str = "", *, complete: bool) -> None:
        self.label = label
        self.complete = complete
        self.said: dict[str, str] = {}
        self.contradicted: dict[str, str] = {}
        self.processes: list[dict[str, str]] = []
        self.list_open = False
        self.gap = False

    def put(self, path: str, text: str) -> None:
        """Keep a text; a second one that says otherwise is kept as a contradiction."""
        if self.said.setdefault(path, text) != text:
            self.contradicted[path] = text


def head_paths(form: Form) -> list[str]:
    """Every path in the head of a document at which something is read."""
    return _paths(_HEAD[form])


def gpu_paths(form: Form) -> list[str]:
    """Every path below a GPU at which something is read."""
    return [*_paths(_GPU[form]), *_paths(_RESET[form]), *PROCESS[form]]


def _paths(looks: Mapping[str, _Look]) -> list[str]:
    return [part for look in looks.values() for parts in look.spellings for part in parts]


def assemble(form: Form, head: Block, blocks: list[Block], complaints: list[str]) -> Smi:
    """The document of these blocks. A GPU that has two has no reading at all."""
    gpus: dict[str, dict[str, Reading[Any]]] = {}
    doubts = []
    for block in blocks:
        bus_id = normal_bus_id(block.label)
        if bus_id is None:
            doubts.append(f"a GPU goes by {block.label!r:.80}, which is no bus id")
        elif bus_id in gpus:
            doubts.append(f"GPU {bus_id} is in the document twice")
            gpus[bus_id] = dict.fromkeys(FIELDS, Unknown(doubts[-1]))
        else:
            gpus[bus_id] = _gpu(block, form)
    doubts.extend(f"the document is cut in GPU {block.label}" for block in blocks if not block.complete)
    says = {name: _reading(look, head) for name, look in _HEAD[form].items()}
    attached = _attached(says["attached"], len(blocks), doubts)
    complaint = "; ".join(line[:200] for line in complaints[:8])
    return Smi(says["driver_version"], says["cuda_version"], attached, gpus, complaint)


def _attached(said: Reading[int], held: int, doubts: list[str]) -> Reading[int]:
    if isinstance(said, Unknown):
        return said
    if said.value != held:
        doubts = [f"the header says {said.value} GPUs, the document holds {held}", *doubts]
    return Unknown("; ".join(doubts)) if doubts else said


def _gpu(block: Block, form: Form) -> dict[str, Reading[Any]]:
    readings = {name: _reading(look, block) for name, look in _GPU[form].items()}
    if _GPU[form][_RECOVERY].spellings[0][0] not in block.said:
        readings[_RECOVERY] = _by_reset_status(block, form)
    if block.list_open or block.processes:
        readings["processes"] = _processes(block, form)
    return readings


def _reading(look: _Look, block: Block) -> Reading[Any]:
    for parts in look.spellings:
        if any(part in block.said for part in parts):
            return _sum([_value(part, look.convert, block) for part in parts])
    for parts in look.spellings:  # `Remapped Rows : N/A` stands for all that would be below it
        section = parts[0]
        while "/" in section:
            section = section.rpartition("/")[0]
            if section in block.said:
                return Unknown(f"{section} reads {block.said[section]!r:.80}")
    return _absent(look.spellings[0][0], block)


def _absent(path: str, block: Block) -> Unknown:
    whole = block.complete and not block.gap
    return Unknown(f"the document has no {path}" if whole else f"the document is cut and has no {path}")


def _value(path: str, convert: Callable[[str], Any], block: Block) -> Reading[Any]:
    text = block.said.get(path)
    if text is None:
        return _absent(path, block)
    if path in block.contradicted:
        return Unknown(f"{path} reads {text!r:.80} and {block.contradicted[path]!r:.80}")
    value = None if no_value(text) or len(text) > _LONGEST else convert(text)
    return Unknown(f"{path} reads {text!r:.80}") if value is None else Known(value)


def _sum(parts: list[Reading[Any]]) -> Reading[Any]:
    for part in parts:
        if isinstance(part, Unknown):
            return part
    return parts[0] if len(parts) == 1 else Known(sum(part.value for part in parts))


def _by_reset_status(block: Block, form: Form) -> Reading[str]:
    if not block.complete or block.gap:  # the recovery action, which decides, could have been there
        return _absent(_GPU[form][_RECOVERY].spellings[0][0], block)
    says = {name: _reading(look, block) for name, look in _RESET[form].items()}
    note = "driver without recovery action: by its reset status"
    for name, reading in says.items():
        if isinstance(reading, Known) and reading.value == "Yes":
            return Known(name, note=note)
    for reading in says.values():
        if isinstance(reading, Unknown):
            return reading
    return Known("None", note=note)


def _processes(block: Block, form: Form) -> Reading[tuple[tuple[int, str, str], ...]]:
    if block.list_open:
        return Unknown("the list of processes may be cut")
    _, *places = PROCESS[form]
    listed = []
    for entry in block.processes:
        pid, kind, name = (entry.get(place, "") for place in places)
        if not kind or not name or values.count(pid) is None:
            return Unknown(f"a process is listed with pid {pid!r:.80}, type {kind!r:.80}, name {name!r:.80}")
        listed.append((int(pid), kind, name[:_LONGEST]))
    return Known(tuple(listed))
