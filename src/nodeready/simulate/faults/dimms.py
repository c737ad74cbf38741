"""What goes wrong with DIMMs one by one, and with what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.build import kernel_memory
from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, bare_metal, logged, nothing, on_node

if TYPE_CHECKING:
    from nodeready.simulate.model import Node


def _mix_dimms(node: Node) -> None:
    node.dimms[3].size_gib *= 2
    node.mem_total_kib = kernel_memory(sum(dimm.size_gib for dimm in node.dimms), node.stream("meminfo"))


def _slow_a_dimm(node: Node) -> None:
    node.dimms[5].speed = 4000


def _lose_memory_content(node: Node) -> None:
    node.host.uncorrected = 1


def _mend_memory(node: Node) -> None:
    node.host.corrected = 217


def _unload_edac(node: Node) -> None:
    node.host.uncorrected = None


def _check_machine(node: Node) -> None:
    logged(
        node,
        "mce: [Hardware Error]: Machine check events logged",
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4",
        "{1}[Hardware Error]: event severity: recoverable",
        "{1}[Hardware Error]:  Error 0, type: recoverable",
        "{1}[Hardware Error]:   section_type: memory error",
        "Memory failure: 0x40c1d2e: recovery action for dirty LRU page: Recovered",
    )


def _mend_by_machine_check(node: Node) -> None:
    logged(node, "EDAC MC2: 1 CE memory read error on CPU_SrcID#0_MC#2_Chan#0_DIMM#0 (channel:0 slot:0 page:0x40c1d2e)")


def _boot_lines(node: Node) -> None:
    logged(
        node, "mce: CPU supports 22 MCE banks", "EDAC MC: Ver: 3.0.0", "pcieport 0000:15:01.0: AER: enabled with IRQ 25"
    )


FAULTS = (
    Fault(
        "dimm-other-size",
        "One DIMM was replaced by one of another size: the sum is more than before, the channels no longer alike.",
        _mix_dimms,
        on_node(ADVISORY, "memory.dimms"),
        case="H2",
        can_have=bare_metal,
    ),
    Fault(
        "dimm-slower",
        "One DIMM was trained at a lower speed than the others.",
        _slow_a_dimm,
        on_node(ADVISORY, "memory.dimms"),
        can_have=bare_metal,
    ),
    Fault(
        "memory-error-uncorrected",
        "A memory controller counted an error that it could not correct.",
        _lose_memory_content,
        on_node(FAIL, "memory.errors"),
        can_have=bare_metal,
    ),
    Fault(
        "memory-errors-corrected",
        "One DIMM had two hundred errors since boot, all of them corrected.",
        _mend_memory,
        on_node(ADVISORY, "memory.errors"),
        can_have=bare_metal,
    ),
    Fault(
        "edac-not-loaded",
        "The image lacks the driver that counts memory errors of this processor.",
        _unload_edac,
        on_node(UNVERIFIED, "memory.errors"),
        can_have=bare_metal,
    ),
    Fault(
        "machine-check",
        "The firmware reported a memory error that could not be corrected, and the kernel gave up the page.",
        _check_machine,
        on_node(FAIL, "memory.machine-checks"),
    ),
    Fault(
        "machine-check-corrected",
        "The kernel log tells of a corrected memory error.",
        _mend_by_machine_check,
        on_node(ADVISORY, "memory.machine-checks"),
    ),
    Fault(
        "boot-lines-of-mce-and-edac",
        "The kernel log names mce, EDAC and AER as they start: no fault.",
        _boot_lines,
        nothing,
    ),
)
