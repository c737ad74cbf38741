"""What becomes of patterns in a simulated GPU's memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PatternRun:
    """One run of the patterns probe on a GPU.

    `wrong_words` do not come back as they were written. `held` is the part of the memory that another process has,
    `refused` the part that is called free and cannot be allocated. `corrected` and `uncorrected` ECC errors come
    meanwhile; with an `error` CUDA ends the run.
    """

    wrong_words: int = 0
    held: float = 0.0
    refused: float = 0.0
    corrected: int = 0
    uncorrected: int = 0
    error: str = ""
