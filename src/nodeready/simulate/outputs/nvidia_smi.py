"""What nvidia-smi prints besides -q: the list, the links, single fields, and its refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.output import Output, not_installed, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n\n"
)
ALL_INACTIVE = "NVML: Unable to retrieve NVLink information as all links are inActive"


def refusal(node: Node) -> Output | None:
    """What every command of nvidia-smi says where it cannot work; None where it can."""
    if "nvidia-smi" in node.absent:
        return not_installed("nvidia-smi")
    if node.driver.refuses:
        return Output(node.driver.refusal.encode(), node.driver.refusal_status)
    if not node.listed_gpus:
        return text("No devices were found", rc=6)
    return None


def listing(gpus: list[Gpu]) -> Output:
    """`nvidia-smi -L` of some GPUs."""
    return text(*(_head(index, gpu) for index, gpu in enumerate(gpus)))


def nvlink_status(node: Node) -> Output:
    """`nvidia-smi nvlink -s`."""
    refused = refusal(node)
    if refused is not None:
        return refused
    lines = []
    for index, gpu in enumerate(node.listed_gpus):
        lines.append(_head(index, gpu))
        if gpu.mig != "Disabled":
            lines.append("Nvlink queries are not supported for Devices in MIG mode")
        elif not gpu.answers_queries or not any(link[0].isdigit() for link in gpu.links):
            lines.append(ALL_INACTIVE)
        else:
            lines += [f"\t Link {number}: {link}" for number, link in enumerate(gpu.links)]
    return text(*lines)


def compute_capabilities(node: Node) -> Output:
    """`nvidia-smi --query-gpu=pci.bus_id,compute_cap --format=csv`."""
    refused = refusal(node)
    if refused is not None:
        return refused
    rows = (f"0000{gpu.bus_id}".upper() + f", {_capability(gpu)}" for gpu in node.listed_gpus)
    return text("pci.bus_id, compute_cap", *rows)


def confidential_computing(node: Node) -> Output:
    """`nvidia-smi conf-compute -f`."""
    return refusal(node) or text(f"CC status: {node.confidential}")


def _capability(gpu: Gpu) -> str:
    return gpu.product.capability if gpu.answers_queries else f"[{gpu.every_value}]"


def _head(index: int, gpu: Gpu) -> str:
    return f"GPU {index}: {gpu.product.name} (UUID: {gpu.uuid})"
