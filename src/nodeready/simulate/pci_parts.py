"""Single PCI functions: bridges, drives, adapters, GPUs, and what else a machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.pci import DOWNSTREAM, LinkState, PciDevice, SwitchChip

if TYPE_CHECKING:
    from nodeready.simulate.machines import Machine
    from nodeready.simulate.model import Gpu, Node, Port

_NOTED = frozenset({"AdvNonFatalErr"})


def chipset() -> list[PciDevice]:
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
    return [_plain(row) for row in rows]


def guest_devices() -> list[PciDevice]:
    """What a guest of QEMU has besides its GPU."""
    intel, red_hat = "Intel Corporation", "Red Hat, Inc."
    bridge = "82G33/G31/P35/P31 Express DRAM Controller"
    rows = (
        ("00:00.0", "Host bridge", "0600", intel, bridge, "8086:29c0", "00", "", ""),
        ("00:01.0", "VGA compatible controller", "0300", "Device", "", "1234:1111", "02", "", "00 [VGA controller]"),
        ("00:02.0", "Ethernet controller", "0200", red_hat, "Virtio 1.0 network device", "1af4:1041", "01", "", ""),
        ("00:03.0", "SCSI storage controller", "0100", red_hat, "Virtio 1.0 block device", "1af4:1042", "01", "", ""),
        ("00:1f.0", "ISA bridge", "0601", intel, "82801IB (ICH9) LPC Interface Controller", "8086:2918", "02", "", ""),
    )
    return [_plain(row) for row in rows]


def _plain(row: tuple[str, str, str, str, str, str, str, str, str]) -> PciDevice:
    address, kind, class_code, vendor, name, ids, revision, driver, programming = row
    return PciDevice(
        address,
        kind,
        class_code,
        vendor,
        name,
        ids,
        revision,
        port="",
        driver=driver,
        modules=driver,
        programming=programming,
    )


def lom(machine: Machine) -> list[PciDevice]:
    """The on-board network chip: one lane of two, which is how it is wired, and no fault."""
    vendor, ids = machine.subsystem
    return [
        PciDevice(
            f"01:00.{function}",
            "Ethernet controller",
            "0200",
            "Broadcom Inc. and subsidiaries",
            "NetXtreme BCM5720 Gigabit Ethernet PCIe",
            "14e4:165f",
            "00",
            subsystem=f"{vendor} NetXtreme BCM5720 Gigabit Ethernet PCIe [{ids}]",
            link=LinkState(2, 2, 2, 1),
            device_name=f"Embedded NIC {function + 1}",
            memory=((0x95930000 + 0x40000 * function, "64K"),),
            sticky=_NOTED,
            driver="tg3",
            modules="tg3",
        )
        for function in (0, 1)
    ]


def root_port(
    address: str, link: LinkState, below: tuple[int, int], *, numa: int, sticky: frozenset[str] = frozenset()
) -> PciDevice:
    """A port of the processor."""
    return PciDevice(
        address,
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
        sticky=sticky,
        driver="pcieport",
        programming="00 [Normal decode]",
    )


def bridge(
    chip: SwitchChip,
    address: str,
    port: str,
    link: LinkState,
    below: tuple[int, int],
    *,
    numa: int,
    slot: int = 0,
    sticky: frozenset[str] = frozenset(),
) -> PciDevice:
    """One port of a PCI Express switch."""
    return PciDevice(
        address,
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


def nvme(bus: int, number: int, numa: int) -> PciDevice:
    """An NVMe drive."""
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
        slot=161 + number,
        device_name=f"PCIe SSD in Slot {number + 1} Bay 1",
        numa=numa,
        memory=((0xB1000000 + 0x100000 * number, "16K"),),
        sticky=_NOTED,
        driver="nvme",
        modules="nvme",
        programming="02 [NVM Express]",
    )


def network_port(number: int, port: Port) -> PciDevice:
    """The PCI function of a network port; its class is what the port was set to."""
    infiniband = port.layer == "InfiniBand"
    return PciDevice(
        port.address,
        "Infiniband controller" if infiniband else "Ethernet controller",
        "0207" if infiniband else "0200",
        "Mellanox Technologies",
        port.adapter.name,
        port.adapter.ids,
        "00",
        subsystem=f"Mellanox Technologies Device [{port.adapter.subsystem}]",
        link=LinkState.full(5, 16),
        numa=port.numa,
        irq=18,
        memory=((0x218000000000 + (number << 40), "32M"),),
        sticky=_NOTED,
        driver="mlx5_core",
        modules="mlx5_core",
    )


def nvswitch(node: Node, number: int, bus: int, link: LinkState) -> PciDevice:
    """One NVSwitch of the board."""
    return PciDevice(
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
        sticky=_NOTED,
        driver="nvidia-nvswitch" if node.driver.loaded else "",
        modules="nvidia_drm, nvidia",
    )


def gpu_function(node: Node, gpu: Gpu) -> PciDevice:
    """A GPU as its config space shows it, or does not."""
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
        memory=(
            (base + 0x4042000000, "16M"),
            (base, f"{gpu.product.bar1_mib // 1024}G"),
            (base + 0x4000000000, "32M"),
        ),
        sticky=frozenset({"RxErr", "BadTLP", "Timeout"}),
        lane_errors=True,
        answers=gpu.answers,
        driver=node.driver.bound,
        modules="nvidiafb, nouveau, nvidia_drm, nvidia",
        programming="" if gpu.answers else "ff",
    )
