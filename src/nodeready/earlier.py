"""An earlier run: where its evidence and its results.json lie, and what may be relied on in that file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RESULTS, CAPTURE = "results.json", "capture.tar.gz"
SCHEMA = 1
_MOST = 64 * 2**20
_VERDICTS = ("fail", "unverified", "waived", "advisory", "pass", "not-applicable")
_ACCEPTANCES = ("accepted", "accepted-with-advisories", "rejected", "incomplete")


class EarlierError(ValueError):
    """A results.json that cannot be relied on; the text names the file and what is wrong."""


@dataclass(frozen=True)
class Earlier:
    """Evidence, and the results.json of the run that made or judged it, None where none lies beside it."""

    evidence: Path
    results: Path | None


def locate(path: Path) -> Earlier:
    """What a path names: a run folder, its results.json or its capture; anything else is evidence alone."""
    folder = path.parent if path.name in (RESULTS, CAPTURE) and path.is_file() else path
    if (folder / CAPTURE).is_file() and (folder / RESULTS).is_file():
        return Earlier(folder / CAPTURE, folder / RESULTS)
    return Earlier(path, None)


def results_at(path: Path) -> Path:
    """The results.json that a path names: itself, or the one in a run folder; raises `EarlierError`."""
    found = path / RESULTS if path.is_dir() else path
    if not found.is_file():
        raise EarlierError(f"there is no {RESULTS} at {path}: name one, or a run folder")
    return found


def read_results(path: Path) -> dict[str, Any]:
    """A results.json in which every field that a comparison needs holds what it must; raises `EarlierError`."""
    try:
        found = json.loads(_whole(path), parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        raise EarlierError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise EarlierError(f"{path} is damaged: {error}") from None
    if not isinstance(found, dict):
        raise EarlierError(f"{path} is damaged: it is no object")
    if found.get("schema_version") != SCHEMA:
        raise EarlierError(f"{path} has another schema_version than {SCHEMA}, which this version reads")
    _check(found, _HEAD, str(path))
    _check(found["baseline"], _BASELINE, f"{path}: baseline")
    for name, rules in (("findings", _FINDING), ("unjudged", _UNJUDGED)):
        for number, row in enumerate(found[name]):
            _check(row, rules, f"{path}: {name} number {number}")
    for number, row in enumerate(found["node"].get("gpus") or []):
        _check(row, _GPU, f"{path}: GPU number {number}")
    return found


def _whole(path: Path) -> bytes:
    with path.open("rb") as handle:
        data = handle.read(_MOST + 1)
    if len(data) > _MOST:
        raise ValueError(f"it has more than {_MOST >> 20} MiB, which no run writes")
    return data


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.20} is no number that a run writes")
    return number


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_quantity(value: Any) -> bool:
    """A value with its unit; nothing nested, which a hostile file could pile up beyond what a printer can follow."""
    if not isinstance(value, dict) or set(value) - {"value", "unit"} or not isinstance(value.get("unit"), str):
        return False
    found = value.get("value")
    items = found if isinstance(found, list) else [found]
    return all(item is None or isinstance(item, (str, int, float)) for item in items)


def _is_observed(value: Any) -> bool:
    return value is None or _is_quantity(value)


def _is_bound(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(map(_is_quantity, value.values())))


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


_Rules = dict[str, tuple["Callable[[Any], bool]", str]]
_TEXT = (_is_text, "a text")
_HEAD: _Rules = {
    **dict.fromkeys(("host", "node_type", "tier", "started", "suite_version"), _TEXT),
    "acceptance": (lambda value: value in _ACCEPTANCES, f"one of {', '.join(_ACCEPTANCES)}"),
    "baseline": (_is_object, "an object"),
    "overrides": (lambda v: isinstance(v, dict) and all(map(_is_text, v.values())), "an object of texts"),
    "findings": (_are_rows, "a list of objects"),
    "unjudged": (_are_rows, "a list of objects"),
    "node": (lambda v: isinstance(v, dict) and (v.get("gpus") is None or _are_rows(v["gpus"])), "an object"),
}
_BASELINE: _Rules = dict.fromkeys(("name", "version", "sha256", "status"), _TEXT)
_FINDING: _Rules = {
    **dict.fromkeys(("key", "subject", "title", "message"), _TEXT),
    "verdict": (lambda value: value in _VERDICTS, f"one of {', '.join(_VERDICTS)}"),
    "observed": (_is_observed, "a value with its unit or null"),
    "required": (_is_bound, "a bound or null"),
    "recommended": (_is_bound, "a bound or null"),
}
_UNJUDGED: _Rules = dict.fromkeys(("key", "subject"), _TEXT)
_GPU: _Rules = {
    "subject": _TEXT,
    "bus_id": (lambda value: value is None or isinstance(value, str), "a text or null"),
}


def _check(found: dict[str, Any], rules: _Rules, where: str) -> None:
    for key, (fits, what) in rules.items():
        if key not in found:
            raise EarlierError(f"{where} has no {key}")
        if not fits(found[key]):
            raise EarlierError(f"{where}: {key} is not {what}")
