"""What goes wrong with network adapters though their ports are up: firmware, MTU, counters, GPUDirect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, logged, nothing, on_node

if TYPE_CHECKING:
    from nodeready.simulate.model import Node, Port
    from nodeready.simulate.outputs.output import Output
    from nodeready.simulate.shapes import Shape

_GROWTH, _DIRECT, _WRITE = "network.errors", "network.gpudirect", "network.write-bandwidth"
_MODULE = "proc/driver/nvidia/version"


def _rails(shape: Shape) -> bool:
    """Only a node with an adapter beside each GPU."""
    return shape.rails


def _second(node: Node) -> Port:
    return node.ports[1]


def _run(port: Port, firmware: str) -> None:
    port.adapter = replace(port.adapter, firmware=firmware)


def _mix(node: Node) -> None:
    _run(_second(node), "28.42.1000")


def _stay_old(node: Node) -> None:
    for port in node.ports:
        if port.adapter.part == "MT4129":
            _run(port, "28.36.1010")


def _shrink(node: Node) -> None:
    node.links.mtus[_second(node).rdma_name] = 1500


def _grow(node: Node, counter: str, by: int) -> None:
    node.links.port_growth[_second(node).rdma_name] = {counter: by}


def _lose_integrity(node: Node) -> None:
    _grow(node, "local_link_integrity_errors", 3)


def _err(node: Node) -> None:
    _grow(node, "symbol_error", 6)


def _err_once(node: Node) -> None:
    _grow(node, "symbol_error", 1)


def _restart(node: Node) -> None:
    _grow(node, "roce_slow_restart", 200)


def _lose_the_link(node: Node) -> None:
    _grow(node, "link_downed", 1)


def _remember(node: Node) -> None:
    node.links.port_counters[_second(node).rdma_name] = {"excessive_buffer_overrun_errors": 15, "symbol_error": 3}


def _flap(node: Node) -> None:
    node.links.port_counters[_second(node).rdma_name] = {"link_downed": 255}


def _miss_the_files(node: Node) -> None:
    for name in ("rdma-files", "rdma-files-later"):
        node.spoilers[name] = lambda _: None


def _sample_once(node: Node) -> None:
    node.spoilers["rdma-files-later"] = lambda _: None


def _install_closed(node: Node) -> None:
    """The proprietary kernel module, which knows no DMA-BUF."""

    def closed(output: Output) -> Output:
        said = output.stdout.replace(b"Open Kernel Module for x86_64", b"x86_64 Kernel Module")
        return replace(output, stdout=said)

    node.spoilers[_MODULE] = closed
    node.links.dma_buf = False


def _load_too_early(node: Node) -> None:
    _install_closed(node)
    node.links.peermem, node.links.registered = True, False


def _load_in_time(node: Node) -> None:
    _install_closed(node)
    node.links.peermem = True


def _say(node: Node, words: str) -> None:
    logged(node, f"mlx5_core 0000:{_second(node).address}: {words}")


def _give_up(node: Node) -> None:
    _say(node, "poll_health:840:(pid 0): device's health compromised - reached miss count")


def _starve(node: Node) -> None:
    _say(node, "mlx5_pcie_event:301:(pid 1024): Detected insufficient power on the PCIe slot (27W).")


def _ask_too_much(node: Node) -> None:
    refused = "mlx5_cmd_out_err:839:(pid 4711): ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2)"
    for _ in range(5):
        _say(node, f"{refused}, syndrome (0x9a6171), err(-22)")


FAULTS = (
    Fault(
        "adapter-firmware-mixed",
        "One of equal adapters runs another firmware than its twins.",
        _mix,
        on_node(ADVISORY, "network.firmware"),
        can_have=_rails,
        case="G16",
    ),
    Fault(
        "adapter-firmware-old",
        "All adapters run one firmware, which is older than the first known-good one.",
        _stay_old,
        on_node(ADVISORY, "network.firmware"),
        can_have=_rails,
    ),
    Fault(
        "mtu-odd",
        "The interface of one adapter has another MTU than those of its twins.",
        _shrink,
        on_node(ADVISORY, "network.mtu"),
        can_have=_rails,
    ),
    Fault(
        "port-loses-integrity",
        "A port is up at its rate and counts link integrity errors while nobody uses it.",
        _lose_integrity,
        on_node(FAIL, _GROWTH),
        can_have=_rails,
        case="G8",
    ),
    Fault(
        "port-symbol-errors",
        "A port counts more than one symbol error a second.",
        _err,
        on_node(FAIL, _GROWTH),
        can_have=_rails,
    ),
    Fault(
        "port-one-symbol-error",
        "A port counted one symbol error between the samples, which may be chance: no fault.",
        _err_once,
        nothing,
        can_have=_rails,
    ),
    Fault(
        "port-flaps-now",
        "A port lost its link and got it back between the samples: whoever looks sees it up.",
        _lose_the_link,
        on_node(FAIL, _GROWTH),
        can_have=_rails,
        case="G7",
    ),
    Fault(
        "port-retransmits",
        "A port restarts its connections dozens of times a second: the network drops packets.",
        _restart,
        on_node(ADVISORY, _GROWTH),
        can_have=_rails,
    ),
    Fault(
        "port-old-errors",
        "A port has some errors from long ago, and no new ones: no fault.",
        _remember,
        nothing,
        can_have=_rails,
        case="G6",
    ),
    Fault(
        "port-flapped-often",
        "A port lost its link so often since boot that its counter is full.",
        _flap,
        on_node(ADVISORY, "network.flaps"),
        can_have=_rails,
        case="G7",
    ),
    Fault(
        "adapters-unread",
        "Nobody recorded what the kernel tells of the adapters.",
        _miss_the_files,
        on_node(
            UNVERIFIED,
            "network.twins",
            "network.firmware",
            "network.mtu",
            _GROWTH,
            "network.flaps",
            _DIRECT,
        ),
        can_have=_rails,
    ),
    Fault(
        "port-counters-read-once",
        "The counters of the ports were read once: how fast they grow is not known.",
        _sample_once,
        on_node(UNVERIFIED, _GROWTH),
        can_have=_rails,
    ),
    Fault(
        "gpudirect-off",
        "The proprietary kernel module runs without nvidia_peermem: every byte goes through host memory.",
        _install_closed,
        on_node(ADVISORY, _DIRECT, _WRITE),
        can_have=_rails,
        case="G13",
    ),
    Fault(
        "peermem-not-registered",
        "nvidia_peermem was loaded before the RDMA stack, which has never taken it: it is listed and does nothing.",
        _load_too_early,
        on_node(ADVISORY, _DIRECT, _WRITE),
        can_have=_rails,
        case="G12",
    ),
    Fault(
        "gpudirect-by-peermem",
        "The proprietary kernel module runs with nvidia_peermem in its place: no fault.",
        _load_in_time,
        nothing,
        can_have=_rails,
    ),
    Fault(
        "adapter-gave-up",
        "The firmware of one adapter gave up; it is on the bus and in every list.",
        _give_up,
        on_node(FAIL, "network.log"),
        can_have=_rails,
    ),
    Fault(
        "adapter-slot-power",
        "The slot of one adapter gives it too little power.",
        _starve,
        on_node(ADVISORY, "network.log"),
        can_have=_rails,
    ),
    Fault(
        "adapter-asked-too-much",
        "The log is full of refusals that a checker earned by asking for counters it may not read: no fault.",
        _ask_too_much,
        nothing,
        can_have=_rails,
        case="G9",
    ),
)
