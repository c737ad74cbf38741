"""The host: processors, kernel modules, and how GPUs and adapters are connected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.model import INACTIVE
from nodeready.simulate.outputs.links import peermem
from nodeready.simulate.outputs.nvidia_smi import refusal
from nodeready.simulate.outputs.output import Output, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodeready.simulate.model import Gpu, Node, Port

_LEGEND = (
    "",
    "Legend:",
    "",
    "  X    = Self",
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)",
    "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node",
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
    "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)",
    "  PIX  = Connection traversing at most a single PCIe bridge",
    "  NV#  = Connection traversing a bonded set of # NVLinks",
)


def lscpu(node: Node) -> Output:
    """`lscpu -J`, with the fields nested as newer versions nest them."""
    machine = node.shape.machine
    model = [
        _field("CPU family", 6),
        _field("Model", 143),
        _field("Thread(s) per core", 2),
        _field("Core(s) per socket", machine.cores),
        _field("Socket(s)", machine.sockets),
        _field("Stepping", 8),
        _field("BogoMIPS", "4000.00"),
    ]
    virtualization = [_field("Virtualization", "VT-x")]
    hypervisor = "KVM" if machine.virtual else node.host.hypervisor
    if hypervisor:
        virtualization += [_field("Hypervisor vendor", hypervisor), _field("Virtualization type", "full")]
    near = [_field(f"NUMA node{number} CPU(s)", _cpus(node, number)) for number in range(machine.sockets)]
    fields = [
        _field("Architecture", "x86_64", [_field("CPU op-mode(s)", "32-bit, 64-bit")]),
        _field("CPU(s)", machine.cpus, [_field("On-line CPU(s) list", f"0-{machine.cpus - 1}")]),
        _field("Vendor ID", "GenuineIntel", [_field("Model name", machine.cpu, model)]),
        _field("Virtualization features", None, virtualization),
        _field("NUMA", None, [_field("NUMA node(s)", machine.sockets), *near]),
    ]
    return text(json.dumps({"lscpu": fields}, indent=3))


def _field(name: str, value: object, children: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    field: dict[str, Any] = {"field": f"{name}:", "data": None if value is None else str(value)}
    return {**field, "children": children} if children else field


def _cpus(node: Node, numa: int) -> str:
    """The processors of a NUMA node: its cores, then their second threads."""
    machine = node.shape.machine
    first, all_cores = numa * machine.cores, machine.sockets * machine.cores
    return ",".join(f"{start}-{start + machine.cores - 1}" for start in (first, first + all_cores))


def modules(node: Node) -> Output:
    """/proc/modules: those of the GPUs, of the network and some that no check asks about."""
    rows: list[tuple[str, int, str]] = []
    if node.driver.loaded:
        rows += [
            ("nvidia_uvm", 4_919_296, ""),
            ("nvidia_drm", 126_976, ""),
            ("nvidia_modeset", 1_703_936, "nvidia_drm"),
            ("nvidia", 11_534_336, "nvidia_uvm,nvidia_modeset"),
        ]
    if peermem(node):
        rows.append(("nvidia_peermem", 16_384, ""))
    if node.driver.bound == "nouveau":
        rows += [("nouveau", 2_306_048, ""), ("mxm_wmi", 16_384, "nouveau")]
    if node.ports:
        rows += [
            ("mlx5_ib", 466_944, ""),
            ("ib_uverbs", 167_936, "mlx5_ib"),
            ("ib_core", 438_272, "mlx5_ib,ib_uverbs"),
            ("mlx5_core", 2_084_864, "mlx5_ib"),
        ]
    rows += [("overlay", 151_552, ""), ("nvme", 49_152, ""), ("nvme_core", 143_360, "nvme")]
    addresses = (f"0xffffffff{0xC0A00000 + 0x10000 * number:08x}" for number in range(len(rows)))
    return text(
        *(
            f"{name} {size} {len(list(filter(None, users.split(','))))} {users + ',' if users else '-'} Live {address}"
            for (name, size, users), address in zip(rows, addresses, strict=True)
        )
    )


def device_files(node: Node) -> Output:
    """The driver's files in /dev: those of GPUs stay when one is lost."""
    if not node.driver.loaded:
        return text("end:")
    gpus = [f"nvidia{number}" for number in range(sum(gpu.at_boot for gpu in node.gpus))]
    names = [*gpus, "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "nvidiactl"]
    return text(*(f"device:/dev/{name}" for name in names if name not in node.driver.lost_files), "end:")


def topology(node: Node) -> Output:
    """`nvidia-smi topo -m`: the matrix of GPUs and adapters."""
    refused = refusal(node)
    if refused is not None:
        return refused
    gpus, ports = node.listed_gpus, node.ports
    names = [*(f"GPU{index}" for index in range(len(gpus))), *(f"NIC{index}" for index in range(len(ports)))]
    lines = ["\t".join(("", f"\x1b[4m{names[0]}", *names[1:], "CPU Affinity", "NUMA Affinity", "GPU NUMA ID\x1b[0m"))]
    for index, gpu in enumerate(gpus):
        cells = [_between_gpus(node, gpu, other) for other in gpus] + [_beside(gpu, port) for port in ports]
        lines.append("\t".join((f"GPU{index}", *cells, _cpus(node, gpu.numa), str(gpu.numa), "", "N/A")))
    for index, port in enumerate(ports):
        cells = [_beside(gpu, port) for gpu in gpus] + list(_between_ports(port, ports))
        lines.append("\t".join((f"NIC{index}", *cells, "", "", "", "")))
    lines += _LEGEND
    if ports:
        lines += ["", "NIC Legend:", "", *(f"  NIC{index}: {port.rdma_name}" for index, port in enumerate(ports))]
    return text(*lines, "")


def _between_gpus(node: Node, gpu: Gpu, other: Gpu) -> str:
    shape = node.shape
    if gpu is other:
        return " X "
    active = min(sum(link != INACTIVE for link in each.links) for each in (gpu, other))
    neighbours = shape.joined and gpu.place // shape.joined == other.place // shape.joined
    paired = node.links.paired.get(frozenset((gpu.place, other.place)))
    if paired:
        return f"NV{paired}"
    if neighbours and active and paired is None:
        return f"NV{active if shape.nvswitch_buses else active // (shape.joined - 1)}"
    return "NODE" if gpu.numa == other.numa else "SYS"


def _beside(gpu: Gpu, port: Port) -> str:
    if int(port.address[:2], 16) == int(gpu.bus_id[5:7], 16) + 1:
        return "PIX"
    return "NODE" if gpu.numa == port.numa else "SYS"


def _between_ports(port: Port, ports: list[Port]) -> Iterator[str]:
    for other in ports:
        yield " X " if port is other else "NODE" if port.numa == other.numa else "SYS"
