"""How much memory the kernel counts, from /proc/meminfo."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import file
from nodeready.facts.text import is_cut, lines
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown

MEMINFO = file("/proc/meminfo", serves=("memory.installed", "host.swap"))

_TOTAL = re.compile(r"MemTotal:\s+([0-9]{1,15}) kB\s*")
_SWAP = re.compile(r"SwapTotal:\s+([0-9]{1,15}) kB\s*")
_NEXT = re.compile(r"MemFree:\s+[0-9]{1,15} kB\s*")


class Meminfo(NamedTuple):
    """What the kernel says of its memory; `total` and `swap` are in KiB, which that file writes as kB."""

    total: Reading[Quantity]
    swap: Reading[Quantity]


def parse(data: bytes) -> Meminfo | Unknown:
    r"""The total of a whole file; unknown where the file is empty, cut or something else.

    >>> parse(b"MemTotal:       1056784384 kB\nMemFree:        1012345678 kB\n").total.value
    Quantity(value=1056784384, unit='KiB')
    >>> parse(b"MemTotal:       1056784384 kB\n").reason
    'meminfo stops after MemTotal: it was cut'
    """
    if not data.strip():
        return Unknown("meminfo is empty")
    if is_cut(data):
        return Unknown("meminfo stops in the middle of a line: it was cut")
    text = lines(data)
    at = [number for number, line in enumerate(text) if line.startswith("MemTotal:")]
    if len(at) != 1:
        return Unknown(f"meminfo has {len(at)} lines of MemTotal, not one")
    if not any(_NEXT.fullmatch(line) for line in text[at[0] + 1 :]):
        return Unknown("meminfo stops after MemTotal: it was cut")
    total = _TOTAL.fullmatch(text[at[0]])
    if total is None:
        return Unknown(f"meminfo says {text[at[0]][:80]!r}, which is no amount of memory")
    return Meminfo(total=Known(Quantity(int(total[1]), "KiB")), swap=_swap(text))


def _swap(text: list[str]) -> Reading[Quantity]:
    sizes = [int(match[1]) for line in text if (match := _SWAP.fullmatch(line))]
    if len(sizes) != 1:
        return Unknown(f"meminfo has {len(sizes)} lines of SwapTotal, not one")
    return Known(Quantity(sizes[0], "KiB"))
