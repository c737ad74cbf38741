"""The container engine, the NVIDIA Container Toolkit, and what a container sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.nvidia_smi import listing
from nodeready.simulate.outputs.output import Output, not_installed, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

NO_DAEMON = "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
_NO_GPU_DRIVER = 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]'

_NO_START = "docker: Error response from daemon: failed to create task for container: nvidia-container-cli"


def docker_info(node: Node) -> Output:
    """`docker info`: the client's part, then the engine's."""
    engine = node.engine
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


def _server(node: Node) -> tuple[str, ...]:
    cores = node.shape.cores * 4  # two sockets, two threads to a core
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
        " Cgroup Driver: systemd",
        " Cgroup Version: 2",
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
        " runc version: v1.3.3-0-gd842d771",
        " init version: de40ad0",
        " Security Options:",
        "  apparmor",
        "  seccomp",
        "   Profile: builtin",
        "  cgroupns",
        f" Kernel Version: {node.kernel}",
        f" Operating System: {node.os_pretty}",
        " OSType: linux",
        " Architecture: x86_64",
        f" CPUs: {cores}",
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


def gpus_inside(node: Node) -> Output:
    """`nvidia-smi -L` inside a container."""
    if node.engine.refusal:
        return text(rc=125, stderr=f"docker: {node.engine.refusal.removeprefix('ERROR: ')}\n")
    if "nvidia" not in node.engine.runtimes or node.container_toolkit is None:
        return text(rc=125, stderr=f"{_NO_GPU_DRIVER}\n")
    if node.driver.refusal:
        why = "driver/library version mismatch" if node.driver.loaded else "driver not loaded"
        return text(rc=125, stderr=f"{_NO_START}: initialization error: nvml error: {why}\n")
    return listing([gpu for gpu in node.listed_gpus if gpu.in_container])
