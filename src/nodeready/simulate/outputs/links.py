"""Counters of NVLinks and ports in two samples, peer access, and the small files of RDMA adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.link_model import BETWEEN
from nodeready.simulate.model import INACTIVE, UPTIME
from nodeready.simulate.outputs.nvidia_smi import ALL_INACTIVE, refusal
from nodeready.simulate.outputs.output import Output, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node, Port

_RDMA, _NET = "/sys/class/infiniband", "/sys/class/net"
_BOARDS = {"MT4129": "MT_0000000838", "MT4125": "MT_0000000359", "MT4117": "MT_2420110034"}
_COUNTERS = (
    "counters/local_link_integrity_errors",
    "counters/excessive_buffer_overrun_errors",
    "hw_counters/rnr_nak_retry_err",
    "counters/link_downed",
    "counters/symbol_error",
    "counters/link_error_recovery",
    "hw_counters/roce_slow_restart",
)
_STATES = {"Active": "4: ACTIVE", "Down": "1: DOWN", "Initializing": "2: INIT"}
_PHYSICAL = {"LinkUp": "5: LinkUp", "Polling": "2: Polling", "Disabled": "3: Disabled"}
_OPEN_SINCE = 560  # the branch from which the open module is the default, which needs no peermem
_LEGEND = (
    "",
    "Legend:",
    "",
    "  X    = Self",
    "  OK   = Status Ok",
    "  CNS  = Chipset not supported",
    "  GNS  = GPU not supported",
    "  TNS  = Topology not supported",
    "  NS   = Not supported",
    "  U    = Unknown",
)


def _clock(node: Node, *, later: bool) -> list[str]:
    """The first line of a sample; the first is taken a second after all else."""
    if node.links.untimed:
        return []
    return [f"uptime:{UPTIME + 1 + later * BETWEEN:.2f}"]


def nvlink_errors(node: Node) -> Output:
    """`nvidia-smi nvlink -e`, the first sample."""
    return _nvlink_errors(node, later=False)


def nvlink_errors_later(node: Node) -> Output:
    """The second one."""
    return _nvlink_errors(node, later=True)


def _nvlink_errors(node: Node, *, later: bool) -> Output:
    refused = refusal(node)
    clock = text(*_clock(node, later=later)).stdout
    if refused is not None:
        return Output(clock + refused.stdout, refused.rc, refused.stderr)
    lines = []
    for index, gpu in enumerate(node.listed_gpus):
        lines.append(f"GPU {index}: {gpu.product.name} (UUID: {gpu.uuid})")
        lines += _errors_of(node, gpu, later=later)
    return Output(clock + text(*lines).stdout)


def _errors_of(node: Node, gpu: Gpu, *, later: bool) -> list[str]:
    if gpu.mig != "Disabled":
        return ["Nvlink queries are not supported for Devices in MIG mode"]
    if not gpu.answers_queries or all(link == INACTIVE for link in gpu.links):
        return [ALL_INACTIVE]
    lines = []
    for number, link in enumerate(gpu.links):
        if link == INACTIVE:
            lines.append(f"\t Link {number}: {INACTIVE}")
            continue
        before = node.links.counted.get((gpu.place, number), (0, 0, 0))
        grown = node.links.growth.get((gpu.place, number), (0, 0, 0)) if later else (0, 0, 0)
        words = ("Replay Errors", "Recovery Errors", "CRC Errors")
        lines += [f"\t Link {number}: {word}: {a + b}" for word, a, b in zip(words, before, grown, strict=True)]
    return lines


def peer_status(node: Node) -> Output:
    """`nvidia-smi topo -p2p r`."""
    refused = refusal(node)
    if refused is not None:
        return refused
    gpus = node.listed_gpus
    lines = ["\t".join((" ", *(f"GPU{index}" for index in range(len(gpus))), ""))]
    for index, gpu in enumerate(gpus):
        cells = ["X" if other is gpu else _access(node, gpu, other) for other in gpus]
        lines.append("\t".join((f" GPU{index}", *cells, "")))
    return text(*lines, *_LEGEND)


def _access(node: Node, gpu: Gpu, other: Gpu) -> str:
    return "TNS" if (gpu.place, other.place) in node.links.silent else "OK"


def peermem(node: Node) -> bool:
    """Whether the module that gives adapters the GPUs' memory is loaded."""
    chosen = node.links.peermem
    return node.driver.loaded and bool(node.ports) and (node.driver.major < _OPEN_SINCE if chosen is None else chosen)


def rdma_files(node: Node) -> Output:
    """Adapters, ports and interfaces, and the first sample of the ports' counters."""
    lines: list[str] = []
    for name in ("hca_type", "fw_ver", "board_id"):
        lines += [f"{_RDMA}/{port.rdma_name}/{name}:{_about(port)[name]}" for port in node.ports]
    for name in ("state", "phys_state", "rate", "link_layer"):
        lines += [f"{_RDMA}/{port.rdma_name}/ports/1/{name}:{_of_port(port)[name]}" for port in node.ports]
    lines += [f"{_NET}/{name}/mtu:{mtu}" for name, mtu in _mtus(node).items()]
    lines += [f"{_NET}/{name}/carrier_down_count:1" for name in _mtus(node)]
    lines += _counters(node, later=False)
    lines += [f"{_RDMA}/{port.rdma_name}/device:0000:{port.address}" for port in node.ports]
    lines += [f"{_NET}/{name}/device:{place}" for name, place in _places(node).items()]
    if peermem(node) and node.links.registered:
        lines.append("/sys/kernel/mm/memory_peers/nv_mem:yes")
    return text(*_clock(node, later=False), *lines, "end:")


def rdma_files_later(node: Node) -> Output:
    """The second sample of the counters."""
    return text(*_clock(node, later=True), *_counters(node, later=True), "end:")


def _about(port: Port) -> dict[str, str]:
    part = port.adapter.part
    return {"hca_type": part, "fw_ver": port.adapter.firmware, "board_id": _BOARDS.get(part, "MT_0000000001")}


def _of_port(port: Port) -> dict[str, str]:
    rate = f"{port.rate} Gb/sec (4X)" if port.up else "10 Gb/sec (4X SDR)"
    state, physical = _STATES[port.state], _PHYSICAL[port.physical]
    return {"state": state, "phys_state": physical, "rate": rate, "link_layer": port.layer}


def _mtus(node: Node) -> dict[str, int]:
    found = {"lo": 65536, **({"eth0": 1500} if node.shape.virtual else {"eno8303": 1500, "eno8403": 1500})}
    for port in node.ports:
        usual = 2044 if port.layer == "InfiniBand" else 9000
        found[port.interface] = node.links.mtus.get(port.rdma_name, usual)
    return found


def _places(node: Node) -> dict[str, str]:
    own = {"eth0": "virtio1"} if node.shape.virtual else {"eno8303": "0000:01:00.0", "eno8403": "0000:01:00.1"}
    return {**own, **{port.interface: f"0000:{port.address}" for port in node.ports}}


def _counters(node: Node, *, later: bool) -> list[str]:
    lines = []
    for port in node.ports:
        if not port.up:
            continue
        before = {"link_downed": 1, **node.links.port_counters.get(port.rdma_name, {})}
        grown = node.links.port_growth.get(port.rdma_name, {}) if later else {}
        for counter in _COUNTERS:
            name = counter.rpartition("/")[2]
            value = before.get(name, 0) + grown.get(name, 0)
            lines.append(f"{_RDMA}/{port.rdma_name}/ports/1/{counter}:{value}")
    return lines
