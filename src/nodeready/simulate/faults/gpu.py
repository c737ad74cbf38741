"""What goes wrong with what a GPU is: product, memory, MIG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import FAIL, UNVERIFIED, Fault, on_every_gpu, on_victim, together, victim
from nodeready.simulate.model import Gpu, Rate
from nodeready.simulate.products import A100_SXM, H800_SXM, Product

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_COMPUTE = ("compute.matmul-fp16", "compute.matmul-fp32")


def _replace(gpu: Gpu, product: Product) -> None:
    gpu.product = product
    gpu.memory_mib = product.memory_mib
    gpu.power_limit = float(product.power[1])
    gpu.links = [product.link_speed] * product.links
    gpu.remap.banks = [product.banks, 0, 0, 0, 0]
    gpu.rates = {key: Rate(rate, 0.004) for key, rate in product.rates.items()}
    link = gpu.link
    link.generation = link.max_generation = link.device_generation = product.link_generation


def _put_an_h800(node: Node) -> None:
    _replace(victim(node), H800_SXM)


def _put_a100s(node: Node) -> None:
    for gpu in node.gpus:
        _replace(gpu, A100_SXM)


def _lose_a_stack(node: Node) -> None:
    victim(node).memory_mib = 65247


def _turn_mig_on(node: Node) -> None:
    gpu = victim(node)
    gpu.mig = gpu.mig_pending = "Enabled"


def _ask_for_mig(node: Node) -> None:
    victim(node).mig_pending = "Enabled"


FAULTS = (
    Fault(
        "wrong-product",
        "One place holds an H800: the same board and memory, fewer NVLink links.",
        _put_an_h800,
        on_victim(FAIL, "gpu.product", "nvlink.links-active"),
    ),
    Fault(
        "a100-board",
        "The node that was delivered holds A100s: an older generation in every respect.",
        _put_a100s,
        together(
            on_every_gpu(FAIL, "gpu.product", "gpu.compute-capability", "pcie.gpu-link-generation", "power.limit"),
            on_every_gpu(FAIL, "nvlink.links-active", *_COMPUTE),
            on_every_gpu(UNVERIFIED, "thermal.margin"),
        ),
    ),
    Fault(
        "less-memory",
        "One GPU shows less memory than its siblings.",
        _lose_a_stack,
        on_victim(FAIL, "gpu.memory"),
    ),
    Fault(
        "mig-on",
        "MIG was left on for one GPU: CUDA does not show it, and its links and row remaps cannot be read.",
        _turn_mig_on,
        together(
            on_victim(FAIL, "gpu.mig"),
            on_victim(UNVERIFIED, "nvlink.links-active", "health.row-remap-pending", "health.row-remap-failure"),
            on_victim(UNVERIFIED, *_COMPUTE),
        ),
        case="H15",
    ),
    Fault(
        "mig-pending",
        "MIG was asked for and takes effect at the next reset of the GPU, after the gate.",
        _ask_for_mig,
        on_victim(FAIL, "gpu.mig"),
        case="H16",
    ),
)
