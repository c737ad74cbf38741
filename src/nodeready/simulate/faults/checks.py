"""What a node type is judged by, for faults that hit all of it, and for figures just above or below a bound."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nodeready import baseline

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_TIERS = ("quick", "acceptance")


def _demands(node: Node) -> tuple[Any, ...]:
    """The demands on a node of that type and size up to the acceptance tier, in the plan's order."""
    return _demands_of(node.shape.node_type, len(node.gpus))


@cache
def _demands_of(node_type: str, gpus: int) -> tuple[Any, ...]:
    demands = baseline.load(node_type, "", [f"gpu.count={gpus}"]).demands
    return tuple(d for d in demands.values() if d.tier in _TIERS)


def judged_checks(node: Node) -> frozenset[str]:
    """The ids of all checks that apply to a node of that type."""
    return frozenset(demand.check for demand in _demands(node) if not demand.absent)


def every_gpu_check(node: Node) -> tuple[str, ...]:
    """The ids of all checks on a GPU that apply to a node of that type."""
    demands = _demands(node)
    return tuple(dict.fromkeys(d.check for d in demands if d.per == "gpu" and not d.absent))


def required(node: Node, key: str) -> float:
    """The least that a node of that type must give for a key, in the demand's own unit."""
    demand = _demand(node, key)
    return _least(demand.required, demand.unit)


def recommended(node: Node, key: str) -> float:
    """The least that it should give."""
    demand = _demand(node, key)
    return _least(demand.recommended, demand.unit)


def plausible(node: Node, key: str) -> float:
    """The most that a measurement of it can be believed to give."""
    demand = _demand(node, key)
    if demand.plausible is None:
        raise ValueError(f"{key} of {node.shape.node_type} has no highest plausible value")
    return float(demand.plausible.to(demand.unit).value)


def _demand(node: Node, key: str) -> Any:
    return next(demand for demand in _demands(node) if demand.key == key)


def _least(bound: Any, unit: str) -> float:
    if bound is None or bound.operator != "min":
        raise ValueError("the demand has no lower bound")
    return float(bound.operand.to(unit).value if unit else bound.operand)
