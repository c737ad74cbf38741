"""What goes wrong with the products and with the environment that runs jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import plausible, recommended, required
from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    no_load,
    no_load_on_victim,
    no_products,
    on_every_gpu,
    on_node,
    on_victim,
    rows,
    several_gpus,
    together,
    victim,
    without_load,
)
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.simulate.model import Node

_FP16, _FP32 = "compute.matmul-fp16", "compute.matmul-fp32"
_EVERY_RATE = tuple(f"compute.matmul-{kind}" for kind in ("fp16", "bf16", "fp8", "tf32", "fp32", "fp64"))
_FP8 = ("float8_e4m3fn", 8192)
_NO_TORCH = "this Python has no torch: name one that has with --python"
_FEWEST = 3  # of fewer GPUs none is the odd one
_NO_KERNEL = ("sm_75", "sm_80", "sm_86")


def _half_rates(node: Node, at_8192: float, at_16384: float) -> None:
    rates = victim(node).rates
    rates["float16", 8192].tflops, rates["float16", 16384].tflops = at_8192, at_16384


def _slow(node: Node) -> None:
    _half_rates(node, 0.97 * required(node, _FP16), 0.97 * required(node, f"{_FP16}/16384"))


def _lag(node: Node) -> None:
    keys = (_FP16, f"{_FP16}/16384")
    _half_rates(node, *((required(node, key) + recommended(node, key)) / 2 for key in keys))


def _lagged(node: Node) -> tuple[Expected, ...]:
    """The GPU named among its siblings too, where it is far enough behind them."""
    return _behind(node, (required(node, _FP16) + recommended(node, _FP16)) / 2)


def _behind(node: Node, rate: float) -> tuple[Expected, ...]:
    rates = [gpu.rates["float16", 8192].tflops for gpu in node.gpus if gpu is not victim(node)]
    far = len(node.gpus) >= _FEWEST and rate < 0.92 * median([*rates, rate])
    return rows(ADVISORY, "consistency.matmul-rate") if far else ()


def _slow_fp8(node: Node) -> None:
    victim(node).rates[_FP8].tflops = 0.97 * required(node, "compute.matmul-fp8")


def _waver(node: Node) -> None:
    victim(node).rates["float16", 16384].repeatable = False


def _differ(node: Node) -> None:
    victim(node).rates["bfloat16", 8192].odd = True


def _sip(node: Node) -> None:
    victim(node).load_draw = 0.7


def _heat_up(node: Node) -> None:
    victim(node).load_margin = -2


def _warm_up(node: Node) -> None:
    victim(node).load_margin = 2


def _crawl(node: Node) -> None:
    for rate in victim(node).rates.values():
        rate.tflops *= 0.13


def _miscalculate(node: Node) -> None:
    victim(node).rates["float16", 16384].verified = False


def _dazzle(node: Node) -> None:
    victim(node).rates["float16", 8192].tflops = 1.06 * plausible(node, _FP16)


def _fail_in_cuda(node: Node) -> None:
    victim(node).cuda_error = "CUDA error: uncorrectable ECC error encountered"


def _use_old_cublas(node: Node) -> None:
    build = node.torch
    build.version, build.cuda, build.cublas = "2.1.2+cu121", "12.1", "12.1.3"
    build.cudnn, build.nccl = "8.9.2", "2.18.1"
    build.arch_list = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    for gpu in node.gpus:
        gpu.rates["float16", 8192].tflops = 0.97 * required(node, _FP16) - gpu.place


def _install_cpu_build(node: Node) -> None:
    build = node.torch
    build.version, build.arch_list = "2.11.0+cpu", ()
    build.cuda = build.cudnn = build.nccl = build.cublas = None


def _build_without_sm90(node: Node) -> None:
    node.torch.arch_list = _NO_KERNEL


def _install_1_13(node: Node) -> None:
    build = node.torch
    build.version, build.cuda, build.cublas = "1.13.1+cu117", "11.7", "11.10.3"
    build.cudnn, build.nccl, build.arch_list = "8.5.0", "2.14.3", _NO_KERNEL


def _install_cuda_11(node: Node) -> None:
    build = node.torch
    build.version, build.cuda, build.cublas = "2.3.1+cu118", "11.8", "11.11.3"
    build.cudnn, build.nccl, build.arch_list = "8.7.0", "2.20.5", (*_NO_KERNEL, "sm_90")


def _mask_half(node: Node) -> None:
    node.torch.visible = ",".join(map(str, range(len(node.gpus) // 2)))


def _masked(node: Node) -> tuple[Expected, ...]:
    hidden = node.gpus[len(node.gpus) // 2 :]
    return (*rows(UNVERIFIED, "frameworks.torch"), *without_load(node, hidden))


def _cut(node: Node) -> None:
    for name in ("matmul", "allreduce"):
        node.spoilers[name] = lambda output: replace(output, stdout=output.stdout[: len(output.stdout) // 2])


def _without_torch(node: Node) -> None:
    about = {"schema": 1, "python": node.torch.python, "torch": None, "cuda": None, "error": _NO_TORCH}
    torch = {"probe": "torch", **about, "cudnn": None, "nccl": None, "arch_list": [], "devices": [], "visible": None}
    matmul = {"probe": "matmul", **about, "cublas": None, "seconds": 0.0, "devices": [], "results": []}
    other_loads = [(name, {**matmul, "probe": name}) for name in ("allreduce", "patterns", "copies")]
    for name, document in (("torch", torch), ("matmul", matmul), *other_loads):
        output = Output(f"{json.dumps(document)}\n".encode(), 3)
        node.spoilers[name] = _always(output)


def _always(output: Output) -> Callable[[Output], Output]:
    return lambda _: output


FAULTS = (
    Fault(
        "slow-gpu",
        "One GPU multiplies a fifth slower than its siblings: a bad die, or a cold plate that does not touch.",
        _slow,
        together(on_victim(FAIL, _FP16), lambda node: _behind(node, 0.97 * required(node, _FP16))),
        case="F7",
    ),
    Fault(
        "lagging-gpu",
        "One GPU is slower than a good one and fast enough to work: worth a look at its cooling.",
        _lag,
        together(on_victim(ADVISORY, _FP16), _lagged),
        case="F7",
    ),
    Fault(
        "very-slow-gpu",
        "One GPU runs at an eighth of its speed although no clock event is shown.",
        _crawl,
        together(on_victim(FAIL, *_EVERY_RATE), lambda node: _behind(node, 0.0)),
    ),
    Fault(
        "wrong-products",
        "One GPU computes wrong products at full speed and reports no error.",
        _miscalculate,
        on_victim(FAIL, _FP16),
        case="F25",
    ),
    Fault(
        "slow-fp8",
        "One GPU is as fast as its siblings in every precision but FP8.",
        _slow_fp8,
        on_victim(FAIL, "compute.matmul-fp8"),
    ),
    Fault(
        "products-not-repeatable",
        "One GPU makes another product from the same numbers now and then, within rounding: corruption that is silent.",
        _waver,
        on_victim(FAIL, "compute.repeatable"),
        case="F25",
    ),
    Fault(
        "products-differ",
        "One GPU makes other bits than its siblings of the same numbers, each time the same and right within rounding.",
        _differ,
        on_node(FAIL, "consistency.products"),
        case="F25",
        can_have=several_gpus,
    ),
    Fault(
        "draws-too-little",
        "One GPU stays far below its power limit under the heaviest product: something holds it down.",
        _sip,
        on_victim(ADVISORY, "power.draw"),
        case="F18",
    ),
    Fault(
        "hot-under-load",
        "One GPU is cool when idle and at its slowdown temperature under load: its cold plate does not touch well.",
        _heat_up,
        on_victim(FAIL, "thermal.margin"),
        case="F16",
    ),
    Fault(
        "warm-under-load",
        "One GPU has hardly any thermal margin left under load.",
        _warm_up,
        on_victim(ADVISORY, "thermal.margin"),
        case="F17",
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
        together(on_node(FAIL, "frameworks.torch"), no_load_on_victim, on_node(UNVERIFIED, "network.write-bandwidth")),
        case="C10",
    ),
    Fault(
        "old-cublas",
        "All GPUs are slow because the environment's cuBLAS is too old for Hopper: nothing is proven of the GPUs.",
        _use_old_cublas,
        on_every_gpu(UNVERIFIED, _FP16, "compute.matmul-fp8"),
    ),
    Fault(
        "torch-cpu-build",
        "The environment that runs the jobs holds a CPU build of PyTorch.",
        _install_cpu_build,
        together(on_node(FAIL, "frameworks.torch"), no_load),
    ),
    Fault(
        "torch-without-sm90",
        "PyTorch was built for older GPUs: it reports the H100s as available and fails at the first kernel.",
        _build_without_sm90,
        together(on_node(FAIL, "frameworks.torch"), no_load),
        case="C8",
    ),
    Fault(
        "torch-missing",
        "The Python that was named has no PyTorch at all.",
        _without_torch,
        together(on_node(UNVERIFIED, "frameworks.torch"), no_load),
    ),
    Fault(
        "torch-too-old",
        "The environment still holds PyTorch 1.13, which was built before Hopper and for CUDA 11.",
        _install_1_13,
        together(on_node(FAIL, "frameworks.torch"), no_load),
        case="C8",
    ),
    Fault(
        "torch-for-cuda-11",
        "PyTorch runs on the GPUs at full speed, was built for CUDA 11, and makes no FP8 products yet.",
        _install_cuda_11,
        together(on_node(FAIL, "frameworks.torch"), on_every_gpu(UNVERIFIED, "compute.matmul-fp8")),
    ),
    Fault(
        "cuda-devices-masked",
        "CUDA_VISIBLE_DEVICES was left set: CUDA shows half of the GPUs, and the others were not measured.",
        _mask_half,
        _masked,
        case="C13",
        can_have=several_gpus,
    ),
    Fault(
        "matmul-result-cut",
        "The document of the load was cut on its way: nothing is known of any GPU's speed.",
        _cut,
        no_products,
    ),
)
