"""What the Docker engine says of itself, from `docker info`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import is_cut, lines, word
from nodeready.reading import Known, Reading, Unknown

DOCKER_INFO = command("docker", "info", family="container", serves=("container.runtime",))

_FIELD = re.compile(r"( ?)([A-Za-z][^:]*):(?: (.*))?")
_RUNC = re.compile(r"v?([0-9]{1,3}(?:\.[0-9]{1,4}){2}(?:-rc\.?[0-9]{1,2})?)(?:-0-g[0-9a-f]{6,40})?")
_REFUSALS = ("Cannot connect to the Docker daemon", "permission denied while trying to connect")
# client and engine list CDI devices from this version on (docker/cli pull request 6078)
_LISTS_DEVICES = (28, 2)


class Docker(NamedTuple):
    """The engine's own word; `runtimes` are sorted, `cdi_devices` are names such as nvidia.com/gpu=0.

    `cgroup_driver` is `systemd` or `cgroupfs`, `cgroup_version` is 1 or 2, `runc_version` such as 1.3.6.
    """

    server_version: Reading[str]
    runtimes: Reading[tuple[str, ...]]
    default_runtime: Reading[str]
    cdi_devices: Reading[tuple[str, ...]]
    cgroup_driver: Reading[str]
    cgroup_version: Reading[int]
    runc_version: Reading[str]


def parse(data: bytes) -> Docker | Unknown:
    """The engine's part of a whole output; unknown where it is empty, cut or the engine did not answer.

    The client's part does not count: its plug-ins have versions too.

    >>> engine = parse(b'''Client:
    ...  Version:    28.3.1
    ...
    ... Server:
    ...  Server Version: 28.3.1
    ...  Discovered Devices:
    ...   cdi: nvidia.com/gpu=0
    ...   cdi: nvidia.com/gpu=all
    ...  Swarm: inactive
    ...  Runtimes: runc nvidia io.containerd.runc.v2
    ...  Default Runtime: runc
    ... ''')
    >>> engine.runtimes.value, engine.cdi_devices.value
    (('io.containerd.runc.v2', 'nvidia', 'runc'), ('nvidia.com/gpu=0', 'nvidia.com/gpu=all'))
    """
    if not data.strip():
        return Unknown("docker info printed nothing")
    if is_cut(data):
        return Unknown("the output of docker info stops in the middle of a line: it was cut")
    text = [line.rstrip() for line in lines(data)]
    client, engine = _parts(text)
    refused = next((line for line in engine or text if _is_refusal(line)), None)
    if refused is not None:
        return Unknown(f"docker info says: {refused[:200]}")
    if engine is None:
        return Unknown("docker info has no Server section: the output was cut, or no engine answered")
    said = _fields(engine)
    if not said.keys() & {"Server Version", "Runtimes"}:
        return Unknown("docker info says nothing of a server")
    return Docker(
        server_version=word(_one(said, "Server Version"), "Server Version of docker info"),
        runtimes=_runtimes(said),
        default_runtime=word(_one(said, "Default Runtime"), "Default Runtime of docker info"),
        cdi_devices=_devices(engine, said, _fields(client)),
        cgroup_driver=word(_one(said, "Cgroup Driver"), "Cgroup Driver of docker info"),
        cgroup_version=_cgroup_version(word(_one(said, "Cgroup Version"), "Cgroup Version of docker info")),
        runc_version=_runc(word(_one(said, "runc version"), "runc version of docker info")),
    )


def _cgroup_version(text: Reading[str]) -> Reading[int]:
    if isinstance(text, Unknown):
        return text
    return Known(int(text.value)) if text.value in ("1", "2") else Unknown(f"Cgroup Version reads {text.value[:80]!r}")


def _runc(text: Reading[str]) -> Reading[str]:
    """The release in a name such as v1.3.3-0-gd842d771; older engines give a commit alone."""
    if isinstance(text, Unknown):
        return text
    match = _RUNC.fullmatch(text.value)
    return Known(match[1]) if match else Unknown(f"runc version of docker info reads {text.value[:80]!r}, no release")


def _is_refusal(line: str) -> bool:
    return line.startswith("ERROR:") or any(words in line for words in _REFUSALS)


def _parts(text: list[str]) -> tuple[list[str], list[str] | None]:
    """The client's and the engine's lines; an excerpt without headings is taken as the engine's."""
    for number, line in enumerate(text):
        if line.startswith("Server:"):
            return text[:number], text[number + 1 :]
    if any(line.startswith("Client:") for line in text):
        return text, None
    return [], text


def _fields(part: list[str]) -> dict[str, list[str]]:
    """The fields at the left of a part; what is indented further belongs to the field above it."""
    said: dict[str, list[str]] = {}
    for line in part:
        field = _FIELD.fullmatch(line)
        if field:
            said.setdefault(field[2], []).append((field[3] or "").strip())
    return said


def _one(said: dict[str, list[str]], key: str) -> str | None:
    values = set(said.get(key, ()))
    return values.pop() if len(values) == 1 else None


def _runtimes(said: dict[str, list[str]]) -> Reading[tuple[str, ...]]:
    names = (_one(said, "Runtimes") or "").split()
    if not names:
        return Unknown("docker info lists no runtimes")
    return Known(tuple(sorted(names)))


def _devices(engine: list[str], said: dict[str, list[str]], client: dict[str, list[str]]) -> Reading[tuple[str, ...]]:
    headings = [number for number, line in enumerate(engine) if line.strip() == "Discovered Devices:"]
    if len(headings) > 1:
        return Unknown("docker info lists discovered devices twice")
    if headings:
        return _listed(engine[headings[0] :])
    if "Runtimes" not in said:
        return Unknown("docker info stops before its discovered devices")
    versions = (_one(said, "Server Version"), _one(client, "Version"))
    if all(_release(version) >= _LISTS_DEVICES for version in versions):
        # the list is printed only where there is something in it
        return Known((), note="docker info lists no discovered devices")
    return Unknown("this docker info does not list CDI devices (it does from 28.2 on)")


def _listed(part: list[str]) -> Reading[tuple[str, ...]]:
    indent = len(part[0]) - len(part[0].lstrip())
    devices: list[str] = []
    for line in part[1:]:
        if len(line) - len(line.lstrip()) <= indent:
            return Known(tuple(devices))
        source, _, name = line.strip().partition(": ")
        if source == "cdi" and name:
            devices.append(name)
    return Unknown("docker info stops inside its discovered devices: it was cut")


def _release(version: str | None) -> tuple[int, ...]:
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", version or "")
    return (int(match[1]), int(match[2])) if match else (0, 0)
