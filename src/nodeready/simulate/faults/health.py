"""What goes wrong with a GPU's health: memory errors, slowdowns, recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    logged,
    no_load_on_victim,
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


def _remember_one_in_sram(node: Node) -> None:
    victim(node).aggregate.sram_secded = 1


def _strike_memory(node: Node) -> None:
    gpu = victim(node)
    gpu.volatile.dram_uncorrectable = gpu.aggregate.dram_uncorrectable = gpu.remap.uncorrectable = 1
    gpu.remap.pending = "Yes"
    gpu.remap.banks = [gpu.product.banks - 1, 1, 0, 0, 0]
    xid(node, gpu, 48, "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer.")
    xid(node, gpu, 63, "Row Remapper: New row marked for remapping, reset gpu to activate.")


def _correct_many(node: Node) -> None:
    gpu = victim(node)
    gpu.volatile.dram_correctable, gpu.aggregate.dram_correctable = 4_647, 23_118
    gpu.volatile.sram_correctable = gpu.aggregate.sram_correctable = 12


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


def _wait_for_drain(node: Node) -> None:
    victim(node).recovery_action = "Drain and Reset"


def _wait_for_reboot(node: Node) -> None:
    gpu = victim(node)
    gpu.recovery_action = "Reboot"
    change = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    xid(node, gpu, 154, change)


def _refuse_work(node: Node) -> None:
    gpu = victim(node)
    gpu.recovery_action = "Reset"
    gpu.cuda_error = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"
    logged(
        node,
        "NVRM: rpcRmApiAlloc_GSP: GspRmAlloc failed: hClient=0xc1d1a616; hParent=0x5c000054; hObject=0x5c00005b; "
        "hClass=0x0000c86f; paramsSize=0x00000170; paramsStatus=0x00000062; status=0x00000062",
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) "
        "returned from status @ kernel_channel.c:2874",
    )


def _brake(node: Node) -> None:
    for gpu in node.gpus:
        gpu.active_events |= {"hw_slowdown", "hw_power_brake_slowdown"}
        gpu.event_counters["hw_power_brake"] = 81_204_113
        gpu.sm_clock = 86


def _slow_down_idle(node: Node) -> None:
    gpu = victim(node)
    gpu.active_events.add("sw_thermal_slowdown")
    gpu.event_counters["sw_therm_slowdown"] = 9_114_207


def _overheat(node: Node) -> None:
    gpu = victim(node)
    gpu.active_events |= {"hw_slowdown", "hw_thermal_slowdown"}
    gpu.event_counters["hw_therm_slowdown"] = 13_300_000


def _brake_under_load(node: Node) -> None:
    victim(node).load_events["0x80"] = 3


def _overheat_under_load(node: Node) -> None:
    victim(node).load_events["0x40"] = 31
    victim(node).event_counters["hw_therm_slowdown"] = 2_480_000


def _cap_power(node: Node) -> None:
    victim(node).active_events = {"sw_power_cap"}


FAULTS = (
    Fault(
        "ecc-off",
        "The tenant before turned ECC off on one GPU: memory errors go unseen, and none are counted.",
        _turn_ecc_off,
        together(
            on_victim(FAIL, "health.ecc-mode"),
            on_victim(UNVERIFIED, "health.ecc-uncorrected", "health.ecc-corrected", "gpu.memory-patterns"),
        ),
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
        together(on_victim(FAIL, "health.row-remaps"), on_victim(ADVISORY, "health.ecc-uncorrected")),
    ),
    Fault(
        "sram-lifetime-1",
        "One GPU had an uncorrected SRAM error in its life: a new one has none, one in service may have a few.",
        _remember_one_in_sram,
        on_victim(FAIL, "health.ecc-uncorrected"),
        case="E6",
    ),
    Fault(
        "double-bit-error",
        "A memory error of one GPU could not be corrected and ended a job: Xid 48, and a row waits for its spare.",
        _strike_memory,
        together(
            on_victim(FAIL, "health.ecc-uncorrected", "health.row-remap-pending", "health.row-remaps"),
            on_node(FAIL, "health.xid"),
        ),
    ),
    Fault(
        "correctable-errors",
        "ECC corrected some thousand errors of one GPU, which is what it is there for: no fault by itself.",
        _correct_many,
        nothing,
        case="E20",
    ),
    Fault(
        "row-remap-pending",
        "A bad row was marked and stays in use until the GPU is reset; the kernel log holds Xid 63.",
        _mark_a_row,
        together(
            on_victim(FAIL, "health.row-remap-pending"),
            on_node(FAIL, "health.xid"),
            on_victim(ADVISORY, "health.row-remaps"),
        ),
        case="E1",
    ),
    Fault(
        "row-remap-done",
        "The log holds Xid 63, but the GPU was reset since and the spare row is in use: worth a look on a new GPU.",
        _remap_a_row,
        on_victim(ADVISORY, "health.row-remaps"),
        case="E11",
    ),
    Fault(
        "row-remap-failure",
        "A bank has no spare rows left: the kernel log holds Xid 64, and the GPU is a case for its warranty.",
        _run_out_of_rows,
        together(
            on_victim(FAIL, "health.row-remap-failure"),
            on_node(FAIL, "health.xid"),
            on_victim(UNVERIFIED, "health.row-remaps"),
        ),
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
        "recovery-drain",
        "The driver wants one GPU drained and then reset.",
        _wait_for_drain,
        on_victim(FAIL, "health.recovery-action"),
        case="B16",
    ),
    Fault(
        "recovery-reboot",
        "The driver wants the whole node rebooted for one GPU, and the kernel log says since when.",
        _wait_for_reboot,
        together(on_victim(FAIL, "health.recovery-action"), on_node(FAIL, "health.xid")),
        case="B16",
    ),
    Fault(
        "reset-required-without-xid",
        "The driver refuses new work on one GPU until it is reset, and says so in the kernel log without any Xid.",
        _refuse_work,
        together(
            on_victim(FAIL, "health.recovery-action"),
            on_node(FAIL, "health.xid", "frameworks.torch"),
            no_load_on_victim,
            on_node(UNVERIFIED, "network.write-bandwidth"),
        ),
        case="B17",
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
    Fault(
        "hw-thermal-slowdown",
        "One GPU's own protection slows it down for heat.",
        _overheat,
        on_victim(FAIL, "health.clock-events"),
        case="F16",
    ),
    Fault(
        "power-brake-under-load",
        "A power supply gives way for moments under full load: idle, nothing is to be seen of it.",
        _brake_under_load,
        on_victim(FAIL, "health.clock-events"),
        case="F15",
    ),
    Fault(
        "hw-thermal-under-load",
        "One GPU slows itself down for heat under full load, and is cool when idle.",
        _overheat_under_load,
        on_victim(FAIL, "health.clock-events"),
        case="F16",
    ),
    Fault(
        "sw-power-cap",
        "One GPU was read at its power limit, as under any full load: no fault.",
        _cap_power,
        nothing,
        case="F10",
    ),
)
