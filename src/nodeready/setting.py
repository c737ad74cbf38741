"""`--set KEY=VALUE`: a required bound keeps its comparison and gets another value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodeready.expectation import Bound, BoundError
from nodeready.overlay import BaselineError, near
from nodeready.quantity import UnitError

if TYPE_CHECKING:
    from nodeready.baseline import Baseline

MOST_GPUS = 64


def with_setting(base: Baseline, text: str) -> Baseline:
    """The baseline with one setting on top; raises `BaselineError` where there is nothing to set."""
    key, equals, raw = text.partition("=")
    if not equals or not raw:
        raise BaselineError(f"--set {text!r}: write KEY=VALUE, such as gpu.count=4")
    overrides = {**base.overrides, key: raw}
    if key in base.settings:
        return replace(base, settings={**base.settings, key: raw}, overrides=overrides)
    if key not in base.demands:
        raise BaselineError(f"--set {key}: no such key; {near(key, {**base.demands, **base.settings})}")
    demand = base.demands[key]
    if demand.follows:
        raise BaselineError(f"--set {key}: it follows {demand.follows}; set that")
    if demand.required is None:
        reason = f"is absent ({demand.absent})" if demand.absent else "has no required bound"
        raise BaselineError(f"--set {key}: in {base.name}@{base.version} it {reason}, so there is nothing to replace")
    try:
        bound = Bound.parse({demand.required.operator: _typed(demand.required, raw)}, demand.unit)
    except (BoundError, UnitError) as error:
        raise BaselineError(f"--set {text}: {error}") from None
    if key == "gpu.count" and not 1 <= bound.operand <= MOST_GPUS:
        raise BaselineError(f"--set {text}: a node has 1 to {MOST_GPUS} GPUs")
    demands = {
        other: replace(entry, required=bound) if key in (other, entry.follows) else entry
        for other, entry in base.demands.items()
    }
    return replace(base, demands=demands, overrides=overrides)


def _typed(bound: Bound, raw: str) -> Any:
    """Text from the command line in the type of the bound that it replaces."""
    several = isinstance(bound.operand, tuple)
    sample = bound.operand[0] if several else bound.operand
    items: list[Any] = []
    for word in raw.split(",") if several else [raw]:
        if isinstance(sample, bool):
            if word not in ("true", "false"):
                raise BoundError(f"{word!r} is neither true nor false")
            items.append(word == "true")
        elif isinstance(sample, int | float):
            try:
                items.append(int(word) if word.lstrip("+-").isdigit() else float(word))
            except ValueError:
                raise BoundError(f"{word!r} is not a number") from None
        else:
            items.append(word)
    return items if several else items[0]
