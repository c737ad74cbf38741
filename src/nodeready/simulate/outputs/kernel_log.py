"""`dmesg`: a boot log without errors, some lines that look like errors and are none, then the events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.output import Output
from nodeready.simulate.outputs.software import module_name
from nodeready.simulate.pci import devices_at_boot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodeready.simulate.model import Node

_BUILT = "(buildd@lcy02-amd64-117) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04.2) 11.4.0, GNU ld (GNU Binutils for Ubuntu) 2.38)"
_MEMORY_MAP = (
    ("0000000000000000", "000000000009ffff", "usable"),
    ("00000000000a0000", "00000000000fffff", "reserved"),
    ("0000000000100000", "0000000061ffefff", "usable"),
    ("0000000061fff000", "000000006dffefff", "reserved"),
    ("000000006dfff000", "000000006effefff", "ACPI NVS"),
    ("000000006efff000", "000000006fffefff", "ACPI data"),
    ("000000006ffff000", "000000006fffffff", "usable"),
    ("0000000070000000", "000000008fffffff", "reserved"),
    ("00000000fe010000", "00000000fe010fff", "reserved"),
)
Lines = list[tuple[float, str]]


def render(node: Node) -> Output:
    """The whole ring buffer, which still holds the boot."""
    lines = [*_boot(node), *_platform(node), *_bus(node), *_storage_and_network(node), *_nvidia(node), *_services()]
    for event in sorted(node.events, key=lambda event: event.seconds):
        lines += [(event.seconds + 0.000007 * number, line) for number, line in enumerate(event.lines)]
    return Output("".join(f"[{seconds:>12.6f}] {line}\n" for seconds, line in lines).encode())


def _paced(begin: float, step: float, lines: Iterator[str] | list[str]) -> Lines:
    """Lines one after the other, so far apart."""
    return [(begin + step * number, line) for number, line in enumerate(lines)]


def _boot(node: Node) -> Lines:
    image = f"BOOT_IMAGE=/vmlinuz-{node.kernel} root=/dev/mapper/vg0-root ro iommu=pt pci=realloc=off"
    total = node.mem_total_kib
    shape = node.shape
    early = [
        f"Linux version {node.kernel} {_BUILT} #171-Ubuntu SMP Sat Oct 11 08:17:01 UTC 2025",
        f"Command line: {image}",
        "KERNEL supported cpus:",
        "  Intel GenuineIntel",
        "  AMD AuthenticAMD",
        "x86/split lock detection: #AC: crashing the kernel on kernel split_locks",
        "BIOS-provided physical RAM map:",
        *(f"BIOS-e820: [mem 0x{first}-0x{last}] {kind}" for first, last, kind in _MEMORY_MAP),
        f"BIOS-e820: [mem 0x0000000100000000-0x{(total + 4 * 2**20) * 1024 - 1:016x}] usable",
        "NX (Execute Disable) protection: active",
        "efi: EFI v2.70 by Dell Inc.",
        "SMBIOS 3.3.0 present.",
        f"DMI: {shape.vendor} {shape.model}/0KK0RG, BIOS {shape.bios}",
        "tsc: Detected 2000.000 MHz processor",
    ]
    later = [
        f"Kernel command line: {image}",
        f"Memory: {total - 1_204_332}K/{total + 33_554_432}K available (16393K kernel code, 4393K rwdata)",
        "Kernel/User page tables isolation: disabled",
        "rcu: Hierarchical RCU implementation.",
        "mce: CPU supports 22 MCE banks",
        "process: using mwait in idle threads",
        f"smpboot: CPU0: {shape.cpu} (family: 0x6, model: 0x8f, stepping: 0x8)",
        "Performance Events: XSAVE Architectural LBR, PEBS fmt4+-baseline, Sapphire Rapids events",
        f"smp: Brought up 2 nodes, {shape.cores * 4} CPUs",
        f"smpboot: Total of {shape.cores * 4} processors activated ({shape.cores * 4 * 4000}.00 BogoMIPS)",
        "devtmpfs: initialized",
        "EDAC MC: Ver: 3.0.0",
    ]
    return [(0.0, line) for line in early] + _paced(0.731204, 0.118013, later)


def _platform(node: Node) -> Lines:
    roots = sorted({device.bus_id[:2] for device in devices_at_boot(node) if device.port.startswith("Root")})
    lines = ["ACPI: bus type PCI registered", "acpiphp: ACPI Hot Plug PCI Controller Driver version: 0.5"]
    for number, root in enumerate(roots):
        name = f"acpi PNP0A08:{number:02x}"
        lines += [
            f"{name}: _OSC: OS supports [ExtendedConfig ASPM ClockPM Segments MSI EDR HPX-Type3]",
            f"{name}: _OSC: platform does not support [SHPCHotplug AER DPC]",
            f"PCI host bridge to bus 0000:{root}",
        ]
    return _paced(2.204771, 0.009113, lines)


def _bus(node: Node) -> Lines:
    wanted = ("0302", "0680", "0207", "0108")
    lines = []
    for device in devices_at_boot(node):
        if device.class_code not in wanted:
            continue
        kind = f"type 00 class 0x{device.class_code}{'02' if device.class_code == '0108' else '00'}"
        lines.append(f"pci 0000:{device.bus_id}: [{device.ids}] {kind}")
    lines += [
        "pci 0000:03:00.0: vgaarb: setting as boot VGA device",
        "pcieport 0000:15:01.0: PME: Signaling with IRQ 144",
        "pcieport 0000:15:01.0: AER: enabled with IRQ 144",
        "DMAR: Intel(R) Virtualization Technology for Directed I/O",
    ]
    return _paced(3.117330, 0.004219, lines)


def _storage_and_network(node: Node) -> Lines:
    found = devices_at_boot(node)
    drives = [device for device in found if device.class_code == "0108"]
    ports = [device for device in found if device.class_code == "0207"]
    lines = [f"nvme nvme{number}: pci function 0000:{drive.bus_id}" for number, drive in enumerate(drives)]
    lines += [f"nvme nvme{number}: 128/0/0 default/read/poll queues" for number, _ in enumerate(drives)]
    for port in ports:
        lines += [
            f"mlx5_core 0000:{port.bus_id}: firmware version: 28.43.2566",
            f"mlx5_core 0000:{port.bus_id}: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        ]
    lines += [
        "tg3 0000:01:00.0 eth0: Tigon3 [partno(BCM95720) rev 5720000] (PCI Express) MAC address 02:00:5e:10:00:01",
        "EXT4-fs (dm-0): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none.",
    ]
    return _paced(4.390126, 0.021447, lines)


def _nvidia(node: Node) -> Lines:
    if not node.driver.loaded:
        return []
    switches = [device for device in devices_at_boot(node) if device.ids == "10de:22a3"]
    lines = [
        "nvidia: loading out-of-tree module taints kernel.",
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
    ]
    for number, switch in enumerate(switches):
        probing = f"nvidia-nvswitch: Probing device 0000:{switch.bus_id}, Vendor Id = 0x10de, Device Id = 0x22a3"
        lines += [f"{probing}, Class = 0x68000", f"nvidia-nvswitch{number}: using MSI"]
    gpus = [device.bus_id for device in devices_at_boot(node) if device.class_code == "0302"]
    lines += [f"nvidia 0000:{bus_id}: enabling device (0140 -> 0142)" for bus_id in gpus]
    lines += [
        f"NVRM: loading {module_name(node)}",
        f"nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  {node.driver.module}",
        *(f"[drm] [nvidia-drm] [GPU ID 0x0000{bus_id[:2]}00] Loading driver" for bus_id in gpus),
        "nvidia-uvm: Loaded the UVM driver, major device number 509.",
    ]
    return _paced(11.804417, 0.730219, lines)


def _services() -> Lines:
    return _paced(
        44.120931,
        0.318226,
        [
            "EDAC i10nm: No hbm memory",
            "EDAC MC0: Giving out device to module i10nm_edac controller Intel_10nm Socket#0 IMC#0: DEV 0000:7e:0c.0",
            "EDAC MC4: Giving out device to module i10nm_edac controller Intel_10nm Socket#1 IMC#0: DEV 0000:fe:0c.0",
            "EDAC i10nm: v0.0.5",
            'audit: type=1400 audit(1796022530.114:2): apparmor="STATUS" name="nvidia_modprobe"',
            "systemd[1]: systemd 249.11-0ubuntu3.16 running in system mode",
            "systemd[1]: Started NVIDIA Persistence Daemon.",
            "bridge: filtering via arp/ip/ip6tables is no longer available by default.",
            "Initializing XFRM netlink socket",
            "docker0: port 1(veth2f19ac1) entered forwarding state",
        ],
    )
