"""The plan comes from the baseline alone: acceptance is the plan minus the findings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from nodeready.baseline import TIERS, Baseline
from nodeready.verdict import Acceptance, Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodeready.expectation import Demand


@dataclass(frozen=True)
class Obligation:
    """One demand that has to be judged on one subject."""

    demand: Demand
    subject: str


@dataclass(frozen=True)
class Plan:
    """Everything that a node type and a tier oblige a run to judge."""

    baseline: Baseline
    tier: str

    @cached_property
    def demands(self) -> dict[str, Demand]:
        """The demands of this tier and the ones before it."""
        tiers = TIERS[: TIERS.index(self.tier) + 1]
        return {key: d for key, d in self.baseline.demands.items() if d.tier in tiers}

    def subjects(self, per: str) -> tuple[str, ...]:
        """The subjects of demands that are `per` node or gpu."""
        if per == "node":
            return ("node",)
        return tuple(f"{per}{index}" for index in range(self.baseline.gpu_count)) if per == "gpu" else ()

    @cached_property
    def obligations(self) -> tuple[Obligation, ...]:
        """Every (demand, subject) pair of the plan."""
        return tuple(
            Obligation(demand, subject) for demand in self.demands.values() for subject in self.subjects(demand.per)
        )

    @cached_property
    def by_check(self) -> dict[str, tuple[Demand, ...]]:
        """The demands of each check id."""
        checks: dict[str, tuple[Demand, ...]] = {}
        for demand in self.demands.values():
            checks[demand.check] = (*checks.get(demand.check, ()), demand)
        return checks

    def unjudged(self, findings: Iterable[Finding]) -> tuple[Obligation, ...]:
        """The obligations that no finding answers."""
        answered = {(f.key, f.subject) for f in findings}
        return tuple(o for o in self.obligations if (o.demand.key, o.subject) not in answered)

    def acceptance(self, findings: Iterable[Finding]) -> Acceptance:
        """What the findings say of the node, by the plan: what no check judged leaves it incomplete, must or not."""
        found = tuple(findings)
        verdicts = {f.verdict for f in found}
        unjudged = self.unjudged(found)
        if Verdict.FAIL in verdicts:
            return Acceptance.REJECTED
        unverified = [self.demands[f.key] for f in found if f.verdict is Verdict.UNVERIFIED]
        if unjudged or any(demand.must for demand in unverified):
            return Acceptance.INCOMPLETE
        if unverified or Verdict.ADVISORY in verdicts:
            return Acceptance.WITH_ADVISORIES
        return Acceptance.ACCEPTED

    def coverage(self, findings: Iterable[Finding]) -> dict[str, int]:
        """How many (key, subject) pairs apply, and how many of them were judged."""
        found = tuple(findings)
        idle = {(f.key, f.subject) for f in found if f.verdict is Verdict.NOT_APPLICABLE}  # a job holds the node
        applicable = {(o.demand.key, o.subject) for o in self.obligations if not o.demand.absent} - idle
        judged = {(f.key, f.subject) for f in found if f.verdict not in (Verdict.UNVERIFIED, Verdict.NOT_APPLICABLE)}
        return {"planned": len(applicable), "judged": len(judged & applicable)}


def with_causes(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, each unverified one with the failed findings that explain it."""
    found = list(findings)
    failed = {(f.check, f.subject) for f in found if f.verdict is Verdict.FAIL}

    def blockers(finding: Finding) -> tuple[str, ...]:
        places = ("node", finding.subject)
        return tuple(
            f"{cause}@{place}"
            for cause in dict.fromkeys(finding.causes)
            for place in dict.fromkeys(places)
            if (cause, place) in failed
        )

    return [replace(f, blocked_by=blockers(f)) if f.verdict is Verdict.UNVERIFIED else f for f in found]
