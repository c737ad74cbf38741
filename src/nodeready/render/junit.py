"""junit.xml for runs that pytest did not make: one test case per check and subject."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from nodeready.render import clock, groups, words
from nodeready.render.escape import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_TAGS = {"fail": "failure", "unverified": "error", "waived": "skipped", "not-applicable": "skipped"}


def render(results: Mapping[str, Any]) -> str:
    """XML 1.0 with one `testsuite`.

    A failed check is a `failure`; what was not measured or not judged is an `error`, never a pass; what
    is waived or not applicable is `skipped`. Verdict, observation, bound and source of every finding are
    properties named `KEY:verdict` and so on.
    """
    return "\n".join(_lines(Seen.of(results))) + "\n"


def _lines(seen: Seen) -> Iterator[str]:
    """The document line by line: building a tree of it and writing that takes four times as long."""
    cases = groups.rows(seen)
    verdicts = [row.verdict for row in cases]
    suite = {
        "name": "nodeready",
        "tests": str(len(cases)),
        "failures": str(verdicts.count("fail")),
        "errors": str(verdicts.count("unverified")),
        "skipped": str(verdicts.count("waived") + verdicts.count("not-applicable")),
        "time": f"{clock.seconds(seen):.3f}",
        "timestamp": clock.moment(seen["started"]).strftime("%Y-%m-%dT%H:%M:%S"),
        "hostname": seen["host"],
    }
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield '<testsuites name="nodeready">'
    yield f"  <testsuite{_attributes(suite)}>"
    yield from _properties(_of_run(seen), "    ")
    for row in cases:
        yield from _case(row)
    yield "  </testsuite>"
    yield "</testsuites>"


def _attributes(named: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in named.items())


def _of_run(seen: Seen) -> dict[str, str]:
    baseline = seen["baseline"]
    return {
        "acceptance": seen["acceptance"],
        "tier": seen["tier"],
        "node_type": seen["node_type"],
        "baseline": f"{baseline['name']}@{baseline['version']}",
        "baseline_sha256": baseline["sha256"],
        "baseline_status": baseline["status"],
        "suite_version": seen["suite_version"],
        "coverage": f"{seen['coverage']['judged']} of {seen['coverage']['planned']}",
        "subset": "yes" if seen["subset"] else "no",
        **{f"override {key}": words.value_text(value) for key, value in seen["overrides"].items()},
    }


def _properties(named: Mapping[str, str], indent: str) -> Iterator[str]:
    yield f"{indent}<properties>"
    for name, value in named.items():
        yield f'{indent}  <property name="{escape(name)}" value="{escape(value)}" />'
    yield f"{indent}</properties>"


def _case(row: groups.Row) -> Iterator[str]:
    yield f'    <testcase classname="{escape(row.layer)}" name="{escape(f"{row.check}[{row.subject}]")}" time="0">'
    properties: dict[str, str] = {}
    for finding in row.told:
        key = finding["key"]
        properties[f"{key}:verdict"] = "unjudged" if finding in row.unjudged else finding["verdict"]
        properties[f"{key}:observed"] = words.observed_text(finding)
        properties[f"{key}:required"] = words.bound_text(finding["required"])
        properties[f"{key}:source"] = finding["source"]
    yield from _properties(properties, "      ")
    yield from _outcome(row)
    yield "    </testcase>"


def _outcome(row: groups.Row) -> Iterator[str]:
    verdict = row.verdict
    text = escape("\n".join(_line(finding) for finding in row.told if finding["verdict"] != "pass"))
    if verdict in _TAGS:
        first = next(finding for finding in row.told if finding["verdict"] == verdict)
        kind = "unjudged" if first in row.unjudged else verdict
        about = _attributes({"type": kind, "message": first["message"]})
        yield f"      <{_TAGS[verdict]}{about}>{text}</{_TAGS[verdict]}>"
    elif text:
        yield f"      <system-out>{text}</system-out>"


def _line(finding: Mapping[str, Any]) -> str:
    parts = [
        f"{finding['key']}: {finding['verdict']}: observed {words.observed_text(finding)}",
        f"demanded {words.demanded_text(finding)}",
        finding["message"],
        f"blocked by {', '.join(finding['blocked_by'])}" if finding["blocked_by"] else "",
        f"remedy: {finding['remedy']}" if finding["remedy"] else "",
    ]
    return "; ".join(part for part in parts if part)
