"""The documents of the suite's own probes: torch, and the matrix products."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.model import READ_AT_SECONDS, Gpu, Node, Rate
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

_TASKS = (("float16", 8192), ("float16", 16384), ("float32", 8192))
_SECONDS = 5.0
_CPU_BUILD = "this torch is built without CUDA"
# the oldest driver that runs programs of a CUDA release, by its major version
_OLDEST_DRIVER = {"11": 450, "12": 525, "13": 580}


def torch(node: Node) -> Output:
    """What the torch probe prints."""
    build = node.torch
    refused = cuda_error(node)
    devices: list[dict[str, Any]] = []
    if build.cuda is not None and refused is None:
        devices = [_device(node, *pair) for pair in enumerate(_usable(node))]
    document = {
        "probe": "torch",
        "schema": 1,
        "python": build.python,
        "torch": build.version,
        "cuda": build.cuda,
        "cudnn": build.cudnn,
        "nccl": build.nccl,
        "tensorflow": build.tensorflow,
        # torch tells none where CUDA does not start
        "arch_list": [] if refused or _too_old(node) else list(build.arch_list),
        "devices": devices,
        "visible": build.visible,
        "error": _CPU_BUILD if build.cuda is None else refused,
    }
    return _document(document)


def matmul(node: Node) -> Output:
    """What the matmul probe prints."""
    build = node.torch
    error = cuda_error(node)
    entries = [] if error else [entry for pair in enumerate(_usable(node)) for entry in _entries(node, *pair)]
    measured = any(entry["error"] is None for entry in entries)
    keys = ("device", "uuid", "bus_id", "name")
    document = {
        "probe": "matmul",
        "schema": 1,
        "torch": build.version if entries else None,
        "cuda": build.cuda if entries else None,
        "cublas": build.cublas if measured else None,
        "python": build.python,
        "started": READ_AT_SECONDS,
        "seconds": 37.412 if measured else 4.218,
        "inputs": "normal, seeded",
        "devices": [{key: entry[key] for key in keys} for entry in entries[:: len(_TASKS)]],
        "results": entries,
        "error": f"no GPU to measure: {error}" if error else None,
    }
    return _document(document)


def cuda_error(node: Node) -> str | None:
    """Why CUDA does not start on this node; None where it does."""
    if node.driver.cuda_refusal:
        return node.driver.cuda_refusal
    if not node.driver.loaded or not _usable(node):
        return "cuInit: error 100 (no CUDA-capable device is detected)"
    if node.driver.module != node.driver.library:
        return "cuInit: error 803 (system has unsupported display driver / cuda driver combination)"
    if any(gpu.fabric_state in ("In Progress", "Not Started") for gpu in _usable(node)):
        return "cuInit: error 802 (system not yet initialized)"
    return None


def _document(document: dict[str, Any]) -> Output:
    return Output(f"{json.dumps(document)}\n".encode())


def _usable(node: Node) -> list[Gpu]:
    """The GPUs that CUDA shows, in bus-id order; one in MIG mode without instances is not among them."""
    shown = [gpu for gpu in node.listed_gpus if gpu.in_cuda and gpu.mig == "Disabled"]
    if node.torch.visible is None:
        return shown
    return [shown[int(index)] for index in node.torch.visible.split(",")]


def _bus_id(gpu: Gpu) -> str:
    return gpu.bus_id.upper()


def _too_old(node: Node) -> str:
    """What torch says of a driver that is older than its CUDA; empty where it is not."""
    cuda = node.torch.cuda
    if cuda is None or node.driver.major >= _OLDEST_DRIVER[cuda.partition(".")[0]]:
        return ""
    major, minor = node.driver.cuda.split(".")
    return (
        f"The NVIDIA driver on your system is too old (found version {int(major) * 1000 + int(minor) * 10}). "
        "Please update your GPU driver by downloading and installing a new version"
    )


def _device(node: Node, index: int, gpu: Gpu) -> dict[str, Any]:
    error = gpu.cuda_error or _too_old(node)
    return {
        "index": index,
        "name": None if error else gpu.product.name,
        "uuid": gpu.uuid,
        "bus_id": _bus_id(gpu),
        "capability": None if error else gpu.product.capability,
        "total_memory": None if error else gpu.product.cuda_bytes,
        "error": error or None,
    }


def _entries(node: Node, index: int, gpu: Gpu) -> Iterator[dict[str, Any]]:
    for dtype, size in _TASKS:
        who = {"device": f"cuda:{index}", "uuid": gpu.uuid, "bus_id": _bus_id(gpu), "name": gpu.product.name}
        what = {"dtype": dtype, "size": size}
        error = gpu.cuda_error or _too_old(node)
        if node.torch.cuda is None:
            error = f"torch {node.torch.version} is built without CUDA"
        elif f"sm_{gpu.product.capability.replace('.', '')}" not in node.torch.arch_list:
            error = "CUDA error: no kernel image is available for execution on the device"
        figures = _nothing(error) if error else _figures(node, gpu, dtype, size, gpu.rates[dtype, size])
        yield {**who, **what, **figures}


def _nothing(error: str) -> dict[str, Any]:
    return {**dict.fromkeys(("tflops", "p5", "cv", "iterations", "verified", "clocks", "events")), "error": error}


def _figures(node: Node, gpu: Gpu, dtype: str, size: int, rate: Rate) -> dict[str, Any]:
    rng = node.stream("load", gpu.place, dtype, size)
    each = 2 * size**3 / (rate.tflops * 1e12)
    batch = max(1, round(0.05 / each))
    batches = int(_SECONDS / (batch * each)) + 1
    limit = gpu.power_limit
    # half precision at full size fills the power limit, float32 does not
    draw = limit * (rng.uniform(0.985, 0.999) if dtype == "float16" else rng.uniform(0.78, 0.84))
    clock = rng.randrange(1590, 1680, 15) if dtype == "float16" else gpu.product.sm_clock
    hot = gpu.temperature + rng.randint(26, 32)
    samples = 50
    return {
        "tflops": round(rate.tflops, 3),
        "p5": round(rate.tflops * (1 - 2 * rate.cv), 3),
        "cv": round(rate.cv, 5),
        "iterations": batch * batches,
        "verified": rate.verified,
        "clocks": {"samples": samples, "sm_mhz": {"min": clock - 45, "median": clock, "max": clock + 75}},
        "events": {
            "samples": samples,
            "reasons": {**({"0x4": samples - 1} if dtype == "float16" else {}), **gpu.load_events},
            "power_w": {
                "min": round(draw * 0.97, 2),
                "median": round(draw, 2),
                "max": round(min(limit, draw * 1.01), 2),
            },
            "temperature_c": {"min": hot - 4, "median": hot, "max": hot + 1},
        },
        "error": None,
        "batch": batch,
        "measured_s": round(batch * batches * each, 3),
        "steady": True,
    }
