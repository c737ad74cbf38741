"""How many memory errors a GPU has counted since its driver was loaded."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes.gpu_devices import nvml_of
else:  # a script that stands alone has its siblings beside it
    from gpu_devices import nvml_of

if TYPE_CHECKING:
    from collections.abc import Callable

Counts = dict[str, "int | None"]  # corrected and uncorrected, None where not told
_QUERY = "ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total"


def nvml_reader(bus_id: str) -> Callable[[], Counts] | None:
    """A function that reads the counters through pynvml; None where that is not to be had."""
    nvml, handle = nvml_of(bus_id)
    if nvml is None:
        return None

    def total(kind: int) -> int | None:
        try:
            return int(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, nvml.NVML_VOLATILE_ECC))
        except nvml.NVMLError:
            return None

    def read() -> Counts:
        return {
            "corrected": total(nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
            "uncorrected": total(nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        }

    return read


def smi_counts(line: str) -> Counts:
    """One line of nvidia-smi's CSV; what is no number is None.

    >>> smi_counts("3, 0"), smi_counts("[N/A], [N/A]")
    ({'corrected': 3, 'uncorrected': 0}, {'corrected': None, 'uncorrected': None})
    """
    fields = [field.strip() for field in line.split(",")]
    told = [int(field) if field.isdecimal() else None for field in fields]
    corrected, uncorrected = told if len(told) == 2 else (None, None)
    return {"corrected": corrected, "uncorrected": uncorrected}


def smi_reader(device: str) -> Callable[[], Counts]:
    """A function that reads the counters through nvidia-smi; they are None without one."""

    def read() -> Counts:
        argv = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits", "-i", device]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return smi_counts("")
        return smi_counts(done.stdout.strip() if done.returncode == 0 else "")

    return read


def reader(identity: dict[str, Any]) -> Callable[[], Counts] | None:
    """How the counters of a device are read, through NVML, else nvidia-smi; None of a CPU."""
    if not identity["bus_id"]:
        return None
    return nvml_reader(identity["bus_id"]) or smi_reader(identity["uuid"])
