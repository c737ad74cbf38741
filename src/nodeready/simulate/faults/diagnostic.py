"""What NVIDIA's own diagnostic found, where somebody ran it and handed its output in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, on_node

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.outputs.output import Output


def _fail_memory(node: Node) -> None:
    node.diagnostic = {"software": "Pass", "memory": "Fail", "pcie": "Pass"}


def _skip_power(node: Node) -> None:
    node.diagnostic = {"software": "Pass", "memory": "Pass", "targeted_power": "Skip"}


def _cut(node: Node) -> None:
    def half(output: Output) -> Output:
        return replace(output, stdout=output.stdout[: len(output.stdout) // 2])

    node.diagnostic = {"software": "Pass", "memory": "Pass"}
    node.spoilers["dcgmi_diag_-j"] = half


FAULTS = (
    Fault(
        "dcgm-test-failed",
        "Every reading is fine, but dcgmi diag found a GPU whose memory fails under load.",
        _fail_memory,
        on_node(FAIL, "health.dcgm-diag"),
        case="H18",
    ),
    Fault(
        "dcgm-test-skipped",
        "dcgmi diag passed, but for one test that it skipped: a skipped test has passed nothing.",
        _skip_power,
        on_node(ADVISORY, "health.dcgm-diag"),
        case="H17",
    ),
    Fault(
        "dcgm-output-cut",
        "dcgmi diag passed, but what was kept of its output stops in the middle.",
        _cut,
        on_node(UNVERIFIED, "health.dcgm-diag"),
    ),
)
