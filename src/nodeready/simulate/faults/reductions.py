"""What goes wrong when all GPUs add up together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import plausible, recommended, required
from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    has_nvswitch,
    on_node,
    several_gpus,
    together,
    victim,
)

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.shapes import Shape

_REDUCE = "nvlink.all-reduce"
_MULTICAST = "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401"
_RING = 367.4  # GB/s: what eight GPUs reach where the NVSwitches only pass data on


def _on_a_board(shape: Shape) -> bool:
    return shape.board and shape.gpus > 1


def _slow_down(node: Node) -> None:
    node.reduction.busbw = 0.97 * required(node, _REDUCE)


def _lag(node: Node) -> None:
    node.reduction.busbw = (required(node, _REDUCE) + recommended(node, _REDUCE)) / 2


def _switch_off_nvls(node: Node) -> None:
    node.reduction.nvls, node.reduction.busbw = False, _RING
    node.environment["NCCL_NVLS_ENABLE"] = "0"


def _dazzle(node: Node) -> None:
    node.reduction.busbw = 1.1 * plausible(node, _REDUCE)


def _miscalculate(node: Node) -> None:
    node.reduction.wrong = victim(node).place


def _hang(node: Node) -> None:
    node.reduction.error = "no answer within 96 s while measuring all-reduce of 256 MiB: its process was ended"


def _refuse_multicast(node: Node) -> None:
    node.reduction.error = f"NCCL error: unhandled cuda error; NCCL: {_MULTICAST}"


def _keep_quiet(node: Node) -> None:
    node.reduction.logged = False


def _cut(node: Node) -> None:
    node.spoilers["allreduce"] = lambda output: replace(output, stdout=output.stdout[: len(output.stdout) // 2])


FAULTS = (
    Fault(
        "all-reduce-slow",
        "All links are up and all GPUs are fast alone, and together they add up too slowly.",
        _slow_down,
        on_node(FAIL, _REDUCE),
        can_have=several_gpus,
    ),
    Fault(
        "all-reduce-lags",
        "The GPUs add up somewhat slower together than good ones do, and fast enough to work.",
        _lag,
        on_node(ADVISORY, _REDUCE),
        can_have=_on_a_board,
    ),
    Fault(
        "nvls-off",
        "NCCL_NVLS_ENABLE=0 was left set for all users: the NVSwitches only pass data on, and jobs lose a quarter.",
        _switch_off_nvls,
        together(on_node(FAIL, _REDUCE), on_node(ADVISORY, "driver.environment")),
        can_have=has_nvswitch,
    ),
    Fault(
        "nvls-not-told",
        "NCCL is too old to name its algorithm: whether the NVSwitches add up is not known.",
        _keep_quiet,
        on_node(UNVERIFIED, _REDUCE),
        can_have=has_nvswitch,
    ),
    Fault(
        "all-reduce-implausible",
        "The rate is above what links can carry: the measurement is at fault.",
        _dazzle,
        on_node(UNVERIFIED, _REDUCE),
        can_have=several_gpus,
    ),
    Fault(
        "wrong-sums",
        "One GPU ends up with a sum that is wrong in one element, at full speed and without an error.",
        _miscalculate,
        on_node(FAIL, _REDUCE),
        can_have=several_gpus,
    ),
    Fault(
        "all-reduce-hangs",
        "The GPUs wait for each other for ever: the probe ends them at its deadline and says so of each.",
        _hang,
        on_node(UNVERIFIED, _REDUCE),
        case="D16",
        can_have=several_gpus,
    ),
    Fault(
        "nvls-does-not-bind",
        "The NVSwitches' multicast is broken: NCCL fails on eight GPUs, while every test of one GPU passes.",
        _refuse_multicast,
        on_node(UNVERIFIED, _REDUCE),
        case="D11",
        can_have=has_nvswitch,
    ),
    Fault(
        "all-reduce-cut",
        "The document of the all-reduce was cut on its way.",
        _cut,
        on_node(UNVERIFIED, _REDUCE),
        can_have=several_gpus,
    ),
)
