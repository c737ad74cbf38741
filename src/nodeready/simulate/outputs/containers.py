"""The container engine, the NVIDIA Container Toolkit, and what a container sees."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nodeready.simulate.outputs.nvidia_smi import listing
from nodeready.simulate.outputs.output import Output, not_installed, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

NO_DAEMON = "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
NOT_ALLOWED = (
    "ERROR: permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
)
_NO_GPU_DRIVER = 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]'
_NO_START = "docker: Error response from daemon: failed to create task for container: nvidia-container-cli"
_NO_CDI = "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all"


def docker_info(node: Node) -> Output:
    """`docker info`: the client's part, then the engine's."""
    engine = node.engine
    if engine.kind != "docker":
        return not_installed("docker")
    client = (
        "Client: Docker Engine - Community",
        f" Version:    {engine.version}",
        " Context:    default",
        " Debug Mode: false",
        " Plugins:",
        "  buildx: Docker Buildx (Docker Inc.)",
        "    Version:  v0.29.1",
        "    Path:     /usr/libexec/docker/cli-plugins/docker-buildx",
        "",
        "Server:",
    )
    if engine.refusal:
        return text(*client, rc=1, stderr=f"{engine.refusal}\nerrors pretty printing info\n")
    return text(*client, *_server(node))


def docker_answers(node: Node) -> bool:
    """Whether no other engine needs to be asked."""
    return node.engine.kind == "docker" and not node.engine.refusal


def podman_info(node: Node) -> Output | None:
    """`podman info --format json`; None where docker answers already."""
    if docker_answers(node):
        return None
    if node.engine.kind != "podman":
        return not_installed("podman")
    machine = node.shape.machine
    host = {
        "arch": "amd64",
        "cgroupManager": node.below.cgroup_driver,
        "cgroupVersion": f"v{node.below.cgroup}",
        "cpus": machine.cpus,
        "distribution": {"codename": node.os.codename.split()[0].lower(), "distribution": "ubuntu"},
        "hostname": host_name(node),
        "kernel": node.os.kernel,
        "memTotal": node.mem_total_kib * 1024,
        "ociRuntime": {"name": "crun", "package": "crun_1.21", "path": "/usr/bin/crun"},
        "os": "linux",
        "rootlessNetworkCmd": "pasta",
        "security": {"apparmorEnabled": True, "rootless": False, "seccompEnabled": True},
    }
    store = {"graphDriverName": "overlay", "graphRoot": "/var/lib/containers/storage"}
    version = {"APIVersion": node.engine.version, "Version": node.engine.version, "OsArch": "linux/amd64"}
    return text(json.dumps({"host": host, "store": store, "version": version}, indent=2))


def containerd_version(node: Node) -> Output | None:
    """`ctr version`; None where docker answers already."""
    if docker_answers(node):
        return None
    if node.engine.kind != "containerd":
        return not_installed("ctr")
    version = ("  Version:  " + node.engine.version, "  Revision: 1c4457e00facac03ce1d75f7b6777a7a851e5c41")
    server = f"  UUID: {node.stream('containerd').getrandbits(128):032x}"
    return text("Client:", *version, "  Go version: go1.24.9", "", "Server:", *version, server)


def cdi_list(node: Node) -> Output | None:
    """`nvidia-ctk cdi list`; None where docker answers already. It counts on its standard error."""
    if docker_answers(node):
        return None
    if node.container_toolkit is None:
        return not_installed("nvidia-ctk")
    names = []
    if node.engine.cdi:
        gpus = node.listed_gpus
        names = [*map(str, range(len(gpus))), *(gpu.uuid for gpu in gpus), "all"]
    said = f'time="2026-12-01T09:12:41Z" level=info msg="Found {len(names)} CDI devices"\n'
    return text(*(f"nvidia.com/gpu={name}" for name in names), stderr=said)


def _server(node: Node) -> tuple[str, ...]:
    return (
        " Containers: 3",
        "  Running: 1",
        "  Paused: 0",
        "  Stopped: 2",
        " Images: 9",
        f" Server Version: {node.engine.version}",
        " Storage Driver: overlay2",
        "  Backing Filesystem: extfs",
        "  Supports d_type: true",
        "  Using metacopy: false",
        "  Native Overlay Diff: true",
        "  userxattr: false",
        " Logging Driver: json-file",
        f" Cgroup Driver: {node.below.cgroup_driver}",
        f" Cgroup Version: {node.below.cgroup}",
        " Plugins:",
        "  Volume: local",
        "  Network: bridge host ipvlan macvlan null overlay",
        "  Log: awslogs fluentd gcplogs gelf journald json-file local splunk syslog",
        " CDI spec directories:",
        "  /etc/cdi",
        "  /var/run/cdi",
        " Swarm: inactive",
        f" Runtimes: {' '.join(node.engine.runtimes)}",
        " Default Runtime: runc",
        " Init Binary: docker-init",
        " containerd version: 1c4457e00facac03ce1d75f7b6777a7a851e5c41",
        f" runc version: v{node.below.runc}-0-gd842d771",
        " init version: de40ad0",
        " Security Options:",
        "  apparmor",
        "  seccomp",
        "   Profile: builtin",
        "  cgroupns",
        f" Kernel Version: {node.os.kernel}",
        f" Operating System: {node.os.pretty}",
        " OSType: linux",
        " Architecture: x86_64",
        f" CPUs: {node.shape.machine.cpus}",
        f" Total Memory: {node.mem_total_kib / 2**30:.3f}TiB",
        f" Name: {host_name(node)}",
        f" ID: {node.stream('docker').getrandbits(128):032x}",
        " Docker Root Dir: /var/lib/docker",
        " Debug Mode: false",
        " Experimental: false",
        " Insecure Registries:",
        "  ::1/128",
        "  127.0.0.0/8",
        " Live Restore Enabled: false",
        "",
    )


def host_name(node: Node) -> str:
    """The node's own name."""
    return f"{node.shape.node_type}-{node.seed:04d}"


def toolkit_version(node: Node) -> Output:
    """`nvidia-ctk --version`."""
    if node.container_toolkit is None:
        return not_installed("nvidia-ctk")
    commit = node.stream("nvidia-ctk", node.container_toolkit).getrandbits(160)
    return text(f"NVIDIA Container Toolkit CLI version {node.container_toolkit}", f"commit: {commit:040x}")


def gpus_inside(node: Node) -> Output | None:
    """`nvidia-smi -L` inside a container; None where no engine was there that could have run one."""
    engine = node.engine
    if engine.kind not in ("docker", "podman"):
        return None
    if engine.refusal:
        return text(rc=125, stderr=f"docker: {engine.refusal.removeprefix('ERROR: ')}\n")
    if engine.kind == "podman" and not (engine.cdi and node.container_toolkit):
        return text(rc=126, stderr=f"{_NO_CDI}\n")
    if engine.kind == "docker" and ("nvidia" not in engine.runtimes or node.container_toolkit is None):
        return text(rc=125, stderr=f"{_NO_GPU_DRIVER}\n")
    if node.driver.refuses:
        why = "driver/library version mismatch" if node.driver.loaded else "driver not loaded"
        return text(rc=125, stderr=f"{_NO_START}: initialization error: nvml error: {why}\n")
    inside = [gpu for gpu in node.listed_gpus if gpu.in_container]
    return listing(inside) if inside else text("No devices were found", rc=6)
