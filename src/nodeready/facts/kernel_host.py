"""What lines of the kernel log say of the host: memory, machine checks, drives, file systems, hangs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MEMORY_LOST, MEMORY_MENDED = "memory-uncorrected", "memory-corrected"
DRIVE, DRIVE_RESET, READ_ONLY, HANG = "drive", "drive-reset", "read-only", "hang"

_DISK = r"(?:nvme[0-9]\w{0,8}|sd[a-z]{1,2}[0-9]{0,3}|dm-[0-9]{1,4}|md[0-9]{1,4})"
_KINDS = {
    MEMORY_LOST: r"EDAC MC[0-9]{1,3}: [0-9]{1,9} UE\b|Memory failure: 0x[0-9a-f]+: (?!Unpoisoned)"
    r"|\[Hardware Error\]:.{0,80}\b[Uu]ncorrect|Machine check: Processor context corrupt|mce: Uncorrected",
    MEMORY_MENDED: r"EDAC MC[0-9]{1,3}: [0-9]{1,9} CE\b|\[Hardware Error\]:.{0,80}\bCorrected error"
    r"|Machine check events logged|CMCI storm detected",
    READ_ONLY: r"[Rr]emounting filesystem read-only",
    DRIVE: rf"I/O error, dev {_DISK}\b|critical (?:medium|target|nexus) error, dev {_DISK}\b"
    rf"|Buffer I/O error on dev(?:ice)? {_DISK}\b|EXT4-fs error \(|XFS \([^)]{{1,40}}\): "
    r"(?:metadata I/O error|Corruption|log I/O error|.{0,60}[Ss]hutting down filesystem)|BTRFS error \("
    r"|nvme nvme[0-9]{1,3}: (?:Removing after probe failure|Device not ready|Disabling device after reset failure"
    r"|Abort status: 0x[1-9])|md/raid\w{0,3}:.{0,40}Disk failure",
    DRIVE_RESET: r"nvme nvme[0-9]{1,3}: (?:I/O .{1,40}timeout|I/O tag .{1,60}timeout|resetting controller"
    r"|controller is down; will reset|frozen state error)",
    HANG: r"soft lockup - CPU|hard LOCKUP|task \S{1,40} blocked for more than [0-9]{1,6} seconds"
    r"|rcu.{0,40}(?:detected stalls|self-detected stall)",
}
_ANY = re.compile("|".join(f"(?:{pattern})" for pattern in _KINDS.values()))
# what firmware reports comes as a record of several lines: its weight first, then its part
_RECORD = re.compile(r"\{[0-9]{1,9}\}\[Hardware Error\]: +(event severity|section_type): (.{1,60})")
_BANK = re.compile(
    r"mce: \[Hardware Error\]: CPU [0-9]{1,5}: Machine Check.{0,20}Bank [0-9]{1,3}: ([0-9a-f]{16})", re.IGNORECASE
)
_UNCORRECTED_BIT = 61


class HostEvent(NamedTuple):
    """One line that tells of a fault: its kind, and its text without the time."""

    kind: str
    text: str


def events(text: Iterable[str]) -> tuple[HostEvent, ...]:
    """The events of a log's lines, in their order; what audit records quote is no event.

    >>> [event.kind for event in events(["[ 5.1] EDAC MC: Ver: 3.0.0", "[ 9.2] EDAC MC0: 1 CE on CPU_SrcID#0"])]
    ['memory-corrected']
    """
    found, severity = [], ""
    for line in text:
        if "Error" not in line and _ANY.search(line) is None:
            continue
        if "audit" in line:
            continue
        record, bank = _RECORD.search(line), _BANK.search(line)
        kind = ""
        if record and record[1] == "event severity":
            severity = record[2].strip()
        elif record and "memory" in record[2]:
            kind = MEMORY_MENDED if severity in ("corrected", "info") else MEMORY_LOST
        elif bank:
            kind = MEMORY_LOST if int(bank[1], 16) >> _UNCORRECTED_BIT & 1 else MEMORY_MENDED
        else:
            # compiled when the first fault is found: most logs hold none
            kind = next((kind for kind, pattern in _KINDS.items() if re.search(pattern, line)), "")
        if kind:
            found.append(HostEvent(kind, said(line)))
    return tuple(found)


_PREFIX = re.compile(
    r"^(?:<[0-9]{1,3}>)?(?:\[[^\]]{1,40}\] |\S{10,35} \S{1,60} kernel: |\S{10,35} )?(?:\[ *[0-9.]{1,20}\] )?"
)


def said(line: str) -> str:
    """The message, which is the same in dmesg and in the journal."""
    return line[_PREFIX.match(line).end() :].strip()[:200]  # type: ignore[union-attr]
