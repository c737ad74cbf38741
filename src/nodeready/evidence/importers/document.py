"""A single file: its first lines tell what it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.evidence.importers import query_gpu

if TYPE_CHECKING:
    from collections.abc import Callable

LOOKED_AT = 64 * 2**10

# a column of --query-gpu, and those of which one is in nearly every table
_COLUMN = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*(?: \[[^\[\],]{1,8}\])?")
_USUAL = frozenset({b"pci.bus_id", b"gpu_bus_id", b"name", b"gpu_name", b"uuid", b"gpu_uuid", b"index", b"serial"})


def _is_csv(start: bytes) -> bool:
    first = next((line for line in start.splitlines() if line.strip()), b"")[:20_000]
    cells = [cell.strip() for cell in first.split(b",")]
    return all(_COLUMN.fullmatch(cell) for cell in cells) and not _USUAL.isdisjoint(cells) and len(cells) > 1


# evidence name: how such a document shows itself in its first 64 KiB
_FORMS: tuple[tuple[str, Callable[[bytes], bool]], ...] = (
    ("nvidia-smi_-q_-x", lambda start: b"<nvidia_smi_log" in start),
    ("nvidia-smi_-q", lambda start: b"NVSMI LOG" in start or b"\nAttached GPUs" in start),
    ("dcgmi_diag_-j", lambda start: b'"DCGM Diagnostic"' in start or b'"DCGM GPU Diagnostic"' in start),
    ("nvidia-smi", lambda start: b"| NVIDIA-SMI " in start),
    (query_gpu.NAME, _is_csv),
)


# what people hand in instead, and what to hand in
_NEARLY: tuple[tuple[bytes, str], ...] = (
    (b"| Diagnostic ", "the table of `dcgmi diag`, in which results are joined and cut: run it again with -j"),
    (
        b"NVLINK Error Counts",
        "what `dcgmi nvlink -e` prints, which is not read: hand in `nvidia-smi nvlink -s` in a folder",
    ),
)


def nearly(start: bytes) -> str:
    """What a document is that is not read but known, and what to do; '' for any other."""
    return next((words for mark, words in _NEARLY if mark in start[:LOOKED_AT]), "")


def name_of(start: bytes, file_name: str) -> str | None:
    """The evidence name of a document that begins so, None where it is none that is known."""
    found = next((name for name, shows in _FORMS if shows(start[:LOOKED_AT])), None)
    return found or query_gpu.alias(file_name) or None
