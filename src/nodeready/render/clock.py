"""When a run began, ended and how long it took."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodeready.render.escape import Seen


def moment(text: str) -> datetime:
    """A time of `results.json` such as `2026-11-30T09:15:00Z`; raises ValueError for anything else."""
    parsed = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    if parsed.tzinfo is None:
        raise ValueError(f"{text!r} names no time zone, such as the Z of 2026-11-30T09:15:00Z")
    return parsed.astimezone(timezone.utc)


def seconds(results: Seen) -> float:
    """How long the run took: as measured, else from the first time to the last; never negative."""
    if results.get("duration") is not None:
        return max(float(results["duration"]), 0.0)
    return max((moment(results["finished"]) - moment(results["started"])).total_seconds(), 0.0)


def duration_text(took: float) -> str:
    """A duration in the unit that suits it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(took)
    if took < 9.95:
        return f"{took:.1f} s"
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
