"""The documents of the suite's own probes: torch, and the matrix products."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.model import READ_AT_SECONDS, Gpu, Node, Rate
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

_TASKS = (
    ("float16", 8192),
    ("float16", 16384),
    ("bfloat16", 8192),
    ("float8_e4m3fn", 8192),
    ("tf32", 8192),
    ("float32", 8192),
    ("float64", 8192),
)
# the share of the power limit that a product draws; the narrow ones fill it
_DRAW = {"tf32": (0.94, 0.97), "float32": (0.78, 0.84), "float64": (0.72, 0.78)}
_FILLS = (0.985, 0.999)
_FP8_SINCE = (2, 5)  # the torch whose FP8 products take a scale for each factor and sum fast
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
        devices = [_device(node, *pair) for pair in enumerate(usable(node))]
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
    entries = [] if error else [entry for pair in enumerate(usable(node)) for entry in _entries(node, *pair)]
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
        "seconds": 81.206 if measured else 4.218,
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
    if not node.driver.loaded or not usable(node):
        return "cuInit: error 100 (no CUDA-capable device is detected)"
    if node.driver.module != node.driver.library:
        return "cuInit: error 803 (system has unsupported display driver / cuda driver combination)"
    if any(gpu.fabric_state in ("In Progress", "Not Started") for gpu in usable(node)):
        return "cuInit: error 802 (system not yet initialized)"
    return None


def failure(node: Node, gpu: Gpu) -> str:
    """What torch says instead of running anything on a GPU; empty where it runs."""
    if node.torch.cuda is None:
        return f"torch {node.torch.version} is built without CUDA"
    if f"sm_{gpu.product.capability.replace('.', '')}" not in node.torch.arch_list:
        return "CUDA error: no kernel image is available for execution on the device"
    return gpu.cuda_error or _too_old(node)


def _document(document: dict[str, Any]) -> Output:
    return Output(f"{json.dumps(document)}\n".encode())


def usable(node: Node) -> list[Gpu]:
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
        error = failure(node, gpu) or (_no_fp8(node, gpu) if dtype == "float8_e4m3fn" else "")
        figures = _nothing(error) if error else _figures(node, gpu, dtype, size, gpu.rates[dtype, size])
        yield {**who, **what, **figures}


def _no_fp8(node: Node, gpu: Gpu) -> str:
    """What torch says of an FP8 product that it or the GPU cannot make; empty where both can."""
    if tuple(map(int, node.torch.version.split(".")[:2])) < _FP8_SINCE:
        complaint = "_scaled_mm() got an unexpected keyword argument 'use_fast_accum'"
        return f"torch {node.torch.version} has no FP8 product of this form: {complaint}"
    if ("float8_e4m3fn", 8192) not in gpu.rates:
        return (
            "torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9, or ROCm MI300+"
        )
    return ""


def _nothing(error: str) -> dict[str, Any]:
    figures = ("tflops", "p5", "cv", "iterations", "verified", "repeatable", "clocks", "events")
    return {**dict.fromkeys(figures), "error": error}


def _digest(gpu: Gpu, dtype: str, size: int, rate: Rate) -> str:
    """GPUs of one kind make the same bits; a wrong product has others."""
    odd = gpu.serial if rate.odd or not rate.verified else ""
    return hashlib.sha256(f"{gpu.product.capability} {gpu.product.name} {dtype} {size} {odd}".encode()).hexdigest()[:16]


def _steady(value: float) -> dict[str, float]:
    return {"min": value, "median": value, "max": value}


def _figures(node: Node, gpu: Gpu, dtype: str, size: int, rate: Rate) -> dict[str, Any]:
    rng = node.stream("load", gpu.place, dtype, size)
    each = 2 * size**3 / (rate.tflops * 1e12)
    batch = max(1, round(0.05 / each))
    batches = int(_SECONDS / (batch * each)) + 1
    limit = gpu.power_limit
    fills = dtype not in _DRAW
    draw = limit * rng.uniform(*_DRAW.get(dtype, _FILLS)) * gpu.load_draw
    clock = rng.randrange(1590, 1680, 15) if fills else gpu.product.sm_clock
    headroom = gpu.product.headroom
    hot = max(gpu.temperature, headroom - rng.randint(16, 22))
    if gpu.load_margin is not None:
        hot = headroom - gpu.load_margin
    margin = headroom - hot
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
            "reasons": {**({"0x4": samples - 1} if fills else {}), **gpu.load_events},
            "power_w": {
                "min": round(draw * 0.97, 2),
                "median": round(draw, 2),
                "max": round(min(limit, draw * 1.01), 2),
            },
            "temperature_c": {"min": hot - 5, "median": hot - 1, "max": hot},
            "margin_c": {"min": margin, "median": margin + 1, "max": margin + 5} if gpu.product.tlimits else None,
        },
        "link": {"generation": _steady(gpu.link.generation), "width": _steady(gpu.link.width)},
        "repeatable": rate.repeatable,
        "repeats": max(3, round(1 / each)),
        "digest": _digest(gpu, dtype, size, rate),
        "error": None,
        "batch": batch,
        "measured_s": round(batch * batches * each, 3),
        "steady": True,
    }
