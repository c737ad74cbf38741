"""`nvidia-bug-report.log`: many outputs one after the other, each under a line of underscores."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nodeready.evidence.bounds import MAX_FILE, MAX_TOTAL
from nodeready.evidence.recording import Ended, Recording
from nodeready.evidence.unpack import CutError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

SEPARATOR = b"_" * 44
_MARKS = (b"Start of NVIDIA bug report log file", b"nvidia-bug-report.sh Version:")
_END = b"End of NVIDIA bug report log file"
_MAX_LINE = 2**20
_FILE = "*** "
_LISTED = b"*** ls: "
_UNAME = re.compile(r"uname: \S+ (\S+) ")
# where the script runs inside a container, the node's own files lie below this
_ROOTS = ("/.bottlerocket/rootfs", "/host")

JOURNAL = "journalctl_-k_-b_--no-pager_-o_short-iso"
_PROGRAM = r"(?:/\S+/)?"
# how the line above an output reads, and its evidence name; '' ends the output before and is not read
_COMMANDS = (
    (rf"{_PROGRAM}nvidia-smi --query", "nvidia-smi_-q"),
    (rf"{_PROGRAM}nvidia-smi nvlink --status", "nvidia-smi_nvlink_-s"),
    (rf"{_PROGRAM}nvidia-smi .*", ""),
    (rf"{_PROGRAM}lspci -nn", "lspci_-nn"),
    (rf"{_PROGRAM}lspci -nnDvvvxxxx", "lspci_-nnvvv"),
    (rf"{_PROGRAM}dmidecode", "dmidecode_-t_memory"),
    (rf"{_PROGRAM}ibstat", "ibstat"),
    (r"dmesg:", "dmesg"),
    # the lines of this boot that name the driver, and with it every Xid
    (r"  journalctl -b -0:", JOURNAL),
    (r"  journalctl -b -[1-9]:|  /var/log/\S+:", ""),
    (r"Running InfiniBand commands for device: .*", ""),
)
FILES = (
    "proc/meminfo",
    "proc/modules",
    "proc/driver/nvidia/version",
    "etc/os-release",
)


def is_named(name: str) -> bool:
    """Whether a file at the top of a folder has the name that the script gives a report."""
    return name.startswith("nvidia-bug-report.log") and "/" not in name and ".old" not in name


def is_bug_report(start: bytes) -> bool:
    """Whether content that begins so is a bug report, whole or an excerpt."""
    return any(mark in start for mark in _MARKS) or start.count(b"\n" + SEPARATOR + b"\n") >= 2


@dataclass
class BugReport:
    """What a bug report holds: the node's name, and the recordings of the sections that are known.

    `cut` says how it is damaged where its compressed data are.
    """

    host: str = ""
    cut: str = ""
    recordings: dict[str, Recording] = field(default_factory=dict)


def read(pieces: Iterator[bytes], known: Collection[str]) -> BugReport:
    """The known sections; one inside which the report stops, or is damaged, is marked as cut.

    The report has no exit statuses: a section that a command left empty or wrote an error into is read
    like any other output.
    """
    reader = _Reader(known)
    cut = ""
    try:
        for piece in pieces:
            reader.take(piece)
    except CutError as error:
        cut = str(error)
    reader.end(cut)
    return reader.report


class _Reader:
    """Takes the report line by line and keeps the open section; `awaits` is true until its title has come."""

    def __init__(self, known: Collection[str]) -> None:
        self.report = BugReport()
        self._known = known
        self._rest = b""
        self._in_long_line = False
        self._awaits = False
        self._after_blank = True
        self._ended = False
        self._kept = self._size = 0
        self._lines: list[bytes] = []
        self._name = self._title = ""
        self._is_file = self._overflowed = False

    def take(self, piece: bytes) -> None:
        """Some bytes of the report."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if self._in_long_line:
                self._put(line + b"\n")
                self._in_long_line = False
            else:
                self._line(line)
        if len(self._rest) > _MAX_LINE:  # no title is that long
            self._put(self._rest)
            self._rest, self._in_long_line = b"", True

    def end(self, cut: str) -> None:
        """The report has come to its end, or to where it is cut."""
        if self._rest:
            self._put(self._rest)
        self.report.cut = cut
        whole = self._ended and not cut
        self._store("" if whole else cut or f"the bug report stops inside the section {self._title!r:.80}")
        if not whole and self.report.recordings:
            self._tell_of_the_rest()

    def _tell_of_the_rest(self) -> None:
        """What a report that is cut may have gone on to hold."""
        reason = "it is not in the bug report, which is cut"
        for name in (*(name for _, name in _COMMANDS), *FILES):
            if name in self._known and name not in self.report.recordings:
                self.report.recordings[name] = Recording(name, ended=Ended.NOT_RUN, rc=None, reason=reason)

    def _line(self, line: bytes) -> None:
        text = line.rstrip(b"\r")
        if text == SEPARATOR:
            self._store("")
            self._awaits, self._after_blank = True, True
            return
        if self._awaits and text.strip():
            self._awaits = False
            self._ended = text.startswith(_END)
            self._open(text, title=True)
        elif not self._awaits and not (self._after_blank and self._open(text, title=False)):
            self._body(line)
        self._after_blank = not text.strip()

    def _open(self, text: bytes, *, title: bool) -> bool:
        """Begin a section where the line is the title of one; inside a section only a command's line is."""
        line = text[:300].decode("utf-8", "replace")
        name = next((name for pattern, name in _COMMANDS if re.fullmatch(pattern, line)), None)
        if name is None and not title:
            return False
        if not title:
            self._store("")
        if name is None and line.startswith(_FILE):
            name = _file_name(line)
        self._name = name if name and name in self._known else ""
        self._title, self._is_file = line, line.startswith(_FILE)
        return True

    def _body(self, line: bytes) -> None:
        if not self.report.host and line.startswith(b"uname: "):
            match = _UNAME.match(line[:300].decode("utf-8", "replace"))
            self.report.host = match[1] if match else ""
        if self._is_file and not self._lines and line.startswith(_LISTED):
            return
        if self._name == JOURNAL and not line.strip():  # what follows is of another boot
            self._store("")
        if not self._lines and not line.strip():  # between a command and its output
            return
        self._put(line + b"\n")

    def _put(self, data: bytes) -> None:
        if not self._name:
            return
        if self._size > MAX_FILE or self._kept > MAX_TOTAL:
            self._overflowed = True
            return
        self._lines.append(data)
        self._size += len(data)
        self._kept += len(data)

    def _store(self, cut: str) -> None:
        """Keep the open section as a recording."""
        name, stdout = self._name, b"".join(self._lines)
        if self._overflowed:
            cut = f"the section {self._title!r:.80} has more than {MAX_FILE >> 20} MiB"
        if name:
            recording = Recording(name, tuple(self._title.split()), stdout=stdout, truncated=bool(cut), reason=cut)
            earlier = self.report.recordings.get(name)
            if earlier is not None and earlier.stdout != stdout:
                reason = "the bug report holds this section twice, and they differ"
                recording = replace(earlier, ended=Ended.DAMAGED, reason=reason)
            self.report.recordings[name] = recording
        self._close()

    def _close(self) -> None:
        self._name = self._title = ""
        self._is_file = self._overflowed = False
        self._lines, self._size = [], 0


def _file_name(line: str) -> str:
    """The evidence name of a file by its title, '' where the file is not read or is not there."""
    path = line.removeprefix(_FILE)
    for root in _ROOTS:
        path = path.removeprefix(root) if path.startswith(f"{root}/") else path
    name = path.replace("/./", "/").lstrip("/")
    return name if name in FILES else ""
