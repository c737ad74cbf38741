"""What goes wrong with the host: memory, operating system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, Fault, on_node
from nodeready.simulate.model import kernel_memory

if TYPE_CHECKING:
    from nodeready.simulate.model import Node


def _equip(node: Node, filled: int, size_gib: int) -> None:
    """Put DIMMs of one size into the first slots, and let the kernel use what is there."""
    for slot, dimm in enumerate(node.dimms):
        dimm.size_gib = size_gib if slot < filled else 0
    node.mem_total_kib = kernel_memory(filled * size_gib, node.stream("meminfo"))


def _lose_a_dimm(node: Node) -> None:
    _equip(node, len(node.dimms) - 1, 32)


def _buy_too_little(node: Node) -> None:
    _equip(node, len(node.dimms) // 4, 32)


def _hide_memory(node: Node) -> None:
    node.mem_total_kib = int(node.mem_total_kib * 0.9)


def _install_focal(node: Node) -> None:
    node.os_pretty, node.os_version, node.os_codename = "Ubuntu 20.04.6 LTS", "20.04", "Focal Fossa"
    node.kernel = "5.15.0-139-generic"


FAULTS = (
    Fault(
        "dimm-missing",
        "One of 32 DIMMs of 32 GiB is not seen any more: the node is just below the recommended size.",
        _lose_a_dimm,
        on_node(ADVISORY, "memory.installed"),
        case="H2",
    ),
    Fault(
        "memory-below-required",
        "Only a quarter of the slots is filled: the node was delivered with too little memory.",
        _buy_too_little,
        on_node(FAIL, "memory.installed"),
    ),
    Fault(
        "memtotal-gap",
        "All DIMMs are listed, yet the kernel uses a tenth less: the firmware mapped some of them out.",
        _hide_memory,
        on_node(FAIL, "memory.installed"),
        case="H1",
    ),
    Fault(
        "os-old",
        "The node came with an older image than the fleet's: Ubuntu 20.04.",
        _install_focal,
        on_node(ADVISORY, "platform.os"),
    ),
)
