"""What the parsers of our own probes share: one JSON document, and numbers that are numbers."""

from __future__ import annotations

import json
import math
from typing import Any

from nodeready.reading import Known, Reading, Unknown


def document(data: bytes, probe: str, schema: int) -> dict[str, Any] | Unknown:
    """The document of a probe as a table; unknown where it is empty, cut, or not of that probe and schema.

    A table in it that has one key twice makes it unknown: readers differ in which of the two they believe.

    >>> document(b'{"probe": "matmul", "schema": 1', "matmul", 1).reason
    'the output of the matmul probe is no whole JSON document'
    >>> document(b'{"probe": "matmul", "schema": 1, "error": "hung", "error": null}', "matmul", 1).reason
    'the output of the matmul probe holds the key "error" twice'
    """
    if not data.strip():
        return Unknown(f"the {probe} probe printed nothing")
    try:
        found = json.loads(data, object_pairs_hook=_table)
    except _KeyTwiceError as error:
        return Unknown(f"the output of the {probe} probe holds the key {error} twice")
    except (ValueError, RecursionError):
        return Unknown(f"the output of the {probe} probe is no whole JSON document")
    if not isinstance(found, dict) or found.get("probe") != probe:
        return Unknown(f"the output is not a document of the {probe} probe")
    if found.get("schema") != schema or isinstance(found["schema"], bool):
        return Unknown(f"the {probe} probe's document has schema {shown(found.get('schema'))}, known is {schema}")
    return found


def results(data: bytes, probe: str, schema: int) -> tuple[dict[str, Any], list[Any]] | Unknown:
    """The document and its entries; unknown also where the probe says only an error, or has no list of entries.

    >>> results(b'{"probe": "matmul", "schema": 1, "results": [], "error": "no GPU to measure"}', "matmul", 1).reason
    'no GPU to measure'
    """
    found = document(data, probe, schema)
    if isinstance(found, Unknown):
        return found
    entries, error = found.get("results"), found.get("error")
    if error is not None:
        said = isinstance(error, str) and error.strip()
        return Unknown(said or f"error of the {probe} probe reads {shown(error)}")
    if not isinstance(entries, list):
        return Unknown(f"results of the {probe} probe reads {shown(entries)}, no list")
    return found, entries


class _KeyTwiceError(ValueError):
    """A JSON object holds a key twice; its text is the key as it may be shown."""


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise _KeyTwiceError(shown(key))
        table[key] = value
    return table


def shown(value: Any) -> str:
    """A value as it may stand in a sentence: JSON's spelling, cut to 60 characters.

    >>> shown("fast"), shown(None), shown(float("nan"))
    ('"fast"', 'null', 'NaN')
    """
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):  # digits or depth beyond what Python prints
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= 60 else f"{text[:57]}..."


def number(value: Any, what: str, *, zero: bool = False, negative: bool = False) -> Reading[float]:
    """A finite number above 0 (or 0 too, or any); all else, `true` and "5" among it, is unknown.

    >>> number(5, "p5").value, number("5", "p5").reason, number(-1.0, "p5").reason
    (5.0, 'p5 reads "5", no number', 'p5 reads -1.0, which cannot be')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Unknown(f"{what} reads {shown(value)}, no number")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found) or (found < 0 and not negative) or (found == 0 and not (zero or negative)):
        return Unknown(f"{what} reads {shown(value)}, which cannot be")
    return Known(found)


def text(value: Any, what: str) -> Reading[str]:
    """A text that is not blank.

    >>> text(" 12.4.5 ", "cublas").value, text(None, "cublas").reason
    ('12.4.5', 'cublas reads null, no text')
    """
    if not isinstance(value, str) or not value.strip():
        return Unknown(f"{what} reads {shown(value)}, no text")
    return Known(value.strip())
