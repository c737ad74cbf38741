"""What the file system says of containers: who may write to their sockets, cgroups, device links, hooks, open ports."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts import small_files
from nodeready.reading import Unknown

_SOCKETS = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock")
_ALL_SOCKETS = " ".join((*_SOCKETS, "/run/user/[0-9]*/docker.sock", "/run/user/[0-9]*/podman/podman.sock"))
_UNIFIED = "/sys/fs/cgroup/cgroup.controllers"
_HOOKS = ("/etc/enroot/hooks.d/98-nvidia.sh", "/usr/share/enroot/hooks.d/98-nvidia.sh")
_MAJOR = 195  # of the driver's device files
# 2375 is docker's port without TLS
_PORT = "0947"

CONTAINER_FILES = command(
    "sh",
    "-c",
    f'for f in {_ALL_SOCKETS}; do [ ! -S "$f" ] || stat -c "socket:%n %a" "$f"; done 2>/dev/null; '
    f"[ -d /sys/fs/cgroup ] && echo cgroup:there; [ -e {_UNIFIED} ] && echo cgroup:unified; "
    f'for f in /dev/char/{_MAJOR}:*; do [ -e "$f" ] && echo "link:${{f##*/}}"; done; '
    'for f in /dev/nvidia[0-9]*; do [ -e "$f" ] && echo "device:${f##*/}"; done; '
    f'for f in {" ".join(_HOOKS)}; do [ -x "$f" ] && echo "hook:$f"; done; '
    'f=$(command -v nvidia-container-cli) && echo "tool:$f"; '
    f"grep -h ':{_PORT} 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null | "
    'while read -r _ a _; do echo "listening:$a"; done; '
    f"echo {small_files.END}",
    name="container-files",
    family="container-files",
    serves=("container.cgroup", "container.daemon-reload", "security.container-socket"),
)

_SOCKET = re.compile(r"(/\S{1,200}) ([0-7]{3,4})")
_LINK = re.compile(r"[0-9]{1,5}:[0-9]{1,9}")
_LOOPBACK = ("0100007F", "00000000000000000000000001000000")
_WRITE_BY_ALL = 0o002


class ContainerFiles(NamedTuple):
    """What was found.

    `open_sockets` are sockets of engines that every user may write to, of `sockets` in all;
    `open_ports` the addresses beyond this machine at which docker's port without TLS is listening.
    `cgroup` is 2 for the unified hierarchy, 1 for the old ones, None where there is none. `links` are
    the numbers of the driver's device files that /dev/char leads to, `devices` is how many GPUs have a
    device file. `enroot_hook` tells whether enroot has the hook that brings GPUs in, `gpu_tool` whether
    the tool that the hook calls is there.
    """

    sockets: tuple[str, ...]
    open_sockets: tuple[str, ...]
    open_ports: tuple[str, ...]
    cgroup: int | None
    links: frozenset[str]
    devices: int
    enroot_hook: bool
    gpu_tool: bool


def parse(data: bytes) -> ContainerFiles | Unknown:
    r"""The whole list; unknown where it was cut or a socket's mode can't be read.

    >>> found = parse(b"socket:/run/docker.sock 666\ncgroup:there\ncgroup:unified\nlink:195:0\ndevice:nvidia0\nend:\n")
    >>> found.open_sockets, found.cgroup, sorted(found.links), found.devices
    (('/run/docker.sock',), 2, ['195:0'], 1)
    """
    files = small_files.parse(data)
    if isinstance(files, Unknown):
        return files
    if not files.whole:
        return Unknown("the list was cut before its end")
    sockets = {}
    for said in files.values.get("socket", ()):
        match = _SOCKET.fullmatch(said)
        if match is None:
            return Unknown(f"a socket is listed as {said[:80]!r}")
        sockets[match[1]] = int(match[2], 8)
    links = files.values.get("link", ())
    odd = next((link for link in links if _LINK.fullmatch(link) is None), None)
    if odd is not None:
        return Unknown(f"a device file is listed as {odd[:80]!r}, which is no number of one")
    cgroup = files.values.get("cgroup", ())
    ports = [address for address in files.values.get("listening", ()) if address.partition(":")[0] not in _LOOPBACK]
    return ContainerFiles(
        sockets=tuple(sockets),
        open_sockets=tuple(name for name, mode in sockets.items() if mode & _WRITE_BY_ALL),
        open_ports=tuple(dict.fromkeys(ports)),
        cgroup=2 if "unified" in cgroup else 1 if cgroup else None,
        links=frozenset(links),
        devices=len(files.values.get("device", ())),
        enroot_hook="hook" in files.values,
        gpu_tool="tool" in files.values,
    )
