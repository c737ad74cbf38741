"""What goes wrong below container engines, engines besides docker and podman, and who may speak to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, nothing, on_node, together
from nodeready.simulate.model import Engine

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_ENGINE, _INSIDE, _RELOAD = "container.runtime", "container.gpu-visible", "container.daemon-reload"
_SOCKET, _RUNC = "security.container-socket", "security.runc"
_NO_CONTAINER = on_node(UNVERIFIED, _INSIDE)
_ENGINE_AND_INSIDE = together(on_node(FAIL, _ENGINE), _NO_CONTAINER)


def _crio(node: Node) -> None:
    node.engine = Engine("cri-o", "1.33.4", cdi=True)
    node.below.cri = ("cri-o", "1.33.4")


def _crio_without_cdi(node: Node) -> None:
    _crio(node)
    node.engine.cdi = False


def _containerd(node: Node) -> None:
    node.engine = Engine("containerd", "v2.1.4")
    node.below.cri = ("containerd", "v2.1.4")


def _containerd_plain(node: Node) -> None:
    _containerd(node)
    node.below.cri_runtimes = ("runc",)


def _containerd_with_cdi(node: Node) -> None:
    _containerd_plain(node)
    node.engine.cdi = True


def _enroot(node: Node) -> None:
    node.engine = Engine("enroot", "3.5.0")


def _enroot_without_hook(node: Node) -> None:
    _enroot(node)
    node.below.hook = False


def _apptainer(node: Node) -> None:
    node.engine = Engine("apptainer", "1.3.4")


def _stay_on_cgroup_v1(node: Node) -> None:
    node.below.cgroup = 1


def _lose_the_links(node: Node) -> None:
    node.below.linked = False


def _leave_it_to_cgroupfs(node: Node) -> None:
    node.below.linked, node.below.cgroup_driver = False, "cgroupfs"


def _miss_the_files(node: Node) -> None:
    node.spoilers["container-files"] = lambda _: None


def _open_the_socket(node: Node) -> None:
    node.below.socket_mode = "666"


def _listen_to_all(node: Node) -> None:
    node.below.listening = ("00000000:0947",)


def _listen_to_itself(node: Node) -> None:
    node.below.listening = ("0100007F:0947",)


def _stay_on_old_runc(node: Node) -> None:
    node.below.runc = "1.3.2"


def _use_the_distribution(node: Node) -> None:
    node.below.runc = "1.1.12-0ubuntu2~22.04.1"


FAULTS = (
    Fault(
        "cri-o-with-cdi",
        "The node has CRI-O, which takes the toolkit's CDI devices; no container was run: nothing is wrong with it.",
        _crio,
        _NO_CONTAINER,
        case="H26",
    ),
    Fault(
        "cri-o-without-cdi",
        "The node has CRI-O, and nobody generated the CDI devices: pods start without any GPU.",
        _crio_without_cdi,
        _ENGINE_AND_INSIDE,
        case="H8",
    ),
    Fault(
        "containerd-with-nvidia",
        "The node has containerd, whose Kubernetes service knows the nvidia runtime; no container was run.",
        _containerd,
        _NO_CONTAINER,
        case="H26",
    ),
    Fault(
        "containerd-with-cdi",
        "The node has containerd without an nvidia runtime, and it takes the CDI devices that are there.",
        _containerd_with_cdi,
        _NO_CONTAINER,
        case="H26",
    ),
    Fault(
        "containerd-plain",
        "containerd has neither an nvidia runtime nor CDI: pods start without any GPU.",
        _containerd_plain,
        _ENGINE_AND_INSIDE,
    ),
    Fault(
        "enroot-with-hook",
        "The node has enroot with the hook that brings GPUs in; no container was run.",
        _enroot,
        _NO_CONTAINER,
        case="H26",
    ),
    Fault(
        "enroot-without-hook",
        "The node has enroot, and its NVIDIA hook is missing: containers start without any GPU.",
        _enroot_without_hook,
        _ENGINE_AND_INSIDE,
    ),
    Fault(
        "apptainer-alone",
        "The node has apptainer, which needs nothing but the driver; no container was run.",
        _apptainer,
        _NO_CONTAINER,
        case="H26",
    ),
    Fault(
        "cgroup-v1",
        "The node boots with the old cgroup hierarchies.",
        _stay_on_cgroup_v1,
        on_node(ADVISORY, "container.cgroup"),
    ),
    Fault(
        "gpus-lost-at-reload",
        "systemd has the cgroups and does not know the GPUs' device files: it takes them away when it reloads.",
        _lose_the_links,
        on_node(ADVISORY, _RELOAD),
        case="H9",
    ),
    Fault(
        "no-links-and-cgroupfs",
        "/dev/char leads nowhere, but the engine has its cgroups itself: no fault.",
        _leave_it_to_cgroupfs,
        nothing,
        case="H9",
    ),
    Fault(
        "container-files-unread",
        "Nobody recorded what the file system says of containers.",
        _miss_the_files,
        on_node(UNVERIFIED, "container.cgroup", _RELOAD, _SOCKET),
    ),
    Fault(
        "socket-world-writable",
        "Every user may write to the socket of the container engine, and so is root.",
        _open_the_socket,
        on_node(FAIL, _SOCKET),
    ),
    Fault(
        "docker-on-tcp",
        "docker listens on port 2375 of all addresses, without TLS.",
        _listen_to_all,
        on_node(FAIL, _SOCKET),
    ),
    Fault(
        "docker-on-loopback",
        "docker listens on port 2375 of this machine alone: no fault.",
        _listen_to_itself,
        nothing,
    ),
    Fault(
        "runc-vulnerable",
        "runc is older than the fixes of its branch (CVE-2025-31133).",
        _stay_on_old_runc,
        on_node(ADVISORY, _RUNC),
    ),
    Fault(
        "runc-of-the-distribution",
        "runc is the distribution's own build, which takes fixes over without a new number: not known.",
        _use_the_distribution,
        on_node(UNVERIFIED, _RUNC),
    ),
)
