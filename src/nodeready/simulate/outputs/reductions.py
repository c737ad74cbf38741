"""The document of the suite's own all-reduce probe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.model import READ_AT_SECONDS
from nodeready.simulate.outputs.output import Output
from nodeready.simulate.outputs.torch_probes import cuda_error, failure, usable

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node

_SIZES = (256 << 20, 8 << 30)
_SMALL = 0.91  # what a message of 256 MiB reaches of the rate of a large one
_FIGURES = (
    *("bytes", "busbw_gb_s", "p5_gb_s", "cv", "iterations", "algbw_gb_s", "verified", "wrong_elements"),
    *("backend", "nccl", "clocks", "events", "link"),
)
# GB/s of bus bandwidth: of NVSwitches by the number of GPUs, of direct links, of a pair of cards, over PCIe
_SWITCHED = {2: 322.0, 3: 348.0, 4: 363.0, 5: 414.0, 6: 436.0, 7: 460.0, 8: 476.0}
_MESH, _PAIR, _PCIE = 358.0, 236.0, 38.0


def allreduce(node: Node) -> Output:
    """What the all-reduce probe prints."""
    build, gpus = node.torch, usable(node)
    refused = cuda_error(node)
    error = f"no GPU to measure: {refused}" if refused else None
    if error is None and len(gpus) < 2:
        error = "an all-reduce needs two devices, and there is only cuda:0"
    entries = [] if error else _entries(node, gpus)
    keys = ("device", "uuid", "bus_id", "name")
    document = {
        "probe": "allreduce",
        "schema": 1,
        "torch": build.version if entries else None,
        "cuda": build.cuda if entries else None,
        "cublas": None,
        "python": build.python,
        "started": READ_AT_SECONDS,
        "seconds": 28.611 if entries else 3.907,
        "dtype": "float32",
        "summary": [_summary(size, entries) for size in _SIZES] if entries else [],
        "devices": [{key: entry[key] for key in keys} for entry in entries[:: len(_SIZES)]],
        "results": entries,
        "error": error,
    }
    return Output(f"{json.dumps(document)}\n".encode())


def typical(node: Node) -> float:
    """The bus bandwidth that the GPUs of such a node reach together, in GB/s."""
    shape, count = node.shape, len(node.gpus)
    if shape.nvswitch_buses:
        return _SWITCHED.get(count, _SWITCHED[8])
    bridged = all(any(link.endswith("GB/s") for link in gpu.links) for gpu in node.gpus)
    if not bridged or count > max(shape.joined, 1):
        return _PCIE
    return _MESH if shape.joined > 2 else _PAIR


def _entries(node: Node, gpus: list[Gpu]) -> list[dict[str, Any]]:
    errors = {number: failure(node, gpu) for number, gpu in enumerate(gpus)}
    first = next((number for number, error in errors.items() if error), None)
    found = []
    for number, gpu in enumerate(gpus):
        who = {"device": f"cuda:{number}", "uuid": gpu.uuid, "bus_id": gpu.bus_id.upper(), "name": gpu.product.name}
        for size in _SIZES:
            error = errors[number]
            if first is not None and not error:
                error = f"no all-reduce of {size >> 20} MiB without cuda:{first}, which took no part: {errors[first]}"
            error = error or node.reduction.error
            what = {"size": size, "rank": number, "ranks": len(gpus)}
            figures = dict.fromkeys(_FIGURES) if error else _figures(node, gpu, number, len(gpus), size)
            found.append({**who, **what, **figures, "error": error or None})
    return found


def _figures(node: Node, gpu: Gpu, number: int, ranks: int, size: int) -> dict[str, Any]:
    state = node.reduction
    rng = node.stream("reduction", gpu.place, size)
    switched = bool(node.shape.nvswitch_buses) and state.nvls
    rate = (state.busbw or typical(node)) * (_SMALL if size < _SIZES[-1] else 1.0) * rng.uniform(0.998, 1.0)
    cv = rng.uniform(0.001, 0.004)
    wrong = 1 if state.wrong == gpu.place and size == _SIZES[-1] else 0
    algorithm = None if number or not state.logged else ("NVLS" if switched else "RING")
    return {
        "bytes": size,
        "busbw_gb_s": round(rate, 3),
        "p5_gb_s": round(rate * (1 - 2 * cv), 3),
        "cv": round(cv, 5),
        "iterations": 60 if size == _SIZES[-1] else 200,
        "algbw_gb_s": round(rate * ranks / (2 * (ranks - 1)), 3),
        "verified": not wrong,
        "wrong_elements": wrong,
        "backend": "nccl",
        "nccl": {
            "version": node.torch.nccl,
            "algorithm": algorithm,
            "protocol": "SIMPLE" if algorithm else None,
            "nvls_channels": 16 if switched else 0,
            "nvls_available": bool(node.shape.nvswitch_buses) if state.nvls else None,
            "settings": {} if state.nvls else {"NCCL_NVLS_ENABLE": "0"},
        },
        "clocks": None,
        "events": None,
        "link": None,
    }


def _summary(size: int, entries: list[dict[str, Any]]) -> dict[str, Any]:
    ranks = [entry for entry in entries if entry["size"] == size]
    whole = all(entry["error"] is None for entry in ranks)
    return {
        "size": size,
        "ranks": len(ranks),
        "busbw_gb_s": min(entry["busbw_gb_s"] for entry in ranks) if whole else None,
        "verified": all(entry["verified"] for entry in ranks) if whole else None,
        "algorithm": ranks[0]["nccl"]["algorithm"] if whole else None,
    }
