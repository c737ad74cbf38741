"""What goes wrong with what a GPU is: product, memory, MIG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate import products
from nodeready.simulate.faults.copies import by_links, worst_first
from nodeready.simulate.faults.fault import (
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    if_alone,
    no_load_on_victim,
    nothing,
    on_every_gpu,
    on_node,
    on_victim,
    rows,
    subject,
    together,
    unless_alone,
    victim,
)
from nodeready.simulate.model import INACTIVE, Gpu, Node, Rate

if TYPE_CHECKING:
    from nodeready.simulate.products import Product
    from nodeready.simulate.shapes import Shape

_COMPUTE = tuple(f"compute.matmul-{kind}" for kind in ("fp16", "bf16", "tf32", "fp32", "fp64"))
# what sits in one place instead, and in what it falls short besides being another product
_OTHERS: dict[str, tuple[Product, tuple[str, ...]]] = {
    products.H100_SXM.device: (products.H800_SXM, ("nvlink.links-active",)),
    products.H100_PCIE.device: (products.H800_PCIE, ()),
    products.H100_NVL.device: (products.H800_NVL, ()),
    products.H200_SXM.device: (products.H100_SXM, ("gpu.memory", "gpu.memory-bandwidth")),
    products.H200_NVL.device: (
        products.H100_NVL,
        ("gpu.memory", "gpu.memory-bandwidth", "power.limit", "nvlink.links-active"),
    ),
}


def _replace(gpu: Gpu, product: Product) -> None:
    linked = any(link != INACTIVE for link in gpu.links)
    gpu.product = product
    gpu.memory_mib = product.memory_mib
    gpu.power_limit = float(product.power[1])
    gpu.links = [
        product.link_speed if linked and number not in product.unwired else INACTIVE for number in range(product.links)
    ]
    gpu.remap.banks = [product.banks, 0, 0, 0, 0]
    gpu.rates = {key: Rate(rate, 0.004) for key, rate in product.rates.items()}
    link = gpu.link
    link.generation = link.max_generation = link.device_generation = product.link_generation


def _put_another(node: Node) -> None:
    _replace(victim(node), _OTHERS[node.shape.product.device][0])


def _another(node: Node) -> tuple[Expected, ...]:
    product, short = _OTHERS[node.shape.product.device]
    gpu = victim(node)
    # the list of links that comes last could have been cut where another one is longer
    last = len(node.gpus) > 1 and gpu is node.gpus[-1] and product.links < node.shape.product.links
    doubtful = ("nvlink.links-active",) if last else ()
    failed = [check for check in ("gpu.product", *short) if check not in doubtful]
    at = (subject(gpu),)
    blocked = ("nvlink.peers",) if "nvlink.links-active" in failed else ()
    if last:  # its links are in doubt, that they are too few for the pair is not
        failed, blocked = [*failed, "nvlink.peers"], ("nvlink.errors",)
    unknown = rows(UNVERIFIED, *doubtful, *blocked, on=at)
    return worst_first((*rows(FAIL, *failed, on=at), *unknown, *_slower(node, product)))


def _slower(node: Node, product: Product) -> tuple[Expected, ...]:
    """Its pairs where it has fewer links; of two GPUs the other one has no better pair to show."""
    links, befallen = product.links - len(product.unwired), victim(node)
    if links == node.shape.product.links - len(node.shape.product.unwired):
        return ()
    gpus = node.gpus if len(node.gpus) == 2 else [befallen]
    return by_links(node, links if node.shape.nvswitch_buses else links // max(1, node.shape.joined - 1), *gpus)


def _put_a100s(node: Node) -> None:
    for gpu in node.gpus:
        _replace(gpu, products.A100_SXM)


def _smaller(node: Node) -> tuple[Expected, ...]:
    """An A100 has the memory of an H100, and less than an H200."""
    if products.A100_SXM.memory_mib > node.shape.product.memory_mib:
        return ()
    return rows(FAIL, "gpu.memory", on=map(subject, node.gpus))


def _older_links(node: Node) -> tuple[Expected, ...]:
    """Twelve links of 25 GB/s instead of eighteen of 26.562: as fast as eleven of them."""
    return by_links(node, 11 if node.shape.nvswitch_buses else 4, *node.gpus)


_all_older = together(
    on_every_gpu(FAIL, "gpu.product", "gpu.compute-capability", "pcie.gpu-link-generation", "power.limit"),
    on_every_gpu(FAIL, "nvlink.links-active", *_COMPUTE, "pcie.bandwidth", "gpu.memory-bandwidth"),
    _smaller,
    on_every_gpu(UNVERIFIED, "thermal.margin", "nvlink.peers", "compute.matmul-fp8"),
    _older_links,
)


def _on_a_board(shape: Shape) -> bool:
    return shape.board


def _lose_the_name(node: Node) -> None:
    for gpu in node.gpus:
        gpu.printed["product_name"] = "NVIDIA Graphics Device"


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
        "One place holds another product of the same generation, with less of something.",
        _put_another,
        _another,
    ),
    Fault(
        "a100-board",
        "The node that was delivered holds A100s: an older generation in every respect.",
        _put_a100s,
        lambda node: worst_first(_all_older(node)),
        can_have=_on_a_board,
    ),
    Fault(
        "product-without-a-name",
        "The driver is older than the board and calls it a graphics device; its PCI id tells what it is: no fault.",
        _lose_the_name,
        nothing,
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
            unless_alone(on_node(FAIL, "frameworks.torch")),
            on_victim(UNVERIFIED, "nvlink.links-active", "health.row-remap-pending", "health.row-remap-failure"),
            on_victim(UNVERIFIED, "health.row-remaps", "gpu.telemetry", "nvlink.errors", "nvlink.peers"),
            no_load_on_victim,
            on_node(UNVERIFIED, "network.write-bandwidth"),
            if_alone(on_node(UNVERIFIED, "frameworks.torch")),
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
