"""What belongs together in a report: the findings of one row, of one demand, of one cause."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nodeready.render import words

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from nodeready.render.escape import Seen

Finding = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One check on one subject: its findings, and stand-ins for the demands that no check judged."""

    check: str
    subject: str
    findings: list[Finding] = field(default_factory=list)
    unjudged: list[Finding] = field(default_factory=list)

    @property
    def layer(self) -> str:
        """The check id's part before the dot."""
        return self.check.partition(".")[0]

    @property
    def told(self) -> list[Finding]:
        """Findings and stand-ins, at least one."""
        return [*self.findings, *self.unjudged]

    @property
    def verdict(self) -> str:
        """The join of the findings; a demand that was not judged counts as unverified."""
        return words.worst(finding["verdict"] for finding in self.told)


def rows(results: Seen) -> list[Row]:
    """One row per (check, subject), findings in their order, then what was not judged."""
    found: dict[tuple[str, str], Row] = {}
    for finding in results["findings"]:
        at = (finding["check"], finding["subject"])
        found.setdefault(at, Row(*at)).findings.append(finding)
    for stand_in in unjudged(results):
        at = (stand_in["check"], stand_in["subject"])
        found.setdefault(at, Row(*at)).unjudged.append(stand_in)
    return list(found.values())


def unjudged(results: Seen) -> list[Finding]:
    """A stand-in, unverified, for each finding that a planned check did not make."""
    nothing: dict[str, Any] = dict.fromkeys(("observed", "required", "recommended", "blocked_by"))
    nothing |= dict.fromkeys(("title", "source", "source_title", "source_url", "why", "remedy"), "")
    return [
        {
            **nothing,
            "check": left["check"],
            "layer": left["check"].partition(".")[0],
            "subject": left["subject"],
            "key": left["key"],
            "verdict": "unverified",
            "message": f"the check crashed: {left['error']}" if left.get("error") else words.NOT_JUDGED,
            "evidence": [],
            "measure": left.get("measure") or "must",
        }
        for left in results["unjudged"]
    ]


def with_verdict(results: Seen, verdict: str) -> list[Finding]:
    """The findings with this verdict, in the order of the plan."""
    return [finding for finding in results["findings"] if finding["verdict"] == verdict]


def counts(results: Seen) -> dict[str, int]:
    """How many findings have each verdict; every verdict is there."""
    counter = Counter(finding["verdict"] for finding in results["findings"])
    return {verdict: counter[verdict] for verdict in words.VERDICTS}


@dataclass(frozen=True)
class Demand:
    """Findings of one key that share bounds and remedy, on as many parts as they concern."""

    findings: list[Finding]

    @property
    def first(self) -> Finding:
        """The finding that speaks for all: key, title, bounds, why, remedy and source are the same."""
        return self.findings[0]


def by_demand(findings: Iterable[Finding]) -> list[Demand]:
    """Findings that differ only in the part, what was observed there and its message."""
    found: dict[Hashable, Demand] = {}
    for finding in findings:
        at = tuple(str(finding[name]) for name in ("key", "verdict", "required", "recommended", "remedy"))
        found.setdefault(at, Demand([])).findings.append(finding)
    return list(found.values())


def alike(findings: Iterable[Finding]) -> list[Demand]:
    """Findings of one demand that pass, have one cause or say the very same: one line of a table."""
    found: dict[Hashable, Demand] = {}
    for finding in findings:
        compared = ["key", "verdict", "required", "recommended", "source", "blocked_by"]
        plain = finding["verdict"] == "pass" or finding["blocked_by"]
        told = "" if plain else f"{words.observed_text(finding)} {words.said(finding)}"
        at = (told, *(str(finding[name]) for name in compared))
        found.setdefault(at, Demand([])).findings.append(finding)
    return list(found.values())


@dataclass(frozen=True)
class Cause:
    """Unverified findings that have one cause: a broken lower layer, or one reason.

    `blockers` are the `check@subject` that explain them, or there are none and `reason` does. `must` is whether
    at least one of them leaves the node incomplete.
    """

    blockers: tuple[str, ...]
    reason: str
    findings: list[Finding]

    @property
    def must(self) -> bool:
        """Whether one of the demands had to be measured."""
        return any(finding["measure"] == "must" for finding in self.findings)

    @property
    def title(self) -> str:
        """`blocked by driver.responds@node`, or the reason."""
        return f"blocked by {', '.join(self.blockers)}" if self.blockers else self.reason

    def checks(self) -> dict[str, list[str]]:
        """The subjects of every key, in the order of the plan."""
        found: dict[str, list[str]] = {}
        for finding in self.findings:
            found.setdefault(finding["key"], []).append(finding["subject"])
        return found


def causes(findings: Iterable[Finding], known: Mapping[str, Mapping[str, Any]]) -> list[Cause]:
    """Unverified findings by cause: what makes the node incomplete first, then the larger groups.

    Reasons that differ only in the bus id of their own GPU (`known`, by subject) are one reason.
    """
    found: dict[tuple[tuple[str, ...], str], list[Finding]] = {}
    for finding in findings:
        bus_id = known.get(finding["subject"], {}).get("bus_id")
        reason = words.reason(finding)
        shared = reason.replace(str(bus_id), "its bus id") if bus_id else reason
        blockers = tuple(finding["blocked_by"] or ())
        found.setdefault((blockers, "" if blockers else shared), []).append(finding)
    made = [
        Cause(blockers, shared if len(group) > 1 else words.reason(group[0]), group)
        for (blockers, shared), group in found.items()
    ]
    return sorted(made, key=lambda cause: (not cause.must, -len(cause.findings)))
