"""Verdicts join as a lattice; acceptance is the plan minus the findings."""

from hypothesis import given
from hypothesis import strategies as st

from nodeready.baseline import load
from nodeready.plan import Plan, with_causes
from nodeready.verdict import Acceptance, Finding, Verdict, join

VERDICTS = st.sampled_from(list(Verdict))


@given(VERDICTS, VERDICTS, VERDICTS)
def test_join_is_a_semilattice(a, b, c):
    assert join([a, b]) is join([b, a])
    assert join([join([a, b]), c]) is join([a, join([b, c])])
    assert join([a, a]) is a


@given(st.lists(VERDICTS))
def test_nothing_hides_a_fail_and_nothing_is_no_pass(verdicts):
    joined = join(verdicts)
    assert (joined is Verdict.FAIL) == (Verdict.FAIL in verdicts)
    assert verdicts or joined is Verdict.UNVERIFIED


def finding(obligation, verdict):
    demand = obligation.demand
    return Finding(demand.check, obligation.subject, demand.key, verdict, None, "")


PLAN = Plan(load("sxm"), "acceptance")
PLANNED = [o for o in PLAN.obligations if not o.demand.absent]
ABSENT = [finding(o, Verdict.NOT_APPLICABLE) for o in PLAN.obligations if o.demand.absent]
ALL_PASS = [finding(o, Verdict.PASS) for o in PLANNED]


def test_all_judged_and_passed_is_accepted():
    assert PLAN.acceptance([*ALL_PASS, *ABSENT]) is Acceptance.ACCEPTED


@given(st.integers(0, len(ALL_PASS) - 1))
def test_any_one_finding_left_out_is_never_accepted(index):
    left = ALL_PASS[:index] + ALL_PASS[index + 1 :] + ABSENT
    assert PLAN.acceptance(left) is Acceptance.INCOMPLETE
    assert PLAN.coverage(left)["judged"] == PLAN.coverage(left)["planned"] - 1


@given(st.integers(0, len(ALL_PASS) - 1), VERDICTS)
def test_any_one_verdict_decides(index, verdict):
    changed = [*ALL_PASS, *ABSENT]
    obligation = PLANNED[index]
    changed[index] = finding(obligation, verdict)
    must = obligation.demand.must
    expected = {
        Verdict.FAIL: Acceptance.REJECTED,
        Verdict.UNVERIFIED: Acceptance.INCOMPLETE if must else Acceptance.WITH_ADVISORIES,
        Verdict.ADVISORY: Acceptance.WITH_ADVISORIES,
    }.get(verdict, Acceptance.ACCEPTED)
    assert PLAN.acceptance(changed) is expected


def test_a_fail_outweighs_what_is_missing():
    assert PLAN.acceptance([finding(PLAN.obligations[0], Verdict.FAIL)]) is Acceptance.REJECTED


def test_nothing_found_is_incomplete():
    assert PLAN.acceptance([]) is Acceptance.INCOMPLETE


def test_the_plan_holds_eight_gpus_whatever_was_found():
    subjects = {o.subject for o in PLAN.obligations if o.demand.per == "gpu"}
    assert subjects == {f"gpu{i}" for i in range(8)}


def test_quick_is_a_part_of_acceptance():
    quick = Plan(load("sxm"), "quick")
    assert set(quick.demands) < set(PLAN.demands)
    assert not any("matmul" in key for key in quick.demands)


def test_an_unverified_finding_names_the_failure_that_explains_it():
    dead = Finding("driver.responds", "node", "driver.responds", Verdict.FAIL, None, "")
    blind = Finding("gpu.memory", "gpu0", "gpu.memory", Verdict.UNVERIFIED, None, "", causes=("driver.responds",))
    assert with_causes([dead, blind])[1].blocked_by == ("driver.responds@node",)
    assert with_causes([blind])[0].blocked_by == ()
