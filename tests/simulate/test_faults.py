"""Every fault of every node type changes exactly the verdicts that it lists: no promise broken, nothing else disturbed."""

import pytest

from nodeready import baseline
from nodeready.simulate.build import build
from nodeready.simulate.faults import faults
from nodeready.simulate.faults.driverless import CONSISTENCY
from nodeready.simulate.faults.fault import BY_LOAD_OF_ALL
from nodeready.simulate.shapes import SHAPES

FAULTS = {node_type: {fault.name: fault for fault in faults(node_type)} for node_type in SHAPES}
EVERY = [(node_type, name) for node_type, known in FAULTS.items() for name in known]


def with_fault(name, node_type="sxm", count=None):
    """A node with a fault, and what the fault lists for it."""
    node = build(node_type, 0, count)
    expected = {(row.check, row.subject): row.verdict for row in FAULTS[node_type][name].expects(node)}
    FAULTS[node_type][name].apply(node)
    return node, expected


def others(verdicts):
    return {at: verdict for at, verdict in verdicts.items() if verdict != "pass"}


def test_every_node_type_of_the_baselines_can_be_simulated():
    assert sorted(SHAPES) == baseline.node_types()
    assert {t: SHAPES[t].gpus for t in SHAPES} == {t: baseline.load(t).gpu_count for t in SHAPES}


@pytest.mark.parametrize("node_type", SHAPES)
def test_a_healthy_node_passes_everything(node_type, judging):
    found = judging(build(node_type))
    findings = found.findings()
    assert [f.message for f in findings if f.verdict.value not in ("pass", "not-applicable")] == []
    coverage = found.plan.coverage(findings)
    assert coverage["planned"] == coverage["judged"] >= 40
    assert found.plan.acceptance(findings).value == "accepted"


@pytest.mark.parametrize(("node_type", "name"), EVERY, ids=[":".join(each) for each in EVERY])
def test_a_fault_changes_the_verdicts_that_it_lists_and_no_other(node_type, name, verdicts):
    node, expected = with_fault(name, node_type)
    assert others(verdicts(node, planned=SHAPES[node_type].gpus)) == expected


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(
    "name",
    [
        "gpu-fell-off-the-bus",
        "gpu-missing-since-boot",
        "lost-gpu-hides-all",
        "mig-on",
        "cut-xml",
        "driver-not-loaded",
        "wrong-product",
        "one-gpu-unknown-error",
    ],
)
def test_promises_hold_on_a_smaller_board(name, count, verdicts):
    node, expected = with_fault(name, count=count)
    assert others(verdicts(node)) == expected


@pytest.mark.parametrize(
    ("node_type", "count"), [("pcie", 8), ("nvl", 4), ("nvl", 3), ("h200-nvl", 8), ("h200-nvl", 2)]
)
def test_more_or_fewer_cards_are_healthy_too(node_type, count, verdicts):
    assert others(verdicts(build(node_type, 0, count))) == {}


@pytest.mark.parametrize("node_type", SHAPES)
def test_no_fault_lists_a_row_twice_and_the_promise_is_the_worst(node_type):
    order = ["fail", "unverified", "advisory"]
    for fault in FAULTS[node_type].values():
        rows = fault.expects(build(node_type))
        assert len({(row.check, row.subject) for row in rows}) == len(rows), fault.name
        found = [order.index(row.verdict) for row in rows]
        assert found == sorted(found), fault.name


def test_there_are_faults_enough_and_names_are_unique():
    assert len(FAULTS["sxm"]) >= 60
    assert all(len(known) >= 60 for known in FAULTS.values())
    for node_type, known in FAULTS.items():
        assert len(known) == len(faults(node_type))


