"""One entry of the nvml probe's document: a value by its place, or why NVML did not give it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nodeready.facts.probe_document import shown
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

# a call that this driver, or this nvidia-ml-py, does not have: another form of the datum may be asked
_LACKING = ("FUNCTION_NOT_FOUND", "NOT_IN_BINDING")
_STARTING = ("nvmlInit", "nvmlDeviceGetHandleByIndex")


class Datum(NamedTuple):
    """Where an entry has a value, and what it may be; `convert` gives None for what cannot be."""

    place: str
    convert: Callable[[Any], Any]


def table(value: Any) -> dict[str, Any]:
    """A table, empty where there is none."""
    return value if isinstance(value, dict) else {}


def said(value: Any) -> str:
    """An error's text as the probe wrote it.

    >>> said("GPU_IS_LOST"), said(None)
    ('GPU_IS_LOST', 'null')
    """
    return value[:300] if isinstance(value, str) and value.strip() else shown(value)


def read(entry: dict[str, Any], datum: Datum) -> Reading[Any]:
    """The value of an entry; unknown where it is not there or cannot be.

    >>> read({"minor": 2**40}, Datum("minor", lambda number: number if number < 64 else None)).reason
    'minor reads 1099511627776'
    """
    value: Any = entry
    for key in datum.place.split("/"):
        value = table(value).get(key)
    if value is None:
        return absent(entry, datum.place.partition("/")[0])
    converted = datum.convert(value)
    return Unknown(f"{datum.place} reads {shown(value)}") if converted is None else Known(converted)


def absent(entry: dict[str, Any], key: str) -> Unknown:
    """Why a value is not there: the calls that failed, or the one that never returned.

    It is missing only where the driver or the binding lacks every call for it.
    """
    errors, calls = table(entry.get("errors")), table(entry.get("unread")).get(key)
    asked = [call for call in calls if isinstance(call, str)] if isinstance(calls, list) else []
    asked = asked or [call for call in _STARTING if call in errors]
    if asked:
        reasons = [f"{call}: {said(errors.get(call))}" for call in asked]
        return Unknown("; ".join(reasons)[:600], missing=all(errors.get(call) in _LACKING for call in asked))
    if entry.get("unfinished") is not None:
        return Unknown(f"not read, since {said(entry['unfinished'])}")
    return Unknown(f"the nvml probe has no {key}")
