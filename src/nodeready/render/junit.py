"""junit.xml for runs that pytest did not make: one test case per check and subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from nodeready.render import clock, groups, words
from nodeready.render.escape import Seen

if TYPE_CHECKING:
    from collections.abc import Mapping


_TAGS = {"fail": "failure", "unverified": "error", "waived": "skipped", "not-applicable": "skipped"}


def render(results: Mapping[str, Any]) -> str:
    """XML 1.0 with one `testsuite`.

    A failed check is a `failure`; what was not measured or not judged is an `error`, never a pass; what
    is waived or not applicable is `skipped`. Verdict, observation, bound and source of every finding are
    properties named `KEY:verdict` and so on.
    """
    seen = Seen.of(results)
    cases = groups.rows(seen)
    verdicts = [row.verdict for row in cases]
    suite = ET.Element(
        "testsuite",
        name="nodeready",
        tests=str(len(cases)),
        failures=str(verdicts.count("fail")),
        errors=str(verdicts.count("unverified")),
        skipped=str(verdicts.count("waived") + verdicts.count("not-applicable")),
        time=f"{clock.seconds(seen):.3f}",
        timestamp=clock.moment(seen["started"]).strftime("%Y-%m-%dT%H:%M:%S"),
        hostname=seen["host"],
    )
    _properties(suite, _of_run(seen))
    for row in cases:
        _case(suite, row)
    top = ET.Element("testsuites", name="nodeready")
    top.append(suite)
    ET.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(top, encoding="unicode")}\n'


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


def _properties(parent: ET.Element, named: Mapping[str, str]) -> None:
    if named:
        holder = ET.SubElement(parent, "properties")
        for name, value in named.items():
            ET.SubElement(holder, "property", name=name, value=value)


def _case(suite: ET.Element, row: groups.Row) -> None:
    case = ET.SubElement(suite, "testcase", classname=row.layer, name=f"{row.check}[{row.subject}]", time="0")
    properties: dict[str, str] = {}
    for finding in row.told:
        key = finding["key"]
        properties[f"{key}:verdict"] = "unjudged" if finding in row.unjudged else finding["verdict"]
        properties[f"{key}:observed"] = words.observed_text(finding)
        properties[f"{key}:required"] = words.bound_text(finding["required"])
        properties[f"{key}:source"] = finding["source"]
    _properties(case, properties)
    _outcome(case, row)


def _outcome(case: ET.Element, row: groups.Row) -> None:
    verdict = row.verdict
    text = "\n".join(_line(finding) for finding in row.told if finding["verdict"] != "pass")
    if verdict in _TAGS:
        first = next(finding for finding in row.told if finding["verdict"] == verdict)
        kind = "unjudged" if first in row.unjudged else verdict
        ET.SubElement(case, _TAGS[verdict], type=kind, message=first["message"]).text = text
    elif text:
        ET.SubElement(case, "system-out").text = text


def _line(finding: Mapping[str, Any]) -> str:
    parts = [
        f"{finding['key']}: {finding['verdict']}: observed {words.observed_text(finding)}",
        f"demanded {words.demanded_text(finding)}",
        finding["message"],
        f"blocked by {', '.join(finding['blocked_by'])}" if finding["blocked_by"] else "",
        f"remedy: {finding['remedy']}" if finding["remedy"] else "",
    ]
    return "; ".join(part for part in parts if part)
