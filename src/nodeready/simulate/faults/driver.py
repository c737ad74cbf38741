"""What goes wrong with the driver and the CUDA toolkit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import every_gpu_check
from nodeready.simulate.faults.fault import (
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    on_every_gpu,
    on_node,
    rows,
    subject,
    together,
)
from nodeready.simulate.outputs.nvidia_smi import NO_DRIVER

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

# what the PCI bus alone still tells of a GPU
_ON_THE_BUS = ("pcie.gpu-link-generation", "pcie.gpu-link-width", "gpu.product")
_COMPUTE = ("compute.matmul-fp16", "compute.matmul-fp32")


def _lose_the_module(node: Node) -> None:
    node.driver.loaded = False
    node.driver.refusal, node.driver.refusal_status = NO_DRIVER, 9
    if node.fabric_manager:
        node.fabric_manager.state = "failed"


def _upgrade_without_reboot(node: Node) -> None:
    node.driver.library = "580.126.09"
    node.driver.refusal_status = 18
    node.driver.refusal = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126\n"


def _silent_gpus(node: Node) -> tuple[Expected, ...]:
    checks = [check for check in every_gpu_check(node) if check not in _ON_THE_BUS]
    return rows(UNVERIFIED, *checks, on=map(subject, node.gpus))


def _install_520(node: Node) -> None:
    node.driver.module = node.driver.library = "520.61.05"
    node.driver.cuda = "11.8"
    if node.fabric_manager:
        node.fabric_manager.version = "520.61.05"


def _install_old_toolkit(node: Node) -> None:
    node.cuda_toolkit = "11.5"


FAULTS = (
    Fault(
        "driver-not-loaded",
        "The kernel was upgraded and the module was not built for it: nvidia-smi exits 9.",
        _lose_the_module,
        together(
            on_node(FAIL, "driver.responds"),
            on_node(UNVERIFIED, "nvlink.fabric-manager"),
            on_node(UNVERIFIED, "driver.version", "driver.matches-library", "cuda.driver-version", "gpu.count"),
            on_node(UNVERIFIED, "container.gpu-visible", "frameworks.torch"),
            _silent_gpus,
        ),
        case="B2",
    ),
    Fault(
        "driver-library-mismatch",
        "An upgrade replaced the library under the loaded module: nvidia-smi exits 18 until the next reboot.",
        _upgrade_without_reboot,
        together(
            on_node(FAIL, "driver.responds", "driver.matches-library"),
            on_node(UNVERIFIED, "cuda.driver-version", "gpu.count", "container.gpu-visible", "frameworks.torch"),
            _silent_gpus,
        ),
        case="B1",
    ),
    Fault(
        "old-driver",
        "The image still holds a driver of CUDA 11: it runs, and nothing built for CUDA 12 or newer starts on it.",
        _install_520,
        together(
            on_node(FAIL, "driver.version", "cuda.driver-version"),
            on_node(UNVERIFIED, "frameworks.torch"),
            on_every_gpu(UNVERIFIED, "health.recovery-action", *_COMPUTE),
        ),
    ),
    Fault(
        "old-toolkit",
        "nvcc on PATH is the distribution's own 11.5, which compiles nothing for Hopper.",
        _install_old_toolkit,
        on_node(FAIL, "cuda.toolkit-version"),
        case="C12",
    ),
)
