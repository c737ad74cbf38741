"""What the GPUs of a node that does not exist do together, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ReductionState:
    """How an all-reduce over all GPUs goes.

    `busbw` is its bus bandwidth in GB/s where it is not as usual. `nvls` is false where NCCL was told not to let the
    NVSwitches add up, `logged` where its log does not name an algorithm. `wrong` is the place of a GPU that ends up
    with a wrong sum, `error` is what each rank says instead of a result.
    """

    busbw: float | None = None
    nvls: bool = True
    logged: bool = True
    wrong: int | None = None
    error: str = ""
