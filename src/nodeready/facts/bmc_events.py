"""What the BMC noted in its event log, from `ipmitool sel elist`."""

from __future__ import annotations

import calendar
import re
import time
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.small_files import closing, is_whole
from nodeready.facts.text import lines
from nodeready.reading import Unknown

LAST = 256  # entries: a log of thousands takes a BMC minutes

IPMITOOL_SEL = command(
    "sh",
    "-c",
    closing(f"ipmitool sel elist last {LAST}"),
    name="ipmitool_sel_elist",
    deadline=20.0,
    family="bmc",
    serves=("bmc.events",),
    root_for="the event log of the BMC",
)

_NUMBER = re.compile(r" *([0-9a-f]{1,4}) ")
_EMPTY = "SEL has no entries"
_LONG_YEAR = re.compile("[0-9]{2}/[0-9]{2}/[0-9]{4}")
_CRITICAL = re.compile(
    r"(?i)uncorrectable|power supply ac lost|failure detected|bus fatal|pci serr|pci perr|\bIERR\b"
    r"|machine check|processor (?:thermal trip|throttled)|thermal trip|critical interrupt|redundancy lost"
    r"|non-redundant|upper critical going high|upper non-recoverable|lower critical going low"
    r"|bus uncorrectable|configuration error|bios corruption|critical stop|run-time stop"
)


class Event(NamedTuple):
    """One entry: `at` is in Unix time by the BMC's clock, None where it had none; not `asserted` where it ended."""

    number: str
    at: int | None
    sensor: str
    said: str
    asserted: bool

    @property
    def is_critical(self) -> bool:
        """Whether it names a fault of a part."""
        return self.asserted and _CRITICAL.search(f"{self.sensor} {self.said}") is not None


class Log(NamedTuple):
    """The entries, the oldest first; `whole` is false where the closing line is missing."""

    entries: tuple[Event, ...]
    whole: bool


def parse(data: bytes) -> Log | Unknown:
    r"""The entries of `ipmitool sel elist`; unknown where no line is one, and none where the log says so.

    >>> (event,) = parse(
    ...     b" 2a | 11/30/2026 | 04:11:09 | Power Supply PS3 Status | Power Supply AC lost | Asserted\n"
    ... ).entries
    >>> event.sensor, event.said, event.is_critical
    ('Power Supply PS3 Status', 'Power Supply AC lost', True)
    """
    text = [line for line in lines(data) if line.strip()]
    if text and any(_EMPTY in line for line in text[:3]):
        return Log((), whole=True)
    found = [event for event in map(_event, text) if event is not None]
    if not found:
        return Unknown("no line of it is an entry of the event log")
    return Log(tuple(found), is_whole(data))


def _event(line: str) -> Event | None:
    """The entry of a line: number, day, time, sensor, what it said, whether it began or ended."""
    first, *cells = line.split("|")
    number = _NUMBER.fullmatch(first)
    day, clock, sensor, said, turned, *_ = [*(cell.strip(" ") for cell in cells), *[""] * 5]
    fits = 0 < len(day) <= 12 and len(clock) <= 20 and 0 < len(sensor) <= 80 and 0 < len(said) <= 120
    if number is None or not fits:
        return None
    return Event(number[1], _time(day, clock), sensor, said, turned != "Deasserted")


def _time(day: str, clock: str) -> int | None:
    """Some versions write the year with two digits, and a time zone behind the clock."""
    century = "%Y" if _LONG_YEAR.fullmatch(day) else "%y"
    try:
        return calendar.timegm(time.strptime(f"{day} {clock[:8]}", f"%m/%d/{century} %H:%M:%S"))
    except ValueError:
        return None


def standing(events: tuple[Event, ...]) -> list[Event]:
    """The critical events that did not end: no later entry takes the same one back."""
    found: dict[tuple[str, str], Event] = {}
    for event in events:
        at = (event.sensor, event.said)
        if event.is_critical:
            found[at] = event
        elif not event.asserted:
            found.pop(at, None)
    return list(found.values())
