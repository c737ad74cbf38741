"""The load of the acceptance tier: every probe once, one after the other, and no more after one that never answered."""

import json

import pytest

from nodeready import baseline
from nodeready.acquire import beyond_this_user
from nodeready.evidence.recording import Ended, Recording
from nodeready.gate import Request
from nodeready.load import LOAD_BUDGET, loads, put_load
from nodeready.node.catalogue import quick_probes
from nodeready.plan import Plan

IN_ORDER = ["torch", "container-gpus", "matmul", "copies", "allreduce", "patterns", "rdma-write", "drive-read"]


class Played:
    """A node that says how each of its probes ended."""

    def __init__(self, **ended):
        self.ended, self.recordings, self.asked, self.budgets = ended, {}, [], []

    def record(self, probes, budget):
        self.budgets.append(budget)
        for probe in probes:
            self.asked.append(probe.name)
            ended, rc = self.ended.get(probe.name.replace("-", "_"), (Ended.EXITED, 0))
            self.recordings[probe.name] = Recording(probe.name, probe.argv, ended, rc)

    def keep_not_run(self, probe, reason):
        self.recordings[probe.name] = Recording(probe.name, probe.argv, Ended.NOT_RUN, None, reason=reason)


def loaded(node_type="sxm", tier="acceptance", **ended):
    node, said = Played(**ended), []
    plan = Plan(baseline.load(node_type, "", ["container.image=cuda"]), tier)
    put_load(node, Request(node_type=node_type, python="/env/bin/python"), plan, said.append)
    return node, said


@pytest.fixture(autouse=True)
def docker(tmp_path, monkeypatch):
    engine = tmp_path / "docker"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_every_probe_is_asked_once_and_in_order():
    node, said = loaded()
    assert node.asked == IN_ORDER
    assert [line.partition(",")[0] for line in said if line.startswith("load: ")] == [
        f"load: {n}" for n in IN_ORDER[2:]
    ]
    # torch and the container are asked together, each load has the node to itself and what is left of the time
    assert len(node.budgets) == 1 + len(IN_ORDER[2:])
    assert all(0 < budget <= LOAD_BUDGET for budget in node.budgets)


@pytest.mark.parametrize("how", [Ended.TIMED_OUT, Ended.ABANDONED])
def test_after_a_load_that_never_answered_nothing_more_is_put_on_the_node(how):
    node, _ = loaded(copies=(how, None))
    assert node.asked == IN_ORDER[:4]
    for name in IN_ORDER[4:]:
        assert node.recordings[name].ended is Ended.NOT_RUN
        assert node.recordings[name].reason == "not asked: copies before it never answered"


@pytest.mark.parametrize("torch", [(Ended.EXITED, 3), (Ended.TIMED_OUT, None), (Ended.NOT_INSTALLED, None)])
def test_what_needs_no_torch_is_asked_without_it(torch):
    node, _ = loaded(torch=torch)
    assert node.asked == ["torch", "container-gpus", "rdma-write", "drive-read"]
    assert node.recordings["torch"].ended is torch[0]
    for name in ("matmul", "copies", "allreduce", "patterns"):
        assert node.recordings[name].reason == "/env/bin/python cannot run torch; name one that can with --python"


def test_a_load_that_no_demand_needs_is_not_put():
    asked = [probe.name for probe in loads(Plan(baseline.load("sxm-1"), "acceptance"), "python")]
    assert asked == ["torch", "container-gpus", "matmul", "copies", "patterns"]


def test_a_plain_user_is_told_of_the_load_that_takes_root():
    every = (*quick_probes(), *loads(Plan(baseline.load("sxm"), "acceptance"), "python"))
    said = beyond_this_user(every, sudo=False, uid=1000)
    assert "  drive-read: how fast NVMe drives read (storage.read-rate)" in said, json.dumps(said, indent=1)
    assert beyond_this_user(every, sudo=True, uid=1000) == beyond_this_user(every, sudo=False, uid=0) == []
