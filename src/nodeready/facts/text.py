"""What all text parsers share: complete lines, and words that are no value."""

from __future__ import annotations

from nodeready.reading import Known, Reading, Unknown

_NO_VALUE = ("", "n/a", "[n/a]", "not available", "[not supported]", "not supported", "unknown", "err!", "none found")

_LONGEST = 4096  # characters of a field: lists of processors are long, a flood is no word


def lines(data: bytes) -> list[str]:
    r"""The complete lines of an output; a last line without its newline was cut and is dropped.

    >>> lines(b"MemTotal: 5 kB\nMemFree: 1")
    ['MemTotal: 5 kB']
    """
    return data.decode("utf-8", "replace").split("\n")[:-1]


def is_cut(data: bytes) -> bool:
    """Whether the output stops in the middle of a line."""
    return bool(data) and not data.endswith(b"\n")


def no_value(text: str) -> bool:
    """Whether a tool printed this instead of a value.

    >>> [no_value(t) for t in ("[N/A]", "Unknown Error", "ERR!", "0", "None")]
    [True, True, True, False, False]
    """
    low = text.strip().lower()
    return (
        low in _NO_VALUE
        or "unknown error" in low
        or "deprecated" in low
        or "gpu is lost" in low
        or low.startswith("[unknown")
    )


def word(text: str | None, what: str) -> Reading[str]:
    """A field's text as a reading: unknown where it is absent or no value."""
    if text is None:
        return Unknown(f"the output has no {what}")
    text = text.strip()
    if no_value(text):
        return Unknown(f"{what} reads {text!r:.200}" if text else f"{what} is empty")
    if len(text) > _LONGEST:
        return Unknown(f"{what} reads {text[:80]!r} and {len(text) - 80} characters more, which no such word has")
    return Known(text)
