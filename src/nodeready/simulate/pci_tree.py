"""The PCI tree of a simulated node: what hangs off which port, and how each link trained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.pci import DOWNSTREAM, PEX890XX, SWITCHTEC, UPSTREAM, LinkState, PciDevice
from nodeready.simulate.pci_parts import (
    bridge,
    chipset,
    gpu_function,
    guest_devices,
    lom,
    network_port,
    nvme,
    nvswitch,
    root_port,
)

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node

_WORN = frozenset({"RxErr", "BadTLP", "BadDLLP", "Timeout"})
_NOTED = frozenset({"AdvNonFatalErr"})
# where the drives of a machine sit that has none beside its GPUs
_DRIVE_BUSES = (0x65, 0x66)


def devices(node: Node) -> list[PciDevice]:
    """All functions of the node in bus-id order, as they are now."""
    return _with_gpus(node, [gpu for gpu in node.gpus if gpu.on_bus])


def devices_at_boot(node: Node) -> list[PciDevice]:
    """All functions that the kernel found when it started, in bus-id order."""
    return _with_gpus(node, [gpu for gpu in node.gpus if gpu.at_boot])


def _with_gpus(node: Node, gpus: list[Gpu]) -> list[PciDevice]:
    found = [*_machine(node), *(gpu_function(node, gpu) for gpu in gpus)]
    found += [network_port(number, port) for number, port in enumerate(node.ports)]
    return sorted((_as_it_is(node, device) for device in found), key=lambda device: device.bus_id)


def _as_it_is(node: Node, device: PciDevice) -> PciDevice:
    """A device with what befell it beside its plan."""
    state, at = node.pci, f"0000:{device.bus_id}"
    return replace(
        device,
        link=state.trained.get(at, device.link),
        redirects=device.acs and at in state.redirecting,
        numa=-1 if at in state.unnamed else device.numa,
    )


def _machine(node: Node) -> list[PciDevice]:
    """Everything but the GPUs and the network ports."""
    shape = node.shape
    if shape.virtual:
        return guest_devices()
    found = [*chipset(), *lom(shape.machine), *_nvswitches(node)]
    if shape.frontend:
        bus = int(shape.frontend.partition(":")[0], 16)
        found.append(root_port(f"{bus - 1:02x}:01.0", LinkState.full(5, 16), (bus, bus), numa=1))
    if not shape.rails:
        found += _drives()
    for gpu in node.gpus:
        found += _switch_above(gpu) if shape.rails else [_port_above(gpu)]
    return found


def _nvswitches(node: Node) -> list[PciDevice]:
    buses = node.shape.nvswitch_buses
    if not buses:
        return []
    first, last = buses[0], buses[-1]
    found = [
        root_port(f"{first - 3:02x}:01.0", LinkState(5, 8, 4, 8), (first - 2, last), numa=1),
        bridge(SWITCHTEC, f"{first - 2:02x}:00.0", UPSTREAM, LinkState.full(4, 8), (first - 1, last), numa=1),
    ]
    for number, bus in enumerate(buses):
        if number in node.links.lost_switches:
            continue
        port, link = f"{first - 1:02x}:{number:02x}.0", LinkState.full(4, 2)
        found += [
            bridge(SWITCHTEC, port, DOWNSTREAM, link, (bus, bus), numa=1, slot=number + 1, sticky=_NOTED),
            nvswitch(node, number, bus, link),
        ]
    return found


def _to_gpu(gpu: Gpu) -> LinkState:
    """The link above a GPU, from the port's side: down to one lane where nothing answers."""
    alive = gpu.on_bus and gpu.answers
    trained = (gpu.link.generation, gpu.link.width) if alive else (1, 0)
    return LinkState(gpu.link.port_generation, 16, *trained)


def _switch_above(gpu: Gpu) -> list[PciDevice]:
    """One root port with its switch: an NVMe drive, the GPU, and the GPU's adapter, each on a port."""
    bus, place, numa = int(gpu.bus_id[5:7], 16), gpu.place, gpu.numa
    ports, full = f"{bus - 2:02x}", LinkState.full(5, 16)
    to_drive = LinkState(5, 4, 4, 4)
    return [
        root_port(f"{bus - 4:02x}:01.0", full, (bus - 3, bus + 1), numa=numa),
        bridge(PEX890XX, f"{bus - 3:02x}:00.0", UPSTREAM, full, (bus - 2, bus + 1), numa=numa),
        bridge(PEX890XX, f"{ports}:00.0", DOWNSTREAM, to_drive, (bus - 1, bus - 1), numa=numa, slot=161 + place),
        bridge(
            PEX890XX,
            f"{ports}:01.0",
            DOWNSTREAM,
            _to_gpu(gpu),
            (bus, bus),
            numa=numa,
            slot=21 + place,
            sticky=_WORN,
        ),
        bridge(PEX890XX, f"{ports}:02.0", DOWNSTREAM, full, (bus + 1, bus + 1), numa=numa, slot=31 + place),
        nvme(bus - 1, place, numa),
    ]


def _port_above(gpu: Gpu) -> PciDevice:
    """The processor's own port, for a card that sits in a slot of the board."""
    bus = int(gpu.bus_id[5:7], 16)
    return root_port(f"{bus - 1:02x}:01.0", _to_gpu(gpu), (bus, bus), numa=gpu.numa, sticky=_WORN)


def _drives() -> list[PciDevice]:
    found = []
    for number, bus in enumerate(_DRIVE_BUSES):
        port = root_port(f"64:{2 * number + 1:02x}.0", LinkState(5, 4, 4, 4), (bus, bus), numa=0)
        found += [port, nvme(bus, number, 0)]
    return found
