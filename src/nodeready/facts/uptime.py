"""When a sample of counters was taken: its first line is the node's own clock, so that folders have it too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

SCRIPT = 'read -r u _ </proc/uptime; echo "uptime:$u"; '

_LINE = re.compile(r"uptime:([0-9]{1,10}\.[0-9]{2})")


def read(text: Iterable[str]) -> Reading[float]:
    """Seconds since boot from the line `uptime:93841.27`; unknown where there is none, or two.

    >>> read(["uptime:93841.27", "GPU 0: NVIDIA H100"]).value, read(["GPU 0: NVIDIA H100"]).reason
    (93841.27, 'the output does not say when it was taken')
    """
    found = [match[1] for match in map(_LINE.fullmatch, text) if match]
    if len(found) != 1:
        return Unknown("the output does not say when it was taken")
    return Known(float(found[0]))


def between(first: Reading[float], second: Reading[float]) -> Reading[float]:
    """The seconds between two samples; unknown where a clock is missing, or the second sample is not the later one.

    >>> between(Known(10.0), Known(13.5)).value, between(Known(10.0), Known(10.0)).reason
    (3.5, 'the second sample was not taken after the first')
    """
    if isinstance(first, Unknown):
        return first
    if isinstance(second, Unknown):
        return second
    passed = second.value - first.value
    if passed < 1:
        return Unknown("the second sample was not taken after the first")
    return Known(passed)
