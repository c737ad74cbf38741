"""The matrix products of one node's GPUs held against each other: to the last bit, and by their rates.

Only what was measured is compared: a GPU without a product is unverified in `compute`'s own findings.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nodeready.node.gpus import Gpu

T = TypeVar("T")

TASKS = (
    ("float16", 8192),
    ("float16", 16384),
    ("bfloat16", 8192),
    ("float8_e4m3fn", 8192),
    ("tf32", 8192),
    ("float32", 8192),
    ("float64", 8192),
)
_GATE = TASKS[0]
FEWEST = 3  # of fewer GPUs none is the odd one


def differing_products(gpus: Sequence[Gpu]) -> Reading[int]:
    """How many of the products came out differently, and on which GPU.

    One that is wrong, or not the same each time, is the matter of that GPU's own finding. Of one that was made
    its bits must be told.
    """
    notes: list[str] = []
    compared: list[Known[str]] = []
    untold: list[Unknown] = []
    gap = Unknown("nothing was compared")
    for dtype, size in TASKS:
        told = {gpu: gpu.compute.digest(dtype, size) for gpu in gpus if gpu.compute.is_sound(dtype, size)}
        made = [gpu for gpu in told if isinstance(gpu.compute.rate(dtype, size), Known)]
        untold += [reading for gpu in made if isinstance(reading := told[gpu], Unknown)]
        digests = _known(told)
        if isinstance(digests, Unknown):
            gap = digests
            continue
        compared.append(next(iter(digests.values())))
        kinds = Counter(reading.value for reading in digests.values())
        common, most = kinds.most_common(1)[0]
        odd = [gpu for gpu, reading in digests.items() if reading.value != common or most == 1 < len(kinds)]
        if odd:
            notes.append(f"{dtype} {size} on {', '.join(map(_named, odd))}")
    if not compared or (untold and not notes):
        return untold[0] if untold else gap
    alone = "one GPU has none to be compared with" if len(gpus) == 1 else f"{len(compared)} products compared"
    return Known(len(notes), note="; ".join(notes) or alone, recordings=compared[0].recordings)


def slowest_product(gpus: Sequence[Gpu]) -> Reading[float]:
    """The lowest rate over the median, and whose it is."""
    rates = _known({gpu: gpu.compute.rate(*_GATE) for gpu in gpus})
    if isinstance(rates, Unknown):
        return rates
    if len(rates) < FEWEST:
        note = f"of {len(rates)} GPUs none can be told to be the odd one"
        return Known(1.0, note=note, recordings=next(iter(rates.values())).recordings)
    # one that is held below its rated power is slower by that, which is power.limit's matter
    numbers = {gpu: reading.value.base / reading.share for gpu, reading in rates.items()}
    middle, slowest = median(numbers.values()), min(numbers, key=lambda gpu: numbers[gpu])
    note = f"{_named(slowest)} at {rates[slowest].value}"
    return Known(round(numbers[slowest] / middle, 3), note=note, recordings=rates[slowest].recordings)


def _known(readings: dict[Gpu, Reading[T]]) -> dict[Gpu, Known[T]] | Unknown:
    """What is known of the GPUs; unknown where that is of none, or of one of several."""
    known = {gpu: reading for gpu, reading in readings.items() if isinstance(reading, Known)}
    gaps = [reading for reading in readings.values() if isinstance(reading, Unknown)]
    if gaps and len(known) < 2:
        return gaps[0]
    return known or Unknown("no GPU is known")


def _named(gpu: Gpu) -> str:
    return f"{gpu.subject} ({gpu.bus_id or 'slot unknown'})"
