"""What goes wrong with a GPU's health: memory errors, slowdowns, recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    nothing,
    on_every_gpu,
    on_node,
    on_victim,
    together,
    victim,
    xid,
)

if TYPE_CHECKING:
    from nodeready.simulate.model import Node


def _turn_ecc_off(node: Node) -> None:
    gpu = victim(node)
    gpu.ecc = gpu.ecc_pending = "Disabled"


def _ask_for_no_ecc(node: Node) -> None:
    victim(node).ecc_pending = "Disabled"


def _strike_sram(node: Node) -> None:
    gpu = victim(node)
    gpu.volatile.sram_secded = gpu.aggregate.sram_secded = 1


def _wear_sram_out(node: Node) -> None:
    victim(node).aggregate.sram_secded = 5


def _remember_one(node: Node) -> None:
    gpu = victim(node)
    gpu.aggregate.dram_uncorrectable = gpu.remap.uncorrectable = 1
    gpu.remap.banks = [gpu.product.banks - 1, 1, 0, 0, 0]


def _mark_a_row(node: Node) -> None:
    gpu = victim(node)
    gpu.volatile.dram_correctable = gpu.aggregate.dram_correctable = 177
    gpu.remap.correctable, gpu.remap.pending = 1, "Yes"
    gpu.remap.banks = [gpu.product.banks - 1, 1, 0, 0, 0]
    xid(node, gpu, 63, "Row Remapper: New row marked for remapping, reset gpu to activate.")


def _remap_a_row(node: Node) -> None:
    _mark_a_row(node)
    victim(node).remap.pending = "No"


def _run_out_of_rows(node: Node) -> None:
    gpu = victim(node)
    gpu.remap.correctable, gpu.remap.failure = 9, "Yes"
    gpu.remap.banks = [gpu.product.banks - 1, 0, 0, 0, 1]
    xid(node, gpu, 64, "Row Remapper: All reserved rows for bank are remapped.")


def _wait_for_reset(node: Node) -> None:
    victim(node).recovery_action = "Reset"


def _brake(node: Node) -> None:
    for gpu in node.gpus:
        gpu.active_events |= {"hw_slowdown", "hw_power_brake_slowdown"}
        gpu.event_counters["hw_power_brake"] = 81_204_113
        gpu.sm_clock = 86


def _slow_down_idle(node: Node) -> None:
    gpu = victim(node)
    gpu.active_events.add("sw_thermal_slowdown")
    gpu.event_counters["sw_therm_slowdown"] = 9_114_207


FAULTS = (
    Fault(
        "ecc-off",
        "The tenant before turned ECC off on one GPU: memory errors go unseen, and none are counted.",
        _turn_ecc_off,
        together(on_victim(FAIL, "health.ecc-mode"), on_victim(UNVERIFIED, "health.ecc-uncorrected")),
        case="E8",
    ),
    Fault(
        "ecc-pending-off",
        "ECC is still on and will be off after the next reset of the GPU.",
        _ask_for_no_ecc,
        on_victim(FAIL, "health.ecc-mode"),
        case="E8",
    ),
    Fault(
        "ecc-uncorrected-volatile",
        "One GPU had an SRAM error that ECC could not correct since the driver was loaded.",
        _strike_sram,
        on_victim(FAIL, "health.ecc-uncorrected"),
    ),
    Fault(
        "sram-lifetime-5",
        "After a reboot the counters are clean, but over its life one GPU had five uncorrected SRAM errors.",
        _wear_sram_out,
        on_victim(FAIL, "health.ecc-uncorrected"),
        case="E6",
    ),
    Fault(
        "dram-lifetime-1",
        "One GPU had an uncorrected memory error long ago, and a spare row took over.",
        _remember_one,
        on_victim(ADVISORY, "health.ecc-uncorrected"),
    ),
    Fault(
        "row-remap-pending",
        "A bad row was marked and stays in use until the GPU is reset; the kernel log holds Xid 63.",
        _mark_a_row,
        together(on_victim(FAIL, "health.row-remap-pending"), on_node(FAIL, "health.xid")),
        case="E1",
    ),
    Fault(
        "row-remap-done",
        "The log holds Xid 63, but the GPU was reset since and the spare row is in use: no fault.",
        _remap_a_row,
        nothing,
        case="E11",
    ),
    Fault(
        "row-remap-failure",
        "A bank has no spare rows left: the kernel log holds Xid 64, and the GPU is a case for its warranty.",
        _run_out_of_rows,
        together(on_victim(FAIL, "health.row-remap-failure"), on_node(FAIL, "health.xid")),
        case="E2",
    ),
    Fault(
        "recovery-reset",
        "The driver waits for a reset of one GPU and refuses new work on it, with no line in any log.",
        _wait_for_reset,
        on_victim(FAIL, "health.recovery-action"),
        case="B16",
    ),
    Fault(
        "power-brake",
        "A power supply failed, and the board holds all GPUs at 86 MHz while every other field looks fine.",
        _brake,
        on_every_gpu(FAIL, "health.clock-events"),
    ),
    Fault(
        "sw-thermal-at-idle",
        "One GPU is slowed down for heat although it does nothing.",
        _slow_down_idle,
        on_victim(FAIL, "health.clock-events"),
        case="F10",
    ),
)
