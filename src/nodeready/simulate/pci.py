"""The PCI tree of a simulated node: what hangs off which port, and how each link trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node

RATES = {1: "2.5GT/s", 2: "5GT/s", 3: "8GT/s", 4: "16GT/s", 5: "32GT/s", 6: "64GT/s"}


@dataclass(frozen=True)
class LinkState:
    """A link: what the device can do and how it trained, as generation and lanes."""

    max_generation: int
    max_width: int
    generation: int
    width: int

    @classmethod
    def full(cls, generation: int, width: int) -> LinkState:
        """A link that trained as it can."""
        return cls(generation, width, generation, width)


@dataclass(frozen=True)
class SwitchChip:
    """A PCI Express switch, of which every port is a bridge function."""

    vendor: str
    name: str
    ids: str
    revision: str


# above the GPUs, and above the NVSwitches
PEX890XX = SwitchChip("Broadcom / LSI", "PEX890xx PCIe Gen 5 Switch", "1000:c030", "b0")
SWITCHTEC = SwitchChip("PMC-Sierra Inc.", "Device", "11f8:4128", "00")
UPSTREAM, DOWNSTREAM = "Upstream Port, MSI 00", "Downstream Port (Slot+), MSI 00"


@dataclass(frozen=True)
class PciDevice:
    """One function as lspci lists it; `vendor` and `name` come from pci.ids, `ids` are numeric.

    `port` is the kind of PCI Express function, empty where it has no such capability. `secondary` is
    the bus below a bridge. `memory` are the regions with their sizes. `sticky` are the correctable
    error bits that were set since the last reset.
    """

    bus_id: str
    kind: str
    class_code: str
    vendor: str
    name: str
    ids: str
    revision: str
    subsystem: str = ""
    port: str = "Endpoint, MSI 00"
    link: LinkState | None = None
    secondary: tuple[int, int] | None = None
    slot: int = 0
    device_name: str = ""
    numa: int = 0
    irq: int = 16
    memory: tuple[tuple[int, str], ...] = ()
    sticky: frozenset[str] = frozenset()
    lane_errors: bool = False
    acs: bool = False
    answers: bool = True
    driver: str = ""
    modules: str = ""
    programming: str = ""


def devices(node: Node) -> list[PciDevice]:
    """All functions of the node in bus-id order, as they are now."""
    found = [*_chipset(), *_lom(), *_nvswitches(node)]
    for gpu in node.gpus:
        found += _behind_root_port(gpu)
        found += [_gpu(node, gpu)] if gpu.on_bus else []
    return sorted(found, key=lambda device: device.bus_id)


def devices_at_boot(node: Node) -> list[PciDevice]:
    """All functions that the kernel found when it started, in bus-id order."""
    found = [*_chipset(), *_lom(), *_nvswitches(node)]
    for gpu in node.gpus:
        found += _behind_root_port(gpu)
        found += [_gpu(node, gpu)] if gpu.at_boot else []
    return sorted(found, key=lambda device: device.bus_id)


def _chipset() -> list[PciDevice]:
    """Some functions that no check asks about."""
    intel, matrox = "Intel Corporation", "Matrox Electronics Systems Ltd."
    vga = "Integrated Matrox G200eW3 Graphics Controller"
    rows = (
        ("00:00.0", "System peripheral", "0880", intel, "Device", "8086:09a2", "20", "", ""),
        ("00:14.0", "USB controller", "0c03", intel, "Device", "8086:1bcd", "11", "xhci_hcd", "30 [XHCI]"),
        ("00:18.0", "SATA controller", "0106", intel, "Device", "8086:1bf2", "11", "ahci", "01 [AHCI 1.0]"),
        ("00:1f.0", "ISA bridge", "0601", intel, "Device", "8086:1b81", "11", "", ""),
        ("00:1f.4", "SMBus", "0c05", intel, "Device", "8086:1bc9", "11", "i801_smbus", ""),
        (
            "03:00.0",
            "VGA compatible controller",
            "0300",
            matrox,
            vga,
            "102b:0536",
            "04",
            "mgag200",
            "00 [VGA controller]",
        ),
    )
    return [PciDevice(*row[:7], port="", driver=row[7], modules=row[7], programming=row[8]) for row in rows]


def _lom() -> list[PciDevice]:
    """The on-board network chip: one lane of two, which is how it is wired, and no fault."""
    return [
        PciDevice(
            f"01:00.{function}",
            "Ethernet controller",
            "0200",
            "Broadcom Inc. and subsidiaries",
            "NetXtreme BCM5720 Gigabit Ethernet PCIe",
            "14e4:165f",
            "00",
            subsystem="Dell NetXtreme BCM5720 Gigabit Ethernet PCIe [1028:0a6b]",
            link=LinkState(2, 2, 2, 1),
            device_name=f"Embedded NIC {function + 1}",
            memory=((0x95930000 + 0x40000 * function, "64K"),),
            sticky=frozenset({"AdvNonFatalErr"}),
            driver="tg3",
            modules="tg3",
        )
        for function in (0, 1)
    ]


def _nvswitches(node: Node) -> list[PciDevice]:
    buses = node.shape.nvswitch_buses
    if not buses:
        return []
    first, last = buses[0], buses[-1]
    found = [
        _root_port(first - 3, LinkState(5, 8, 4, 8), (first - 2, last), numa=1),
        _bridge(SWITCHTEC, f"{first - 2:02x}:00.0", UPSTREAM, LinkState.full(4, 8), (first - 1, last), numa=1),
    ]
    noted = frozenset({"AdvNonFatalErr"})
    for number, bus in enumerate(buses):
        port, link = f"{first - 1:02x}:{number:02x}.0", LinkState.full(4, 2)
        found += [
            _bridge(SWITCHTEC, port, DOWNSTREAM, link, (bus, bus), numa=1, slot=number + 1, sticky=noted),
            PciDevice(
                f"{bus:02x}:00.0",
                "Bridge",
                "0680",
                "NVIDIA Corporation",
                "Device",
                "10de:22a3",
                "a1",
                subsystem="NVIDIA Corporation Device [10de:1796]",
                link=link,
                slot=number + 1,
                numa=1,
                irq=911 + 311 * number,
                memory=((0xCC000000 - 0x2000000 * number, "32M"),),
                sticky=noted,
                driver="nvidia-nvswitch" if node.driver.loaded else "",
                modules="nvidia_drm, nvidia",
            ),
        ]
    return found


def _behind_root_port(gpu: Gpu) -> list[PciDevice]:
    """One root port with its switch: an NVMe drive, the GPU, and the GPU's NIC, each on a port."""
    bus, place, numa = int(gpu.bus_id[5:7], 16), gpu.place, gpu.numa
    ports, link = f"{bus - 2:02x}", gpu.link
    alive = gpu.on_bus and gpu.answers
    trained = (link.generation, link.width) if alive else (1, 0)
    errors = frozenset({"RxErr", "BadTLP", "BadDLLP", "Timeout"})
    full = LinkState.full(5, 16)
    to_gpu = LinkState(link.port_generation, 16, *trained)
    return [
        _root_port(bus - 4, full, (bus - 3, bus + 1), numa=numa),
        _bridge(PEX890XX, f"{bus - 3:02x}:00.0", UPSTREAM, full, (bus - 2, bus + 1), numa=numa),
        _bridge(
            PEX890XX,
            f"{ports}:00.0",
            DOWNSTREAM,
            LinkState(5, 4, 4, 4),
            (bus - 1, bus - 1),
            numa=numa,
            slot=161 + place,
        ),
        _bridge(PEX890XX, f"{ports}:01.0", DOWNSTREAM, to_gpu, (bus, bus), numa=numa, slot=21 + place, sticky=errors),
        _bridge(PEX890XX, f"{ports}:02.0", DOWNSTREAM, full, (bus + 1, bus + 1), numa=numa, slot=31 + place),
        _nvme(bus - 1, gpu),
        _nic(bus + 1, gpu),
    ]


