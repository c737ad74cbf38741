"""Whether a driver is still supported and has the known security fixes, by dated tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

_VERSION = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,5}){1,3}")


def branch_supported(version: str, table: Mapping[str, Any], on: date) -> Reading[bool]:
    """Whether the branch of a driver version gets fixes on a day, by a table of branches.

    The table has `issued` and `valid_until` (dates) and `branches`: for each the last day of its
    support, `until`, or `ended = true`. Unknown where the version is none, the branch is not in the
    table, or the day is outside the table's own time. The note names the branch's end.

    >>> from datetime import date
    >>> table = {
    ...     "issued": date(2026, 11, 30),
    ...     "valid_until": date(2027, 3, 10),
    ...     "branches": {"535": {"until": date(2026, 6, 30)}, "580": {"until": date(2028, 6, 30)}},
    ... }
    >>> reading = branch_supported("580.159.03", table, date(2026, 12, 1))
    >>> reading.value, reading.note
    (True, 'branch 580 is supported until 2028-06-30')
    >>> branch_supported("535.309.01", table, date(2026, 12, 1)).value
    False
    >>> branch_supported("580.159.03", table, date(2027, 3, 11)).reason
    'the table of driver branches was issued on 2026-11-30 and is stale since 2027-03-10'
    """
    branch, entry = _entry(version, table, table["branches"], on, "driver branches")
    if isinstance(entry, Unknown):
        return entry
    if entry.get("ended"):
        return Known(False, note=f"branch {branch} is at its end of life")
    until = entry["until"]
    if on > until:
        return Known(False, note=f"the support of branch {branch} ended on {until}")
    return Known(True, note=f"branch {branch} is supported until {until}")


def meets_security_floor(version: str, table: Mapping[str, Any], on: date) -> Reading[bool]:
    """Whether a driver version has all fixes that its branch got, by a table of floors.

    The table has `issued` and `valid_until` (dates) and `floors`: for each branch `minimum`, or `last`
    (its last fixed version) where it gets no more fixes: no version of that branch meets a floor.
    Versions compare by their numbers: 510.100 is above 510.99. Unknown as in `branch_supported`.

    >>> from datetime import date
    >>> table = {
    ...     "issued": date(2026, 11, 30),
    ...     "valid_until": date(2027, 3, 10),
    ...     "floors": {"535": {"last": "535.309.01"}, "580": {"minimum": "580.178.04"}},
    ... }
    >>> reading = meets_security_floor("580.159.03", table, date(2026, 12, 1))
    >>> reading.value, reading.note
    (False, 'branch 580 has its known fixes from 580.178.04 on')
    >>> meets_security_floor("535.309.01", table, date(2026, 12, 1)).note
    'branch 535 gets no more fixes; its last was 535.309.01'
    """
    branch, entry = _entry(version, table, table["floors"], on, "security floors")
    if isinstance(entry, Unknown):
        return entry
    if "minimum" not in entry:
        return Known(False, note=f"branch {branch} gets no more fixes; its last was {entry['last']}")
    minimum = entry["minimum"]
    second_hand = "; that figure is second-hand" if entry.get("second_hand") else ""
    return Known(
        _numbers(version) >= _numbers(minimum),
        note=f"branch {branch} has its known fixes from {minimum} on{second_hand}",
    )


def known_problems(version: str, product: str, table: Mapping[str, Any], on: date) -> Reading[str]:
    """`none`, `suspected` or `known`: whether a driver version is one of those that are known to be bad.

    The table has `issued` and `valid_until` (dates) and `versions`: rows with `since` (the first bad
    version), `before` (the first good one; `fixed` where another is to be installed), `problem`, `weight`
    (`known` or `suspected`), `where`, and `products` where only those have it. A version that is listed
    stays so; that one is not listed is told only within the table's own time.

    >>> from datetime import date
    >>> row = {"since": "525", "before": "525.105.17", "problem": "the GSP hangs", "weight": "known", "where": "#446"}
    >>> table = {"issued": date(2026, 11, 30), "valid_until": date(2027, 3, 10), "versions": [row]}
    >>> reading = known_problems("525.60.13", "10de:2330", table, date(2026, 12, 1))
    >>> reading.value, reading.note
    ('known', 'the GSP hangs (#446); gone in 525.105.17')
    >>> known_problems("525.105.17", "10de:2330", table, date(2026, 12, 1)).value
    'none'
    """
    if _VERSION.fullmatch(version) is None:
        return Unknown(f"{version[:80]!r} is no driver version")
    mine = _numbers(version)
    rows = [
        row
        for row in table["versions"]
        if _numbers(row["since"]) <= mine < _numbers(row["before"])
        and ("products" not in row or product in row["products"])
    ]
    if rows:
        note = "; ".join(
            f"{row['problem']} ({row['where']}); gone in {row.get('fixed', row['before'])}" for row in rows
        )
        return Known("known" if any(row["weight"] == "known" for row in rows) else "suspected", note=note)
    stale = out_of_time(table, on, "driver versions with known problems")
    return stale if stale is not None else Known("none")


def out_of_time(table: Mapping[str, Any], on: date, what: str) -> Unknown | None:
    """Why a dated table says nothing of a day; None where it does."""
    issued, valid_until = table["issued"], table["valid_until"]
    if on > valid_until:
        return Unknown(f"the table of {what} was issued on {issued} and is stale since {valid_until}")
    if on < issued:
        return Unknown(f"the table of {what} was issued on {issued}, after {on}: it can't tell of that day")
    return None


def _entry(
    version: str, table: Mapping[str, Any], entries: Mapping[str, Any], on: date, what: str
) -> tuple[str, Mapping[str, Any] | Unknown]:
    """The branch of a version and what the table holds of it on that day."""
    if _VERSION.fullmatch(version) is None:
        return "", Unknown(f"{version[:80]!r} is no driver version")
    branch = str(int(version.partition(".")[0]))
    stale = out_of_time(table, on, what)
    if stale is not None:
        return branch, stale
    entry = entries.get(branch)
    if entry is None:
        return branch, Unknown(f"the table of {what}, issued on {table['issued']}, does not know branch {branch}")
    return branch, entry


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
