"""Every fault changes exactly the verdicts that it lists: no promise broken, nothing else disturbed."""

import pytest

from nodeready import baseline
from nodeready.check import load_checks
from nodeready.engine import Judging
from nodeready.evidence.folder import read_evidence
from nodeready.node import Node
from nodeready.node.catalogue import evidence_names
from nodeready.plan import Plan
from nodeready.simulate.faults import faults
from nodeready.simulate.model import build
from nodeready.simulate.write import simulate
from nodeready.verdict import join

LAYERS = (
    "pcie",
    "memory",
    "driver",
    "cuda",
    "container",
    "gpu",
    "health",
    "power",
    "thermal",
    "nvlink",
    "compute",
    "frameworks",
    "platform",
)
FAULTS = {fault.name: fault for fault in faults("sxm")}


@pytest.fixture(scope="module")
def checks():
    return load_checks()


@pytest.fixture(scope="module")
def judge(checks, tmp_path_factory):
    """Simulate a node and give back the verdict of every (check, subject), and the run's findings."""

    def run(*names, count=8):
        folder = tmp_path_factory.mktemp("nodes") / "node"
        simulate("sxm", folder, names, {"gpu.count": str(count)})
        plan = Plan(baseline.load("sxm", "", [f"gpu.count={count}"]), "acceptance")
        judging = Judging(plan, Node(read_evidence(folder, evidence_names()), count))
        judging.run_all(checks)
        assert judging.errors == {}
        found = {}
        for finding in judging.findings():
            found.setdefault((finding.check, finding.subject), []).append(finding)
        assert sum(map(len, found.values())) == len(plan.obligations)
        return {at: join(f.verdict for f in findings).value for at, findings in found.items()}, judging.findings()

    return run


@pytest.fixture(scope="module")
def healthy(judge):
    return judge()[0]


def test_a_healthy_node_passes_everything(healthy):
    assert {at: verdict for at, verdict in healthy.items() if verdict != "pass"} == {}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_the_verdicts_that_it_lists_and_no_other(name, judge, healthy):
    verdicts, _ = judge(name)
    expected = {(row.check, row.subject): row.verdict for row in FAULTS[name].expects(build("sxm"))}
    assert {at: verdict for at, verdict in verdicts.items() if verdict != healthy[at]} == expected


@pytest.mark.parametrize(
    "name", ["gpu-fell-off-the-bus", "gpu-missing-since-boot", "mig-on", "cut-xml", "driver-not-loaded"]
)
def test_promises_hold_on_a_smaller_board(name, judge):
    verdicts, _ = judge(name, count=4)
    expected = {(row.check, row.subject): row.verdict for row in FAULTS[name].expects(build("sxm", 0, 4))}
    assert {at: verdict for at, verdict in verdicts.items() if verdict != "pass"} == expected


def test_no_fault_lists_a_row_twice_and_the_promise_is_the_worst():
    order = ["fail", "unverified", "advisory"]
    for fault in FAULTS.values():
        rows = fault.expects(build("sxm"))
        assert len({(row.check, row.subject) for row in rows}) == len(rows), fault.name
        verdicts = [order.index(row.verdict) for row in rows]
        assert verdicts == sorted(verdicts), fault.name


def test_every_layer_has_a_fault_that_fails_or_advises_in_it():
    hit = {row.check.partition(".")[0] for fault in FAULTS.values() for row in fault.expects(build("sxm"))[:1]}
    assert set(LAYERS) <= hit


def test_a_lost_gpu_is_one_failure_and_a_column_that_it_explains(judge):
    _, findings = judge("gpu-fell-off-the-bus")
    column = [finding for finding in findings if finding.subject == "gpu4"]
    assert column
    for finding in column:
        assert {"gpu.count@node", "pcie.gpu-present@node"} & set(finding.blocked_by), finding.key


def test_two_faults_on_one_node_are_both_seen(judge):
    verdicts, _ = judge("nvlink-link-down", "os-old")
    assert {at: verdict for at, verdict in verdicts.items() if verdict != "pass"} == {
        ("nvlink.links-active", "gpu4"): "fail",
        ("platform.os", "node"): "advisory",
    }
