r"""Text that came from a node is shown, never obeyed.

A serial number, an error message or a host name may hold anything: terminal sequences, marks that
turn the reading direction, newlines that forge a second line, a megabyte. What a reader would not see
as a character of its own is spelled out (`\x1b`, `\u202e`, `\n`), and a long text is cut with the
number of bytes that are not shown. Markup is the business of each format: the result holds no control
character, is valid in XML 1.0 and UTF-8, and still has to be quoted for HTML, XML or Prometheus.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CAP = 800
_NOTE = 40  # room for "… (N bytes more)"

# What Python calls printable and a reader still does not see as it stands: letters that turn the reading
# direction of what follows them, marks drawn over their neighbours, and letters without a shape.
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff"
_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
_BLANKS = "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U000e0100-\U000e01ef"
_DECEPTIVE = re.compile(f"[{_RIGHT_TO_LEFT}{_MARKS}{_BLANKS}]")


def is_plain(text: str) -> bool:
    """Whether a reader sees every character of the text as what it is, and in its place.

    >>> is_plain("8 GPUs …"), is_plain("8\u202eGPUs"), is_plain("8\u05d0GPUs"), is_plain("8\u3164GPUs")
    (True, False, False, False)
    """
    return text.isprintable() and (text.isascii() or _DECEPTIVE.search(text) is None)


def _seen(character: str) -> str:
    if is_plain(character):
        return character
    spelled = character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return spelled if spelled.startswith("\\") else f"\\x{ord(character):02x}"


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _fitting(text: str, room: int) -> tuple[str, int]:
    """What fits into `room` characters once it is spelled out, and how many of `text` that took."""
    start = text[:room]
    if is_plain(start):
        return start, len(start)
    pieces: list[str] = []
    for character in start:
        piece = _seen(character)
        room -= len(piece)
        if room < 0:
            break
        pieces.append(piece)
    return "".join(pieces), len(pieces)


def visible(text: str, cap: int = CAP) -> str:
    r"""The text with everything invisible spelled out, at most `cap` characters and a note of what is missing.

    Applying it twice changes nothing.

    >>> visible("8 GPUs\n\x1b[31mok\u202e")
    '8 GPUs\\n\\x1b[31mok\\u202e'
    >>> visible("x" * 30, cap=10)
    'xxxxxxxxxx… (20 bytes more)'
    """
    if len(text) <= cap and is_plain(text):
        return text
    if _is_cut(text, cap):
        return text
    shown, taken = _fitting(text, cap)
    if taken == len(text):
        return shown
    return f"{shown}… ({_bytes(text[taken:])} bytes more)"


def _is_cut(text: str, cap: int) -> bool:
    """Whether `visible` made this text, so that a second cut would only hide the first one's count."""
    shown, mark, rest = text[: cap + _NOTE].rpartition("… (")
    if not mark or len(shown) > cap or len(text) > cap + _NOTE or not is_plain(text):
        return False
    count, _, end = rest.partition(" ")
    return end == "bytes more)" and count.isdigit()


def visible_lines(text: str, cap: int = CAP) -> str:
    r"""A text of several lines, such as an error's, with each line made `visible`.

    >>> visible_lines("2 hosts:\n  a\x1b[31m\n")
    '2 hosts:\n  a\\x1b[31m\n'
    """
    return "\n".join(visible(line, cap) for line in text.split("\n"))


def prose(text: str, cap: int = CAP) -> str:
    r"""Text of an author on one line: blanks and line ends are folded, the rest is as in `visible`.

    >>> prose("Reset the GPU,\n    then run the gate again.")
    'Reset the GPU, then run the gate again.'
    """
    folded = 4 * cap  # of a megabyte, no more than can be shown
    return visible(" ".join(text[:folded].split()) + text[folded:], cap)


def head_and_tail(text: str, cap: int) -> str:
    """At most about `cap` characters of a text: its start, what is left out, its end.

    Line ends stay; it is meant for text that went through `visible` line by line.
    """
    if len(text) <= cap:
        return text
    tail = max(cap // 3, 1)
    head = cap - tail
    return f"{text[:head]}\n… ({_bytes(text[head:-tail])} bytes left out) …\n{text[-tail:]}"


# what authors of checks and baselines wrote, with line ends of their own; a message quotes the node
_PROSE = frozenset({"title", "why", "remedy", "source_title"})
# a longer name names nothing, and would push aside what stands beside it
_NAME_CAP = 80
_SHORT = 400
_NAMES = frozenset({"host", "subject", "check", "key", "bus_id", "serial", "uuid", "slot", "product", "unit"})


def harmless(value: Any, name: str = "") -> Any:
    """The same value with every text in it, names of keys included, made `visible`.

    Numbers, truth values and None stay as they are; titles, reasons and remedies are `prose`, names of
    hosts and parts are cut at 80 characters. `name` is the key that the value stands under.
    """
    if isinstance(value, str):
        return _short(value, name) if len(value) <= _SHORT else _text(value, name)
    if isinstance(value, dict):
        return {_key(key): item if item is None else harmless(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [harmless(item) for item in value]
    return value


def _text(value: str, name: str) -> str:
    cap = _NAME_CAP if name in _NAMES else CAP
    if name in _PROSE:
        return prose(value, cap)
    return value if len(value) <= cap and is_plain(value) else visible(value, cap)


_short = lru_cache(maxsize=4096)(_text)  # titles, units and remedies come back with every finding


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    return key if len(key) <= CAP and is_plain(key) else visible(key)


class Seen(dict[str, Any]):
    """A results document whose every text is harmless; the only kind that the renderers work on."""

    @classmethod
    def of(cls, results: Mapping[str, Any]) -> Seen:
        """The document itself where it is one already, so that several renderers share the work."""
        return results if isinstance(results, Seen) else cls(harmless(dict(results)))
