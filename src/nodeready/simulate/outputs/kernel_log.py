"""`dmesg`: a boot log without errors, some lines that look like errors and are none, then the events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nodeready.simulate.model import READ_AT_SECONDS, UPTIME
from nodeready.simulate.outputs.containers import host_name
from nodeready.simulate.outputs.output import Output
from nodeready.simulate.outputs.software import module_name
from nodeready.simulate.pci_tree import devices_at_boot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodeready.simulate.model import Node
    from nodeready.simulate.pci import PciDevice

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
    found = devices_at_boot(node)
    lines = [
        *_boot(node),
        *_platform(found),
        *_bus(node, found),
        *_storage_and_network(node, found),
        *_nvidia(node, found),
        *_services(node),
    ]
    for event in sorted(node.events, key=lambda event: event.seconds):
        lines += [(event.seconds + 0.000007 * number, line) for number, line in enumerate(event.lines)]
    return Output("".join(f"[{seconds:>12.6f}] {line}\n" for seconds, line in lines).encode())


def _paced(begin: float, step: float, lines: Iterator[str] | list[str]) -> Lines:
    """Lines one after the other, so far apart."""
    return [(begin + step * number, line) for number, line in enumerate(lines)]


def _boot(node: Node) -> Lines:
    kernel, machine, total = node.os.kernel, node.shape.machine, node.mem_total_kib
    image = f"BOOT_IMAGE=/vmlinuz-{kernel} root=/dev/mapper/vg0-root ro {node.pci.options}"
    early = [
        f"Linux version {kernel} {_BUILT} #171-Ubuntu SMP Sat Oct 11 08:17:01 UTC 2025",
        f"Command line: {image}",
        "KERNEL supported cpus:",
        "  Intel GenuineIntel",
        "  AMD AuthenticAMD",
        "x86/split lock detection: #AC: crashing the kernel on kernel split_locks",
        "BIOS-provided physical RAM map:",
        *(f"BIOS-e820: [mem 0x{first}-0x{last}] {kind}" for first, last, kind in _MEMORY_MAP),
        f"BIOS-e820: [mem 0x0000000100000000-0x{(total + 4 * 2**20) * 1024 - 1:016x}] usable",
        "NX (Execute Disable) protection: active",
        f"efi: EFI v2.70 by {'EDK II' if machine.virtual else machine.vendor}",
        "SMBIOS 3.3.0 present.",
        f"DMI: {machine.vendor} {machine.model}{'' if machine.virtual else '/0KK0RG'}, BIOS {machine.bios}",
        *(["Hypervisor detected: KVM"] if machine.virtual else []),
        "tsc: Detected 2000.000 MHz processor",
    ]
    later = [
        f"Kernel command line: {image}",
        f"Memory: {total - 1_204_332}K/{total + 33_554_432}K available (16393K kernel code, 4393K rwdata)",
        "Kernel/User page tables isolation: disabled",
        "rcu: Hierarchical RCU implementation.",
        "mce: CPU supports 22 MCE banks",
        "process: using mwait in idle threads",
        f"smpboot: CPU0: {machine.cpu} (family: 0x6, model: 0x8f, stepping: 0x8)",
        "Performance Events: XSAVE Architectural LBR, PEBS fmt4+-baseline, Sapphire Rapids events",
        f"smp: Brought up {machine.sockets} node{'s' * (machine.sockets > 1)}, {machine.cpus} CPUs",
        f"smpboot: Total of {machine.cpus} processors activated ({machine.cpus * 4000}.00 BogoMIPS)",
        "devtmpfs: initialized",
        "EDAC MC: Ver: 3.0.0",
    ]
    return [(0.0, line) for line in early] + _paced(0.731204, 0.118013, later)


def _platform(found: list[PciDevice]) -> Lines:
    roots = sorted({device.bus_id[:2] for device in found if device.port.startswith("Root")})
    lines = ["ACPI: bus type PCI registered", "acpiphp: ACPI Hot Plug PCI Controller Driver version: 0.5"]
    for number, root in enumerate(roots or ["00"]):
        name = f"acpi PNP0A08:{number:02x}"
        lines += [
            f"{name}: _OSC: OS supports [ExtendedConfig ASPM ClockPM Segments MSI EDR HPX-Type3]",
            f"{name}: _OSC: platform does not support [SHPCHotplug AER DPC]",
            f"PCI host bridge to bus 0000:{root}",
        ]
    return _paced(2.204771, 0.009113, lines)


def _bus(node: Node, found: list[PciDevice]) -> Lines:
    wanted = ("0302", "0680", "0207", "0108")
    lines = []
    for device in found:
        if device.class_code not in wanted:
            continue
        kind = f"type 00 class 0x{device.class_code}{'02' if device.class_code == '0108' else '00'}"
        lines.append(f"pci 0000:{device.bus_id}: [{device.ids}] {kind}")
    if node.shape.virtual:
        lines.append("pci 0000:00:01.0: vgaarb: setting as boot VGA device")
    else:
        root = next(device.bus_id for device in found if device.port.startswith("Root"))
        lines += [
            "pci 0000:03:00.0: vgaarb: setting as boot VGA device",
            f"pcieport 0000:{root}: PME: Signaling with IRQ 144",
            f"pcieport 0000:{root}: AER: enabled with IRQ 144",
            "DMAR: Intel(R) Virtualization Technology for Directed I/O",
        ]
    return _paced(3.117330, 0.004219, lines)


def _storage_and_network(node: Node, found: list[PciDevice]) -> Lines:
    drives = [device for device in found if device.class_code == "0108"]
    lines = [f"nvme nvme{number}: pci function 0000:{drive.bus_id}" for number, drive in enumerate(drives)]
    lines += [f"nvme nvme{number}: 128/0/0 default/read/poll queues" for number, _ in enumerate(drives)]
    for port in node.ports:
        lines += [
            f"mlx5_core 0000:{port.address}: firmware version: {port.adapter.firmware}",
            f"mlx5_core 0000:{port.address}: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        ]
    if node.shape.virtual:
        lines.append("virtio_blk virtio1: [vda] 1048576000 512-byte logical blocks (537 GB/500 GiB)")
    else:
        lines.append(
            "tg3 0000:01:00.0 eth0: Tigon3 [partno(BCM95720) rev 5720000] (PCI Express) MAC address 02:00:5e:10:00:01"
        )
    lines.append("EXT4-fs (dm-0): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none.")
    return _paced(4.390126, 0.021447, lines)


def _nvidia(node: Node, found: list[PciDevice]) -> Lines:
    if not node.driver.loaded:
        return []
    switches = [device for device in found if device.ids == "10de:22a3"]
    lines = [
        "nvidia: loading out-of-tree module taints kernel.",
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
    ]
    for number, switch in enumerate(switches):
        probing = f"nvidia-nvswitch: Probing device 0000:{switch.bus_id}, Vendor Id = 0x10de, Device Id = 0x22a3"
        lines += [f"{probing}, Class = 0x68000", f"nvidia-nvswitch{number}: using MSI"]
    gpus = [device.bus_id for device in found if device.class_code == "0302"]
    lines += [f"nvidia 0000:{bus_id}: enabling device (0140 -> 0142)" for bus_id in gpus]
    lines += [
        f"NVRM: loading {module_name(node)}",
        f"nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  {node.driver.module}",
        *(f"[drm] [nvidia-drm] [GPU ID 0x0000{bus_id[:2]}{bus_id[3:5]}] Loading driver" for bus_id in gpus),
        "nvidia-uvm: Loaded the UVM driver, major device number 509.",
    ]
    return _paced(11.804417, 0.730219, lines)


def _services(node: Node) -> Lines:
    memory = [
        "EDAC i10nm: No hbm memory",
        "EDAC MC0: Giving out device to module i10nm_edac controller Intel_10nm Socket#0 IMC#0: DEV 0000:7e:0c.0",
        "EDAC MC4: Giving out device to module i10nm_edac controller Intel_10nm Socket#1 IMC#0: DEV 0000:fe:0c.0",
        "EDAC i10nm: v0.0.5",
    ]
    lines = [
        'audit: type=1400 audit(1796022530.114:2): apparmor="STATUS" name="nvidia_modprobe"',
        "systemd[1]: systemd 249.11-0ubuntu3.16 running in system mode",
        "systemd[1]: Started NVIDIA Persistence Daemon.",
        "bridge: filtering via arp/ip/ip6tables is no longer available by default.",
        "Initializing XFRM netlink socket",
        "docker0: port 1(veth2f19ac1) entered forwarding state",
    ]
    return _paced(44.120931, 0.318226, [*([] if node.shape.virtual else memory), *lines])


def journal(node: Node) -> Output:
    """`journalctl -k -b -o short-iso`: the same lines with the time of day and the host's name."""
    booted = READ_AT_SECONDS - UPTIME
    lines = []
    for line in render(node).stdout.decode().splitlines():
        stamp, _, said = line.removeprefix("[").partition("] ")
        when = time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime(booted + float(stamp)))
        lines.append(f"{when} {host_name(node)} kernel: {said}\n")
    return Output("".join(lines).encode())


def asked_journal(node: Node) -> Output | None:
    """The journal, where it was asked: it is when dmesg gives nothing."""
    return journal(node) if node.journal else None
