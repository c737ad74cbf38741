"""Which checks a node type has on its GPUs, for faults after which none of them can be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready import baseline

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_TIERS = ("quick", "acceptance")


def every_gpu_check(node: Node) -> tuple[str, ...]:
    """The ids of all checks on a GPU up to the acceptance tier, in the plan's order."""
    demands = baseline.load(node.shape.node_type).demands.values()
    return tuple(dict.fromkeys(d.check for d in demands if d.per == "gpu" and d.tier in _TIERS and not d.absent))
