"""What goes wrong with the environment that jobs run in, and with toolkits that do not fit the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, Fault, nothing, on_node, together
from nodeready.simulate.releases import install

if TYPE_CHECKING:
    from nodeready.simulate.model import Node


def _stay_on_python_3_8(node: Node) -> None:
    node.torch.python = "3.8.10"


def _stay_on_tensorflow_2_11(node: Node) -> None:
    node.torch.tensorflow = "2.11.0"


def _without_tensorflow(node: Node) -> None:
    node.torch.tensorflow = None


def _stay_on_old_nccl(node: Node) -> None:
    node.torch.nccl = "2.14.3"


def _stay_on_old_cudnn(node: Node) -> None:
    node.torch.cudnn = "8.5.0"


def _install_a_newer_toolkit(node: Node) -> None:
    node.cuda_toolkit = "13.2"


def _install_a_newer_major(node: Node) -> None:
    install(node, "570")
    node.cuda_toolkit = "13.0"


FAULTS = (
    Fault(
        "old-python",
        "The environment of the jobs has Python 3.8, for which current frameworks have no packages.",
        _stay_on_python_3_8,
        on_node(FAIL, "frameworks.python"),
    ),
    Fault(
        "old-tensorflow",
        "The environment of the jobs has a TensorFlow that is built for CUDA 11.",
        _stay_on_tensorflow_2_11,
        on_node(FAIL, "frameworks.tensorflow"),
    ),
    Fault(
        "no-tensorflow",
        "The environment of the jobs has PyTorch alone: no fault.",
        _without_tensorflow,
        nothing,
    ),
    Fault(
        "old-nccl",
        "NCCL is older than the reduction inside NVSwitches.",
        _stay_on_old_nccl,
        on_node(ADVISORY, "frameworks.torch"),
    ),
    Fault(
        "old-cudnn",
        "cuDNN is older than this GPU.",
        _stay_on_old_cudnn,
        on_node(ADVISORY, "frameworks.torch"),
    ),
    Fault(
        "toolkit-of-a-newer-minor-version",
        "The toolkit is newer than the driver by a minor version: what it builds runs, but for PTX.",
        _install_a_newer_toolkit,
        on_node(ADVISORY, "cuda.toolkit-version"),
    ),
    Fault(
        "toolkit-of-a-newer-major-version",
        "The toolkit is of CUDA 13 and the driver of CUDA 12: what it builds does not start.",
        _install_a_newer_major,
        together(
            on_node(FAIL, "cuda.toolkit-version"),
            on_node(ADVISORY, "driver.branch-supported", "driver.security-floor"),
        ),
    ),
)
