"""The PCI bus of a simulated node as the kernel's small files show it: links and paths, slots, error counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.model import UPTIME
from nodeready.simulate.outputs.output import Output, text
from nodeready.simulate.pci_tree import devices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodeready.simulate.model import Node
    from nodeready.simulate.pci import PciDevice

_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
_BUS = "/sys/bus/pci"
# what a port has seen since it was powered on, by the bits that lspci shows as set
_KINDS = {"RxErr": 2, "BadTLP": 1, "BadDLLP": 3, "Timeout": 1, "AdvNonFatalErr": 1}
_LATER = 4.0  # seconds between the looks


def links(node: Node) -> Output:
    """Every GPU, adapter and drive with the ports above it, each once."""
    found = devices(node)
    lines: dict[str, None] = {}
    for device in found:
        if not _is_asked(device):
            continue
        path = _path(device, found)
        group = _group(node, device)
        if group:
            lines[f"{path}/iommu_group/type:{group}"] = None
        at: PciDevice | None = device
        while at is not None:
            lines |= dict.fromkeys(_attributes(at, _path(at, found)))
            at = _above(at, found)
    return text(*lines)


def _is_asked(device: PciDevice) -> bool:
    return device.ids.startswith("10de:") or device.class_code.startswith(("02", "0108"))


def _above(device: PciDevice, found: list[PciDevice]) -> PciDevice | None:
    bus = int(device.bus_id[:2], 16)
    return next((port for port in found if port.secondary and port.secondary[0] == bus), None)


def _path(device: PciDevice, found: list[PciDevice]) -> str:
    above = _above(device, found)
    parent = _path(above, found) if above else f"/sys/devices/pci0000:{device.bus_id[:2]}"
    return f"{parent}/0000:{device.bus_id}"


def _group(node: Node, device: PciDevice) -> str:
    """How the IOMMU treats it; in a guest there is none."""
    if node.shape.virtual:
        return "none"
    return node.pci.iommu if device.class_code == "0302" or node.pci.iommu in ("", "none") else "identity"


def _attributes(device: PciDevice, path: str) -> Iterator[str]:
    vendor, _, product = device.ids.partition(":")
    yield f"{path}/vendor:0x{vendor}"
    yield f"{path}/device:0x{product}"
    yield f"{path}/class:0x{device.class_code}{'02' if device.class_code == '0108' else '00'}"
    if device.link:
        state = device.link
        speeds = (state.generation, state.max_generation) if device.answers else (0, 0)
        widths = (state.width, state.max_width) if device.answers else (63, 63)
        for name, speed, width in zip(("current", "max"), speeds, widths, strict=True):
            shown = f"{_SPEEDS[speed]} GT/s PCIe" if speed and width else "Unknown"
            yield f"{path}/{name}_link_speed:{shown}"
            yield f"{path}/{name}_link_width:{width}"
    yield f"{path}/numa_node:{device.numa}"


def files(node: Node) -> Output:
    """The kernel's options, the slots, who reports errors, and the first look at the counters."""
    found = devices(node)
    lines = [f"/proc/cmdline:BOOT_IMAGE=/vmlinuz-{node.os.kernel} root=/dev/mapper/vg0-root ro {node.pci.options}"]
    lines += [
        f"{_BUS}/slots/{port.slot}/address:0000:{port.secondary[0]:02x}:00"
        for port in found
        if port.secondary and port.slot
    ]
    if node.pci.reports:
        roots = [device for device in found if device.port.startswith("Root")]
        lines += [f"{_BUS}_express/devices/0000:{root.bus_id}:pcie002:yes" for root in roots]
    return text(f"uptime:{UPTIME:.2f}", *lines, *_counters(node, later=False), "end:")


def files_later(node: Node) -> Output:
    """The second look at the counters."""
    return text(f"uptime:{UPTIME + _LATER:.2f}", *_counters(node, later=True), "end:")


def _counters(node: Node, *, later: bool) -> Iterator[str]:
    if node.shape.virtual:
        return
    for device in devices(node):
        if device.link is None:
            continue
        place = f"{_BUS}/devices/0000:{device.bus_id}/aer_dev_"
        kinds = {kind: _KINDS[kind] for kind in sorted(device.sticky) if node.pci.reports}
        corrected, nonfatal, fatal = node.pci.errors.get(f"0000:{device.bus_id}", (0, 0, 0)) if later else (0, 0, 0)
        if corrected:
            kinds["BadTLP"] = kinds.get("BadTLP", 0) + corrected
        for kind, count in kinds.items():
            yield f"{place}correctable:{kind} {count}"
        yield f"{place}correctable:TOTAL_ERR_COR {sum(kinds.values())}"
        yield from ([f"{place}fatal:SDES {fatal}"] if fatal else [])
        yield f"{place}fatal:TOTAL_ERR_FATAL {fatal}"
        yield from ([f"{place}nonfatal:CmpltTO {nonfatal}"] if nonfatal else [])
        yield f"{place}nonfatal:TOTAL_ERR_NONFATAL {nonfatal}"
