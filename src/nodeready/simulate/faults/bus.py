"""What goes wrong on the PCI bus beside the GPUs' own links: switches, adapters, drives, access control, windows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    bare_metal,
    has_nvswitch,
    nothing,
    on_every_gpu,
    on_node,
    on_victim,
    together,
    victim,
)
from nodeready.simulate.pci import LinkState

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node
    from nodeready.simulate.outputs.output import Output
    from nodeready.simulate.shapes import Shape

_BRIDGES, _ADAPTERS, _DRIVES = "pcie.gpu-bridges", "pcie.adapter-links", "pcie.drive-links"
_CONTROL = "pcie.access-control"


def _rails(shape: Shape) -> bool:
    """Only a node with a switch above each GPU, and an adapter on it."""
    return shape.rails


def near(gpu: Gpu, before: int, device: str = "00.0") -> str:
    """A device some buses before the GPU's own."""
    return f"0000:{int(gpu.bus_id[5:7], 16) - before:02x}:{device}"


def port_above(node: Node) -> str:
    """The port right above the GPU that the fault befalls."""
    return near(victim(node), 2, "01.0") if node.shape.rails else near(victim(node), 1, "01.0")


def _train_uplink(node: Node, generation: int, width: int) -> None:
    """The link between switch and processor is the same from both its ends."""
    gpu = victim(node)
    state = LinkState(5, 16, generation, width)
    node.pci.trained |= {near(gpu, 3): state, near(gpu, 4, "01.0"): state}


def _uplink_gen3(node: Node) -> None:
    _train_uplink(node, 3, 16)


def _uplink_x8(node: Node) -> None:
    _train_uplink(node, 5, 8)


def _uplink_asleep(node: Node) -> None:
    _train_uplink(node, 1, 16)
    victim(node).printed["performance_state"] = "P8"


def _emulate(node: Node) -> None:
    """Some switches show their upper port as one of generation 2."""
    gpu = victim(node)
    node.pci.trained |= {near(gpu, 3): LinkState.full(2, 16), near(gpu, 4, "01.0"): LinkState.full(5, 16)}


def _halve_an_adapter(node: Node) -> None:
    gpu = victim(node)
    state = LinkState(5, 16, 5, 8)
    node.pci.trained |= {near(gpu, -1): state, near(gpu, 2, "02.0"): state}


def _halve_a_drive(node: Node) -> None:
    node.pci.trained[node.host.drives[0].bus_id] = LinkState(4, 4, 4, 2)


def _redirect(node: Node) -> None:
    node.pci.redirecting.add(port_above(node))


def _redirect_into_translation(node: Node) -> None:
    _redirect(node)
    _translate(node)


def _redirect_switches(node: Node) -> None:
    first = node.shape.nvswitch_buses[0]
    node.pci.redirecting |= {f"0000:{first - 1:02x}:{number:02x}.0" for number in range(4)}


def _translate(node: Node) -> None:
    node.pci.iommu = "DMA-FQ"
    node.pci.options = "intel_iommu=on"


def _boot_an_old_kernel(node: Node) -> None:
    """It does not tell the type of a group; its options do."""
    node.pci.iommu = ""


def _lay_out_anew(node: Node) -> None:
    node.pci.options = "iommu=pt pci=realloc,nocrs"


def _shrink_the_window(node: Node) -> None:
    victim(node).printed["bar1_memory_usage/total"] = "256 MiB"


def _leave_unnamed(node: Node) -> None:
    node.pci.unnamed.add(victim(node).bus_id)


def _move_an_adapter(node: Node) -> None:
    """Its card was put into a riser of its own."""
    beside = f"{int(victim(node).bus_id[5:7], 16) + 1:02x}:00.0"
    port = next(port for port in node.ports if port.address == beside)
    port.address = "e1:00.0"


def _hide_adapters(node: Node) -> None:
    """The matrix holds N/A where a GPU meets an adapter."""
    node.spoilers["nvidia-smi_topo_-m"] = lambda output: replace(
        output, stdout=re.sub(rb"\b(?:PIX|NODE|SYS)\t", b"N/A\t", output.stdout)
    )


def _know_no_generation_5(node: Node) -> None:
    node.spoilers["lspci_-nnvvv"] = lambda output: replace(
        output, stdout=output.stdout.replace(b"Speed 32GT/s", b"Speed unknown")
    )


def _hide_the_bus(node: Node) -> None:
    def denied(output: Output) -> Output:
        return replace(output, stdout=b"", rc=1, stderr=b"lspci: Cannot open /sys/bus/pci/devices\n")

    for name in ("lspci_-nnvvv", "lspci_-vvv", "lspci_-nn"):
        node.spoilers[name] = denied
    node.spoilers["sys/bus/pci/links"] = lambda _: None


