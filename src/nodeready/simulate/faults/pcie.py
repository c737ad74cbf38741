"""What goes wrong on the PCI bus: GPUs that are gone, links that trained low."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import every_gpu_check
from nodeready.simulate.faults.fault import (
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    logged,
    on_victim,
    rows,
    subject,
    victim,
    xid,
)

if TYPE_CHECKING:
    from nodeready.simulate.model import Node


def _lose(node: Node) -> None:
    gpu = victim(node)
    gpu.on_bus = gpu.in_driver = gpu.in_container = gpu.in_cuda = False


def _fall_off(node: Node) -> None:
    _lose(node)
    xid(node, victim(node), 79, "GPU has fallen off the bus.")


def _never_there(node: Node) -> None:
    _lose(node)
    victim(node).at_boot = False


def _answer_with_ones(node: Node) -> None:
    gpu = victim(node)
    gpu.answers = gpu.in_driver = gpu.in_container = gpu.in_cuda = False
    # the driver says it so when it probes such a GPU: three lines and no Xid
    logged(
        node,
        f"NVRM: The NVIDIA GPU {gpu.bus_id}",
        f"NVRM: (PCI ID: 10de:{gpu.product.device}) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
        f"nvidia: probe of {gpu.bus_id} failed with error -1",
    )


def _lost(node: Node) -> tuple[Expected, ...]:
    """Driver, bus and kernel log say so; of the GPU itself nothing more can be known."""
    counted = rows(FAIL, "gpu.count", "pcie.gpu-present", "health.xid")
    return (*counted, *rows(UNVERIFIED, *every_gpu_check(node), on=(subject(victim(node)),)))


def _short_of_one(node: Node) -> tuple[Expected, ...]:
    """Nothing names the missing GPU's slot, so that the last index stands for it."""
    counted = rows(FAIL, "gpu.count", "pcie.gpu-present")
    return (*counted, *rows(UNVERIFIED, *every_gpu_check(node), on=(subject(node.gpus[-1]),)))


def _train_at_gen3(node: Node) -> None:
    victim(node).link.generation = 3


def _train_at_x8(node: Node) -> None:
    victim(node).link.width = 8


def _cap_the_slot(node: Node) -> None:
    link = victim(node).link
    link.port_generation = link.max_generation = link.generation = 4


FAULTS = (
    Fault(
        "gpu-fell-off-the-bus",
        "A GPU stopped answering under a job, was dropped from the bus, and the kernel log holds Xid 79.",
        _fall_off,
        _lost,
    ),
    Fault(
        "gpu-missing-since-boot",
        "The firmware did not find one GPU at power-on, so that no log names it: only the count is short.",
        _never_there,
        _short_of_one,
        case="B19",
    ),
    Fault(
        "gpu-rev-ff",
        "lspci still lists the GPU, but its registers read all ones (rev ff) and no Xid was logged.",
        _answer_with_ones,
        _lost,
        case="A9",
    ),
    Fault(
        "pcie-gen3-link",
        "One GPU's link trained at generation 3: host bandwidth is a quarter, and no error is logged.",
        _train_at_gen3,
        on_victim(FAIL, "pcie.gpu-link-generation"),
        case="A4",
    ),
    Fault(
        "pcie-x8-link",
        "One GPU's link trained with half its lanes after the tray was reseated badly.",
        _train_at_x8,
        on_victim(FAIL, "pcie.gpu-link-width"),
    ),
    Fault(
        "pcie-capped-slot",
        "The slot above one GPU is capped at generation 4 by a BIOS setting, so that its link can never reach 5.",
        _cap_the_slot,
        on_victim(FAIL, "pcie.gpu-link-generation"),
    ),
)
