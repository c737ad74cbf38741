"""What goes wrong with the host: memory, operating system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.build import kernel_memory
from nodeready.simulate.faults.checks import recommended, required
from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, bare_metal, nothing, on_node, victim
from nodeready.simulate.machines import FOCAL
from nodeready.simulate.outputs.output import Output, no_such_file

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.shapes import Shape

_MEMORY = "memory.installed"


def _equip(node: Node, filled: int, size_gib: int) -> None:
    """Put DIMMs of one size into the first slots, and let the kernel use what is there."""
    for slot, dimm in enumerate(node.dimms):
        dimm.size_gib = size_gib if slot < filled else 0
    node.mem_total_kib = kernel_memory(filled * size_gib, node.stream("meminfo"))


def _lose_a_dimm(node: Node) -> None:
    slots = len(node.dimms)
    _equip(node, slots - 1, int(recommended(node, _MEMORY)) // slots)


def _buy_too_little(node: Node) -> None:
    slots = len(node.dimms)
    _equip(node, slots // 4, int(required(node, _MEMORY)) // slots)


def _shrink_the_guest(node: Node) -> None:
    del node.dimms[6:]
    node.mem_total_kib = kernel_memory(6 * 16, node.stream("meminfo"))


def _hide_memory(node: Node) -> None:
    node.mem_total_kib = int(node.mem_total_kib * 0.9)


def _no_tables(node: Node) -> None:
    said = b"# dmidecode 3.3\n# No SMBIOS nor DMI entry point found, sorry.\n"
    node.spoilers["dmidecode_-t_memory"] = lambda _: Output(said, 1)


def _deny_tables(node: Node) -> None:
    said = b"# dmidecode 3.3\nScanning /dev/mem for entry point.\n"
    error = b"/sys/firmware/dmi/tables/smbios_entry_point: Permission denied\n/dev/mem: Permission denied\n"
    node.spoilers["dmidecode_-t_memory"] = lambda _: Output(said, 1, error)


def _garble_a_dimm(node: Node) -> None:
    node.dimms[victim(node).place].printed = "Unknown"


def _install_focal(node: Node) -> None:
    node.os = FOCAL


def _lose_os_release(node: Node) -> None:
    node.spoilers["etc/os-release"] = lambda _: no_such_file("/etc/os-release")


def _virtual(shape: Shape) -> bool:
    return shape.virtual


FAULTS = (
    Fault(
        "dimm-missing",
        "One DIMM is not seen any more: the node is just below the recommended size.",
        _lose_a_dimm,
        on_node(ADVISORY, _MEMORY, "memory.dimms"),
        case="H2",
        can_have=bare_metal,
    ),
    Fault(
        "memory-below-required",
        "Only a quarter of the slots is filled: the node was delivered with too little memory.",
        _buy_too_little,
        on_node(FAIL, _MEMORY),
    ),
    Fault(
        "guest-too-small",
        "The virtual machine got 96 GiB for its GPU: enough to work, too little to feed it.",
        _shrink_the_guest,
        on_node(ADVISORY, _MEMORY),
        can_have=_virtual,
    ),
    Fault(
        "memtotal-gap",
        "All DIMMs are listed, yet the kernel uses a tenth less: the firmware mapped some of them out.",
        _hide_memory,
        on_node(FAIL, _MEMORY),
        case="H1",
    ),
    Fault(
        "vm-without-dmi",
        "The virtual machine has no tables of its firmware: its memory is what the kernel counts, and enough.",
        _no_tables,
        nothing,
        can_have=_virtual,
    ),
    Fault(
        "dmidecode-denied",
        "dmidecode ran without root: the memory is what the kernel counts, less what it keeps for itself.",
        _deny_tables,
        on_node(UNVERIFIED, "memory.dimms"),
        case="H4",
    ),
    Fault(
        "dimm-size-unknown",
        "The firmware lists one DIMM without its size: the sum of all of them is not known.",
        _garble_a_dimm,
        on_node(UNVERIFIED, _MEMORY, "memory.dimms"),
    ),
    Fault(
        "os-old",
        "The node came with an older image than the fleet's: Ubuntu 20.04.",
        _install_focal,
        on_node(ADVISORY, "platform.os"),
    ),
    Fault(
        "os-release-missing",
        "The image has no os-release file: which system runs on the node cannot be told.",
        _lose_os_release,
        on_node(UNVERIFIED, "platform.os"),
    ),
)