FAULTS = (
    Fault(
        "switch-uplink-gen3",
        "The link between the switch above one GPU and the processor trained at generation 3; the GPU's own is fine.",
        _uplink_gen3,
        on_victim(FAIL, _BRIDGES),
        case="A8",
        can_have=_rails,
    ),
    Fault(
        "switch-uplink-x8",
        "The switch above one GPU lost half its lanes to the processor.",
        _uplink_x8,
        on_victim(FAIL, _BRIDGES),
        case="A8",
        can_have=_rails,
    ),
    Fault(
        "switch-uplink-asleep",
        "The switch's link was read while the GPU below it slept: neither good nor bad.",
        _uplink_asleep,
        on_victim(UNVERIFIED, _BRIDGES),
        case="A1",
        can_have=_rails,
    ),
    Fault(
        "switch-emulates-its-port",
        "A switch shows its upper port as one of generation 2, which it is not: no fault.",
        _emulate,
        nothing,
        can_have=_rails,
    ),
    Fault(
        "adapter-x8",
        "The adapter beside one GPU has half its lanes: its port is up at 400 Gb/s and can move 252.",
        _halve_an_adapter,
        on_node(FAIL, _ADAPTERS),
        case="G4",
        can_have=_rails,
    ),
    Fault(
        "drive-x2",
        "An NVMe drive came up on two of its four lanes.",
        _halve_a_drive,
        on_node(FAIL, _DRIVES),
        can_have=bare_metal,
    ),
    Fault(
        "acs-redirects",
        "The port above one GPU sends what peers send each other up to the processor.",
        _redirect,
        on_node(ADVISORY, _CONTROL),
        case="A11",
        can_have=bare_metal,
    ),
    Fault(
        "acs-redirects-and-iommu-translates",
        "Requests between peers are sent up, and the IOMMU there translates them: what a peer writes can vanish.",
        _redirect_into_translation,
        together(on_node(FAIL, _CONTROL), on_node(ADVISORY, "pcie.iommu")),
        case="A11",
        can_have=bare_metal,
    ),
    Fault(
        "acs-redirects-at-nvswitches",
        "Only the ports above the NVSwitches redirect, as they come from the factory: no fault.",
        _redirect_switches,
        nothing,
        can_have=has_nvswitch,
    ),
    Fault(
        "iommu-translates",
        "The kernel was booted with an IOMMU that translates every transfer.",
        _translate,
        on_node(ADVISORY, "pcie.iommu"),
        can_have=bare_metal,
    ),
    Fault(
        "iommu-by-options",
        "The kernel is too old to tell how a group is treated, and its options say it: no fault.",
        _boot_an_old_kernel,
        nothing,
        can_have=bare_metal,
    ),
    Fault(
        "pci-realloc-on",
        "The kernel was told to lay out the windows of all PCI devices anew.",
        _lay_out_anew,
        on_node(ADVISORY, "pcie.iommu"),
    ),
    Fault(
        "bar1-small",
        "One GPU shows a window of 256 MiB: large BARs are switched off in the BIOS.",
        _shrink_the_window,
        on_victim(ADVISORY, "pcie.bar1"),
    ),
    Fault(
        "numa-node-unnamed",
        "The firmware names no NUMA node for one GPU.",
        _leave_unnamed,
        on_victim(ADVISORY, "pcie.numa-node"),
        case="A13",
        can_have=bare_metal,
    ),
    Fault(
        "adapter-elsewhere",
        "The adapter of one GPU was put into another slot: all of its ports are up, and far away.",
        _move_an_adapter,
        on_node(FAIL, "topology.adapters"),
        can_have=_rails,
    ),
    Fault(
        "topology-without-adapters",
        "The driver's matrix does not say how GPUs and adapters are connected.",
        _hide_adapters,
        on_node(UNVERIFIED, "topology.adapters"),
        can_have=_rails,
    ),
    Fault(
        "pciutils-old",
        "The installed lspci does not know generation 5 and prints an unknown speed: others tell it, no fault.",
        _know_no_generation_5,
        nothing,
        case="A7",
        can_have=bare_metal,
    ),
    Fault(
        "bus-untold",
        "The evidence holds nothing of the PCI bus: lspci failed, and sysfs was not kept.",
        _hide_the_bus,
        together(
            on_node(UNVERIFIED, "pcie.gpu-present", "nvlink.switches", _ADAPTERS, _DRIVES, _CONTROL),
            on_every_gpu(UNVERIFIED, _BRIDGES, "pcie.gpu-errors", "pcie.numa-node"),
        ),
    ),
)
