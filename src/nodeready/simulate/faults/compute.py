"""What goes wrong with the products and with the environment that runs jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    on_every_gpu,
    on_node,
    on_victim,
    together,
    victim,
)
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_FP16, _FP32 = "compute.matmul-fp16", "compute.matmul-fp32"
_NO_TORCH = "this Python has no torch: name one that has with --python"


def _half_rates(node: Node, at_8192: float, at_16384: float) -> None:
    rates = victim(node).rates
    rates["float16", 8192].tflops, rates["float16", 16384].tflops = at_8192, at_16384


def _slow(node: Node) -> None:
    _half_rates(node, 600.0, 548.0)


def _lag(node: Node) -> None:
    _half_rates(node, 661.0, 604.0)


def _crawl(node: Node) -> None:
    _half_rates(node, 96.0, 91.0)
    victim(node).rates["float32", 8192].tflops = 9.4


def _miscalculate(node: Node) -> None:
    victim(node).rates["float16", 16384].verified = False


def _dazzle(node: Node) -> None:
    _half_rates(node, 950.0, 667.0)


def _fail_in_cuda(node: Node) -> None:
    victim(node).cuda_error = "CUDA error: uncorrectable ECC error encountered"


def _use_old_cublas(node: Node) -> None:
    build = node.torch
    build.version, build.cuda, build.cublas = "2.1.2+cu121", "12.1", "12.1.3"
    build.cudnn, build.nccl = "8.9.2", "2.18.1"
    build.arch_list = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    for gpu in node.gpus:
        gpu.rates["float16", 8192].tflops = 600.0 - gpu.place


def _install_cpu_build(node: Node) -> None:
    build = node.torch
    build.version, build.arch_list = "2.11.0+cpu", ()
    build.cuda = build.cudnn = build.nccl = build.cublas = None


def _build_without_sm90(node: Node) -> None:
    node.torch.arch_list = ("sm_75", "sm_80", "sm_86")


def _without_torch(node: Node) -> None:
    about = {"schema": 1, "python": node.torch.python, "torch": None, "cuda": None, "error": _NO_TORCH}
    torch = {"probe": "torch", **about, "cudnn": None, "nccl": None, "arch_list": [], "devices": [], "visible": None}
    matmul = {"probe": "matmul", **about, "cublas": None, "seconds": 0.0, "devices": [], "results": []}
    for name, document in (("torch", torch), ("matmul", matmul)):
        output = Output(f"{json.dumps(document)}\n".encode(), 3)
        node.spoilers[name] = lambda _, output=output: output  # type: ignore[misc]


FAULTS = (
    Fault(
        "slow-gpu",
        "One GPU multiplies a fifth slower than its siblings: a bad die, or a cold plate that does not touch.",
        _slow,
        on_victim(FAIL, _FP16),
        case="F7",
    ),
    Fault(
        "lagging-gpu",
        "One GPU is slower than a good one and fast enough to work: worth a look at its cooling.",
        _lag,
        on_victim(ADVISORY, _FP16),
        case="F7",
    ),
    Fault(
        "very-slow-gpu",
        "One GPU runs at an eighth of its speed although no clock event is shown.",
        _crawl,
        on_victim(FAIL, _FP16, _FP32),
    ),
    Fault(
        "wrong-products",
        "One GPU computes wrong products at full speed and reports no error.",
        _miscalculate,
        on_victim(FAIL, _FP16),
        case="F25",
    ),
    Fault(
        "implausibly-fast",
        "One result is above what the power limit allows: the measurement is at fault, not the GPU.",
        _dazzle,
        on_victim(UNVERIFIED, _FP16),
        case="F4",
    ),
    Fault(
        "cuda-fails-on-one",
        "nvidia-smi shows nothing, and the first kernel on one GPU fails.",
        _fail_in_cuda,
        on_victim(UNVERIFIED, _FP16, _FP32),
        case="C10",
    ),
    Fault(
        "old-cublas",
        "All GPUs are slow because the environment's cuBLAS is too old for Hopper: nothing is proven of the GPUs.",
        _use_old_cublas,
        on_every_gpu(UNVERIFIED, _FP16),
    ),
    Fault(
        "torch-cpu-build",
        "The environment that runs the jobs holds a CPU build of PyTorch.",
        _install_cpu_build,
        together(on_node(FAIL, "frameworks.torch"), on_every_gpu(UNVERIFIED, _FP16, _FP32)),
    ),
    Fault(
        "torch-without-sm90",
        "PyTorch was built for older GPUs: it reports the H100s as available and fails at the first kernel.",
        _build_without_sm90,
        together(on_node(FAIL, "frameworks.torch"), on_every_gpu(UNVERIFIED, _FP16, _FP32)),
        case="C8",
    ),
    Fault(
        "torch-missing",
        "The Python that was named has no PyTorch at all.",
        _without_torch,
        together(on_node(UNVERIFIED, "frameworks.torch"), on_every_gpu(UNVERIFIED, _FP16, _FP32)),
    ),
)
