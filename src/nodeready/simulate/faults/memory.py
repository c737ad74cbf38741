"""What goes wrong with a GPU's memory while patterns are written to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    on_every_gpu,
    on_victim,
    victim,
)
from nodeready.simulate.memory_model import PatternRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.simulate.model import Node

_PATTERNS = "gpu.memory-patterns"


def _going(run: PatternRun) -> Callable[[Node], None]:
    """The run of the patterns probe goes like this on the GPU that the fault befalls."""

    def apply(node: Node) -> None:
        victim(node).patterns = replace(run)

    return apply


def _cut(node: Node) -> None:
    node.spoilers["patterns"] = lambda output: replace(output, stdout=output.stdout[: len(output.stdout) // 2])


FAULTS = (
    Fault(
        "stuck-bit",
        "A bit of one GPU's memory is stuck, and ECC does not notice: what is read is not what was written.",
        _going(PatternRun(wrong_words=12)),
        on_victim(FAIL, _PATTERNS),
    ),
    Fault(
        "memory-held",
        "Another process holds half of one GPU's memory: half could be tried, and nothing is proven of the rest.",
        _going(PatternRun(held=0.5)),
        on_victim(UNVERIFIED, _PATTERNS),
    ),
    Fault(
        "memory-refused",
        "One GPU calls half of its memory free and does not give it when it is asked for it.",
        _going(PatternRun(refused=0.5)),
        on_victim(FAIL, _PATTERNS),
    ),
    Fault(
        "memory-partly-held",
        "Another process holds a seventh of one GPU's memory: most of it was tried, less than should be.",
        _going(PatternRun(held=1 / 7)),
        on_victim(ADVISORY, _PATTERNS),
    ),
    Fault(
        "uncorrectable-under-patterns",
        "One GPU has an ECC error that cannot be corrected as soon as all of its memory is in use.",
        _going(PatternRun(uncorrected=1, error="CUDA error: uncorrectable ECC error encountered")),
        on_victim(FAIL, _PATTERNS),
    ),
    Fault(
        "corrected-under-patterns",
        "One GPU's memory has errors under load that ECC corrects, and none while it idles.",
        _going(PatternRun(corrected=4647)),
        on_victim(ADVISORY, _PATTERNS),
        case="E7",
    ),
    Fault(
        "patterns-fail-on-one",
        "CUDA ends the memory test of one GPU with an error that tells nothing of its memory.",
        _going(PatternRun(error="CUDA error: unspecified launch failure")),
        on_victim(UNVERIFIED, _PATTERNS),
    ),
    Fault(
        "patterns-cut",
        "The document of the memory test was cut on its way: nothing is known of any GPU's memory.",
        _cut,
        on_every_gpu(UNVERIFIED, _PATTERNS),
    ),
)
