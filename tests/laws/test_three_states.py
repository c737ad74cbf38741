"""Every check is seen passing, failing or at least missing its bound, and unverified over the simulated nodes."""

from nodeready.baseline import load, node_types
from nodeready.simulate.write import list_faults
from nodeready.verdict import Verdict


def test_every_check_was_seen_in_three_states(bench):
    healthy, worse, unknown = set(), set(), set()
    for node_type in node_types():
        node = bench(node_type)
        healthy |= {f.check for f in node.healthy.values() if f.verdict is Verdict.PASS}
        for fault in list_faults(node_type):
            worse |= {e["check"] for e in fault["expects"] if e["verdict"] in ("fail", "advisory")}
            unknown |= {e["check"] for e in fault["expects"] if e["verdict"] == "unverified"}
    checks = {d.check for d in load("sxm").demands.values()}
    handed_in = {d.check for d in load("sxm").demands.values() if d.when_recorded}  # which a healthy node need not be
    assert checks - healthy - handed_in == set(), "never seen passing"
    assert checks - worse == set(), "never seen failing"
    assert checks - unknown == set(), "never seen unverified"
