"""How fast each active RDMA port writes by loopback, and through which memory, from the rdma-write probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodeready.evidence.probe import Probe
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.probe_document import number, shown, text
from nodeready.facts.probe_document import results as results_of
from nodeready.reading import Known, Reading, Unknown

HOST, OF_GPUS = "host", ("cuda", "cuda-dmabuf")
_BYTES = 8 << 20  # the floors are those of such messages
_MOST = 2000.0  # Gb/s: twice what sixteen lanes of PCIe 6 carry


def rdma_write_probe(python: str, script: str, *, deadline: float = 140.0) -> Probe:
    """The probe on all active ports; exit status 3 says that there is no ib_write_bw, which the document explains.

    The script's own deadline is 20 s shorter than the probe's, so that it can still end its transfers and say which
    port gave no answer.
    """
    argv = (python, script, "--deadline", f"{deadline - 20:g}")
    serves = ("network.write-bandwidth",)
    return Probe("rdma-write", argv, deadline=deadline, family="load", tier="acceptance", answers=(0, 3), serves=serves)


@dataclass(frozen=True)
class WrittenPort:
    """One port: its link layer, its rate and what it wrote, both in Gb/s.

    `gpu` is the bus id of the GPU beside it, None without one. `memory` is `host`, `cuda` or `cuda-dmabuf`, which the
    transfer that counts, or the last one that failed, went through; `tried` holds the kinds that failed before, each
    with its error. `at_once` is how many ports wrote at that time. `error` is empty, or what the last one said.
    """

    name: str
    layer: str
    rate: Reading[float]
    gpu: str | None
    memory: str
    written: Reading[float]
    at_once: int
    tried: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass(frozen=True)
class RdmaWrite:
    """The probe's document: whether ib_write_bw was built with CUDA, and each port by a name such as mlx5_0/1.

    `unplaced` counts entries that do not say which port they are of, or are the second of their port.
    """

    cuda: Reading[bool]
    ports: dict[str, WrittenPort]
    unplaced: int = 0


def parse(data: bytes) -> RdmaWrite | Unknown:
    """The ports of a whole document; unknown where it is cut, not the probe's, or says only an error.

    >>> found = parse(b'''{"probe": "rdma-write", "schema": 1, "perftest": "6.20", "cuda": true, "error": null,
    ... "results": [{"device": "mlx5_0", "port": 1, "link_layer": "InfiniBand", "rate_gbits": 400.0, "numa": 0,
    ... "gpu": "0000:1b:00.0", "memory": "cuda", "at_once": 8, "gbits": 392.8, "peak": null, "bytes": 8388608,
    ... "iterations": 11706, "tried": [], "error": null}]}''')
    >>> port = found.ports["mlx5_0/1"]
    >>> port.written.value, port.rate.value, port.memory, port.gpu
    (392.8, 400.0, 'cuda', '0000:1b:00.0')
    >>> parse(b'{"probe": "rdma-write", "schema": 1, "results": [], "error": "there is no ib_write_bw"}').reason
    'there is no ib_write_bw'
    """
    read = results_of(data, "rdma-write", 1)
    if isinstance(read, Unknown):
        return read
    found, entries = read
    cuda = found.get("cuda")
    ports: dict[str, WrittenPort] = {}
    for entry in entries:
        port = _port(entry)
        if port is not None and port.name not in ports:
            ports[port.name] = port
    built = Known(cuda) if isinstance(cuda, bool) else Unknown(f"cuda reads {shown(cuda)}")
    return RdmaWrite(built, ports, len(entries) - len(ports))


def _port(entry: Any) -> WrittenPort | None:
    if not isinstance(entry, dict):
        return None
    device, place, gpu = entry.get("device"), entry.get("port"), entry.get("gpu")
    if not isinstance(device, str) or not device or isinstance(place, bool) or not isinstance(place, int):
        return None
    memory, layer = text(entry.get("memory"), "memory"), text(entry.get("link_layer"), "link layer")
    error, at_once = entry.get("error"), entry.get("at_once")
    written = _written(entry, memory)
    return WrittenPort(
        name=f"{device}/{place}",
        layer=layer.value if isinstance(layer, Known) else "",
        rate=number(entry.get("rate_gbits"), "rate_gbits"),
        gpu=normal_bus_id(gpu) if isinstance(gpu, str) else None,
        memory=memory.value if isinstance(memory, Known) else "",
        written=written,
        at_once=at_once if isinstance(at_once, int) else 0,
        tried=_tried(entry.get("tried")),
        error="" if error is None or isinstance(written, Known) else written.reason,
    )


def _written(entry: dict[str, Any], memory: Reading[str]) -> Reading[float]:
    error, size = entry.get("error"), entry.get("bytes")
    if error is not None:
        said = isinstance(error, str) and error.strip()
        return Unknown(said or f"the entry's error reads {shown(error)}")
    if isinstance(memory, Unknown) or memory.value not in (HOST, *OF_GPUS):
        return Unknown(f"memory reads {shown(entry.get('memory'))}: what the data went through is unknown")
    if isinstance(size, bool) or size != _BYTES:
        return Unknown(f"bytes reads {shown(size)}, the floors are of messages of {_BYTES}")
    iterations = number(entry.get("iterations"), "iterations")
    gbits = number(entry.get("gbits"), "gbits")
    if isinstance(iterations, Unknown) or isinstance(gbits, Unknown):
        return iterations if isinstance(iterations, Unknown) else gbits
    return gbits if gbits.value <= _MOST else Unknown(f"gbits reads {shown(gbits.value)}, which cannot be")


def _tried(value: Any) -> tuple[tuple[str, str], ...]:
    rows = value if isinstance(value, list) else []
    pairs = [(row.get("memory"), row.get("error")) for row in rows if isinstance(row, dict)]
    return tuple((memory, error) for memory, error in pairs if isinstance(memory, str) and isinstance(error, str))
