"""Whether somebody is using the GPUs: load is never put on a busy node."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nodeready.evidence.probe import Probe
from nodeready.evidence.recording import Ended
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, first_of

if TYPE_CHECKING:
    from nodeready.evidence.capture import Evidence
    from nodeready.node import Node

IDLE_MEMORY = Quantity(2, "GiB")  # an idle GPU with persistence mode uses well below 1 GiB
COMPUTE_TYPES = ("C", "C+G", "M+C")


def squeue(host: str) -> Probe:
    """Slurm's jobs on this node; the name that Slurm knows is the short host name."""
    return Probe(
        "squeue", ("squeue", "--noheader", "--format=%A", "--nodelist", host.partition(".")[0]), family="slurm"
    )


def occupants(node: Node, *, this_machine: bool = True) -> Reading[tuple[str, ...]]:
    """What uses the GPUs and is not ours, in words: processes, memory that no visible process owns, Slurm's jobs.

    All GPUs that the driver lists count, since the load is put on all of them. `this_machine` is false for
    another node: no process and no job there is this one.
    """
    ours = {os.getpid(), os.getppid()} if this_machine else set()
    found: list[str] = []
    for bus_id in node.sources.listed_bus_ids():
        processes = first_of(*node.sources.smi_fields(bus_id, "processes"), agree=False)
        if isinstance(processes, Unknown):
            return Unknown(f"the processes on {bus_id} are unknown: {processes.reason}")
        here = [
            f"process {pid} ({name}) on {bus_id}"
            for pid, kind, name in processes.value
            if kind in COMPUTE_TYPES and pid not in ours
        ]
        used = first_of(*node.sources.smi_fields(bus_id, "memory_used"), agree=False)
        if not here and isinstance(used, Known) and used.value > IDLE_MEMORY:
            here = [f"{used.value} of memory in use on {bus_id} by no process that can be seen from here"]
        found += here
    jobs = _jobs(node.evidence, os.environ.get("SLURM_JOB_ID", "") if this_machine else "")
    if isinstance(jobs, Unknown):
        return jobs
    return Known((*found, *(f"Slurm job {job}" for job in jobs.value)))


def _jobs(evidence: Evidence, mine: str) -> Reading[tuple[str, ...]]:
    recording = evidence.get("squeue")
    if recording is None or recording.ended is Ended.NOT_INSTALLED:
        return Known(())
    text = (recording.stdout + recording.stderr).decode("utf-8", "replace")
    if recording.ended is Ended.EXITED and recording.rc == 0:
        return Known(tuple(job for job in recording.stdout.decode("utf-8", "replace").split() if job != mine))
    if "Invalid node name" in text:
        return Known(())
    return Unknown(
        f"Slurm is installed and did not say whether a job holds this node: {recording.complaint or recording.reason}"
    )
