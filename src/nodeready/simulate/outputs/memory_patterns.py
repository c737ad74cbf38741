"""The document of the memory patterns probe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.model import READ_AT_SECONDS, Gpu, Node
from nodeready.simulate.outputs.output import Output
from nodeready.simulate.outputs.torch_probes import cuda_error, failure, usable

if TYPE_CHECKING:
    from nodeready.simulate.memory_model import PatternRun

_PATTERNS = ["own-address", "walking-bit", "alternating", "zeros", "random"]
_BLOCK = 256 << 20
_CONTEXT = 620 << 20  # what CUDA takes for itself, and the suite's process with it
_RESERVE = 0.02
_ROUNDS = 6
_FIGURES = (
    *("total_bytes", "free_bytes", "cap_bytes", "covered_bytes", "left_bytes", "blocks", "block_bytes"),
    *("share_of_total", "share_of_free", "patterns", "rounds", "passes", "checked_bytes", "measured_s"),
    *("wrong_words", "wrong", "verified", "ecc", "clocks", "events", "link", "error"),
)


def document(node: Node) -> Output:
    """What the memory patterns probe prints."""
    error = cuda_error(node)
    entries = [] if error else [_entry(node, index, gpu) for index, gpu in enumerate(usable(node))]
    about = node.torch if entries else None
    found = {
        "probe": "patterns",
        "schema": 1,
        "torch": about.version if about else None,
        "cuda": about.cuda if about else None,
        "cublas": None,
        "python": node.torch.python,
        "started": READ_AT_SECONDS,
        "seconds": 29.184,
        "devices": [{key: entry[key] for key in ("device", "uuid", "bus_id", "name")} for entry in entries],
        "results": entries,
        "error": f"no GPU to measure: {error}" if error else None,
    }
    return Output(f"{json.dumps(found)}\n".encode())


def _entry(node: Node, index: int, gpu: Gpu) -> dict[str, Any]:
    who = {"device": f"cuda:{index}", "uuid": gpu.uuid, "bus_id": gpu.bus_id.upper(), "name": gpu.product.name}
    error = failure(node, gpu)
    if error:
        return {**who, **dict.fromkeys(_FIGURES), "error": error}
    run, total = gpu.patterns, gpu.product.cuda_bytes
    held, refused = int(total * run.held), int(total * run.refused)
    free = total - _CONTEXT - held
    blocks = (free - refused - int(total * _RESERVE) - _BLOCK * 9 // 8) // _BLOCK
    covered = blocks * _BLOCK
    return {
        **who,
        **dict.fromkeys(_FIGURES),
        "total_bytes": total,
        "free_bytes": free,
        "covered_bytes": covered,
        "left_bytes": free - covered - _BLOCK * 9 // 8,
        "blocks": blocks,
        "block_bytes": _BLOCK,
        "share_of_total": covered / total,
        "share_of_free": covered / free,
        "patterns": _PATTERNS,
        **_found(node, gpu, covered),
        "ecc": _counted(gpu),
    }


def _found(node: Node, gpu: Gpu, covered: int) -> dict[str, Any]:
    run, rounds = gpu.patterns, 0 if gpu.patterns.error else _ROUNDS
    rng = node.stream("patterns", gpu.place)
    bit = rng.randrange(64)
    places = sorted(rng.randrange(0, covered, 8) for _ in range(min(run.wrong_words, 8)))
    verified = False if run.wrong_words else None if run.error else True
    return {
        "rounds": rounds,
        "passes": rounds * len(_PATTERNS),
        "checked_bytes": 2 * rounds * len(_PATTERNS) * covered,
        "measured_s": 20.317,
        "wrong_words": run.wrong_words,
        "wrong": [
            {"offset_bytes": at, "xor": f"0x{1 << bit:016x}", "pattern": name}
            for at, name in zip(places, 8 * ["zeros"], strict=False)
        ],
        "verified": verified,
        "error": run.error or None,
    }


def _counted(gpu: Gpu) -> dict[str, Any]:
    """The ECC counters before and after; they say nothing while ECC is off."""
    if gpu.ecc != "Enabled":
        return {key: {"corrected": None, "uncorrected": None} for key in ("before", "after")}
    counts, run = gpu.volatile, gpu.patterns
    before = {
        "corrected": counts.sram_correctable + counts.dram_correctable,
        "uncorrected": counts.sram_parity + counts.sram_secded + counts.dram_uncorrectable,
    }
    return {"before": before, "after": _later(before, run)}


def _later(before: dict[str, int], run: PatternRun) -> dict[str, int]:
    return {
        "corrected": before["corrected"] + run.corrected,
        "uncorrected": before["uncorrected"] + run.uncorrected,
    }
