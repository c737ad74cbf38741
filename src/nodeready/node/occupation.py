"""Whether a job holds the node while it is judged: some demands apply to an idle node only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.evidence.recording import Ended
from nodeready.node.catalogue import SQUEUE
from nodeready.reading import Known, first_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodeready.node.sources import Sources

COMPUTE_TYPES = ("C", "C+G", "M+C")
_NAMED = 3


def compute_processes(listed: Iterable[tuple[int, str, str]]) -> list[tuple[int, str]]:
    """Pid and name of those that compute; a display server does not.

    >>> compute_processes([(7, "G", "Xorg"), (41873, "C", "python3")])
    [(41873, 'python3')]
    """
    return [(pid, name) for pid, kind, name in listed if kind in COMPUTE_TYPES]


def held_by(sources: Sources) -> str:
    """Which job holds the node, in words; empty where none is known to.

    The scheduler's word decides where it was asked: what it knows no job of was left behind. Without
    one a process that computes on a GPU is taken for a job.
    """
    recording = sources.documents.evidence.get(SQUEUE.name)
    if recording is not None and recording.ended is Ended.EXITED and recording.rc == 0:
        jobs = recording.stdout.decode("utf-8", "replace").split()
        return ", ".join(f"Slurm job {job}" for job in jobs[:_NAMED])
    found = []
    for bus_id in sources.listed_bus_ids():
        processes = first_of(*sources.smi_fields(bus_id, "processes"), agree=False)
        if isinstance(processes, Known):
            found += [f"process {pid} ({name}) on {bus_id}" for pid, name in compute_processes(processes.value)]
    return ", ".join(found[:_NAMED])