# cards that hang off the processor's own ports have no link above their own, and these nodes no fast adapter
_NO_SWITCH = {"pcie.gpu-bridges", "pcie.adapter-links"}
# checks that no fault of a type makes fail or advise, for want of a node that would
NEVER_BAD = {
    # an older product of the same form is bought by nobody; a card without a bridge has no link to lose
    "pcie": {
        "gpu.compute-capability",
        "nvlink.links-active",
        "nvlink.errors",
        "nvlink.peers",
        "nvlink.bandwidth",
        "container.gpu-visible",
        *CONSISTENCY,
        *BY_LOAD_OF_ALL,
        *_NO_SWITCH,
    },
    # of two GPUs none is the odd one
    "nvl": {
        "gpu.compute-capability",
        "consistency.idle-power",
        "consistency.idle-temperature",
        "consistency.matmul-rate",
        *_NO_SWITCH,
    },
    "h200-nvl": {"gpu.compute-capability"},
    # with its only GPU gone nvidia-smi gives no answer, inside a container neither
    "sxm-1": {"gpu.count", "container.gpu-visible"},
}


@pytest.mark.parametrize("node_type", SHAPES)
def test_every_check_has_a_fault_that_makes_it_fail_or_advise(node_type):
    """A check that no fault moves would go unnoticed when it breaks."""
    demands = baseline.load(node_type).demands.values()
    judged = {d.check for d in demands if not d.absent and d.tier in ("quick", "acceptance")}
    rows = [row for fault in FAULTS[node_type].values() for row in fault.expects(build(node_type))]
    bad = {row.check for row in rows if row.verdict in ("fail", "advisory")}
    assert judged - bad == NEVER_BAD.get(node_type, set())


def test_a_lost_gpu_is_one_failure_and_a_column_that_it_explains(judging):
    node, _ = with_fault("gpu-fell-off-the-bus")
    column = [finding for finding in judging(node).findings() if finding.subject == "gpu4"]
    assert column
    for finding in column:
        assert {"gpu.count@node", "pcie.gpu-present@node"} & set(finding.blocked_by), finding.key


def test_a_dead_driver_is_one_failure_that_explains_all_gpus(judging):
    node, _ = with_fault("driver-not-loaded")
    findings = judging(node).findings()
    assert [finding.key for finding in findings if finding.verdict.value == "fail"] == ["driver.responds"]
    for finding in findings:
        if finding.verdict.value == "unverified" and finding.subject != "node":
            assert finding.blocked_by == ("driver.responds@node",), finding.key


def test_two_faults_on_one_node_are_both_seen(verdicts):
    node, _ = with_fault("nvlink-link-down")
    FAULTS["sxm"]["os-old"].apply(node)
    assert others(verdicts(node)) == {
        ("nvlink.links-active", "gpu4"): "fail",
        ("nvlink.peers", "gpu4"): "unverified",  # blocked by the link
        ("platform.os", "node"): "advisory",
    }


@pytest.mark.parametrize(
    ("name", "settings", "verdict"),
    [
        # what the plain baseline lets pass, a fleet's own demand does not
        ("port-rate-low", ("network.port-rate=400 Gb/s", "network.ports-active=8"), "fail"),
        ("one-port-down", ("network.port-rate=400 Gb/s", "network.ports-active=8"), "fail"),
        ("unused-ports-down", ("network.port-rate=400 Gb/s", "network.ports-active=8"), "pass"),
        ("roce-instead-of-infiniband", ("network.port-rate=400 Gb/s", "network.ports-active=8"), "pass"),
        ("ethernet-alone", ("network.ports-active=9",), "fail"),
    ],
)
def test_ports_are_counted_at_the_rate_that_is_demanded(name, settings, verdict, verdicts):
    node, _ = with_fault(name)
    assert verdicts(node, *settings)["network.ports-active", "node"] == verdict


def test_floors_of_a_card_at_310_w_go_by_its_limit(judging):
    for node_type in ("pcie", "nvl"):
        node, _ = with_fault("power-310", node_type)
        found = {f.key: f for f in judging(node).findings() if f.subject == f"gpu{len(node.gpus) // 2}"}
        assert "limited to 310 W" in found["compute.matmul-fp16"].message
        assert found["compute.matmul-fp16"].verdict.value == "advisory"
        node.gpus[len(node.gpus) // 2].power_limit = float(node.shape.product.power[1])
        found = {f.key: f for f in judging(node).findings() if f.subject == f"gpu{len(node.gpus) // 2}"}
        assert found["compute.matmul-fp16"].verdict.value == "fail"
