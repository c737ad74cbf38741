"""Driver branches as data: the last build of each, and the software that a node of its time holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nodeready.simulate.model import Torch

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

LATEST = "580"


@dataclass(frozen=True)
class Release:
    """One driver branch: its last build, the newest CUDA that it runs, and the toolkit that goes with it."""

    version: str
    cuda: str
    toolkit: str
    torch: Torch


_CU126 = Torch(
    python="3.12.3",
    version="2.7.1+cu126",
    cuda="12.6",
    cudnn="9.5.1",
    nccl="2.26.2",
    cublas="12.6.4",
    arch_list=("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
)
_CU130 = Torch(
    python="3.12.3",
    version="2.11.0+cu130",
    cuda="13.0",
    cudnn="9.13.0",
    nccl="2.27.7",
    cublas="13.1.0",
    arch_list=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
    tensorflow="2.20.0",
)

RELEASES: dict[str, Release] = {
    "535": Release("535.309.01", "12.2", "12.2", _CU126),
    "550": Release("550.163.01", "12.4", "12.4", _CU126),
    "570": Release("570.211.01", "12.8", "12.8", _CU126),
    "580": Release("580.178.04", "13.0", "13.0", _CU130),
    "595": Release("595.91.07", "13.2", "13.2", _CU130),
}


def install(node: Node, branch: str, version: str = "") -> None:
    """Put a driver branch on a node, or one build of it, with the software that goes with it."""
    release = RELEASES[branch]
    node.driver.module = node.driver.library = version or release.version
    node.driver.cuda = release.cuda
    node.cuda_toolkit = release.toolkit
    node.torch = replace(release.torch)
    if node.fabric_manager is not None:
        node.fabric_manager.version = node.driver.module
