"""The host's side of a GPU: the processors that share its NUMA node."""

from __future__ import annotations

import os
import re
from pathlib import Path


def local_cpus(bus_id: str, root: str = "/sys/bus/pci/devices") -> tuple[str, set[int]] | None:
    """The processors beside a GPU, as the kernel lists them and by number; None where it doesn't."""
    try:
        listed = Path(root, bus_id.lower(), "local_cpulist").read_text("ascii", "replace").strip()
    except OSError:
        return None
    if not re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", listed):
        return None
    ranges = [part.partition("-") for part in listed.split(",")]
    return listed, {cpu for low, _, high in ranges for cpu in range(int(low), int(high or low) + 1)}


def stand_beside(bus_id: str, root: str = "/sys/bus/pci/devices") -> str | None:
    """Move this thread to the processors beside the GPU and give them as listed; None where that can't be.

    Memory that is pinned afterwards is then of the GPU's NUMA node: the driver takes it from where the caller runs.
    """
    beside = local_cpus(bus_id, root)
    try:
        if beside is not None:
            os.sched_setaffinity(0, beside[1])
    except OSError:  # none of them is allowed to this process
        return None
    return beside[0] if beside is not None else None
