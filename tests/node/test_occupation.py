"""Who holds a node: the scheduler's word, else what computes on its GPUs."""

import pytest

from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Ended, Recording
from nodeready.node import Node
from nodeready.node.terms import Terms
from nodeready.simulate.build import build
from nodeready.simulate.model import Process
from nodeready.simulate.outputs.nvidia_smi_q import documents


def node_of(processes=(), squeue=None):
    simulated = build("sxm", 0, 2)
    simulated.gpus[1].processes = [Process(41873, "python3", 1186)] * len(processes)
    recordings = {name: Recording(name, rc=o.rc, stdout=o.stdout) for name, o in documents(simulated).items()}
    if squeue is not None:
        recordings["squeue"] = squeue
    return Node(Evidence("folder", "node", recordings), Terms(2))


@pytest.mark.parametrize(
    ("processes", "squeue", "held"),
    [
        ((), None, ""),
        ((1,), None, "process 41873 (python3) on 0000:3b:00.0"),
        ((), Recording("squeue", stdout=b"7011\n7012\n"), "Slurm job 7011, Slurm job 7012"),
        ((1,), Recording("squeue", stdout=b""), ""),
        ((1,), Recording("squeue", rc=1, stderr=b"slurm_load_jobs error"), "process 41873 (python3) on 0000:3b:00.0"),
        ((1,), Recording("squeue", ended=Ended.NOT_INSTALLED, rc=None), "process 41873 (python3) on 0000:3b:00.0"),
    ],
)
def test_who_holds_the_node(processes, squeue, held):
    assert node_of(processes, squeue).held_by == held


def test_a_process_without_a_job_is_a_leftover_and_its_memory_is_not_guessed():
    node = node_of((1,), Recording("squeue", stdout=b""))
    assert [gpu.health.leftover_processes.value for gpu in node.gpus] == [0, 1]
    assert node.gpus[0].health.leftover_memory.value.value == 0
    assert "hold memory of their own" in node.gpus[1].health.leftover_memory.reason
