"""What goes wrong with the evidence itself: values that are none, documents that are cut or contradict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import every_gpu_check
from nodeready.simulate.faults.driverless import BY_THE_BUS_ALONE, CONSISTENCY
from nodeready.simulate.faults.fault import (
    BY_ALL_TOGETHER,
    BY_LOAD_OF_ALL,
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    on_node,
    on_victim,
    rows,
    subject,
    together,
    victim,
)
from nodeready.simulate.outputs.smi_field import DEPRECATED

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.outputs.output import Output


def _deprecate(node: Node) -> None:
    victim(node).printed["gpu_recovery_action"] = DEPRECATED


def _withhold(node: Node) -> None:
    victim(node).printed["fb_memory_usage/total"] = "N/A"


def _say_nothing(node: Node) -> None:
    gpu = victim(node)
    gpu.every_value = "Unknown Error"
    gpu.cuda_error = "CUDA error: unknown error"


def _cut(node: Node) -> None:
    def half(output: Output) -> Output:
        return replace(output, stdout=output.stdout[: len(output.stdout) // 2])

    node.spoilers["nvidia-smi_-q_-x"] = half


def _contradict(node: Node) -> None:
    bus_id = f"0000{victim(node).bus_id}".upper()

    def another_memory(output: Output) -> Output:
        head, mark, rest = output.stdout.partition(f"GPU {bus_id}".encode())
        total = f"{victim(node).memory_mib} MiB".encode()
        return replace(output, stdout=head + mark + rest.replace(total, b"65247 MiB", 1))

    node.spoilers["nvidia-smi_-q"] = another_memory


def _silent(node: Node) -> tuple[Expected, ...]:
    """All that the driver alone tells; products and capability come from other sources too."""
    checks = [check for check in every_gpu_check(node) if check not in _ELSEWHERE]
    return rows(UNVERIFIED, *checks, on=map(subject, node.gpus))


def _silent_victim(node: Node) -> tuple[Expected, ...]:
    """All of one GPU but the way to its peers, which the matrix of all GPUs still shows, and what the bus tells."""
    checks = [check for check in every_gpu_check(node) if check not in ("nvlink.peers", *BY_THE_BUS_ALONE)]
    return rows(UNVERIFIED, *checks, on=(subject(victim(node)),))


def _hardly_compared(node: Node) -> tuple[Expected, ...]:
    """What holds GPUs against each other, where fewer than two are left."""
    return rows(UNVERIFIED, *BY_LOAD_OF_ALL) if len(node.gpus) <= _PAIR else ()


_PAIR = 2
_ELSEWHERE = (
    *("pcie.gpu-link-generation", "pcie.bandwidth", "nvlink.bandwidth"),
    *("gpu.memory-bandwidth", "gpu.memory-patterns"),
    *("gpu.compute-capability", "compute.repeatable", "nvlink.peers"),
    *(f"compute.matmul-{kind}" for kind in ("fp16", "bf16", "fp8", "tf32", "fp32", "fp64")),
    *BY_THE_BUS_ALONE,
)

FAULTS = (
    Fault(
        "deprecated-fields",
        "The driver prints that a field is deprecated where its value should be: neither yes nor no.",
        _deprecate,
        on_victim(UNVERIFIED, "health.recovery-action"),
    ),
    Fault(
        "field-not-available",
        "The driver prints N/A where the memory of one GPU should stand: no memory was measured, not none found.",
        _withhold,
        on_victim(UNVERIFIED, "gpu.memory", "gpu.telemetry", "pcie.bar1"),
        case="B20",
    ),
    Fault(
        "one-gpu-unknown-error",
        "The driver still lists one GPU and answers Unknown Error to every question about it.",
        _say_nothing,
        together(
            on_node(FAIL, "frameworks.torch"),
            _silent_victim,
            on_node(UNVERIFIED, "container.gpu-visible", "network.write-bandwidth", *BY_ALL_TOGETHER, *CONSISTENCY),
            _hardly_compared,
        ),
        case="B15",
    ),
    Fault(
        "cut-xml",
        "The driver's document was cut in half on its way although the command exited with 0.",
        _cut,
        together(
            on_node(UNVERIFIED, "driver.responds", "driver.version", "driver.matches-library", "cuda.driver-version"),
            on_node(UNVERIFIED, "driver.branch-supported", "driver.security-floor", "driver.known-bad", *CONSISTENCY),
            on_node(UNVERIFIED, "gpu.count", "nvlink.fabric-manager", "container.gpu-visible"),
            on_node(UNVERIFIED, "cuda.toolkit-version", "frameworks.torch"),
            _silent,
        ),
    ),
    Fault(
        "forms-disagree",
        "Two documents of the same driver give one GPU's memory differently: neither is believed.",
        _contradict,
        on_victim(UNVERIFIED, "gpu.memory", "pcie.bar1"),
    ),
)
