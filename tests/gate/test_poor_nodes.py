"""Nodes that lack a part, and users who may not look: what can be measured is, and the rest is said plainly."""

import pytest

from nodeready.simulate.write import simulate

ROOT_ONLY = ("lspci-as-plain-user", "dmidecode-denied", "kernel-log-denied", "drive-health-unread", "bmc-log-unread")


@pytest.fixture
def judged(tmp_path, judge):
    def go(*faults, node_type="sxm"):
        simulate(node_type, tmp_path / "node", faults)
        found, _ = judge(tmp_path / "node", node_type)
        return found

    return go


def by_verdict(found, verdict):
    return {f["key"]: f for f in found["findings"] if f["verdict"] == verdict}


@pytest.mark.parametrize(
    ("faults", "keys", "words"),
    [
        (("no-bmc",), {"bmc.events", "power.supplies", "thermal.fans", "thermal.inlet"}, "no BMC"),
        (("nvcc-missing",), {"cuda.toolkit-version"}, "nvcc"),
    ],
    ids=["no BMC", "no nvcc"],
)
def test_a_part_that_many_nodes_lack_costs_its_own_demands_only(faults, keys, words, judged):
    found = judged(*faults)
    assert (found["acceptance"], found["exit_status"]) == ("accepted-with-advisories", 0)
    unverified = by_verdict(found, "unverified")
    assert keys <= set(unverified)
    layers = {key.partition(".")[0] for key in keys} | {"cuda"}
    assert {key.partition(".")[0] for key in unverified} <= layers
    assert all(words in unverified[key]["message"] for key in keys)
    assert not by_verdict(found, "fail")


def test_without_infiniband_ethernet_is_judged(judged):
    found = judged("ethernet-alone")
    assert not by_verdict(found, "fail")
    (ports,) = [f for f in found["findings"] if f["key"] == "network.ports-active"]
    assert ports["verdict"] == "pass"


def test_a_plain_user_still_gets_every_measurable_must(judged):
    found = judged(*ROOT_ONLY)
    assert not by_verdict(found, "fail")
    unverified = by_verdict(found, "unverified")
    musts = {key for key, finding in unverified.items() if finding["measure"] == "must"}
    assert {key.partition(".")[0] for key in musts} <= {"health"}, "only the kernel log is a must that needs root"
    judged_musts = {f["key"] for f in found["findings"] if f["measure"] == "must" and f["verdict"] == "pass"}
    assert {"gpu.count", "memory.installed", "nvlink.links-active", "pcie.gpu-link-width"} <= judged_musts
    assert all(finding["reason"] for finding in unverified.values())
    assert found["exit_status"] in (0, 10)


CAUSES = {
    "driver-not-loaded": {"driver.responds"},
    "nvidia-smi-missing": {"driver.responds"},
    "fabric-manager-dead": {"nvlink.fabric-manager"},
    "gpu-fell-off-the-bus": {"gpu.count", "pcie.gpu-present"},
}


@pytest.mark.parametrize(("fault", "keys"), CAUSES.items(), ids=CAUSES)
def test_one_cause_is_one_failure_and_what_it_hides_is_blocked_by_it(fault, keys, judged):
    found = judged(fault)
    assert found["acceptance"] == "rejected"
    failed = set(by_verdict(found, "fail"))
    assert keys <= failed
    assert failed - keys <= {"health.xid"}  # the kernel's own word on a GPU that left the bus
    blocked = [f for f in found["findings"] if f["verdict"] == "unverified"]
    named = {f"{key}@node" for key in failed}
    assert all(named & set(f["blocked_by"] or ()) for f in blocked), [
        f["key"] for f in blocked if not named & set(f["blocked_by"] or ())
    ]


def test_nothing_is_asked_of_a_node_twice():
    """But for counters, of which the second look is the point."""
    from nodeready.node.catalogue import quick_probes

    asked = {}
    for probe in quick_probes():
        asked.setdefault(probe.argv, []).append(probe)
    again = [probes for probes in asked.values() if len(probes) > 1]
    assert all(sum(not probe.after for probe in probes) == 1 for probes in again), again
