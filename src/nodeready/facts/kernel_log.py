"""What the kernel said of GPUs and NVSwitches since boot, from dmesg or the journal."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nodeready.evidence.probe import command
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Unknown

DMESG = command("dmesg", serves=("health.xid",), root_for="the kernel log where dmesg_restrict is set")
JOURNAL = command(
    "journalctl", "-k", "-b", "--no-pager", "-o", "short-iso", instead_of=DMESG.name, serves=("health.xid",)
)

# a GPU that fell off the bus in a line that does not say which
UNKNOWN_BUS = "unknown bus id"

_XID = re.compile(r"NVRM: Xid \(([^)]{1,60})\): ([0-9]{1,6})(?:, ?(.*))?$")
_XID_START = "NVRM: Xid"
_SXID = re.compile(r"SXid \(([^)]{1,60})\): ([0-9]{1,6})(?:, ?(.*))?$")
_SXID_START = "SXid ("
# some drivers break the line inside the rest of the sentence
_LOST = "fallen off"
_NAMES_GPU = re.compile(
    r"NVRM:.{0,20}? GPU (?:at )?(?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)"
)
_BOOT = re.compile(r"\[ *0\.000000\]|Linux version [0-9]{1,3}\.[0-9]{1,3}")
# how a line of a kernel log begins: dmesg, dmesg -T, -x, --time-format iso, /dev/kmsg, syslog and journal
_LINE = re.compile(
    r"(?:<[0-9]{1,3}>)?\[ *[0-9]{1,9}\.[0-9]{1,9}\]"
    r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}\]"
    r"|[a-z]{1,10} *:[a-z]{1,10} *: "
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}"
    r"|[0-9]{1,3},[0-9]{1,20},[0-9]{1,20},[^;]{0,60};"
    r"|[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} "
    r"|\s*(?:NVRM|nvidia-nvswitch[0-9]{1,3}): "
)
_NEAR_START = 20
_RECORD = 8
_REFUSALS = ("Operation not permitted", "Permission denied", "-- No entries --", "No journal files were")


@dataclass(frozen=True)
class Xid:
    """One error line of the GPU driver; `text` is what follows the code.

    `code` is 0 where the line is an Xid whose code can't be read.
    """

    code: int
    bus_id: str | None
    text: str
    line: str


@dataclass(frozen=True)
class SXid:
    """One error line of an NVSwitch; `fatal` is its own word, None where it has none.

    `code` is 0 where the line is an SXid whose code can't be read.
    """

    code: int
    bus_id: str | None
    text: str
    fatal: bool | None
    line: str


@dataclass(frozen=True)
class KernelLog:
    """What one log says, in its order and with its repetitions.

    `fallen_off` are the bus ids of lost GPUs in lines other than an Xid's (or `UNKNOWN_BUS`),
    `reset_required` is true where the driver refuses a GPU until it is reset. `starts_at_boot` is
    false where the beginning of this boot is not in the log, `cut` true where its last line is not
    whole and was left out: an error could have stood there.
    """

    xids: tuple[Xid, ...]
    sxids: tuple[SXid, ...]
    fallen_off: tuple[str, ...]
    reset_required: bool
    starts_at_boot: bool
    cut: bool
    line_count: int


def parse(data: bytes) -> KernelLog | Unknown:
    """The errors of one log; unknown where it is empty, refused, or no kernel log and without any error.

    >>> log = parse(b'''[    0.000000] Linux version 5.15.0-117-generic
    ... [ 1843.308145] NVRM: Xid (PCI:0000:9b:00): 79, pid=1234, GPU has fallen off the bus.
    ... ''')
    >>> [(x.code, x.bus_id, x.text) for x in log.xids], log.starts_at_boot
    ([(79, '0000:9b:00.0', 'pid=1234, GPU has fallen off the bus.')], True)
    """
    if not data.strip():
        return Unknown("the kernel log is empty")
    text = [line.rstrip("\r") for line in lines(data)]
    if not text:
        return Unknown("the kernel log has no whole line")
    log = KernelLog(
        xids=tuple(_xid(line) for line in text if _XID_START in line and not _quoted(line, _XID_START)),
        sxids=tuple(_sxid(line) for line in text if _SXID_START in line and not _quoted(line, _SXID_START)),
        fallen_off=_fallen_off(text),
        reset_required=any("NV_ERR_RESET_REQUIRED" in line for line in text),
        starts_at_boot=any(_BOOT.search(line[:300]) for line in text[:_NEAR_START]),
        cut=is_cut(data),
        line_count=len(text),
    )
    if log.xids or log.sxids or log.fallen_off or log.reset_required:
        return log
    # a log without errors is believed only where it is a log
    written = [line for line in text if line.strip()]
    refused = next((line.strip() for line in written[:5] if any(words in line for words in _REFUSALS)), "")
    if refused and len(written) <= 5:
        return Unknown(f"the kernel log could not be read: {refused[:200]}")
    if 2 * sum(_LINE.match(line) is not None for line in written) < len(written) or not written:
        return Unknown("most lines of it are not those of a kernel log")
    return log


def _quoted(line: str, words: str) -> bool:
    """Whether another message quotes the words, as audit records do of what a process was told."""
    before = line.partition(words)[0]
    return '"' in before or "'" in before


def _bus_id(text: str) -> str | None:
    """The bus id of `PCI:0000:9b:00 GPU-I:05`; the rest names a MIG slice."""
    first = text.split()[:1]
    return normal_bus_id(first[0]) if first else None


def _xid(line: str) -> Xid:
    match = _XID.search(line)
    if match is None:
        return Xid(code=0, bus_id=None, text=line.partition(_XID_START)[2].strip(), line=line)
    return Xid(code=int(match[2]), bus_id=_bus_id(match[1]), text=match[3] or "", line=line)


def _sxid(line: str) -> SXid:
    match = _SXID.search(line)
    if match is None:
        return SXid(code=0, bus_id=None, text=line.partition(_SXID_START)[2].strip(), fatal=None, line=line)
    text = match[3] or ""
    word = text.partition(",")[0].strip().lower()
    fatal = {"fatal": True, "non-fatal": False, "nonfatal": False}.get(word)
    return SXid(code=int(match[2]), bus_id=_bus_id(match[1]), text=text, fatal=fatal, line=line)


def _fallen_off(text: list[str]) -> tuple[str, ...]:
    """The lost GPUs that a line of its own reports.

    At probe time the driver spreads the sentence over three lines and names the GPU in the first.
    """
    lost = []
    named, at = "", -_RECORD
    for number, line in enumerate(text):
        if "NVRM:" not in line or _XID_START in line:
            continue
        gpu = _NAMES_GPU.search(line)
        if gpu:
            named, at = gpu[1], number
        if _LOST in line:
            bus_id = normal_bus_id(named) if number - at < _RECORD else None
            lost.append(bus_id or UNKNOWN_BUS)
    return tuple(lost)
