"""What goes wrong with containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, on_node, together, victim
from nodeready.simulate.outputs.containers import NO_DAEMON

if TYPE_CHECKING:
    from nodeready.simulate.model import Node


def _forget_the_runtime(node: Node) -> None:
    node.engine.runtimes = tuple(name for name in node.engine.runtimes if name != "nvidia")


def _stop_the_daemon(node: Node) -> None:
    node.engine.refusal = NO_DAEMON


def _install_vulnerable(node: Node) -> None:
    node.container_toolkit = "1.17.7"


def _install_ancient(node: Node) -> None:
    node.container_toolkit = "1.11.0"


def _hide_one(node: Node) -> None:
    victim(node).in_container = False


FAULTS = (
    Fault(
        "docker-without-nvidia",
        "The toolkit is installed, but docker was not restarted since: the engine itself knows no nvidia runtime.",
        _forget_the_runtime,
        together(on_node(FAIL, "container.runtime"), on_node(UNVERIFIED, "container.gpu-visible")),
        case="H7",
    ),
    Fault(
        "docker-down",
        "The docker daemon does not run, so that nothing can be said of containers.",
        _stop_the_daemon,
        on_node(UNVERIFIED, "container.runtime", "container.gpu-visible"),
    ),
    Fault(
        "toolkit-vulnerable",
        "The container toolkit works, and is one that lets a container out of its walls (CVE-2025-23266).",
        _install_vulnerable,
        on_node(ADVISORY, "container.gpu-toolkit"),
    ),
    Fault(
        "toolkit-too-old",
        "The container toolkit is older than Hopper.",
        _install_ancient,
        on_node(FAIL, "container.gpu-toolkit"),
    ),
    Fault(
        "container-sees-seven",
        "A container sees all GPUs of the host but one, whose device file is missing inside.",
        _hide_one,
        on_node(FAIL, "container.gpu-visible"),
        case="H9",
    ),
)
