"""Measures how fast each active InfiniBand or RoCE port writes, by loopback, and prints one JSON document.

Stand-alone: needs Python >= 3.9, perftest's ib_write_bw on PATH and the file beside it, nothing of nodeready. Each
port writes to itself, from a client to a server on this machine, so its PCIe link and the way to memory are measured,
cable and switch are not. Ports beside a GPU write from its memory and to it, all at once, as jobs do: each such pair
has a PCIe switch of its own. Where that is not offered or fails, host memory stands in, one port after another: all at
once would share the memory channels, and measure those. Processes that don't answer are ended, else abandoned.
Exit status 0: measured (an entry may hold an error), 2: usage, 3: no ib_write_bw on PATH.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes import rdma_transfer
    from nodeready.probes.rdma_transfer import CUDA, DMA_BUF, HOST, Tool, Transfer
else:  # a script that stands alone has its sibling beside it
    import rdma_transfer
    from rdma_transfer import CUDA, DMA_BUF, HOST, Tool, Transfer

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "ib_write_bw"
NO_TOOL = f"there is no {NAME} on PATH: install perftest"
# seconds for one round: contexts on eight GPUs take some ten, the transfer itself takes five
GPU_PATIENCE, HOST_PATIENCE = 40.0, 20.0
FIGURES = ("gbits", "peak", "bytes", "iterations")

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]+)?) Gb/sec")
_GPU_CLASSES = ("0x0300", "0x0302")  # with and without a display


@dataclass
class Port:
    """An active port, where it sits, the GPU beside it, and what became of its transfers.

    `place` is its device's way through the PCI tree, `gpu` a bus id and `index` its place among all GPUs in the order
    of bus ids. `tried` holds the error of each kind of memory that was tried before the last.
    """

    device: str
    number: int
    link_layer: str
    rate: float | None
    numa: int | None
    place: tuple[str, ...]
    gpu: str | None = None
    index: int = -1
    tried: list[dict[str, str]] = field(default_factory=list)
    last: Transfer | None = None

    @property
    def open(self) -> bool:
        """Whether another kind of memory may still be tried: a port that didn't answer is left alone."""
        return self.last is None or bool(self.last.error and not self.last.hung)

    def entry(self, out_of_time: str) -> dict[str, Any]:
        """What became of it."""
        last = self.last
        found = {
            "device": self.device,
            "port": self.number,
            "link_layer": self.link_layer,
            "rate_gbits": self.rate,
            "numa": self.numa,
            "gpu": self.gpu,
            "memory": last.memory if last else None,
            "at_once": last.at_once if last else 0,
            **dict.fromkeys(FIGURES),
            "tried": self.tried,
            "error": last.error if last else out_of_time,
        }
        return {**found, **(last.figures if last else {})}


# ---- what the kernel shows --------------------------------------------------------------------


def text(path: Path) -> str:
    """A small file without blanks around it; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def active_ports(sysfs: Path) -> list[Port]:
    """The ports of all RDMA devices that are up, in the order of their names."""
    found = []
    for state in sorted((sysfs / "class/infiniband").glob("*/ports/*/state"), key=_in_order):
        at, device = state.parent, state.parents[2]
        if not text(state).endswith("ACTIVE") or not at.name.isdigit():
            continue
        rate, numa = _RATE.match(text(at / "rate")), text(device / "device/numa_node")
        found.append(
            Port(
                device=device.name,
                number=int(at.name),
                link_layer=text(at / "link_layer"),
                rate=float(rate[1]) if rate else None,
                numa=int(numa) if numa.isdigit() else None,  # -1: the firmware tells none
                place=_place(device / "device"),
            )
        )
    return found


def _in_order(path: Path) -> list[Any]:
    """mlx5_2 before mlx5_10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]


def _place(device: Path) -> tuple[str, ...]:
    return Path(os.path.realpath(device)).parts


def gpu_places(sysfs: Path) -> list[tuple[str, ...]]:
    """The way through the PCI tree to each NVIDIA GPU, in the order of their bus ids."""
    return [
        _place(device)
        for device in sorted((sysfs / "bus/pci/devices").glob("*"))
        if text(device / "vendor") == "0x10de" and text(device / "class").startswith(_GPU_CLASSES)
    ]


