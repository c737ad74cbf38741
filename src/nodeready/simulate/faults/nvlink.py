"""What goes wrong with NVLink, its bridges, the NVSwitches and the fabric manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.copies import by_links
from nodeready.simulate.faults.fault import (
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    has_nvswitch,
    no_load,
    nothing,
    on_every_gpu,
    on_node,
    on_victim,
    rows,
    together,
    victim,
)
from nodeready.simulate.model import INACTIVE
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from nodeready.simulate.model import FabricManager, Gpu, Node
    from nodeready.simulate.shapes import Shape

_NO_CUDA = together(on_node(UNVERIFIED, "frameworks.torch", "network.write-bandwidth"), no_load)


def _linked(shape: Shape) -> bool:
    return shape.joined > 0


def _bridged(shape: Shape) -> bool:
    return shape.joined > 0 and not shape.board


def _demands_links(shape: Shape) -> bool:
    """A board of several GPUs needs its links; a bridge may be left out, and a host may keep them."""
    return shape.board and shape.joined > 1


def _alone_on_a_fabric(shape: Shape) -> bool:
    return shape.board and shape.joined == 1


def _has_fabric(shape: Shape) -> bool:
    return shape.fabric[0] == "Completed"


def _active(gpu: Gpu) -> list[int]:
    """The numbers of the links that are up."""
    return [number for number, link in enumerate(gpu.links) if link != INACTIVE]


def _break_a_link(node: Node) -> None:
    gpu = victim(node)
    gpu.links[_active(gpu)[7]] = INACTIVE


def _break_all_links(node: Node) -> None:
    gpu = victim(node)
    gpu.links = [INACTIVE] * len(gpu.links)


def _leave_bridges_out(node: Node) -> None:
    for gpu in node.gpus:
        gpu.links = [INACTIVE] * len(gpu.links)


def _seat_half(node: Node) -> None:
    for gpu in node.gpus:
        up = _active(gpu)
        for number in up[len(up) // 2 :]:
            gpu.links[number] = INACTIVE


def _one_link_less(node: Node) -> tuple[Expected, ...]:
    """What that costs the pairs: of two GPUs both, since neither has a better one to show."""
    links, joined = len(_active(victim(node))) - 1, node.shape.joined
    gpus = node.gpus if len(node.gpus) == 2 else [victim(node)]
    return by_links(node, links if node.shape.nvswitch_buses else links // max(1, joined - 1), *gpus)


def _over_pcie(node: Node) -> tuple[Expected, ...]:
    """Where GPUs are linked directly, sums that have no link left go over PCIe."""
    return () if has_nvswitch(node.shape) else rows(FAIL, "nvlink.all-reduce")


def _slow_a_link(node: Node) -> None:
    victim(node).links[3] = "19.921 GB/s"


def _print_nothing(node: Node) -> None:
    node.spoilers["nvidia-smi_nvlink_-s"] = lambda _: Output(b"")


def _service(node: Node) -> FabricManager:
    if node.fabric_manager is None:
        raise ValueError(f"a node of type {node.shape.node_type} has no fabric manager")
    return node.fabric_manager


def _never_train(node: Node) -> None:
    if node.fabric_manager is not None:
        node.fabric_manager.state = "failed"
    for gpu in node.gpus:
        gpu.fabric_state, gpu.fabric_status = "In Progress", "N/A"


def _without_service(node: Node) -> None:
    _service(node).state, _service(node).version = "inactive", None
    for gpu in node.gpus:
        gpu.fabric_state, gpu.fabric_status = "Not Started", "N/A"


def _stop(node: Node) -> None:
    _service(node).state = "inactive"


def _upgrade(node: Node) -> None:
    _service(node).version = "595.91.07"


def _run_short(node: Node) -> None:
    victim(node).fabric_status = "Insufficient Resources"


def _hide_the_fabric(node: Node) -> None:
    for gpu in node.gpus:
        gpu.fabric_state = gpu.fabric_status = "N/A"


def _hide_the_fabric_and_fail(node: Node) -> None:
    _hide_the_fabric(node)
    node.driver.cuda_refusal = "cuInit: error 802 (system not yet initialized)"


FAULTS = (
    Fault(
        "nvlink-link-down",
        "One of a GPU's links is down: every collective runs at that GPU's speed.",
        _break_a_link,
        together(on_victim(FAIL, "nvlink.links-active"), on_victim(UNVERIFIED, "nvlink.peers"), _one_link_less),
        can_have=_linked,
    ),
    Fault(
        "nvlink-all-down",
        "All links of one GPU are down, and nvidia-smi says so in one sentence instead of a list.",
        _break_all_links,
        together(
            on_victim(FAIL, "nvlink.links-active"),
            _over_pcie,
            on_victim(UNVERIFIED, "nvlink.peers", "nvlink.bandwidth"),
        ),
        case="D7",
        can_have=_demands_links,
    ),
    Fault(
        "nvlink-slow-link",
        "All links of one GPU are up, one of them below its rated speed.",
        _slow_a_link,
        on_victim(FAIL, "nvlink.links-active"),
        can_have=_linked,
    ),
    Fault(
        "nvlink-printed-nothing",
        "nvidia-smi nvlink -s ended well and printed nothing: how many links are up is not known.",
        _print_nothing,
        on_every_gpu(UNVERIFIED, "nvlink.links-active", "nvlink.errors"),
        case="D10",
    ),
    Fault(
        "half-bridge",
        "The bridges between the cards are seated badly: half of their links are up.",
        _seat_half,
        together(
            on_every_gpu(FAIL, "nvlink.links-active", "nvlink.bandwidth"), on_every_gpu(UNVERIFIED, "nvlink.peers")
        ),
        case="D3",
        can_have=_bridged,
    ),
    Fault(
        "bridge-missing",
        "The cards were delivered without bridges, and nvidia-smi says that all links are inactive: no fault.",
        _leave_bridges_out,
        nothing,
        case="D2",
        can_have=_bridged,
    ),
    Fault(
        "nvlink-not-passed-on",
        "The virtual machine got the GPU without any of its links, which it has no use for: no fault.",
        _leave_bridges_out,
        nothing,
        can_have=_alone_on_a_fabric,
    ),
    Fault(
        "fabric-in-progress",
        "The NVSwitches were never trained: nvidia-smi lists all GPUs, and CUDA refuses to start on any (error 802).",
        _never_train,
        together(
            on_node(FAIL, "nvlink.fabric-manager"),
            on_every_gpu(FAIL, "nvlink.fabric-state"),
            _NO_CUDA,
        ),
        case="C1",
        can_have=_has_fabric,
    ),
    Fault(
        "fabric-not-shown",
        "The virtual machine's GPU shows no fabric, and CUDA works on it: the host deals with that, no fault.",
        _hide_the_fabric,
        nothing,
        can_have=_alone_on_a_fabric,
    ),
    Fault(
        "fabric-not-shown-and-no-cuda",
        "The virtual machine's GPU shows no fabric, and CUDA refuses to start: the host's fabric may be at fault.",
        _hide_the_fabric_and_fail,
        together(on_every_gpu(UNVERIFIED, "nvlink.fabric-state"), _NO_CUDA),
        case="C2",
        can_have=_alone_on_a_fabric,
    ),
    Fault(
        "fabric-manager-missing",
        "The fabric manager was never installed: CUDA refuses to start on any GPU.",
        _without_service,
        together(
            on_node(FAIL, "nvlink.fabric-manager"),
            on_every_gpu(FAIL, "nvlink.fabric-state"),
            _NO_CUDA,
        ),
        case="C1",
        can_have=has_nvswitch,
    ),
    Fault(
        "fabric-manager-dead",
        "The fabric manager was stopped after the fabric had come up: all works until the next reset.",
        _stop,
        on_node(FAIL, "nvlink.fabric-manager"),
        case="C6",
        can_have=has_nvswitch,
    ),
    Fault(
        "fabric-manager-version-skew",
        "The fabric manager was upgraded without the driver: it will refuse to start at the next boot.",
        _upgrade,
        on_node(FAIL, "nvlink.fabric-manager"),
        case="C4",
        can_have=has_nvswitch,
    ),
    Fault(
        "fabric-insufficient-resources",
        "The fabric manager runs, but has not admitted one GPU for lack of resources.",
        _run_short,
        on_victim(FAIL, "nvlink.fabric-state"),
        case="C5",
        can_have=_has_fabric,
    ),
)
