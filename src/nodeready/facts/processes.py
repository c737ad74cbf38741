"""Which processes cannot be interrupted, and which are dead and not buried, from two looks of `ps`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import lines
from nodeready.reading import Unknown

if TYPE_CHECKING:
    from nodeready.evidence.probe import Probe

# only processes in these states are kept: the names of the others are nobody's business
_SCRIPT = (
    "ps -eo pid=,ppid=,stat=,etimes=,comm= | "
    "awk '$3 ~ /^[DZ]/ {print $1, $2, substr($3, 1, 1), $4, substr($5, 1, 40)} END {print NR \" processes\"}'"
)
_ROW = re.compile(r"([0-9]{1,10}) ([0-9]{1,10}) ([DZ]) ([0-9]{1,12}) ?(.{0,40})")
_LAST = re.compile(r"([0-9]{1,10}) processes")
_KTHREADD = 2


def _probe(name: str, after: str = "") -> Probe:
    look = f"{_SCRIPT}; : again" if after else _SCRIPT  # two command lines, so that each has its own answer
    return command("sh", "-c", look, name=name, after=after, serves=("host.processes",))


PROCESSES = _probe("processes")
PROCESSES_LATER = _probe("processes-later", after="processes")


class Process(NamedTuple):
    """One process: `state` is D (waits, and cannot be interrupted) or Z (dead); its age is in seconds."""

    pid: int
    parent: int
    state: str
    age: int
    name: str

    @property
    def is_kernel_thread(self) -> bool:
        """Whether it is the kernel's own, which waits for disks by trade."""
        return _KTHREADD in (self.pid, self.parent)


def parse(data: bytes) -> tuple[Process, ...] | Unknown:
    r"""The processes in state D or Z; unknown where the closing count is missing or counts nothing.

    >>> stuck, = parse(b"4711 1 D 86000 nvidia-smi\n3021 processes\n")
    >>> stuck.pid, stuck.state, stuck.name
    (4711, 'D', 'nvidia-smi')
    >>> parse(b"0 processes\n").reason
    'ps lists no process'
    """
    text = lines(data)
    last = _LAST.fullmatch(text[-1].strip()) if text else None
    if last is None:
        return Unknown("the list of processes was cut before its end")
    if int(last[1]) == 0:
        return Unknown("ps lists no process")
    found = []
    for line in text[:-1]:
        match = _ROW.fullmatch(line)
        if match is None:
            return Unknown(f"{line[:80]!r} is no line of a process")
        found.append(Process(int(match[1]), int(match[2]), match[3], int(match[4]), match[5]))
    return tuple(found)