def _root_port(bus: int, link: LinkState, below: tuple[int, int], *, numa: int) -> PciDevice:
    return PciDevice(
        f"{bus:02x}:01.0",
        "PCI bridge",
        "0604",
        "Intel Corporation",
        "Device",
        "8086:352a",
        "04",
        port="Root Port (Slot-), MSI 00",
        link=link,
        secondary=below,
        device_name="Root Port",
        numa=numa,
        irq=144,
        acs=True,
        driver="pcieport",
        programming="00 [Normal decode]",
    )


def _bridge(
    chip: SwitchChip,
    bus_id: str,
    port: str,
    link: LinkState,
    below: tuple[int, int],
    *,
    numa: int,
    slot: int = 0,
    sticky: frozenset[str] = frozenset(),
) -> PciDevice:
    return PciDevice(
        bus_id,
        "PCI bridge",
        "0604",
        chip.vendor,
        chip.name,
        chip.ids,
        chip.revision,
        port=port,
        link=link,
        secondary=below,
        slot=slot,
        device_name=f"SLOT {slot}" if slot else "",
        numa=numa,
        irq=145,
        sticky=sticky,
        acs=port == DOWNSTREAM,
        driver="pcieport",
        programming="00 [Normal decode]",
    )


def _nvme(bus: int, gpu: Gpu) -> PciDevice:
    return PciDevice(
        f"{bus:02x}:00.0",
        "Non-Volatile memory controller",
        "0108",
        "Intel Corporation",
        "NVMe DC SSD [3DNAND, Sentinel Rock Controller]",
        "8086:0b60",
        "00",
        subsystem="Intel Corporation NVMe DC SSD [3DNAND, Sentinel Rock Controller] [8086:8d08]",
        link=LinkState.full(4, 4),
        slot=161 + gpu.place,
        device_name=f"PCIe SSD in Slot {gpu.place + 1} Bay 1",
        numa=gpu.numa,
        memory=((0xB1000000 + 0x100000 * gpu.place, "16K"),),
        sticky=frozenset({"AdvNonFatalErr"}),
        driver="nvme",
        modules="nvme",
        programming="02 [NVM Express]",
    )


