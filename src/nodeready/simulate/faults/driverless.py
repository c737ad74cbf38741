"""Nodes on which nvidia-smi gives no answer: what is then unknown, and what other sources still tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import every_gpu_check
from nodeready.simulate.faults.fault import (
    BY_ALL_TOGETHER,
    BY_LOAD_OF_ALL,
    FAIL,
    UNVERIFIED,
    Expected,
    rows,
    subject,
)
from nodeready.simulate.outputs.nvidia_smi import NO_DRIVER

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

# what the PCI bus alone still tells of a GPU
BY_THE_BUS_ALONE = ("pcie.gpu-bridges", "pcie.gpu-errors", "pcie.numa-node")
ON_THE_BUS = ("pcie.gpu-link-generation", "pcie.gpu-link-width", "gpu.product", *BY_THE_BUS_ALONE)
# what the GPUs of a node have to have in common
CONSISTENCY = (
    "consistency.gpu-part",
    "consistency.vbios",
    "consistency.inforom",
    "consistency.max-clocks",
    "consistency.power-limit",
    "consistency.idle-power",
    "consistency.idle-temperature",
)
# what nvidia-smi alone tells of the node, or what needs a driver that works
_BY_THE_DRIVER = (
    "driver.matches-library",
    "driver.device-files",
    "cuda.driver-version",
    "cuda.toolkit-version",
    "gpu.count",
    "container.gpu-visible",
    "frameworks.torch",
    "gpu.confidential-computing",
    "network.write-bandwidth",
    *BY_ALL_TOGETHER,
    *BY_LOAD_OF_ALL,
    *CONSISTENCY,
)
# what the kernel module tells too
_BY_THE_MODULE = (
    "nvlink.fabric-manager",
    "driver.version",
    "driver.branch-supported",
    "driver.security-floor",
    "driver.known-bad",
    "driver.modules",
    "network.gpudirect",
    "container.daemon-reload",
)


# what the torch probe and the drives under load tell, which are not asked where the driver does not answer
_BY_NO_DRIVER = ("frameworks.python", "frameworks.tensorflow", "storage.read-rate")


def without_module(node: Node, instead: str = "") -> None:
    """Take the kernel module away, so that nvidia-smi exits 9; another module may have the GPUs."""
    node.driver.bound = instead
    node.driver.refusal, node.driver.refusal_status = NO_DRIVER, 9
    if node.fabric_manager:
        node.fabric_manager.state = "failed"


def without_load(node: Node) -> None:
    """Nothing is loaded on a node whose driver does not answer."""
    for name in ("torch", "matmul", "copies", "patterns", "allreduce", "rdma-write", "drive-read", "container-gpus"):
        node.spoilers[name] = lambda _: None


def no_module(node: Node) -> tuple[Expected, ...]:
    """The driver does not answer, and the kernel has no module that could tell its version."""
    return (
        *rows(FAIL, "driver.responds"),
        *rows(UNVERIFIED, *_BY_THE_MODULE, *_BY_THE_DRIVER),
        *silent_gpus(node),
    )


def no_answer(node: Node) -> tuple[Expected, ...]:
    """The driver does not answer, while its kernel module is loaded."""
    return (*rows(FAIL, "driver.responds"), *unanswered(node))


def no_answer_and_no_load(node: Node) -> tuple[Expected, ...]:
    """The same where nothing was loaded for that."""
    return (*no_answer(node), *rows(UNVERIFIED, *_BY_NO_DRIVER))


def unanswered(node: Node) -> tuple[Expected, ...]:
    """What stays unknown while nvidia-smi alone is silent."""
    return (*rows(UNVERIFIED, *_BY_THE_DRIVER), *silent_gpus(node))


def silent_gpus(node: Node) -> tuple[Expected, ...]:
    """All checks of all GPUs but those that the PCI bus answers."""
    checks = [check for check in every_gpu_check(node) if check not in ON_THE_BUS]
    return rows(UNVERIFIED, *checks, on=map(subject, node.gpus))
