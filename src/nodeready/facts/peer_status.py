"""Which GPUs can read each other's memory, from `nvidia-smi topo -p2p r`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import lines
from nodeready.reading import Known, Reading, Unknown

PEER_STATUS = command("nvidia-smi", "topo", "-p2p", "r", family="nvidia", serves=("nvlink.peers",))

_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_GPU = re.compile(r"GPU([0-9]{1,4})")
_WORDS = {
    "OK": "OK",
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "DR": "disabled by regkey",
    "NS": "not supported",
}


class PeerStatus(NamedTuple):
    """The word for each ordered pair of nvidia-smi's indices, by whole rows: `OK`, or what stands in the way."""

    gpus: tuple[int, ...]
    pairs: dict[tuple[int, int], str]

    def of(self, index: int) -> Reading[dict[int, str]]:
        """The word for each other GPU."""
        found = {other: self.pairs[index, other] for other in self.gpus if (index, other) in self.pairs}
        if index not in self.gpus or len(found) < len(self.gpus) - 1:
            return Unknown(f"no whole row of nvidia-smi topo -p2p r tells of GPU{index}")
        return Known(found)


def parse(data: bytes) -> PeerStatus | Unknown:
    r"""The matrix of one output; a row that is cut, or holds a word that is not known (U among them), is left out.

    >>> status = parse(b" \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tCNS\tX\t\n\nLegend:\n")
    >>> status.of(0).value, status.of(1).value
    ({1: 'OK'}, {0: 'chipset not supported'})
    """
    if not data.strip():
        return Unknown("nvidia-smi topo -p2p r printed nothing")
    rows = [_ANSI.sub("", line).split() for line in lines(data)]
    heads = [row for row in rows if row and all(_GPU.fullmatch(word) for word in row)]
    if len(heads) != 1:
        first = next((" ".join(row) for row in rows if row), "")
        return Unknown(f"nvidia-smi topo -p2p r has no heading of a matrix, or several: {first[:200]!r}")
    gpus = tuple(int(word[3:]) for word in heads[0])
    if len(set(gpus)) < len(gpus):
        return Unknown("the heading of nvidia-smi topo -p2p r names a GPU twice")
    pairs: dict[tuple[int, int], str] = {}
    seen: set[int] = set()
    for row in rows:
        label = _GPU.fullmatch(row[0]) if row else None
        if label is None or row is heads[0] or len(row) != len(gpus) + 1:
            continue
        index = int(label[1])
        if index in seen or index not in gpus:
            return Unknown(f"nvidia-smi topo -p2p r has two rows of GPU{index}, or one without a column")
        seen.add(index)
        words = dict(zip(gpus, row[1:], strict=True))
        if words.pop(index) == "X" and all(word in _WORDS for word in words.values()):
            pairs.update({(index, other): _WORDS[word] for other, word in words.items()})
    return PeerStatus(gpus, pairs)
