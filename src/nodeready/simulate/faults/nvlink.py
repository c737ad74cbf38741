"""What goes wrong with NVLink, the NVSwitches and the fabric manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import FAIL, UNVERIFIED, Fault, on_every_gpu, on_node, on_victim, together, victim
from nodeready.simulate.model import INACTIVE, FabricManager

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.shapes import Shape


def _break_a_link(node: Node) -> None:
    victim(node).links[7] = INACTIVE


def _break_all_links(node: Node) -> None:
    gpu = victim(node)
    gpu.links = [INACTIVE] * len(gpu.links)


def _slow_a_link(node: Node) -> None:
    victim(node).links[3] = "19.921 GB/s"


def _service(node: Node) -> FabricManager:
    if node.fabric_manager is None:
        raise ValueError(f"a node of type {node.shape.node_type} has no fabric manager")
    return node.fabric_manager


def _has_fabric_manager(shape: Shape) -> bool:
    return shape.fabric_manager


def _never_train(node: Node) -> None:
    _service(node).state = "failed"
    for gpu in node.gpus:
        gpu.fabric_state, gpu.fabric_status = "In Progress", "N/A"


def _stop(node: Node) -> None:
    _service(node).state = "inactive"


def _upgrade(node: Node) -> None:
    _service(node).version = "580.126.09"


def _run_short(node: Node) -> None:
    victim(node).fabric_status = "Insufficient Resources"


FAULTS = (
    Fault(
        "nvlink-link-down",
        "One of a GPU's 18 links is down: every collective runs at that GPU's speed.",
        _break_a_link,
        on_victim(FAIL, "nvlink.links-active"),
    ),
    Fault(
        "nvlink-all-down",
        "All links of one GPU are down, and nvidia-smi says so in one sentence instead of a list.",
        _break_all_links,
        on_victim(FAIL, "nvlink.links-active"),
        case="D7",
    ),
    Fault(
        "nvlink-slow-link",
        "All links of one GPU are up, one of them below its rated speed.",
        _slow_a_link,
        on_victim(FAIL, "nvlink.links-active"),
    ),
    Fault(
        "fabric-in-progress",
        "The fabric manager failed at boot: nvidia-smi lists all GPUs, and CUDA refuses to start on any (error 802).",
        _never_train,
        together(
            on_node(FAIL, "nvlink.fabric-manager"),
            on_every_gpu(FAIL, "nvlink.fabric-state"),
            on_node(UNVERIFIED, "frameworks.torch"),
            on_every_gpu(UNVERIFIED, "compute.matmul-fp16", "compute.matmul-fp32"),
        ),
        case="C1",
        can_have=_has_fabric_manager,
    ),
    Fault(
        "fabric-manager-dead",
        "The fabric manager was stopped after the fabric had come up: all works until the next reset.",
        _stop,
        on_node(FAIL, "nvlink.fabric-manager"),
        case="C6",
        can_have=_has_fabric_manager,
    ),
    Fault(
        "fabric-manager-version-skew",
        "The fabric manager was upgraded without the driver: it will refuse to start at the next boot.",
        _upgrade,
        on_node(FAIL, "nvlink.fabric-manager"),
        case="C4",
        can_have=_has_fabric_manager,
    ),
    Fault(
        "fabric-insufficient-resources",
        "The fabric manager runs, but has not admitted one GPU for lack of resources.",
        _run_short,
        on_victim(FAIL, "nvlink.fabric-state"),
        case="C5",
    ),
)
