"""What stands below container engines: sockets, cgroups, device links, runc; and engines besides docker and podman."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.outputs.containers import docker_answers
from nodeready.simulate.outputs.output import Output, not_installed, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_SOCKETS = {
    "docker": ("/run/docker.sock", "/run/containerd/containerd.sock"),
    "podman": ("/run/podman/podman.sock",),
    "containerd": ("/run/containerd/containerd.sock",),
    "cri-o": ("/run/crio/crio.sock",),
}
_CONTROL = 255  # the number of /dev/nvidiactl


def container_files(node: Node) -> Output:
    """What the file system says of containers."""
    below = node.below
    sockets = _SOCKETS.get(node.engine.kind, ())
    lines = [f"socket:{path} {below.socket_mode if number == 0 else '660'}" for number, path in enumerate(sockets)]
    lines += ["cgroup:there", *(["cgroup:unified"] if below.cgroup == 2 else [])]
    # device files stay when a GPU is lost
    devices = range(sum(gpu.at_boot for gpu in node.gpus)) if node.driver.loaded else range(0)
    if below.linked:
        lines += [f"link:195:{number}" for number in (*devices, _CONTROL)]
    lines += [f"device:nvidia{number}" for number in devices]
    if node.engine.kind == "enroot" and below.hook:
        lines.append("hook:/etc/enroot/hooks.d/98-nvidia.sh")
    if node.container_toolkit is not None:
        lines.append("tool:/usr/bin/nvidia-container-cli")
    return text(*lines, *(f"listening:{address}" for address in below.listening), "end:")


def cri_version(node: Node) -> Output | None:
    """`crictl version`; None where docker answers already."""
    if docker_answers(node):
        return None
    if node.below.cri is None:
        return not_installed("crictl")
    name, version = node.below.cri
    return text("Version:  0.1.0", f"RuntimeName:  {name}", f"RuntimeVersion:  {version}", "RuntimeApiVersion:  v1")


def cri_info(node: Node) -> Output | None:
    """`crictl info`, of which only containerd's holds its configuration."""
    if docker_answers(node):
        return None
    if node.below.cri is None:
        return not_installed("crictl")
    conditions = [{"type": "RuntimeReady", "status": True}, {"type": "NetworkReady", "status": True}]
    document: dict[str, Any] = {"status": {"conditions": conditions}}
    if node.below.cri[0] == "containerd":
        options = {"SystemdCgroup": node.below.cgroup_driver == "systemd"}
        runtimes = {
            name: {"runtimeType": "io.containerd.runc.v2", "options": options} for name in node.below.cri_runtimes
        }
        document["config"] = {"containerd": {"runtimes": runtimes}, "enableCDI": node.engine.cdi}
    return text(json.dumps(document, indent=2))


def enroot(node: Node) -> Output | None:
    """`enroot version`; None where docker answers already."""
    if docker_answers(node):
        return None
    return text(node.engine.version) if node.engine.kind == "enroot" else not_installed("enroot")


def apptainer(node: Node) -> Output | None:
    """`apptainer --version`; None where docker answers already."""
    if docker_answers(node):
        return None
    version = f"apptainer version {node.engine.version}"
    return text(version) if node.engine.kind == "apptainer" else not_installed("apptainer")


def runc(node: Node) -> Output:
    """`runc --version`, of whichever runc stands on PATH."""
    return text(f"runc version {node.below.runc}", "commit: v1.3.6-0-g491b69ba", "spec: 1.2.1", "go: go1.24.9")
