"""What podman says of itself, from `podman info --format json`."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import word
from nodeready.reading import Known, Reading, Unknown

PODMAN_INFO = command("podman", "info", "--format", "json", family="container", serves=("container.runtime",))

_CGROUPS = {"v1": 1, "v2": 2}


class Podman(NamedTuple):
    """The engine's own word; it has none for GPUs: whether a container can get them is for CDI to say.

    `runtime` is the OCI runtime that it uses, such as `crun`; `cgroup_version` is 1 or 2, `cgroup_manager`
    `systemd` or `cgroupfs`.
    """

    version: Reading[str]
    runtime: Reading[str]
    cgroup_version: Reading[int]
    cgroup_manager: Reading[str]


def parse(data: bytes) -> Podman | Unknown:
    """The engine of a whole document; unknown where it is empty, cut or something else.

    >>> engine = parse(b'''{"host": {"cgroupVersion": "v2", "ociRuntime": {"name": "crun"}},
    ... "version": {"Version": "5.4.0"}}''')
    >>> engine.version.value, engine.runtime.value, engine.cgroup_version.value
    ('5.4.0', 'crun', 2)
    """
    if not data.strip():
        return Unknown("podman info printed nothing")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return Unknown("the output of podman info is no whole JSON document")
    host = _table(found, "host")
    if "ociRuntime" not in host and "cgroupVersion" not in host:
        return Unknown("podman info says nothing of a host")
    return Podman(
        version=_text(_table(found, "version"), "Version"),
        runtime=_text(_table(host, "ociRuntime"), "name"),
        cgroup_version=_cgroup_version(_text(host, "cgroupVersion")),
        cgroup_manager=_text(host, "cgroupManager"),
    )


def _table(found: Any, key: str) -> dict[str, Any]:
    part = found.get(key) if isinstance(found, dict) else None
    return part if isinstance(part, dict) else {}


def _text(table: dict[str, Any], key: str) -> Reading[str]:
    value = table.get(key)
    return word(value if isinstance(value, str) else None, f"{key} of podman info")


def _cgroup_version(text: Reading[str]) -> Reading[int]:
    if isinstance(text, Unknown):
        return text
    if text.value not in _CGROUPS:
        return Unknown(f"cgroupVersion of podman info reads {text.value[:80]!r}")
    return Known(_CGROUPS[text.value])
