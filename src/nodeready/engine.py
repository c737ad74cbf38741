"""The engine calls checks and keeps their findings; pytest is one of its callers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nodeready.expectation import judge, observed_json
from nodeready.plan import with_causes
from nodeready.reading import Unknown, Unverified
from nodeready.verdict import Finding, Verdict, join

if TYPE_CHECKING:
    from nodeready.check import Check
    from nodeready.node import Node
    from nodeready.plan import Plan
    from nodeready.reading import Reading


_NOTHING_TO_DO = (Verdict.PASS, Verdict.NOT_APPLICABLE)


class CheckError(Exception):
    """A check that does not keep its own form; what it should have judged stays unjudged."""


@dataclass
class Judging:
    """One plan being judged on one node.

    `errors` holds what checks raised outside of `expect`, by (check id, subject).
    """

    plan: Plan
    node: Node
    found: dict[tuple[str, str], Finding] = field(default_factory=dict)
    errors: dict[tuple[str, str], str] = field(default_factory=dict)

    def subject(self, name: str) -> Any:
        """The subject that a check gets for `node` or `gpu3`."""
        return self.node if name == "node" else self.node.gpus[int(name.removeprefix("gpu"))]

    def expectation(self, check: Check, subject: str) -> Expectation:
        """The `expect` of one check on one subject."""
        return Expectation(self, check, subject)

    def run(self, check: Check, subject: str) -> Verdict:
        """Call a check and join its findings; an exception leaves it unjudged and is kept."""
        expect = self.expectation(check, subject)
        try:
            check.function(self.subject(subject), expect)
        except Unverified as error:
            self.withdraw(expect, f"an unknown reading was used as a value: {error}")
        except Exception as error:  # noqa: BLE001 - kept as an error of this check; the others go on
            self.withdraw(expect, f"{type(error).__name__}: {error}")
        return expect.verdict

    def withdraw(self, expect: Expectation, error: str) -> None:
        """A check that raised has judged nothing, whatever it recorded before; only its failures stay."""
        self.errors[expect.check.id, expect.subject] = error
        for at, finding in list(self.found.items()):
            mine = (finding.check, finding.subject) == (expect.check.id, expect.subject)
            if mine and finding.verdict is not Verdict.FAIL:
                del self.found[at]
        expect.findings = [finding for finding in expect.findings if finding.verdict is Verdict.FAIL]

    def run_all(self, checks: dict[str, Check]) -> None:
        """Call every planned check that exists on all its subjects."""
        for check_id in self.plan.by_check:
            check = checks.get(check_id)
            if check is not None:
                for subject in self.plan.subjects(check.per):
                    self.run(check, subject)

    def findings(self) -> list[Finding]:
        """All findings in the plan's order, with the demands that the baseline calls absent."""
        complete = dict(self.found)
        for obligation in self.plan.obligations:
            at = (obligation.demand.key, obligation.subject)
            if obligation.demand.absent and at not in complete:
                check = obligation.demand.check
                reason = obligation.demand.absent
                complete[at] = Finding(check, at[1], at[0], Verdict.NOT_APPLICABLE, None, reason)
        order = [(o.demand.key, o.subject) for o in self.plan.obligations]
        return with_causes(complete[at] for at in order if at in complete)


@dataclass
class Expectation:
    """The `expect` of one check on one subject: records one finding for each key."""

    judging: Judging
    check: Check
    subject: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The join of what was recorded; nothing recorded is unverified."""
        return join(f.verdict for f in self.findings)

    def __call__(self, key: str, reading: Reading[Any]) -> None:
        """Judge the reading by the demand of that key and record the finding."""
        if key.partition("/")[0] != self.check.id:
            raise CheckError(f"{self.check.id} judges {key}, which is not its own key")
        demand = self.judging.plan.baseline.demands.get(key)
        if demand is None:
            raise CheckError(f"{key} is not declared by the baseline")
        if key not in self.judging.plan.demands:
            return  # of a later tier
        if (key, self.subject) in self.judging.found:
            raise CheckError(f"{key} is judged twice on {self.subject}")
        judgement = judge(demand, reading, self.judging.node.held_by if demand.idle_only else "")
        finding = Finding(
            check=self.check.id,
            subject=self.subject,
            key=key,
            verdict=judgement.verdict,
            observed=observed_json(demand, reading) if judgement.verdict is not Verdict.NOT_APPLICABLE else None,
            message=f"{self.judging.node.label(self.subject)}: {judgement.sentence}",
            remedy=self.check.remedy if judgement.verdict not in _NOTHING_TO_DO else "",
            reason=judgement.reason,
            evidence=reading.recordings,
            causes=reading.causes if isinstance(reading, Unknown) else (),
        )
        self.judging.found[key, self.subject] = finding
        self.findings.append(finding)
