"""The document of the copies probe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate import copy_model
from nodeready.simulate.model import READ_AT_SECONDS
from nodeready.simulate.outputs import torch_probes
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodeready.simulate.model import Gpu, Node

_WITHIN, _TO_DEVICE, _TO_HOST, _TO_PEER = "device", "to-device", "to-host", "to-peer"
_MIB = {_WITHIN: 4096, _TO_DEVICE: 256, _TO_HOST: 256, _TO_PEER: 1024}
_SECONDS = {_WITHIN: 1.0, _TO_DEVICE: 0.6, _TO_HOST: 0.6, _TO_PEER: 0.2}
_HUNG = "no answer within 12 s while measuring the copy within the device: its process was ended"
_FIGURES = (
    *("bytes", "counted", "gb_s", "p5", "cv", "iterations", "verified", "peer_access", "host_cpus"),
    *("link", "clocks", "events", "error"),
)


def copies(node: Node) -> Output:
    """What the copies probe prints."""
    build, error = node.torch, torch_probes.cuda_error(node)
    gpus = [] if error else torch_probes.usable(node)
    entries = [entry for index in range(len(gpus)) for entry in _entries(node, gpus, index)]
    who = ("device", "uuid", "bus_id", "name")
    document = {
        "probe": "copies",
        "schema": 1,
        "torch": build.version if entries else None,
        "cuda": build.cuda if entries else None,
        "cublas": None,
        "python": build.python,
        "started": READ_AT_SECONDS + 60,
        "seconds": 61.2 if entries else 4.1,
        "contents": "mixed bits, made by source and target",
        "devices": [{key: entry[key] for key in who} for entry in entries if entry["copy"] == _WITHIN],
        "results": entries,
        "error": f"no GPU to measure: {error}" if error else None,
    }
    return Output(f"{json.dumps(document)}\n".encode())


def _entries(node: Node, gpus: list[Gpu], index: int) -> Iterator[dict[str, Any]]:
    gpu = gpus[index]
    who = {"device": f"cuda:{index}", "uuid": gpu.uuid, "bus_id": gpu.bus_id.upper(), "name": gpu.product.name}
    error = _failure(node, gpu)
    to_device, to_host = copy_model.host_rates(node, gpu)
    alone = {_WITHIN: copy_model.memory_rate(node, gpu), _TO_DEVICE: to_device, _TO_HOST: to_host}
    for what, rate in alone.items():
        named = {**who, "copy": what, "peer": None, "peer_device": None, **dict.fromkeys(_FIGURES)}
        yield {**named, **({"error": error} if error else _figures(node, gpu, what, rate, gpu))}
    for step in range(1, len(gpus)):
        number = (index + step) % len(gpus)
        other = gpus[number]
        peer = {"copy": _TO_PEER, "peer": other.bus_id.upper(), "peer_device": f"cuda:{number}"}
        named = {**who, **peer, **dict.fromkeys(_FIGURES)}
        if error:
            yield {**named, "error": error}
        elif _failure(node, other):
            why = f"not copied: cuda:{number} failed, or gave no answer, before"
            yield {**named, "skipped": True, "error": why}
        else:
            access = {"peer_access": copy_model.has_access(node, gpu, other)}
            rate = copy_model.pair_rate(node, gpu, other)
            yield {**named, **_figures(node, gpu, _TO_PEER, rate, other), **access}


def _failure(node: Node, gpu: Gpu) -> str:
    """What a GPU's worker says instead of figures; empty where it has some."""
    return torch_probes.failure(node, gpu) or (_HUNG if gpu.place in node.copies.hung else "")


def _figures(node: Node, gpu: Gpu, what: str, typical: float, target: Gpu) -> dict[str, Any]:
    rng = node.stream("copies", gpu.place, what, target.place)
    rate, cv = typical * rng.uniform(0.996, 1.004), rng.uniform(0.0005, 0.003)
    size, counted = _MIB[what] << 20, 2 if what == _WITHIN else 1
    each = size * counted / (rate * 1e9)
    batch = max(1, round(0.05 / each))
    batches = max(3, int(_SECONDS[what] / (batch * each)) + 1)
    figures = {
        "bytes": size,
        "counted": counted,
        "gb_s": round(rate, 4),
        "p5": round(rate * (1 - 2 * cv), 4),
        "cv": round(cv, 6),
        "iterations": batch * batches,
        "batch": batch,
        "measured_s": round(batch * batches * each, 4),
        "verified": what in (_TO_DEVICE, _TO_HOST) or (gpu.place, target.place) not in node.copies.corrupt,
        "checks": 1 if what == _TO_HOST else 3,
    }
    return figures if what == _TO_PEER else {**figures, **_meanwhile(node, gpu, what)}


def _meanwhile(node: Node, gpu: Gpu, what: str) -> dict[str, Any]:
    """What was sampled while it copied."""
    clock, samples = gpu.product.sm_clock, 10 if what == _WITHIN else 6
    draw = gpu.power_limit * (0.55 if what == _WITHIN else 0.2)
    found: dict[str, Any] = {
        "steady": True,
        "clocks": {"samples": samples, "sm_mhz": _same(clock)},
        "events": {
            "samples": samples,
            "reasons": {},
            "power_w": _same(round(draw, 2)),
            "temperature_c": _same(gpu.temperature + 9),
            "margin_c": _same(gpu.margin - 9),
        },
        "link": {
            "generation": _same(copy_model.loaded_generation(node, gpu)),
            "width": _same(gpu.link.width),
        },
    }
    if what != _WITHIN:
        found["host_cpus"] = None if gpu.place in node.copies.far else _beside(node, gpu)
    return found


def _same(value: float) -> dict[str, float]:
    return {"min": value, "median": value, "max": value}


def _beside(node: Node, gpu: Gpu) -> str:
    """The processors of the GPU's NUMA node: its cores, then their second threads."""
    machine = node.shape.machine
    first = gpu.numa * machine.cores
    starts = (first, first + machine.sockets * machine.cores)
    return ",".join(f"{start}-{start + machine.cores - 1}" for start in starts)
