"""The difference between two judgements on a terminal: short, what got worse first."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from nodeready.render import words
from nodeready.render.escape import Seen

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST = 20
_ARROW = " -> "
_NOT_PLANNED = "not planned"
_BOUNDS = ("required", "recommended")


def lines(difference: Mapping[str, Any], width: int = 100) -> list[str]:
    """The difference as lines without line ends, at most about 50; one line where no verdict differs."""
    seen = Seen.of(difference)
    if not seen["changed"]:
        then, now = seen["acceptance"]["before"], seen["acceptance"]["after"]
        verdict = f"{then} before and now" if then == now else f"yet {then} before, {now} now"
        by = _baseline(seen["baseline"]["before"])
        return [f"no verdict differs from {by} of {seen['started']['before']}: {verdict}"]
    then, now = (_judged(seen, when) for when in ("before", "after"))
    said = [f"DIFFERENCE to the judgement of {seen['started']['before']}: {then}{_ARROW}{now}"]
    overrides = seen["overrides"]
    if overrides["before"] != overrides["after"]:
        said.append(f"  overridden: {_overrides(overrides['before'])}{_ARROW}{_overrides(overrides['after'])}")
    groups = _groups(seen["changed"], "worse", "better")
    said += [f"  {_group(rows)}" for rows in groups[:_MOST]]
    left = sum(len(rows) for rows in groups[_MOST:])
    said += [f"  and {words.counted(left, 'more verdict')}: in difference.json"] if left else []
    said += [f"  {text}" for text in _equally_good(seen["changed"])]
    return ["", *(line for text in said for line in _wrapped(text, width))]


def _judged(seen: Seen, when: str) -> str:
    serving = ", in service," if seen["in_service"][when] else ""
    return f"{seen['acceptance'][when]} at tier {seen['tier'][when]}{serving} by {_baseline(seen['baseline'][when])}"


def _wrapped(text: str, width: int) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(
        text, width, subsequent_indent=f"{indent}  ", break_on_hyphens=False, max_lines=3, placeholder=" …"
    )


def _baseline(of: Mapping[str, Any]) -> str:
    draft = "draft, " if of["status"] == "draft" else ""
    return f"{of['name']}@{of['version']} ({draft}sha256 {of['sha256'][:12]})"


def _overrides(of: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={words.value_text(value)}" for key, value in of.items()) or "nothing"


def _groups(rows: list[dict[str, Any]], *turns: str) -> list[list[dict[str, Any]]]:
    """Rows that differ only in the part, in their order."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["turn"] in turns:
            at = (row["key"], str(row["from"]), str(row["to"]), *row["why"])
            found.setdefault(at, []).append(row)
    return list(found.values())


def _group(rows: list[dict[str, Any]]) -> str:
    first = rows[0]
    subjects = words.subjects_text([row["subject"] for row in rows], 4)
    turned = f"{first['from'] or _NOT_PLANNED}{_ARROW}{first['to'] or _NOT_PLANNED}"
    return f"{first['turn']}: {first['key']} on {subjects}: {turned} ({'; '.join(_reasons(first))})"


def _reasons(row: dict[str, Any]) -> list[str]:
    said = []
    for why in row["why"]:
        if why == "other bound":
            said += [f"other bound: {_turned(row, kind)}" for kind in _BOUNDS if _moved(row[kind])]
        elif why == "other reading":
            then, now = (_observed(row["observed"][when]) for when in ("before", "after"))
            said.append(f"other reading: {then}{_ARROW}{now}")
        else:
            said.append(why)
    if "other bound" in row["why"] and "other reading" not in row["why"]:
        said.append(f"observed {_observed(row['observed']['after'])}")
    return said


def _moved(sides: Mapping[str, Any]) -> bool:
    return bool(sides["before"] != sides["after"])


def _turned(row: dict[str, Any], kind: str) -> str:
    then, now = (words.bound_text(row[kind][when]) for when in ("before", "after"))
    return f"{kind} {then}{_ARROW}{now}"


def _observed(value: Mapping[str, Any] | None) -> str:
    return "unknown" if value is None else words.quantity(value)


def _equally_good(rows: list[dict[str, Any]]) -> list[str]:
    """What is neither worse nor better, such as demands that are new and pass: counted, with their keys."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["turn"] == "same":
            found.setdefault((row["from"] or _NOT_PLANNED, row["to"] or _NOT_PLANNED), []).append(row)
    return [
        f"{words.counted(len(group), 'verdict')} {then}{_ARROW}{now}: "
        f"{', '.join(dict.fromkeys(row['key'] for row in group))}"
        for (then, now), group in found.items()
    ]
