"""What goes wrong with power and cooling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import required
from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, on_victim, together, victim

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.shapes import Shape

_STRAP_LIMIT = 310.0


def _cap(node: Node) -> None:
    """A GPU that may draw a sixth less is hardly slower in a short run."""
    gpu = victim(node)
    gpu.power_limit = float(round(0.84 * required(node, "power.limit")))
    for rate in gpu.rates.values():
        rate.tflops *= 0.97


def _strap(node: Node) -> None:
    gpu = victim(node)
    gpu.power_limit = _STRAP_LIMIT
    gpu.printed["gpu_power_readings/default_power_limit"] = f"{_STRAP_LIMIT:.2f} W"
    gpu.rates["float16", 8192].tflops = 330.0
    gpu.rates["float16", 16384].tflops = 325.0


def _lose_the_reading(node: Node) -> None:
    victim(node).printed["gpu_power_readings/current_power_limit"] = "Unknown Error"


def _is_a_small_card(shape: Shape) -> bool:
    return not shape.board and shape.product.power[2] < 600


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
        "One GPU is held below its rated power, left over from an earlier test: hardly slower in a short run.",
        _cap,
        on_victim(FAIL, "power.limit"),
        case="F18",
    ),
    Fault(
        "power-310",
        "One card takes its cable for one of 300 W and runs at 310: usable, slower, and a cable to look at.",
        _strap,
        together(on_victim(ADVISORY, "power.limit"), on_victim(ADVISORY, "compute.matmul-fp16")),
        case="F18",
        can_have=_is_a_small_card,
    ),
    Fault(
        "power-limit-unreadable",
        "One GPU answers Unknown Error where its power limit should stand; its siblings tell theirs.",
        _lose_the_reading,
        on_victim(UNVERIFIED, "power.limit", "power.draw"),
        case="B15",
    ),
    Fault(
        "hot",
        "One GPU sits at its slowdown temperature: the cold plate or the airflow is at fault.",
        _overheat,
        together(on_victim(FAIL, "thermal.margin"), on_victim(ADVISORY, "thermal.memory")),
        case="F16",
    ),
    Fault(
        "warm",
        "One GPU has no margin left to its highest operating temperature, and is not slowed down yet.",
        _warm,
        on_victim(ADVISORY, "thermal.margin", "thermal.memory"),
        case="F17",
    ),
)
