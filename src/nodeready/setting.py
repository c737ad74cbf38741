"""Settings say what readings are taken by; `--set KEY=VALUE` replaces one, or the value of a required bound."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodeready.expectation import Bound, BoundError
from nodeready.overlay import BaselineError, near
from nodeready.quantity import UnitError

if TYPE_CHECKING:
    from pathlib import Path

    from nodeready.baseline import Baseline

MOST_GPUS = 64
SLOTS = "gpu.slots"
_BUS_ID = re.compile(r"([0-9a-f]{1,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.ASCII)


def declared_settings(chain: list[tuple[Path, dict[str, Any]]]) -> dict[str, str]:
    """The settings of a chain of files, root first, as text; one that the root does not declare is refused."""
    settings: dict[str, str] = {}
    for number, (path, table) in enumerate(chain):
        entries = table.get("settings", {})
        if not isinstance(entries, dict):
            raise BaselineError(f"{path}: settings is no table")
        for key, value in entries.items():
            if number and key not in settings:
                raise BaselineError(f"{path}: [settings] {key!r} is no setting: {near(key, settings)}")
            words = value if isinstance(value, list) else [value]
            if not all(isinstance(word, str) for word in words):
                raise BaselineError(f"{path}: [settings] {key!r} = {value!r}: write text, or a list of texts")
            settings[key] = ",".join(words)
    return settings


def slots_of(base: Baseline) -> tuple[str, ...]:
    """The bus ids at which a site's nodes have their GPUs, in bus order; none where no list is given.

    Raises `BaselineError` for what is no bus id, for one that is there twice, and for another number of
    slots than `gpu.count`.
    """
    text = base.settings.get(SLOTS, "")
    if not text.strip():
        return ()
    slots = []
    for word in text.split(","):
        match = _BUS_ID.fullmatch(word.strip().lower())
        if match is None:
            raise BaselineError(f"{SLOTS}: {word.strip()!r} is no bus id such as 0000:18:00.0")
        slots.append(f"{int(match[1], 16):04x}:{match[2]}")
    if len(set(slots)) < len(slots):
        raise BaselineError(f"{SLOTS} holds a bus id twice: {', '.join(slots)}")
    if len(slots) != base.gpu_count:
        raise BaselineError(f"{SLOTS} holds {len(slots)} bus ids and gpu.count is {base.gpu_count}: set both")
    return tuple(sorted(slots))


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
        other: replace(entry, required=bound, when_recorded="") if key in (other, entry.follows) else entry
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
