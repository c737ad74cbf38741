"""The engine keeps what checks find, and what they do wrong leaves the demand unjudged."""

import pytest

from nodeready.baseline import load
from nodeready.check import check, check_of, load_checks
from nodeready.engine import Judging
from nodeready.evidence.capture import Evidence
from nodeready.node import Node
from nodeready.node.terms import Terms
from nodeready.plan import Plan
from nodeready.reading import Known, Unknown
from nodeready.verdict import Acceptance, Verdict


@pytest.fixture
def judging():
    return Judging(Plan(load("sxm"), "acceptance"), Node(Evidence("folder", "h", {}), Terms(8)))


def made(check_id, function):
    def body(node, expect):
        """It holds."""
        function(node, expect)

    return check_of(check(check_id, remedy="Mend it.")(body))


def test_a_finding_carries_demand_evidence_and_remedy(judging):
    reading = Known("podman", recordings=("docker_info",))
    verdict = judging.run(made("container.runtime", lambda _, expect: expect("container.runtime", reading)), "node")
    assert verdict is Verdict.PASS
    (finding,) = [f for f in judging.findings() if f.verdict is Verdict.PASS]
    assert finding.observed == {"value": "podman", "unit": ""}
    assert finding.evidence == ("docker_info",)
    assert finding.remedy == ""


def test_expect_never_stops_the_check(judging):
    def body(_, expect):
        expect("container.runtime", Known("lxc"))
        expect("container.runtime/gpu-support", Unknown("no word"))

    assert judging.run(made("container.runtime", body), "node") is Verdict.FAIL
    told = {f.key: f.verdict.value for f in judging.findings() if not judging.plan.demands[f.key].absent}
    assert told == {"container.runtime": "fail", "container.runtime/gpu-support": "unverified"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (lambda _, expect: 1 / 0, "ZeroDivisionError"),
        (lambda _, expect: bool(Unknown("no word")), "an unknown reading was used as a value"),
        (lambda _, expect: expect("gpu.count", Known(8)), "not its own key"),
        (lambda _, expect: expect("container.runtime/colour", Known(8)), "not declared"),
        (
            lambda _, expect: (
                [expect("container.runtime", Known("docker"))] * 2 and expect("container.runtime", Known("lxc"))
            ),
            "judged twice",
        ),
    ],
    ids=["raises", "unknown", "foreign", "undeclared", "twice"],
)
def test_a_check_that_goes_wrong_leaves_the_node_incomplete(judging, body, says):
    checks = {**load_checks(), "container.runtime": made("container.runtime", body)}
    judging.run_all(checks)
    assert says in judging.errors["container.runtime", "node"]
    assert judging.plan.acceptance(judging.findings()) is Acceptance.INCOMPLETE


def test_nothing_recorded_is_unverified_everywhere_and_blocked_by_nothing(judging):
    judging.run_all(load_checks())
    findings = judging.findings()
    demands = judging.plan.demands
    inapplicable = {f.key for f in findings if demands[f.key].absent or demands[f.key].when_recorded}
    assert {f.verdict for f in findings if f.key not in inapplicable} == {Verdict.UNVERIFIED}
    # whether a Python has TensorFlow is not known where nothing is
    unknown = {"frameworks.tensorflow"}
    assert {f.verdict for f in findings if f.key in inapplicable - unknown} == {Verdict.NOT_APPLICABLE}
    assert {f.verdict for f in findings if f.key in unknown} == {Verdict.UNVERIFIED}
    assert judging.plan.unjudged(findings) == ()
    assert not [f for f in findings if f.blocked_by]


def test_every_demand_has_a_check_and_every_check_a_demand():
    demands, checks = {d.check for d in load("sxm").demands.values()}, load_checks()
    assert demands == set(checks)
    for found in checks.values():
        per = {d.per for d in load("sxm").demands.values() if d.check == found.id}
        assert per == {found.per}


@pytest.mark.parametrize(
    ("check_id", "remedy", "function"),
    [
        ("Nonsense", "x", lambda node, expect: None),
        ("gpu.count", "", lambda node, expect: None),
        ("gpu.count", "x", lambda node: None),
        ("gpu.count", "x", lambda host, expect: None),
        ("gpu.count", "x", lambda node, expect: None),
    ],
    ids=["id", "remedy", "arguments", "subject", "docstring"],
)
def test_checks_that_are_refused(check_id, remedy, function):
    with pytest.raises((ValueError, TypeError)):
        check(check_id, remedy=remedy)(function)


def test_an_id_that_occurs_twice_is_refused(tmp_path):
    text = 'from nodeready.check import check\n\n@check("a.b", remedy="r")\ndef test_{0}(node, expect):\n    """d"""\n'
    for name in ("x", "y"):
        (tmp_path / f"test_{name}.py").write_text(text.format(name))
    with pytest.raises(ValueError, match="ids are unique"):
        load_checks(tmp_path)
