"""When a line of a kernel log was written, in the clock that the log itself uses."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_SINCE_BOOT = re.compile(r"(?:<[0-9]{1,3}>)?\[ *([0-9]{1,9}\.[0-9]{1,9})\]")
_RECORD = re.compile(r"[0-9]{1,3},[0-9]{1,20},([0-9]{1,16}),[^;]{0,60};")
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,][0-9]{1,9})?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_DATED = re.compile(r"\[[A-Z][a-z]{2} ([A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4})\]")
BOOT, WALL = "boot", "wall"
_TRIED = 200  # lines at either end of a log


class Moment(NamedTuple):
    """Seconds by one of two clocks: since `boot`, or since 1970 (`wall`)."""

    clock: str
    seconds: float

    def before(self, other: Moment) -> float | None:
        """How many seconds before another moment; None where the clocks differ."""
        return other.seconds - self.seconds if self.clock == other.clock else None


def moment(line: str) -> Moment | None:
    """When the line was written; None for a form without a year (syslog's), or without any time.

    >>> moment("[ 1843.308145] NVRM: Xid"), moment("<4>[    2.5] x").seconds, moment("4,1,2500000,-;x").seconds
    (Moment(clock='boot', seconds=1843.308145), 2.5, 2.5)
    >>> moment("2026-12-01T09:12:41+00:00 node kernel: x") == moment("[Tue Dec  1 09:12:41 2026] x")
    True
    >>> moment("Dec  1 09:12:41 node kernel: x") is None
    True
    """
    since_boot = _SINCE_BOOT.match(line)
    if since_boot:
        return Moment(BOOT, float(since_boot[1]))
    record = _RECORD.match(line)
    if record:
        return Moment(BOOT, int(record[1]) / 1e6)
    iso, dated = _ISO.match(line), _DATED.match(line)
    if not iso and not dated:
        return None
    try:
        if iso:
            zone = (iso[2] or "+00:00").replace("Z", "+00:00")
            zone = zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
            return Moment(WALL, datetime.fromisoformat(f"{iso[1]}{zone}").timestamp())
        text = f"{dated[1] if dated else ''} +0000"
        return Moment(WALL, datetime.strptime(text, "%b %d %H:%M:%S %Y %z").timestamp())
    except ValueError:
        return None


def first_moment(text: Iterable[str]) -> Moment | None:
    """The first of some lines that tells its time."""
    for number, line in enumerate(text):
        found = moment(line)
        if found is not None or number >= _TRIED:
            return found
    return None
