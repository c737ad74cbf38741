"""Whether container toolkit and runc have the known security fixes, by a dated table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nodeready.facts.support import out_of_time
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

_RELEASE = re.compile(r"([0-9]{1,5})\.([0-9]{1,5})(?:\.([0-9]{1,5}))?(?:[-~]rc\.?([0-9]{1,3}))?")
_WHAT = "security floors of containers"
_FINAL = 10_000  # a release comes after all its candidates


def toolkit_meets_floor(version: str, table: Mapping[str, Any], on: date) -> Reading[bool]:
    """Whether a version of the NVIDIA Container Toolkit has all known fixes on a day.

    The table has `issued` and `valid_until` (dates) and `toolkit` with `minimum` and `why`.

    >>> from datetime import date
    >>> table = {"issued": date(2026, 11, 30), "valid_until": date(2027, 3, 10),
    ...          "toolkit": {"minimum": "1.19.1", "why": "CVE-2026-24260"}}
    >>> reading = toolkit_meets_floor("1.17.7", table, date(2026, 12, 1))
    >>> reading.value, reading.note
    (False, '1.17.7, fixed in 1.19.1 (CVE-2026-24260)')
    """
    stale = out_of_time(table, on, _WHAT)
    mine, floor = _order(version), table["toolkit"]["minimum"]
    if mine is None:
        return Unknown(f"{version[:80]!r} is no release of the toolkit")
    if stale is not None:
        return stale
    note = f"{version}, fixed in {floor} ({table['toolkit']['why']})"
    return Known(mine >= (_order(floor) or ()), note=note)


def runc_meets_floor(version: str, table: Mapping[str, Any], on: date) -> Reading[bool]:
    """Whether a release of runc has all known fixes of its branch on a day.

    `runc` holds for each branch `minimum`, or `last` where it gets no more fixes; a branch below all
    of them gets none. A distribution's own build takes fixes over without a
    new number, so nothing is known of it, and as little of a branch that is newer than the table.

    >>> from datetime import date
    >>> table = {"issued": date(2026, 11, 30), "valid_until": date(2027, 3, 10),
    ...          "runc": {"1.2": {"last": "1.2.8"}, "1.3": {"minimum": "1.3.6"}}}
    >>> [runc_meets_floor(v, table, date(2026, 12, 1)).value for v in ("1.3.6", "1.3.3", "1.2.8", "1.1.12")]
    [True, False, False, False]
    >>> runc_meets_floor("1.1.5+ds1", table, date(2026, 12, 1)).reason
    "'1.1.5+ds1' is a distribution's own build, which takes fixes over without a new number: ask its security tracker"
    """
    mine = _order(version)
    if mine is None:
        text = "is a distribution's own build, which takes fixes over without a new number: ask its security tracker"
        return Unknown(f"{version[:80]!r} {text}")
    stale = out_of_time(table, on, _WHAT)
    if stale is not None:
        return stale
    branches = {_order(branch) or (): entry for branch, entry in table["runc"].items()}
    branch = f"{mine[0]}.{mine[1]}"
    entry = table["runc"].get(branch)
    if entry is None:
        if mine > min(branches):
            return Unknown(f"the table of {_WHAT}, issued on {table['issued']}, does not know branch {branch} of runc")
        return Known(False, note=f"branch {branch} is older than all that get fixes")
    if "minimum" not in entry:
        return Known(False, note=f"branch {branch} gets no more fixes; its last was {entry['last']}")
    note = f"{version}, branch {branch} has its known fixes from {entry['minimum']} on"
    return Known(mine >= (_order(entry["minimum"]) or ()), note=note)


def _order(version: str) -> tuple[int, ...] | None:
    match = _RELEASE.fullmatch(version)
    if match is None:
        return None
    return (int(match[1]), int(match[2]), int(match[3] or 0), int(match[4]) if match[4] else _FINAL)
