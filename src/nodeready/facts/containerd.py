"""Which containerd answers, from `ctr version`.

Its config.toml, like docker's daemon.json, declares only: whether the running daemon has read it is
not to be seen there. So no parser of it is here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import lines
from nodeready.reading import Known, Reading, Unknown

CONTAINERD = command("ctr", "version", family="container", serves=("container.runtime",))

_PARTS = ("Client", "Server")
_VERSION = re.compile(r"v?([0-9]{1,5}(?:\.[0-9]{1,5}){1,3}(?:[-~+][0-9A-Za-z.~+-]{1,40})?)")


class Containerd(NamedTuple):
    """The version of the client, and that of the daemon, which only a daemon that answers tells."""

    client_version: Reading[str]
    server_version: Reading[str]


def parse(data: bytes) -> Containerd | Unknown:
    """The two versions of one output; unknown where it has neither part.

    >>> found = parse(b'''Client:
    ...   Version:  1.7.24
    ...   Revision: 88bf19b2105c8b17560993bee28a01ddc2f97182
    ...
    ... Server:
    ...   Version:  v1.7.24
    ... ''')
    >>> found.client_version.value, found.server_version.value
    ('1.7.24', '1.7.24')
    """
    if not data.strip():
        return Unknown("ctr version printed nothing")
    versions: dict[str, list[str]] = {}
    part = ""
    for line in lines(data):
        key, _, value = line.strip().partition(":")
        if key in _PARTS and not value.strip():
            part = key
            versions.setdefault(part, [])
        elif part and key == "Version":
            versions[part].append(value.strip())
    if not versions:
        return Unknown("ctr version has neither a Client nor a Server part")
    return Containerd(client_version=_version(versions, "Client"), server_version=_version(versions, "Server"))


def _version(versions: dict[str, list[str]], part: str) -> Reading[str]:
    said = versions.get(part)
    if said is None:
        return Unknown(f"ctr version has no {part} part: no daemon answered, or the output was cut")
    if not said:
        return Unknown(f"the {part} part of ctr version names no version")
    if len(set(said)) > 1:
        return Unknown(f"the {part} part of ctr version names several versions: {', '.join(sorted(said))[:200]}")
    match = _VERSION.fullmatch(said[0])
    return Known(match[1]) if match else Unknown(f"{said[0][:80]!r} is no version of containerd")
