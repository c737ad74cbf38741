"""Which operating system the node runs, from /etc/os-release."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import file
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

OS_RELEASE = file("/etc/os-release", serves=("platform.os",))

_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SINGLE = re.compile(r"'([^']*)'")
_BARE = re.compile(r"(?:[^\s\"'\\$`;&|<>()]|\\.)*")


class OsRelease(NamedTuple):
    """The fields that name the distribution, as the distribution writes them."""

    id: Reading[str]
    version_id: Reading[str]
    pretty_name: Reading[str]
    id_like: Reading[str]


def parse(data: bytes) -> OsRelease | Unknown:
    r"""The fields of a whole file; unknown where the file is empty, cut or something else.

    >>> found = parse(b'NAME="Ubuntu"\nVERSION_ID="22.04"\nID=ubuntu\n# end\n')
    >>> found.id.value, found.version_id.value, found.id_like.reason
    ('ubuntu', '22.04', 'os-release has no ID_LIKE')
    """
    if not data.strip():
        return Unknown("os-release is empty")
    if is_cut(data):
        return Unknown("os-release stops in the middle of a line: it was cut")
    said: dict[str, list[str]] = {}
    for line in lines(data):
        assignment = _ASSIGNMENT.fullmatch(line.strip())
        if assignment:
            said.setdefault(assignment[1], []).append(assignment[2])
    if not said.keys() & {"ID", "NAME", "PRETTY_NAME"}:
        return Unknown("os-release names no operating system")
    return OsRelease(
        id=_field(said, "ID"),
        version_id=_field(said, "VERSION_ID"),
        pretty_name=_field(said, "PRETTY_NAME"),
        id_like=_field(said, "ID_LIKE"),
    )


def _field(said: dict[str, list[str]], key: str) -> Reading[str]:
    raw = said.get(key)
    if raw is None:
        return Unknown(f"os-release has no {key}")
    values = {_unquoted(text) for text in raw}
    if len(values) > 1:
        return Unknown(f"os-release gives {key} twice, with different values")
    value = values.pop()
    if not value or not value.isprintable() or "\ufffd" in value:
        return Unknown(f"os-release gives {key} as {raw[0][:80]!r}")
    return Known(value)


def _unquoted(text: str) -> str | None:
    """What a shell would assign; None where the text is no single word of a shell."""
    double = _DOUBLE.fullmatch(text)
    if double:
        return re.sub(r'\\([$"`\\])', r"\1", double[1])
    single = _SINGLE.fullmatch(text)
    if single:
        return single[1]
    return re.sub(r"\\(.)", r"\1", text) if _BARE.fullmatch(text) else None
