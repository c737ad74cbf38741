"""The summary of a run on a terminal: what failed, what could not be measured, one sentence to act on."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from nodeready.render import clock, groups, words
from nodeready.render.escape import Seen, visible
from nodeready.render.sentence import headline, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORT = 120
_DETAILS = "see certificate.html"
# how many lines each section may take, and one block of parts within it
_SHARES = {"failures": 26, "unmeasured": 12, "advisories": 4}
_BLOCK = 20
_COLOURS = {"fail": "31;1", "unverified": "33;1", "advisory": "33", "accepted": "32;1"}


def summary(results: Mapping[str, Any], colour: bool = False, width: int = 100, folder: str = "") -> list[str]:
    """The summary as lines without line ends: at most about 60, the last one the sentence to act on.

    Failures come first, then what was not measured by cause, advisories, counts. `colour` adds the
    terminal's colour sequences, `width` is in characters (only the last line may be longer), and
    `folder` is where the reports of this run lie.
    """
    seen = Seen.of(results)
    page = _Page(colour, max(width, 40))
    page.lines += page.wrapped(_heading(seen), hang=2, most=3)
    _failures(page, seen)
    _unmeasured(page, seen)
    _advisories(page, seen)
    page.lines.append("")
    for line in _counts(seen):
        page.lines += page.wrapped(line, hang=2)
    if folder:
        page.lines.append(f"report: {visible(folder)}/certificate.html")
    page.lines.append(page.painted(sentence(seen), _tone(seen)))
    return page.lines


class _Page:
    """Lines of one width; blocks that no longer fit into their part's share are folded and counted."""

    def __init__(self, colour: bool, width: int) -> None:
        self.colour = colour
        self.width = width
        self.lines: list[str] = []

    def painted(self, text: str, tone: str) -> str:
        return f"\x1b[{_COLOURS[tone]}m{text}\x1b[0m" if self.colour else text

    def wrapped(self, text: str, indent: int = 0, hang: int = 0, most: int = 2) -> list[str]:
        """The text in lines of the page's width, at most `most` of them."""
        blank = " " * indent
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=blank,
            subsequent_indent=blank + " " * hang,
            break_on_hyphens=False,
            max_lines=most,
            placeholder=" …",
        )

    def section(self, title: str, tone: str, blocks: list[list[str]], room: int, noun: str) -> None:
        self.lines += ["", self.painted(title, tone)]
        for position, block in enumerate(blocks):
            room -= len(block)
            if room < 0 and position:
                self.lines.append(f"  and {words.counted(len(blocks) - position, f'more {noun}')}: {_DETAILS}")
                break
            self.lines += block


def _heading(seen: Seen) -> str:
    baseline = seen["baseline"]
    draft = " (draft)" if baseline["status"] == "draft" else ""
    said = [
        f"nodeready {seen['suite_version']}",
        str(seen["host"]),
        str(seen["node_type"]),
        f"tier {seen['tier']}",
        f"baseline {baseline['name']}@{baseline['version']}{draft}",
    ]
    if seen["overrides"]:
        overridden = ", ".join(f"{key}={words.value_text(value)}" for key, value in seen["overrides"].items())
        said.append(f"overridden: {overridden}")
    return " · ".join(said)


def _failures(page: _Page, seen: Seen) -> None:
    failures = groups.with_verdict(seen, "fail")
    if not failures:
        return
    known = words.gpus(seen)
    blocks = [_failure(page, demand, known) for demand in groups.by_demand(failures)]
    page.section(f"FAILED ({len(failures)})", "fail", blocks, _SHARES["failures"], "demand")


def _failure(page: _Page, demand: groups.Demand, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    first = demand.first
    lines = page.wrapped(f"{first['key']}  {first['title']}", indent=2, hang=2)
    for position, finding in enumerate(demand.findings):
        about = _part(page, finding, known)
        if position and len(lines) + len(about) > _BLOCK:
            left = words.subjects_text([later["subject"] for later in demand.findings[position:]])
            lines += page.wrapped(f"and {len(demand.findings) - position} more: {left}", indent=4, hang=2)
            break
        lines += about
    if first["remedy"]:
        lines += page.wrapped(f"-> {first['remedy']}", indent=4, hang=3, most=3)
    return lines


def _part(page: _Page, finding: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    where = words.part(finding["subject"], known)
    observed, demanded = _short(words.observed_text(finding)), _short(words.demanded_text(finding))
    lines = page.wrapped(f"{where}: {observed}, demanded {demanded}", indent=4, hang=2, most=4)
    if words.tells_more(finding):
        lines += page.wrapped(words.said(finding), indent=6, most=3)
    return lines


def _unmeasured(page: _Page, seen: Seen) -> None:
    unverified, unjudged = groups.with_verdict(seen, "unverified"), groups.unjudged(seen)
    known = words.gpus(seen)
    causes = [*groups.causes(unverified, known), *groups.causes(unjudged, known)]
    causes.sort(key=lambda cause: not cause.must)
    if causes:
        blocks = [_cause(page, cause) for cause in causes]
        title = f"NOT MEASURED ({len(unverified) + len(unjudged)})"
        page.section(title, "unverified", blocks, _SHARES["unmeasured"], "reason")


def _cause(page: _Page, cause: groups.Cause) -> list[str]:
    softer = "" if cause.must else ", measured if possible"
    keys = ", ".join(f"{key} ({words.subjects_text(subjects, 4)})" for key, subjects in cause.checks().items())
    return [
        *page.wrapped(f"{cause.title} ({len(cause.findings)}{softer})", indent=2, hang=2),
        *page.wrapped(keys, indent=4),
    ]


def _advisories(page: _Page, seen: Seen) -> None:
    advisories = groups.with_verdict(seen, "advisory")
    if not advisories:
        return
    lines = []
    for demand in groups.by_demand(advisories):
        subjects = words.subjects_text([finding["subject"] for finding in demand.findings], 4)
        observed = ", ".join(dict.fromkeys(_short(words.observed_text(finding)) for finding in demand.findings))
        said = f"{demand.first['key']} on {subjects}: {observed}, {_recommended(demand.first)}"
        lines.append(page.wrapped(said, indent=2, most=1))
    page.section(f"ADVISORIES ({len(advisories)})", "advisory", lines, _SHARES["advisories"], "demand")


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def _recommended(finding: Mapping[str, Any]) -> str:
    return f"recommended {words.bound_text(finding['recommended'] or finding['required'])}"


def _counts(seen: Seen) -> list[str]:
    said = ", ".join(f"{number} {verdict}" for verdict, number in groups.counts(seen).items() if number)
    coverage = seen["coverage"]
    took = clock.duration_text(clock.seconds(seen))
    lines = [f"{said or 'no findings'}", f"{coverage['judged']} of {coverage['planned']} demands judged in {took}"]
    if seen.get("in_service"):
        lines.append("in service: judged by the bounds for nodes in service, where a demand has any")
    return [*lines, "report only: the exit status is 0 whatever was found"] if seen["report_only"] else lines


def _tone(seen: Seen) -> str:
    word = headline(seen)
    if word == "REJECTED":
        return "fail"
    return "accepted" if word.startswith("ACCEPTED") else "unverified"
