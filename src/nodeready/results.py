"""results.json is the canonical record of a run; all other outputs are renderings of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from nodeready import __version__
from nodeready.evidence.capture import utc

if TYPE_CHECKING:
    from nodeready.engine import Judging
    from nodeready.expectation import Bound, Demand
    from nodeready.gate import Gate
    from nodeready.verdict import Finding

SCHEMA_VERSION = 1
BUSY = 11
PYTESTS_OWN = (2, 3, 4, 5)


def build(gate: Gate, judging: Judging, outer_status: int = 0) -> dict[str, Any]:
    """The results of a run. `outer_status` is pytest's own exit status, which wins where it is 2 to 5."""
    findings = [] if gate.busy else judging.findings()
    plan, baseline, evidence = gate.plan, gate.plan.baseline, judging.node.evidence
    acceptance = plan.acceptance(findings)
    return {
        "schema_version": SCHEMA_VERSION,
        "acceptance": acceptance.value,
        "exit_status": _exit_status(gate, acceptance.exit_status, outer_status),
        "host": gate.host,
        "node_type": gate.request.node_type,
        "tier": plan.tier,
        "started": utc(gate.started),
        "finished": utc(time.time()),
        "duration": round(time.time() - gate.started, 3),
        "suite_version": __version__,
        "baseline": {
            "name": baseline.name,
            "version": baseline.version,
            "sha256": baseline.sha256,
            "status": baseline.status,
        },
        "overrides": baseline.overrides,
        "coverage": plan.coverage(findings),
        "subset": gate.subset,
        "report_only": gate.request.report_only,
        "in_service": gate.request.in_service,
        "foreign_failure": gate.foreign_failure or None,
        "busy": gate.busy or None,
        "node": judging.node.identity(),
        "evidence": {"kind": evidence.kind, "path": evidence.path or None, "taken": evidence.taken or None},
        "unjudged": [unjudged_row(judging, o.demand, o.subject) for o in plan.unjudged(findings)],
        "findings": [finding_row(judging, finding) for finding in findings],
    }


def _exit_status(gate: Gate, accepted: int, outer: int) -> int:
    if outer in PYTESTS_OWN:
        return outer
    if gate.request.report_only:
        return 0
    if gate.busy:
        return BUSY
    return outer if gate.foreign_failure and accepted == 0 else accepted


def unjudged_row(judging: Judging, demand: Demand, subject: str) -> dict[str, Any]:
    """A planned demand that no finding answers, and what its check raised."""
    return {
        "check": demand.check,
        "key": demand.key,
        "subject": subject,
        "measure": demand.measure,
        "error": judging.errors.get((demand.check, subject)),
    }


def finding_row(judging: Judging, finding: Finding) -> dict[str, Any]:
    """A finding with its demand, as results.json holds it."""
    demand = judging.plan.demands[finding.key]
    source = judging.plan.baseline.sources.get(demand.source, {})

    def bound(of: Bound | None) -> dict[str, Any] | None:
        return of.as_json() if of else None

    return {
        "check": finding.check,
        "layer": finding.layer,
        "subject": finding.subject,
        "key": finding.key,
        "title": demand.title,
        "verdict": finding.verdict.value,
        "observed": finding.observed,
        "required": bound(demand.required),
        "recommended": bound(demand.recommended),
        "measure": demand.measure,
        "source": demand.source,
        "source_title": source.get("title", ""),
        "source_url": source.get("where", ""),
        "why": demand.why,
        "message": finding.message,
        "reason": finding.reason,
        "remedy": finding.remedy,
        "blocked_by": list(finding.blocked_by) or None,
        "evidence": list(finding.evidence),
    }
