"""`nvidia-smi nvlink -s`: the state of every NVLink of every GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import is_cut, lines
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown

NVLINK_STATUS = command("nvidia-smi", "nvlink", "-s", family="nvidia")

_GPU = re.compile(r"GPU ([0-9]{1,3}): (.+?)(?: \(UUID: ([^()\s]+)\))?")
_LINK = re.compile(r"Link ([0-9]{1,3}): (?:([0-9]{1,6}(?:\.[0-9]{1,6})?) GB/s|(<?inactive>?))", re.IGNORECASE)
_ALL_INACTIVE = "all links are inactive"
_NO_QUERIES = "not supported for devices in mig mode"
_ELIDED = ("[...]", "...")


@dataclass(frozen=True)
class Link:
    """One NVLink; `speed` is per direction, None where the link is inactive."""

    index: int
    speed: Quantity | None


class LinkStatus(NamedTuple):
    """One GPU's links, empty where the driver says that all of them are inactive."""

    uuid: Reading[str]
    name: str
    links: Reading[tuple[Link, ...]]


class NvLink(NamedTuple):
    """The GPUs of one output, by the index that nvidia-smi gave them."""

    gpus: dict[int, LinkStatus]


@dataclass(frozen=True)
class _Block:
    index: int
    uuid: Reading[str]
    name: str
    body: list[str]


def parse(data: bytes) -> NvLink | Unknown:
    """Every GPU's list of links, unknown where it has a gap, a strange line or could be cut; nothing is ever raised.

    The last list of an output could lack links at its end: it is unknown where the output stops in a
    line, or where another GPU lists more. With one GPU nothing more can be known.

    >>> output = parse(b'''GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691)
    ...          Link 0: 26.562 GB/s
    ...          Link 1: <inactive>
    ... ''')
    >>> [(link.index, str(link.speed)) for link in output.gpus[0].links.value]
    [(0, '26.562 GB/s'), (1, 'None')]
    """
    if not data.strip():
        return Unknown("the output is empty")
    blocks, first = _blocks(lines(data))
    if not blocks:
        return Unknown(f"no GPU is listed: {first!r:.200}" if first else "the output is cut in its first line")
    read = [_links(block.body) for block in blocks]
    read[-1] = _last(read, blocks, cut=is_cut(data))
    gpus: dict[int, LinkStatus] = {}
    for block, links in zip(blocks, read, strict=True):
        twice = Unknown(f"GPU {block.index} is listed twice")
        again = block.index in gpus
        gpus[block.index] = LinkStatus(twice if again else block.uuid, block.name, twice if again else links)
    return NvLink(gpus)


def _blocks(text: list[str]) -> tuple[list[_Block], str]:
    """Each GPU with the lines below it, and the first line of all."""
    blocks: list[_Block] = []
    first = ""
    for line in map(str.strip, text):
        first = first or line
        match = _GPU.fullmatch(line)
        if match:
            uuid: Reading[str] = Known(match[3]) if match[3] else Unknown("the output has no UUID of this GPU")
            blocks.append(_Block(int(match[1]), uuid, match[2], []))
        elif blocks and line:
            blocks[-1].body.append(line)
    return blocks, first


def _links(body: list[str]) -> Reading[tuple[Link, ...]]:
    if not body:
        return Unknown("no link is listed")
    said = body[0].lower()
    if len(body) == 1 and _ALL_INACTIVE in said:
        return Known((), note=body[0][:200])
    if _NO_QUERIES in said:
        return Unknown(body[0][:200])
    links = []
    for position, line in enumerate(body):
        link = _link(line, position)
        if isinstance(link, Unknown):
            return link
        links.append(link)
    return Known(tuple(links))


def _link(line: str, position: int) -> Link | Unknown:
    match = _LINK.fullmatch(line)
    if match is None and line not in _ELIDED:
        return Unknown(f"a line is not understood: {line!r:.200}")
    if match is None or int(match[1]) != position:
        return Unknown(f"the list of links has a gap: {line!r} stands where link {position} should")
    return Link(position, None if match[3] else Quantity(float(match[2]), "GB/s"))


def _last(read: list[Reading[tuple[Link, ...]]], blocks: list[_Block], *, cut: bool) -> Reading[tuple[Link, ...]]:
    """What can be trusted of the last list, which a cut would have shortened."""
    last = read[-1]
    if isinstance(last, Unknown):
        return last
    if cut:
        return Unknown("the output stops in the middle of a line: the last list may be cut")
    held = len(last.value)
    for links, block in zip(read[:-1], blocks, strict=False):
        if held and isinstance(links, Known) and len(links.value) > held:
            return Unknown(f"its list may be cut: {held} links where GPU {block.index} lists {len(links.value)}")
    return last
