"""Container engines besides docker, podman and containerd's own tool: CRI-O, enroot, apptainer; and the runc below."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.docker import DOCKER_INFO
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

_SERVES = ("container.runtime",)

# asked only where docker does not answer: kubelets and Slurm nodes have these instead
CRI_VERSION = command("crictl", "version", family="container", instead_of=DOCKER_INFO.name, serves=_SERVES)
CRI_INFO = command("crictl", "info", family="container", instead_of=DOCKER_INFO.name, serves=_SERVES)
ENROOT = command("enroot", "version", family="container", instead_of=DOCKER_INFO.name, serves=_SERVES)
APPTAINER = command("apptainer", "--version", family="container", instead_of=DOCKER_INFO.name, serves=_SERVES)
RUNC = command("runc", "--version", family="container", serves=("security.runc",))

_TEXT = r"v?([0-9]{1,5}(?:\.[0-9]{1,5}){1,3}(?:[-~+][0-9A-Za-z.~+-]{1,60})?)"
_VERSION = re.compile(_TEXT)
_APPTAINER = re.compile(rf"(?:apptainer|singularity|singularity-ce) version {_TEXT}")
_RUNC = re.compile(rf"runc version {_TEXT}")


class Cri(NamedTuple):
    """The engine behind the Kubernetes socket, such as `cri-o` or `containerd`, and its version."""

    engine: Reading[str]
    version: Reading[str]


def parse_cri_version(data: bytes) -> Cri | Unknown:
    r"""What answers at the socket; unknown where a field is missing or the output was cut.

    >>> cri = parse_cri_version(b"Version:  0.1.0\nRuntimeName:  cri-o\nRuntimeVersion:  1.30.4\n")
    >>> cri.engine.value, cri.version.value
    ('cri-o', '1.30.4')
    """
    if is_cut(data):
        return Unknown("the output of crictl version stops in the middle of a line: it was cut")
    said: dict[str, list[str]] = {}
    for line in lines(data):
        key, colon, value = line.partition(":")
        if colon:
            said.setdefault(key.strip(), []).append(value.strip())
    name, version = said.get("RuntimeName", []), said.get("RuntimeVersion", [])
    if len(name) != 1 or len(version) != 1 or not name[0]:
        return Unknown("crictl version does not name one runtime and its version")
    match = _VERSION.fullmatch(version[0])
    number: Reading[str] = Known(match[1]) if match else Unknown(f"{version[0][:80]!r} is no version")
    return Cri(Known(name[0]), number)


class CriInfo(NamedTuple):
    """What containerd's CRI service runs by; `cdi` and `systemd_cgroup` are None where it does not say."""

    runtimes: tuple[str, ...]
    cdi: bool | None
    systemd_cgroup: bool | None


def parse_cri_info(data: bytes) -> CriInfo | Unknown:
    """The configuration that the service has read; unknown where the document is cut or has none of containerd's.

    >>> info = parse_cri_info(b'''{"config": {"enableCDI": true, "containerd": {"runtimes": {
    ... "nvidia": {"options": {"SystemdCgroup": true}}, "runc": {"options": {"SystemdCgroup": true}}}}}}''')
    >>> info.runtimes, info.cdi, info.systemd_cgroup
    (('nvidia', 'runc'), True, True)
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return Unknown("the output of crictl info is no whole JSON document")
    config = _table(found, "config")
    runtimes = _table(_table(config, "containerd"), "runtimes")
    if not runtimes:
        return Unknown("crictl info lists no runtimes of containerd")
    systemd = [_table(_table(runtimes, name), "options").get("SystemdCgroup") for name in runtimes]
    cdi = config.get("enableCDI")
    known = [value for value in systemd if isinstance(value, bool)]
    return CriInfo(tuple(sorted(runtimes)), cdi if isinstance(cdi, bool) else None, any(known) if known else None)


def _table(found: Any, key: str) -> dict[str, Any]:
    part = found.get(key) if isinstance(found, dict) else None
    return part if isinstance(part, dict) else {}


def parse_enroot(data: bytes) -> Reading[str]:
    r"""The version that `enroot version` prints, and nothing else.

    >>> parse_enroot(b"3.5.0\n").value
    '3.5.0'
    """
    return _single(data, _VERSION, "enroot version")


def parse_apptainer(data: bytes) -> Reading[str]:
    r"""The version of apptainer, or of singularity under its name.

    >>> parse_apptainer(b"apptainer version 1.3.4\n").value
    '1.3.4'
    """
    return _single(data, _APPTAINER, "apptainer --version")


def parse_runc(data: bytes) -> Reading[str]:
    r"""The version of runc, as its builder named it.

    >>> parse_runc(b"runc version 1.3.6\ncommit: v1.3.6-0-g491b69ba\nspec: 1.2.1\n").value
    '1.3.6'
    """
    return _single(data, _RUNC, "runc --version")


def _single(data: bytes, pattern: re.Pattern[str], what: str) -> Reading[str]:
    if is_cut(data):
        return Unknown(f"the output of {what} stops in the middle of a line: it was cut")
    versions = {match[1] for match in map(pattern.fullmatch, map(str.strip, lines(data))) if match}
    if len(versions) != 1:
        return Unknown(f"{what} names {len(versions)} versions")
    return Known(versions.pop())