def _nic(bus: int, gpu: Gpu) -> PciDevice:
    return PciDevice(
        f"{bus:02x}:00.0",
        "Infiniband controller",
        "0207",
        "Mellanox Technologies",
        "MT2910 Family [ConnectX-7]",
        "15b3:1021",
        "00",
        subsystem="Mellanox Technologies Device [15b3:0041]",
        link=LinkState.full(5, 16),
        numa=gpu.numa,
        irq=18,
        memory=((0x218000000000 + (gpu.place << 40), "32M"),),
        sticky=frozenset({"AdvNonFatalErr"}),
        driver="mlx5_core",
        modules="mlx5_core",
    )


def _gpu(node: Node, gpu: Gpu) -> PciDevice:
    base = 0x210000000000 + (gpu.place << 40)
    link = gpu.link
    return PciDevice(
        gpu.bus_id.removeprefix("0000:"),
        "3D controller",
        "0302",
        "NVIDIA Corporation",
        "Device",
        f"10de:{gpu.product.device}",
        "a1" if gpu.answers else "ff",
        subsystem=f"NVIDIA Corporation Device [10de:{gpu.product.subsystem}]",
        link=LinkState(link.device_generation, gpu.product.link_width, link.generation, link.width),
        numa=gpu.numa,
        irq=17,
        memory=((base + 0x4042000000, "16M"), (base, "128G"), (base + 0x4000000000, "32M")),
        sticky=frozenset({"RxErr", "BadTLP", "Timeout"}),
        lane_errors=True,
        answers=gpu.answers,
        driver="nvidia" if node.driver.loaded else "",
        modules="nvidiafb, nouveau, nvidia_drm, nvidia",
        programming="" if gpu.answers else "ff",
    )