def bridges_shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many PCI bridges two devices have above them in common.

    >>> bridges_shared("/sys/devices/pci0000:15/0000:15:01.0/0000:19:00.0".split("/"),
    ...                "/sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0".split("/"))
    1
    """
    pairs = zip(one[:-1], other[:-1])  # noqa: B905 - strict came with Python 3.10
    shared = (part for part, _ in takewhile(lambda both: both[0] == both[1], pairs))
    return sum(bool(_ADDRESS.fullmatch(part)) for part in shared)


def pair(ports: Sequence[Port], gpus: Sequence[tuple[str, ...]]) -> None:
    """Give each port the GPU that is nearest below the same bridge; of several as near, one that has fewer ports."""
    taken = [0] * len(gpus)
    for port in ports:
        near = [(bridges_shared(port.place, place), -taken[index], -index) for index, place in enumerate(gpus)]
        if near and max(near)[0]:
            port.index = -max(near)[2]
            port.gpu = gpus[port.index][-1]
            taken[port.index] += 1


def cpus_of(sysfs: Path, numa: int | None) -> set[int]:
    """The processors of a NUMA node that this process may use; none where that is not known."""
    listed = text(sysfs / f"devices/system/node/node{numa}/cpulist")
    ranges = re.findall(r"(\d+)(?:-(\d+))?", listed)
    return {cpu for low, high in ranges for cpu in range(int(low), int(high or low) + 1)} & os.sched_getaffinity(0)


def kinds_of_memory(tool: Tool, sysfs: Path) -> list[str]:
    """The kinds of GPU memory to try in turn: by peermem where it is registered, else by DMA-BUF where that is offered.

    Without either the plain way is tried all the same: what it says is worth having.
    """
    if not tool.offers("--use_cuda"):
        return []
    peermem = (sysfs / "kernel/mm/memory_peers/nv_mem").is_dir()
    dma_buf = [DMA_BUF] if tool.offers("--use_cuda_dmabuf") else []
    return [CUDA, *dma_buf] if peermem or not dma_buf else dma_buf


# ---- the measurement --------------------------------------------------------------------------


def measure(tool: Tool, ports: Sequence[Port], options: argparse.Namespace, finish: float) -> None:
    """Try the kinds of memory in turn until each port has its figures, or `finish` on the monotonic clock."""

    def attempt(some: Sequence[Port], memory: str, patience: float) -> None:
        left = min(patience, finish - time.monotonic())
        if not some or left < options.seconds:
            return
        for port in some:
            if port.last is not None:
                port.tried.append({"memory": port.last.memory, "error": port.last.error or ""})
            cpus = cpus_of(options.sysfs, port.numa)
            port.last = Transfer((port.device, port.number), memory, (port.gpu, port.index), cpus, len(some))
        rdma_transfer.run([port.last for port in some if port.last is not None], tool, options.seconds, left)

    for memory in kinds_of_memory(tool, options.sysfs):
        attempt([port for port in ports if port.gpu and port.open], memory, GPU_PATIENCE)
    for port in ports:
        if port.open:
            attempt([port], HOST, HOST_PATIENCE)


def new_document() -> dict[str, Any]:
    """The document before anything is known."""
    about = {"probe": "rdma-write", "schema": 1, "perftest": None, "cuda": None, "dmabuf": None}
    python = platform.python_version()
    return {**about, "python": python, "started": time.time(), "seconds": 0.0, "results": [], "error": None}


def probe(document: dict[str, Any], path: str, options: argparse.Namespace) -> None:
    """Measure all active ports and fill the document."""
    begun = time.monotonic()
    finish = begun + options.deadline - rdma_transfer.ENDING_SECONDS
    tool = Tool.asked(path)
    offered = {"cuda": tool.offers("--use_cuda"), "dmabuf": tool.offers("--use_cuda_dmabuf")}
    document.update(perftest=tool.version or None, **offered)
    if tool.error:
        document["error"] = tool.error
    else:
        ports = active_ports(options.sysfs)
        pair(ports, gpu_places(options.sysfs))
        measure(tool, ports, options, finish)
        out_of_time = f"the {options.deadline:g} s were over before its turn"
        document["results"] = [port.entry(out_of_time) for port in ports]
    document["seconds"] = round(time.monotonic() - begun, 3)


# ---- the command line -------------------------------------------------------------------------


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options; exits 2 where they make no sense."""
    parser = argparse.ArgumentParser(description="Measures how fast each active RDMA port writes, by loopback.")
    parser.add_argument("--seconds", type=int, default=4, help="of each transfer, at least 3 (default: 4)")
    parser.add_argument("--deadline", type=float, default=120.0, help="seconds for everything (default: 120)")
    parser.add_argument("--sysfs", type=Path, default=Path("/sys"), help="another place of sysfs, for tests")
    options = parser.parse_args(argv)
    least = options.seconds + rdma_transfer.ENDING_SECONDS
    if options.seconds < 3 or not least < options.deadline < math.inf:
        parser.error(f"--seconds must be 3 or more, --deadline above {least:g}")
    return options


def stop(number: int, _: object) -> None:
    """Leave by the way that ends the transfers."""
    for either in (signal.SIGTERM, signal.SIGINT):
        signal.signal(either, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the document; the exit status."""
    options = parse_options(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    document, path = new_document(), shutil.which(NAME)
    if path is None:
        document["error"] = NO_TOOL
    else:
        probe(document, path, options)
    print(json.dumps(document))
    return 3 if path is None else 0


if __name__ == "__main__":
    sys.exit(main())
