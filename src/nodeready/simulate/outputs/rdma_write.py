"""The document of the rdma-write probe: what each active port writes by loopback, and through which memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.model import READ_AT_SECONDS
from nodeready.simulate.outputs.links import peermem
from nodeready.simulate.outputs.output import Output
from nodeready.simulate.outputs.torch_probes import cuda_error

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node, Port

_BYTES, _SECONDS = 8 << 20, 2  # what counts of a transfer of four seconds
_DMA_BUF_SINCE = (5, 12)
_NO_TOOL = "there is no ib_write_bw on PATH: install perftest"


def document(node: Node) -> Output | None:
    """What the probe prints; None on a node without an RDMA adapter, where it is not run."""
    if not node.ports:
        return None
    absent = "ib_write_bw" in node.absent
    up = [] if absent else sorted((port for port in node.ports if port.up), key=_number)
    cuda = node.links.write_cuda and not absent
    entries = [_entry(node, port, _beside(node, port) if cuda else None) for port in up]
    at_once = sum(entry["memory"] != "host" for entry in entries)
    for entry in entries:
        entry["at_once"] = at_once if entry["memory"] != "host" else 1
    about = {
        "probe": "rdma-write",
        "schema": 1,
        "perftest": None if absent else "6.20",
        "cuda": None if absent else cuda,
        "dmabuf": None if absent else cuda,
        "python": node.torch.python,
        "started": READ_AT_SECONDS,
        "seconds": 0.0 if absent else 21.704,
        "results": entries,
        "error": _NO_TOOL if absent else None,
    }
    return Output(f"{json.dumps(about)}\n".encode(), 3 if absent else 0)


def _number(port: Port) -> int:
    return int(port.rdma_name.rpartition("_")[2])


def _beside(node: Node, port: Port) -> Gpu | None:
    """The GPU on the bus before the port's, which shares a switch with it."""
    bus = int(port.address.partition(":")[0], 16)
    found = (gpu for gpu in node.gpus if gpu.on_bus and gpu.bus_id == f"0000:{bus - 1:02x}:00.0")
    return next(found, None)


def _entry(node: Node, port: Port, gpu: Gpu | None) -> dict[str, Any]:
    by_peermem = peermem(node) and node.links.registered
    kind = "cuda" if by_peermem else "cuda-dmabuf"
    refusal = _refusal(node, gpu, by_peermem=by_peermem) if gpu else ""
    beside = _beside(node, port)
    entry = {
        "device": port.rdma_name,
        "port": 1,
        "link_layer": port.layer,
        "rate_gbits": float(port.rate),
        "numa": port.numa,
        "gpu": beside.bus_id if beside else None,
        "memory": kind if gpu and not refusal else "host",
        "at_once": 1,
        **dict.fromkeys(("gbits", "peak", "bytes", "iterations")),
        "tried": [{"memory": kind, "error": refusal}] if refusal else [],
        "error": node.links.write_errors.get(port.rdma_name),
    }
    return entry if entry["error"] else {**entry, **_figures(node, port)}


def _figures(node: Node, port: Port) -> dict[str, Any]:
    usual = node.stream("write", port.rdma_name).uniform(0.972, 0.986)
    gbits = round(port.rate * node.links.write_shares.get(port.rdma_name, usual), 2)
    return {"gbits": gbits, "peak": None, "bytes": _BYTES, "iterations": int(gbits * 1e9 * _SECONDS / 8 / _BYTES)}


def _refusal(node: Node, gpu: Gpu, *, by_peermem: bool) -> str:
    """Why nothing goes through the memory of the GPU: CUDA does not show it, or the adapter does not take it."""
    shown = gpu.in_driver and gpu.in_cuda and gpu.mig == "Disabled"
    if node.driver.refuses or cuda_error(node) or not shown or gpu.cuda_error:
        return "server and client: cuDeviceGetByPCIBusId failed with error: 101, Couldn't init GPU context"
    kernel = tuple(int(part) for part in node.os.kernel.split(".")[:2])
    if by_peermem or (node.links.dma_buf and kernel >= _DMA_BUF_SINCE):
        return ""
    return "server and client: Couldn't allocate MR with error=14, failed to create mr"
