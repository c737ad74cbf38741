"""/proc/meminfo and `dmidecode -t memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.output import Output, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Dimm, Node

# shares of MemTotal that an idle node shows; rows without a share are 0
_SHARES = {
    "MemFree": 0.912,
    "MemAvailable": 0.974,
    "Buffers": 0.0012,
    "Cached": 0.0626,
    "SwapCached": 0,
    "Active": 0.0089,
    "Inactive": 0.0562,
    "Unevictable": 0.0159,
    "Mlocked": 0.0159,
    "SwapTotal": 0,
    "SwapFree": 0,
    "Dirty": 0,
    "Writeback": 0,
    "AnonPages": 0.0171,
    "Mapped": 0.0006,
    "Shmem": 0.00002,
    "KReclaimable": 0.0032,
    "Slab": 0.0042,
    "SReclaimable": 0.0032,
    "SUnreclaim": 0.0010,
    "KernelStack": 0.00004,
    "PageTables": 0.00005,
    "NFS_Unstable": 0,
    "Bounce": 0,
    "WritebackTmp": 0,
    "CommitLimit": 0.5,
    "Committed_AS": 0.0216,
    "VmallocUsed": 0.0005,
    "Percpu": 0.0003,
    "HardwareCorrupted": 0,
    "AnonHugePages": 0.00003,
}
_MANUFACTURER, _PART = "Micron Technology", "MTC40F2046S1RC48BA1"


def meminfo(node: Node) -> Output:
    """/proc/meminfo."""
    total = node.mem_total_kib
    rows = {"MemTotal": total, **{name: int(share * total) for name, share in _SHARES.items()}}
    rows |= {"SwapTotal": node.host.swap_kib, "SwapFree": node.host.swap_kib}
    return text(
        *(f"{name + ':':<16}{amount:>8} kB" for name, amount in rows.items()),
        "HugePages_Total:       0",
        "HugePages_Free:        0",
        "HugePages_Rsvd:        0",
        "HugePages_Surp:        0",
        "Hugepagesize:       2048 kB",
        "Hugetlb:               0 kB",
    )


def dmidecode(node: Node) -> Output:
    """`dmidecode -t memory`: the array, then one block for each slot."""
    guest = node.shape.virtual
    largest = sum(dimm.size_gib for dimm in node.dimms) if guest else 256 * len(node.dimms)
    lines = [
        "# dmidecode 3.3",
        "Getting SMBIOS data from sysfs.",
        "SMBIOS 3.0.0 present." if guest else "SMBIOS 3.3.0 present.",
        "",
        "Handle 0x1000, DMI type 16, 23 bytes",
        "Physical Memory Array",
        "\tLocation: Other" if guest else "\tLocation: System Board Or Motherboard",
        "\tUse: System Memory",
        "\tError Correction Type: Multi-bit ECC",
        f"\tMaximum Capacity: {largest // 1024} TB" if largest % 1024 == 0 else f"\tMaximum Capacity: {largest} GB",
        "\tError Information Handle: Not Provided",
        f"\tNumber Of Devices: {len(node.dimms)}",
        "",
    ]
    for number, dimm in enumerate(node.dimms):
        filled = _virtual(dimm) if guest else _filled(dimm)
        lines += [
            f"Handle 0x{0x1100 + number:04X}, DMI type 17, {40 if guest else 92} bytes",
            "Memory Device",
            "\tArray Handle: 0x1000",
            "\tError Information Handle: Not Provided",
            *(filled if dimm.size_gib else _empty(dimm)),
            "",
        ]
    return text(*lines)


def _virtual(dimm: Dimm) -> list[str]:
    """A part of a guest's memory, which QEMU shows in pieces of at most 16 GiB."""
    return [
        "\tTotal Width: Unknown",
        "\tData Width: Unknown",
        f"\tSize: {_size(dimm)}",
        "\tForm Factor: DIMM",
        "\tSet: None",
        f"\tLocator: {dimm.locator}",
        "\tBank Locator: Not Specified",
        "\tType: RAM",
        "\tType Detail: Other",
        "\tSpeed: Unknown",
        "\tManufacturer: QEMU",
        f"\tSerial Number: {dimm.serial}",
        "\tAsset Tag: Not Specified",
        "\tPart Number: Not Specified",
        "\tRank: Unknown",
        "\tConfigured Memory Speed: Unknown",
        "\tMinimum Voltage: Unknown",
        "\tMaximum Voltage: Unknown",
        "\tConfigured Voltage: Unknown",
    ]


def _size(dimm: Dimm) -> str:
    return dimm.printed or f"{dimm.size_gib} GB"


def _filled(dimm: Dimm) -> list[str]:
    return [
        "\tTotal Width: 80 bits",
        "\tData Width: 64 bits",
        f"\tSize: {_size(dimm)}",
        "\tForm Factor: DIMM",
        "\tSet: 1",
        f"\tLocator: {dimm.locator}",
        "\tBank Locator: Not Specified",
        "\tType: DDR5",
        "\tType Detail: Synchronous Registered (Buffered)",
        "\tSpeed: 4800 MT/s",
        f"\tManufacturer: {_MANUFACTURER}",
        f"\tSerial Number: {dimm.serial}",
        "\tAsset Tag: 0A234100",
        f"\tPart Number: {_PART}  ",
        "\tRank: 2",
        # two DIMMs on a channel run at 4400
        f"\tConfigured Memory Speed: {dimm.speed} MT/s",
        "\tMinimum Voltage: 1.1 V",
        "\tMaximum Voltage: 1.1 V",
        "\tConfigured Voltage: 1.1 V",
        "\tMemory Technology: DRAM",
        "\tMemory Operating Mode Capability: Volatile memory",
        "\tNon-Volatile Size: None",
        f"\tVolatile Size: {dimm.size_gib} GB",
        "\tCache Size: None",
        "\tLogical Size: None",
    ]


def _empty(dimm: Dimm) -> list[str]:
    return [
        "\tTotal Width: Unknown",
        "\tData Width: Unknown",
        "\tSize: No Module Installed",
        "\tForm Factor: DIMM",
        "\tSet: 1",
        f"\tLocator: {dimm.locator}",
        "\tBank Locator: Not Specified",
        "\tType: Unknown",
        "\tType Detail: Unknown",
    ]
