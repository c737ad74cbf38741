"""What goes wrong with a GPU's spare memory, and what a job leaves behind on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, nothing, on_victim, together, victim
from nodeready.simulate.model import Process

if TYPE_CHECKING:
    from nodeready.simulate.model import Node


def _remap(node: Node, *, corrected: int = 0, uncorrected: int = 0) -> None:
    gpu = victim(node)
    rows = corrected + uncorrected
    gpu.remap.correctable, gpu.remap.uncorrectable = corrected, uncorrected
    gpu.remap.banks = [gpu.product.banks - rows, rows, 0, 0, 0]
    gpu.aggregate.dram_uncorrectable = uncorrected


def _wear_out(node: Node) -> None:
    _remap(node, uncorrected=12)


def _wear_by_corrected(node: Node) -> None:
    _remap(node, corrected=12)


def _use_a_bank_up(node: Node) -> None:
    gpu = victim(node)
    gpu.remap.correctable = 8
    gpu.remap.banks = [gpu.product.banks - 1, 0, 0, 0, 1]


def _leave_few(node: Node) -> None:
    gpu = victim(node)
    gpu.remap.correctable = 7
    gpu.remap.banks = [gpu.product.banks - 1, 0, 0, 1, 0]


def _correct_millions(node: Node) -> None:
    gpu = victim(node)
    gpu.volatile.dram_correctable = gpu.aggregate.dram_correctable = 25_114_902


def _wait_for_a_channel(node: Node) -> None:
    victim(node).printed["ecc_errors/channel_repair_pending"] = "Yes"


def _give_up_memory(node: Node) -> None:
    victim(node).printed["ecc_errors/unrepairable_memory"] = "Yes"


def _leave_memory(node: Node) -> None:
    victim(node).memory_used = 6_412


def _leave_a_process(node: Node) -> None:
    node.jobs = ()
    gpu = victim(node)
    gpu.memory_used = 1_190
    gpu.processes = [Process(41_873, "python3", 1_186)]


def _run_a_job(node: Node) -> None:
    for gpu in node.gpus:
        gpu.memory_used = 60_116
        gpu.processes = [Process(52_210 + gpu.place, "python3", 60_112)]
        gpu.power_draw = gpu.product.power[1] * 0.9 - 40 * gpu.place
        gpu.temperature, gpu.margin = 60 - gpu.place, 27 + gpu.place
        gpu.printed["utilization/gpu_util"] = "97 %"


FAULTS = (
    Fault(
        "row-remaps-12",
        "Twelve rows of one GPU were remapped after errors that ECC could not correct, all long ago.",
        _wear_out,
        together(on_victim(FAIL, "health.row-remaps"), on_victim(ADVISORY, "health.ecc-uncorrected")),
        case="E4",
    ),
    Fault(
        "row-remaps-corrected-12",
        "Twelve rows of one GPU were remapped before their errors got past ECC: many for a new GPU.",
        _wear_by_corrected,
        on_victim(FAIL, "health.row-remaps"),
        case="E4",
    ),
    Fault(
        "bank-without-spare-rows",
        "One memory bank has no spare row left, and no remap has failed yet: the next bad row will.",
        _use_a_bank_up,
        on_victim(FAIL, "health.row-remaps"),
    ),
    Fault(
        "bank-with-few-spare-rows",
        "One memory bank has used most of its spare rows.",
        _leave_few,
        on_victim(FAIL, "health.row-remaps"),
    ),
    Fault(
        "correctable-errors-by-the-million",
        "ECC corrected 25 million errors of one GPU since the driver was loaded: no fault yet, and far from usual.",
        _correct_millions,
        on_victim(ADVISORY, "health.ecc-corrected"),
        case="E20",
    ),
    Fault(
        "channel-repair-pending",
        "A memory channel of one GPU was repaired, and the repair waits for a reset.",
        _wait_for_a_channel,
        on_victim(FAIL, "health.row-remap-pending"),
    ),
    Fault(
        "unrepairable-memory",
        "One GPU says of itself that it holds memory which no spare can replace.",
        _give_up_memory,
        on_victim(FAIL, "health.row-remap-failure"),
    ),
    Fault(
        "leftover-memory",
        "The GPU is idle, and a dead process still holds 6 GiB of its memory.",
        _leave_memory,
        on_victim(ADVISORY, "health.leftovers"),
        case="H12",
    ),
    Fault(
        "leftover-process",
        "Slurm knows of no job on the node, and a process of the last one still computes on one GPU.",
        _leave_a_process,
        on_victim(UNVERIFIED, "health.leftovers"),  # the process, and memory of which its part is not known
        case="H12",
    ),
    Fault(
        "job-is-running",
        "A job holds the node: its processes, memory, power and heat are no faults.",
        _run_a_job,
        nothing,
        case="H14",
    ),
)
