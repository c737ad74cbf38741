"""What goes wrong with containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    nothing,
    on_node,
    several_gpus,
    together,
    victim,
)
from nodeready.simulate.model import Engine
from nodeready.simulate.outputs.containers import NO_DAEMON, NOT_ALLOWED
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_ENGINE, _TOOLKIT, _INSIDE = "container.runtime", "container.gpu-toolkit", "container.gpu-visible"
_FIXES = "security.container-toolkit"


def _forget_the_runtime(node: Node) -> None:
    node.engine.runtimes = tuple(name for name in node.engine.runtimes if name != "nvidia")


def _stop_the_daemon(node: Node) -> None:
    node.engine.refusal = NO_DAEMON


def _refuse_the_user(node: Node) -> None:
    node.engine.refusal = NOT_ALLOWED


def _podman_with_cdi(node: Node) -> None:
    node.engine = Engine("podman", "5.4.2", cdi=True)


def _podman_without_cdi(node: Node) -> None:
    node.engine = Engine("podman", "5.4.2")


def _containerd_only(node: Node) -> None:
    node.engine = Engine("containerd", "v2.1.4")


def _install_vulnerable(node: Node) -> None:
    node.container_toolkit = "1.17.7"


def _install_ancient(node: Node) -> None:
    node.container_toolkit = "1.11.0"


def _without_toolkit(node: Node) -> None:
    node.container_toolkit = None


def _hide_one(node: Node) -> None:
    victim(node).in_container = False


def _lose_the_image(node: Node) -> None:
    said = b"docker: Error response from daemon: No such image: registry.example/gate:12.8\n\nRun 'docker run --help'\n"
    node.spoilers["container-gpus"] = lambda _: Output(b"", 125, said)


FAULTS = (
    Fault(
        "docker-without-nvidia",
        "The toolkit is installed, but docker was not restarted since: the engine itself knows no nvidia runtime.",
        _forget_the_runtime,
        together(on_node(FAIL, _ENGINE), on_node(UNVERIFIED, _INSIDE)),
        case="H7",
    ),
    Fault(
        "docker-down",
        "The docker daemon does not run, so that nothing can be said of containers.",
        _stop_the_daemon,
        on_node(UNVERIFIED, _ENGINE, _INSIDE),
    ),
    Fault(
        "docker-denied",
        "The gate ran as a user who may not speak to docker.",
        _refuse_the_user,
        on_node(UNVERIFIED, _ENGINE, _INSIDE),
    ),
    Fault(
        "podman-with-cdi",
        "The node has podman instead of docker, and the toolkit offers the GPUs as CDI devices: no fault.",
        _podman_with_cdi,
        nothing,
        case="H8",
    ),
    Fault(
        "podman-without-cdi",
        "The node has podman, and nobody generated the CDI devices: containers start without any GPU.",
        _podman_without_cdi,
        together(on_node(FAIL, _ENGINE), on_node(UNVERIFIED, _INSIDE)),
        case="H8",
    ),
    Fault(
        "containerd-only",
        "The node has containerd alone, which says nothing of GPUs, and no container was run.",
        _containerd_only,
        on_node(UNVERIFIED, _ENGINE, _INSIDE),
        case="H26",
    ),
    Fault(
        "toolkit-vulnerable",
        "The container toolkit works, and is one that lets a container out of its walls (CVE-2025-23266).",
        _install_vulnerable,
        on_node(ADVISORY, _FIXES),
    ),
    Fault(
        "toolkit-too-old",
        "The container toolkit is older than Hopper.",
        _install_ancient,
        together(on_node(FAIL, _TOOLKIT), on_node(ADVISORY, _FIXES)),
    ),
    Fault(
        "toolkit-missing",
        "docker is still set up for the container toolkit, which was removed: no container gets a GPU.",
        _without_toolkit,
        on_node(UNVERIFIED, _TOOLKIT, _FIXES, _INSIDE),
        case="H7",
    ),
    Fault(
        "container-image-missing",
        "The image for the test is not on the node, and is never pulled: nothing is proven of the engine.",
        _lose_the_image,
        on_node(UNVERIFIED, _INSIDE),
        case="H11",
    ),
    Fault(
        "container-misses-a-gpu",
        "A container sees all GPUs of the host but one, whose device file is missing inside.",
        _hide_one,
        on_node(FAIL, _INSIDE),
        case="H9",
        can_have=several_gpus,
    ),
)
