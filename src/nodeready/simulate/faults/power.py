"""What goes wrong with power and cooling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, Fault, on_victim, together, victim

if TYPE_CHECKING:
    from nodeready.simulate.model import Node


def _cap(node: Node) -> None:
    gpu = victim(node)
    gpu.power_limit = 500.0
    gpu.rates["float16", 8192].tflops = 641.0
    gpu.rates["float16", 16384].tflops = 577.0


def _heat(node: Node, margin: int) -> None:
    gpu = victim(node)
    gpu.temperature, gpu.margin = gpu.product.headroom - margin, margin
    gpu.memory_temperature = gpu.temperature + 7


def _overheat(node: Node) -> None:
    _heat(node, -2)


def _warm(node: Node) -> None:
    _heat(node, 0)


FAULTS = (
    Fault(
        "power-capped",
        "One GPU is held at 500 of 700 W, left over from an earlier test: it is a little slower under load.",
        _cap,
        together(on_victim(FAIL, "power.limit"), on_victim(ADVISORY, "compute.matmul-fp16")),
        case="F18",
    ),
    Fault(
        "hot",
        "One GPU sits at its slowdown temperature: the cold plate or the airflow is at fault.",
        _overheat,
        on_victim(FAIL, "thermal.margin"),
        case="F16",
    ),
    Fault(
        "warm",
        "One GPU has no margin left to its highest operating temperature, and is not slowed down yet.",
        _warm,
        on_victim(ADVISORY, "thermal.margin"),
        case="F17",
    ),
)
