"""What one process may have, from /proc/self/limits: of the process that reads it, and so of the suite."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import file
from nodeready.facts.text import lines
from nodeready.reading import Known, Reading, Unknown

LIMITS = file("/proc/self/limits", serves=("host.limits",))

UNLIMITED = 2**63 - 1
_ROW = re.compile(r"Max ([a-z ]{3,25}?) {2,}(unlimited|[0-9]{1,20}) +(unlimited|[0-9]{1,20}) +[a-z]*\s*")


class Limits(NamedTuple):
    """The hard limits, which a process can raise its own to; without one it is `UNLIMITED`."""

    locked_bytes: Reading[int]
    open_files: Reading[int]


def parse(data: bytes) -> Limits | Unknown:
    r"""The limits; unknown where no line is one.

    >>> found = parse(b'''Max open files            1024                 1048576              files
    ... Max locked memory         unlimited            unlimited            bytes
    ... ''')
    >>> found.open_files.value, found.locked_bytes.value == UNLIMITED
    (1048576, True)
    """
    rows = {match[1]: match[3] for line in lines(data) if (match := _ROW.fullmatch(line))}
    if not rows:
        return Unknown("no line of it is a limit")
    return Limits(_limit(rows, "locked memory"), _limit(rows, "open files"))


def _limit(rows: dict[str, str], name: str) -> Reading[int]:
    if name not in rows:
        return Unknown(f"the list has no limit of {name}")
    return Known(UNLIMITED if rows[name] == "unlimited" else int(rows[name]))
