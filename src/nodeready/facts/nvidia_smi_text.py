"""`nvidia-smi -q`: the text form, in which indentation tells what a line is about."""

from __future__ import annotations

import re

from nodeready.evidence.probe import command
from nodeready.facts.nvidia_smi import PROCESS, Smi
from nodeready.facts.nvidia_smi_document import Block, Spot, assemble, gpu_paths, head_paths
from nodeready.facts.nvidia_smi_xml import SMI_XML
from nodeready.facts.text import lines
from nodeready.reading import Unknown

SMI_TEXT = command("nvidia-smi", "-q", family="nvidia", deadline=10.0, instead_of=SMI_XML.name)

_GPU_LINE = re.compile(r"GPU ([0-9A-Fa-f]+(?::[0-9A-Fa-f]+)+\.[0-9A-Fa-f]+)")
_BANNER = re.compile(r"=+NVSMI LOG=+")
_ELIDED = ("[...]", "...")

_GPU = Spot().grow(gpu_paths("text"))
_HEAD = frozenset(head_paths("text"))
_PROCESSES = _GPU.below["Processes"]
_PROCESS, *_PROCESS_PARTS = PROCESS["text"]


def parse(data: bytes) -> Smi | Unknown:
    """The document, as far as it goes: a cut one keeps the readings of its complete lines; nothing is ever raised.

    What a cut could have taken away is unknown: `attached` unless the end of every GPU was seen, a list
    of processes unless something follows it, a value that another line could overrule.

    >>> smi = parse(b'''
    ... ==============NVSMI LOG==============
    ...
    ... Driver Version                            : 535.161.08
    ... Attached GPUs                             : 1
    ... GPU 00000000:19:00.0
    ...     Product Name                          : NVIDIA H100 80GB HBM3
    ...     Clocks Event Reasons
    ...         HW Slowdown                       : Active
    ...             HW Power Brake Slowdown       : Active
    ...     Processes                             : None
    ... ''')
    >>> gpu = smi.gpus["0000:19:00.0"]
    >>> smi.attached.value, gpu["event_power_brake"].value, gpu["processes"].value
    (1, True, ())
    >>> gpu["margin"].reason
    'the document has no Temperature/GPU T.Limit Temp'
    """
    if not data.strip():
        return Unknown("the output is empty")
    reader = _Reader()
    for line in lines(data):
        reader.take(line)
    if not reader.head.said and not reader.blocks:
        said = f"{reader.complaints[0]!r:.200}" if reader.complaints else "no line names a GPU"
        return Unknown(f"not an nvidia-smi document: {said}")
    return assemble("text", reader.head, reader.blocks, reader.complaints)


class _Reader:
    """Takes line by line; `places` holds the indentation and the spot of each line that is open above."""

    def __init__(self) -> None:
        self.head = Block(complete=True)
        self.blocks: list[Block] = []
        self.complaints: list[str] = []
        self.places: list[tuple[int, Spot | None]] = []

    def take(self, line: str) -> None:
        text = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        if not text:
            self._list_ends()
        elif indent == 0:
            self._top(text)
        elif self.places:
            self._inside(indent, text)
        elif not self.blocks:
            self.complaints.append(text)

    def _top(self, text: str) -> None:
        gpu = _GPU_LINE.fullmatch(text)
        key, colon, value = _split(text)
        self._block_ends(by_another=bool(gpu))
        if gpu:
            self.blocks.append(Block(gpu[1], complete=False))
            self.places = [(0, _GPU)]
        elif colon and key in _HEAD:
            self.head.put(key, value)
        elif not colon and text not in _ELIDED and not _BANNER.fullmatch(text):
            self.complaints.append(text)

    def _inside(self, indent: int, text: str) -> None:
        while self.places[-1][0] >= indent:
            if self.places.pop()[1] is _PROCESSES:
                self._list_ends()
        if text in _ELIDED:
            self.blocks[-1].gap = True
            if len(self.places) > 1:  # the section that goes on after the gap could be another one
                indent -= 1
        key, colon, value = _split(text)
        parent = self.places[-1][1]
        spot = None if parent is None else parent.below.get(key)
        self.places.append((indent, spot))
        if spot is None:
            return
        block = self.blocks[-1]
        if spot is _PROCESSES:
            block.complete = True
            block.list_open = not colon
        if spot.path == _PROCESS:
            block.processes.append({})
        if colon and spot.path in _PROCESS_PARTS:
            block.processes[-1][spot.path] = value
        elif colon:
            block.put(spot.path, value)

    def _block_ends(self, *, by_another: bool) -> None:
        """A line at the margin ends a block: what follows any but a GPU's own could be about another GPU."""
        if not self.blocks:
            return
        if by_another:
            self._list_ends()
            self.blocks[-1].complete = True
        elif self.places and not self.blocks[-1].complete:
            self.blocks[-1].gap = True
        self.places = []

    def _list_ends(self) -> None:
        if self.blocks and self.places:
            self.blocks[-1].list_open = False


def _split(text: str) -> tuple[str, str, str]:
    key, colon, value = text.partition(" : ")
    if not colon and text.endswith(" :"):
        key, colon = text[:-2], " :"
    return key.rstrip(), colon, value.strip()
