"""`nvidia-smi -q -x`: the XML form, which is whole or says nothing."""

from __future__ import annotations

from typing import NoReturn
from xml.parsers import expat

from nodeready.evidence.probe import command
from nodeready.facts.nvidia_smi import PROCESS, Smi
from nodeready.facts.nvidia_smi_document import Block, Spot, assemble, gpu_paths, head_paths
from nodeready.reading import Unknown

SMI_XML = command("nvidia-smi", "-q", "-x", family="nvidia", deadline=10.0)

_STARTS = ("<?xml", "<!DOCTYPE", "<nvidia_smi_log")
_END = "</nvidia_smi_log>"

_GPU = Spot().grow(gpu_paths("xml"))
_LOG = Spot().grow(head_paths("xml"))
_LOG.below["gpu"] = _GPU
_DOCUMENT = Spot()
_DOCUMENT.below["nvidia_smi_log"] = _LOG
_PROCESSES = _GPU.below["processes"]
_PROCESS = _PROCESSES.below["process_info"]
_PROCESS_PARTS = frozenset(PROCESS["xml"][1:])
_LARGE = frozenset({"supported_clocks"})  # near half of a document, and nobody looks there


class _RefusedError(Exception):
    """The document is XML, and nothing that this parser reads."""


def parse(data: bytes) -> Smi | Unknown:
    """The document, unknown where it is empty, cut or no such document; nothing is ever raised.

    Entities are never declared by a driver, so that a document which does is refused, and its DTD is
    not fetched. A document cut anywhere is not well formed: nothing is read from it.

    >>> smi = parse(b'''<?xml version="1.0" ?>
    ... <!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
    ... <nvidia_smi_log>
    ...     <driver_version>580.105.08</driver_version>
    ...     <attached_gpus>1</attached_gpus>
    ...     <gpu id="00000000:53:00.0">
    ...         <product_name>NVIDIA H100 80GB HBM3</product_name>
    ...         <temperature><gpu_temp_tlimit>58 C</gpu_temp_tlimit></temperature>
    ...     </gpu>
    ... </nvidia_smi_log>
    ... ''')
    >>> smi.attached.value, str(smi.gpus["0000:53:00.0"]["margin"].value), smi.gpus["0000:53:00.0"]["serial"].reason
    (1, '58 degC', 'the document has no serial')
    """
    text = data.decode("utf-8", "replace")
    if not text.strip():
        return Unknown("the output is empty")
    start = min((at for at in map(text.find, _STARTS) if at >= 0), default=-1)
    if start < 0:
        return Unknown(f"not an nvidia-smi document: {text.strip().splitlines()[0]!r:.200}")
    end = text.rfind(_END)
    end = len(text) if end < start else end + len(_END)
    reader = _Reader()
    try:
        reader.read(text[start:end])
    except expat.ExpatError as error:
        line = text.count("\n", 0, start) + error.lineno
        return Unknown(f"the XML is cut or not well formed at line {line}: {expat.ErrorString(error.code)}")
    except _RefusedError as error:
        return Unknown(f"not an nvidia-smi document: {error}")
    complaints = [*_lines(text[:start]), *reader.complaints, *_lines(text[end:])]
    return assemble("xml", reader.head, reader.blocks, complaints)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip("\ufeff").splitlines() if line.strip()]


class _Reader:
    """Follows the tags; `spots` holds where each open element stands, None where nobody looks."""

    def __init__(self) -> None:
        self.head = Block(complete=True)
        self.blocks: list[Block] = []
        self.complaints: list[str] = []
        self.spots: list[Spot | None] = [_DOCUMENT]
        self.texts: list[list[str]] = [[]]
        self.childless = False
        self.depth = 0
        self.parser = expat.ParserCreate()

    def read(self, document: str) -> None:
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.SkippedEntityHandler = self._entity
        self._look()
        self.parser.Parse(document, True)

    def _look(self) -> None:
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _look_away(self) -> None:
        self.depth = 0
        self.parser.StartElementHandler = self._start_unseen
        self.parser.EndElementHandler = self._end_unseen
        self.parser.CharacterDataHandler = None

    def _start_unseen(self, _tag: str, _attributes: dict[str, str]) -> None:
        self.depth += 1

    def _end_unseen(self, tag: str) -> None:
        if self.depth == 0:
            self._look()
            self._end(tag)
        else:
            self.depth -= 1

    def _doctype(self, _name: str, _system: str | None, _public: str | None, internal_subset: bool) -> None:
        if internal_subset:
            raise _RefusedError("its DOCTYPE declares things of its own")

    def _entity(self, name: str, _is_parameter: bool) -> NoReturn:
        raise _RefusedError(f"it uses the entity {name!r:.80}, which nothing declares")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self.spots[-1]
        spot = None if parent is None else parent.below.get(tag)
        if parent is _DOCUMENT and spot is None:
            raise _RefusedError(f"its root is <{tag[:80]}>")
        if spot is _GPU:
            self.blocks.append(Block(attributes.get("id", ""), complete=True))
        elif spot is _PROCESS:
            self.blocks[-1].processes.append({})
        elif spot is None and tag in _LARGE:
            self._look_away()
        self.spots.append(spot)
        self.texts.append([])
        self.childless = True

    def _text(self, text: str) -> None:
        if self.spots[-1] is not None:
            self.texts[-1].append(text)

    def _end(self, _tag: str) -> None:
        spot, childless = self.spots.pop(), self.childless
        text = "".join(self.texts.pop()).strip()
        self.childless = False
        if spot is None or not (text or childless):
            return
        if not spot.path:
            self.complaints.extend(_lines(text))
        elif spot.path in _PROCESS_PARTS:
            self.blocks[-1].processes[-1][spot.path] = text
        elif spot is _PROCESSES:
            self.blocks[-1].put(spot.path, text or "None")
        else:
            (self.blocks[-1] if _GPU in self.spots else self.head).put(spot.path, text)
