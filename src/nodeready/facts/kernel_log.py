"""What the kernel said of GPUs and NVSwitches since boot, from dmesg or the journal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.kernel_host import HostEvent, events
from nodeready.facts.kernel_links import link_events
from nodeready.facts.kernel_modules import refused_modules
from nodeready.facts.kernel_pcie import PcieEvent, pcie_events
from nodeready.facts.kernel_time import first_moment
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodeready.facts.kernel_time import Moment

DMESG = command("dmesg", serves=("health.xid",), root_for="the kernel log where dmesg_restrict is set")
JOURNAL = command(
    "journalctl", "-k", "-b", "--no-pager", "-o", "short-iso", instead_of=DMESG.name, serves=("health.xid",)
)

# a GPU that fell off the bus in a line that does not say which
UNKNOWN_BUS = "unknown bus id"

_XID = re.compile(r"NVRM\s*:\s*Xid", re.IGNORECASE)
_SXID = re.compile(r"nvswitch[0-9]{0,3}\s*:\s*SXid\b|\bSXid\s*(?=\()", re.IGNORECASE)
# what stands after those words; repetitions are bounded, so that a line of megabytes takes linear time
_WHERE = re.compile(r"\s{0,20}\(([^()]{1,60})\)\s{0,20}:?\s{0,20}")
# a number that runs on (79abc, 7.9, 7 9) may have lost digits
_CODE = re.compile(r"([0-9]{1,6})(?!\w|[.-][0-9]|\s{1,20}[0-9])\s{0,20}[,;:.]?(.*)", re.DOTALL)
_NVRM = re.compile(r"(?=NVRM\s*:)", re.IGNORECASE)
# some drivers break the line inside the rest of the sentence
_LOST = "fallen off"
_NAMES_GPU = re.compile(
    r"NVRM\s{0,20}:.{0,20}? GPU (?:at )?(?:PCI:)?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)", re.IGNORECASE
)
_WORDS = ("nvrm", "nvidia", "xid")
# how lines of the driver's modules begin, behind the prefix
_DRIVER = re.compile(
    r"(?<![\w'/-])(?:NVRM\s*:|nvidia: (?:module|loading)\b|nvidia-(?:nvlink|modeset|nvswitch|uvm)[0-9]{0,3}:"
    r"|nvidia [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})",
    re.IGNORECASE,
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


class Xid(NamedTuple):
    """One error of the GPU driver; `text` is what follows the code, `line` the whole line.

    `code` is 0 where the line is an Xid whose code can't be read. One line may hold several.
    """

    code: int
    bus_id: str | None
    text: str
    line: str


class SXid(NamedTuple):
    """One error of an NVSwitch; `fatal` is its own word, None where it has none.

    `code` is 0 where the line is an SXid whose code can't be read. One line may hold several.
    """

    code: int
    bus_id: str | None
    text: str
    fatal: bool | None
    line: str


class KernelLog(NamedTuple):
    """What one log says, in its order and with its repetitions.

    `fallen_off` are the bus ids of lost GPUs in lines other than an Xid's (or `UNKNOWN_BUS`),
    `reset_required` is true where the driver refuses a GPU until it is reset. `starts_at_boot` is
    false where the beginning of this boot is not in the log, `cut` true where its last line is not
    whole and was left out: an error could have stood there. `driver_seen` is true where any line is
    one of the NVIDIA driver's modules: a log without any can't tell of GPU errors. `host` are the faults of
    the host's own memory, drives and file systems, `links` those of NVLinks and network adapters, `pcie` errors of PCI
    Express. `refused` are the kernel's words on modules that it did not take. `begins` and `ends` are the times of its
    first and last line, None where they tell none.
    """

    xids: tuple[Xid, ...]
    sxids: tuple[SXid, ...]
    fallen_off: tuple[str, ...]
    reset_required: bool
    starts_at_boot: bool
    cut: bool
    line_count: int
    driver_seen: bool
    host: tuple[HostEvent, ...] = ()
    links: tuple[HostEvent, ...] = ()
    pcie: tuple[PcieEvent, ...] = ()
    refused: tuple[str, ...] = ()
    begins: Moment | None = None
    ends: Moment | None = None


def parse(data: bytes) -> KernelLog | Unknown:
    """The errors of one log; unknown where it is empty, refused, or no kernel log and without any error.

    >>> log = parse(b'''[    0.000000] Linux version 5.15.0-117-generic
    ... [ 1843.308145] NVRM: Xid (PCI:0000:9b:00): 79, pid=1234, GPU has fallen off the bus.
    ... ''')
    >>> [(x.code, x.bus_id, x.text) for x in log.xids], log.starts_at_boot, log.driver_seen
    ([(79, '0000:9b:00.0', 'pid=1234, GPU has fallen off the bus.')], True, True)
    """
    if not data.strip():
        return Unknown("the kernel log is empty")
    text = [line.rstrip("\r") for line in lines(data)]
    if not text:
        return Unknown("the kernel log has no whole line")
    # a log may hold megabytes of which these are few: the patterns are not tried on the rest
    nvidias = [line for line in text if any(word in line.lower() for word in _WORDS)]
    log = KernelLog(
        xids=tuple(_xid(line, said) for line in nvidias for said in _after(_XID, line)),
        sxids=tuple(_sxid(line, said) for line in nvidias for said in _after(_SXID, line)),
        fallen_off=_fallen_off(text),
        reset_required=any("NV_ERR_RESET_REQUIRED" in line for line in text),
        starts_at_boot=any(_BOOT.search(line[:300]) for line in text[:_NEAR_START]),
        cut=is_cut(data),
        line_count=len(text),
        driver_seen=any(True for line in nvidias for _ in _after(_DRIVER, line)),
        host=events(text),
        links=link_events(text),
        pcie=pcie_events(text),
        refused=refused_modules(text),
        begins=first_moment(text),
        ends=first_moment(reversed(text)),
    )
    if log.xids or log.sxids or log.fallen_off or log.reset_required or log.host or log.links or log.pcie:
        return log
    # a log without errors is believed only where it is a log
    written = [line for line in text if line.strip()]
    refused = next((line.strip() for line in written[:5] if any(words in line for words in _REFUSALS)), "")
    if refused and len(written) <= 5:
        return Unknown(f"the kernel log could not be read: {refused[:200]}")
    if 2 * sum(_LINE.match(line) is not None for line in written) < len(written) or not written:
        return Unknown("most lines of it are not those of a kernel log")
    return log


def _after(start: re.Pattern[str], line: str) -> Iterator[str]:
    """What follows each start of a message in the line, up to the next start.

    One inside a double-quoted string is another message's, as audit records tell what a process was told;
    an apostrophe opens no string ("Can't open ...").
    """
    quotes = counted = 0
    found = start.finditer(line)
    match = next(found, None)
    while match:
        following = next(found, None)
        quotes += line.count('"', counted, match.start())
        counted = match.start()
        if quotes % 2 == 0:
            yield line[match.end() : following.start() if following else len(line)]
        match = following


def _bus_id(text: str) -> str | None:
    """The bus id of `PCI:0000:9b:00 GPU-I:05`; the rest names a MIG slice."""
    first = text.split()[:1]
    return normal_bus_id(first[0]) if first else None


def _fields(said: str) -> tuple[str | None, int, str]:
    """The bus id, the code and the text of what follows `Xid`; code 0 and all of it where no code is plain."""
    where = _WHERE.match(said)
    code = _CODE.match(said, where.end()) if where else None
    bus_id = _bus_id(where[1]) if where else None
    return (bus_id, int(code[1]), code[2].strip()) if code else (bus_id, 0, said.strip())


def _xid(line: str, said: str) -> Xid:
    bus_id, code, text = _fields(said)
    return Xid(code=code, bus_id=bus_id, text=text, line=line)


def _sxid(line: str, said: str) -> SXid:
    bus_id, code, text = _fields(said)
    word = text.partition(",")[0].strip().lower() if code else ""
    fatal = {"fatal": True, "non-fatal": False, "nonfatal": False}.get(word)
    return SXid(code=code, bus_id=bus_id, text=text, fatal=fatal, line=line)


def _fallen_off(text: list[str]) -> tuple[str, ...]:
    """The lost GPUs that a message of its own reports, also one that shares its line with others.

    At probe time the driver spreads the sentence over three lines and names the GPU in the first.
    """
    lost = []
    named, at = "", -_RECORD
    for number, line in enumerate(text):
        for message in _NVRM.split(line)[1:] if "nvrm" in line.lower() else ():
            if _XID.match(message):
                continue
            gpu = _NAMES_GPU.match(message)
            if gpu:
                named, at = gpu[1], number
            if _LOST in message.lower():
                bus_id = normal_bus_id(named) if number - at < _RECORD else None
                lost.append(bus_id or UNKNOWN_BUS)
    return tuple(lost)
