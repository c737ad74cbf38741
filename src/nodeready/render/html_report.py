"""report.html for runs that pytest did not make: pytest-html's own page, filled from `results.json`.

pytest-html renders the table in the browser from one JSON attribute and puts cells, logs and the
environment into the page as markup: every text is therefore quoted here, and capped.
"""

from __future__ import annotations

import functools
import html
import importlib.util
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeready.render import clock, groups, words
from nodeready.render.escape import Seen, harmless, head_and_tail
from nodeready.render.pages import environment
from nodeready.render.sentence import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jinja2 import Template

OUTCOMES = {
    "fail": "Failed",
    "unverified": "Error",
    "waived": "Skipped",
    "advisory": "XFailed",
    "pass": "Passed",
    "not-applicable": "Skipped",
}
ROW_CAP = 4096
_QUIET = ("pass", "not-applicable")
_CELL_CAP = 400
_LOG_AT_LEAST = 1024
_COLUMNS = ("result", "layer", "check", "subject", "observed", "demanded", "source", "remedy")
_SORTABLE = ("result", "layer", "check", "subject")
_LABELS = {
    "failed": "Failed",
    "passed": "Passed",
    "skipped": "Waived or not applicable",
    "xfailed": "Advisory",
    "xpassed": "Unexpected passes",
    "error": "Unverified",
    "rerun": "Reruns",
    "retried": "Retried",
}
LEGEND = (
    "Error: not measured, so not a pass. XFailed: meets the required bound, misses the recommended one. "
    "Skipped: waived, or not applicable."
)
_LEGIBLE = """
#results-table, #environment { color: #1c1c1c; }
#results-table td { vertical-align: top; overflow-wrap: anywhere; unicode-bidi: isolate; }
#results-table .col-result { white-space: nowrap; font-weight: bold; }
"""


def render(results: Mapping[str, Any]) -> str:
    """The whole page, self-contained; one row per check and subject, failures first.

    Raises FileNotFoundError where pytest-html is not installed.
    """
    seen = Seen.of(results)
    rows = sorted(groups.rows(seen), key=lambda row: words.VERDICTS.index(row.verdict))
    finished = clock.moment(seen["finished"])
    page, style, version = _pytest_html()
    return page.render(
        title=_title(seen),
        date=finished.strftime("%d-%b-%Y"),
        time=finished.strftime("%H:%M:%S UTC"),
        version=version,
        styles=style + _LEGIBLE,
        run_count=_run_count(seen, rows),
        running_state="finished",
        self_contained=True,
        outcomes=_outcomes(rows),
        test_data=json.dumps(_data(seen, rows)),
        table_head=table_header(),
        additional_summary={"prefix": summary_html(seen), "summary": [], "postfix": []},
    )


def table_header() -> list[str]:
    """The head cells: Result, Layer, Check, Subject, Observed, Demanded, Source, Remedy."""
    return [
        f'<th class="sortable" data-column-type="{name}">{name.capitalize()}</th>'
        if name in _SORTABLE
        else f"<th>{name.capitalize()}</th>"
        for name in _COLUMNS
    ]


def table_cells(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The cells of one row: all findings of one check on one subject, at least one.

    A check with several demands names each by the key's part after the slash. Texts are quoted and
    capped, so that the cells of a row hold about 2 KB at most.
    """
    return _cells(harmless(list(findings)))


def _cells(told: Sequence[Mapping[str, Any]]) -> list[str]:
    first = told[0]
    texts = {
        "result": OUTCOMES[words.worst(finding["verdict"] for finding in told)],
        "layer": first["layer"],
        "check": first["check"],
        "subject": first["subject"],
        "observed": _each(told, words.observed_text),
        "demanded": _each(told, words.demanded_text),
        "source": "; ".join(dict.fromkeys(finding["source"] for finding in told)),
        "remedy": " ".join(dict.fromkeys(finding["remedy"] for finding in told if finding["verdict"] not in _QUIET)),
    }
    return [f'<td class="col-{name}">{html.escape(_capped(texts[name]))}</td>' for name in _COLUMNS]


def node_id(check: str, subject: str) -> str:
    """A row's id, in ASCII letters, digits and `:._-`."""
    return re.sub(r"[^A-Za-z0-9:._-]", "-", f"{check}:{subject}")[:200]


def summary_html(results: Mapping[str, Any]) -> list[str]:
    """Paragraphs above the table: the run's sentence, and what the outcomes stand for."""
    said = html.escape(sentence(Seen.of(results)))
    return [f"<p><strong>{said}</strong></p>", f"<p>{LEGEND}</p>"]


def _log(told: Iterable[Mapping[str, Any]], room: int) -> str:
    """What unfolds below a row, quoted: message, why, cause and evidence of each finding; about `room` characters."""
    lines = []
    for finding in told:
        lines.append(f"{finding['key']}: {finding['verdict']}")
        said = {
            "": words.said(finding),
            "observed: ": words.observed_text(finding),
            "required: ": words.bound_text(finding["required"]),
            "recommended: ": words.bound_text(finding["recommended"]),
            "why: ": finding["why"],
            "blocked by: ": ", ".join(finding["blocked_by"] or ()),
            "remedy: ": finding["remedy"],
            "source: ": " ".join(filter(None, (finding["source_title"], finding["source_url"]))),
            "evidence: ": ", ".join(finding["evidence"]),
        }
        lines += [f"    {name}{text}" for name, text in said.items() if text and text != words.NOTHING]
    return html.escape(head_and_tail("\n".join(lines), room))


def _each(told: Sequence[Mapping[str, Any]], text: Any) -> str:
    if len(told) == 1:
        return str(text(told[0]))
    named = ((finding["key"].partition("/")[2], text(finding)) for finding in told)
    return "; ".join(f"{part}: {said}" if part else str(said) for part, said in named)


def _capped(text: str) -> str:
    return text if len(text) <= _CELL_CAP else head_and_tail(text, _CELL_CAP).replace("\n", " ")


def _data(seen: Seen, rows: Iterable[groups.Row]) -> dict[str, Any]:
    tests: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        cells = _cells(row.told)
        room = max(ROW_CAP - sum(map(len, cells)), _LOG_AT_LEAST)
        at = node_id(row.check, row.subject)
        test = {
            "testId": at,
            "extras": [],
            "result": OUTCOMES[row.verdict],
            "layer": row.layer,
            "check": row.check,
            "subject": row.subject,
            "resultsTableRow": cells,
            "log": _log(row.told, room),
        }
        tests.setdefault(at, []).append(test)
    return {
        "environment": {name: html.escape(text) for name, text in _environment(seen).items()},
        "tests": tests,
        "renderCollapsed": ["error", "passed", "skipped", "xfailed"],
        "initialSort": "original",  # theirs would put all that a dead driver hides above the dead driver
        "title": _title(seen),
    }


def _title(seen: Seen) -> str:
    return f"nodeready: {seen['host']}, tier {seen['tier']}"


def _environment(seen: Seen) -> dict[str, str]:
    baseline, node, evidence = seen["baseline"], seen["node"], seen["evidence"]
    told = {
        "Host": seen["host"],
        "Node type": seen["node_type"],
        "Tier": seen["tier"],
        "Baseline": f"{baseline['name']}@{baseline['version']} ({baseline['status']}), sha256 {baseline['sha256']}",
        "Overrides": "; ".join(f"{key} = {words.value_text(value)}" for key, value in seen["overrides"].items()),
        "Suite": f"nodeready {seen['suite_version']}",
        "Evidence": " ".join(filter(None, (evidence["kind"], evidence["path"]))),
        "Started": seen["started"],
        "Finished": seen["finished"],
    }
    named = {"Product": "product", "Driver": "driver", "CUDA": "cuda", "OS": "os", "Memory": "memory"}
    told |= {name: str(node[field]) for name, field in named.items() if node.get(field)}
    return {name: text for name, text in told.items() if text}


def _outcomes(rows: Iterable[groups.Row]) -> dict[str, dict[str, Any]]:
    results = [OUTCOMES[row.verdict].lower() for row in rows]
    return {name: {"label": label, "value": results.count(name)} for name, label in _LABELS.items()}


def _run_count(seen: Seen, rows: Sequence[groups.Row]) -> str:
    coverage = seen["coverage"]
    took = clock.duration_text(clock.seconds(seen))
    checks = words.counted(len(rows), "check")
    return f"{checks}, {coverage['judged']} of {coverage['planned']} demands judged, took {took}."


@functools.cache
def _pytest_html() -> tuple[Template, str, str]:
    """The page, the style sheet and the version of the installed pytest-html, which is not imported."""
    from jinja2 import select_autoescape

    found = importlib.util.find_spec("pytest_html")
    if found is None or found.origin is None:
        raise FileNotFoundError("report.html needs the package pytest-html: pip install pytest-html")
    package = Path(found.origin).parent
    resources = package / "resources"
    pages = environment(resources, autoescape=select_autoescape(enabled_extensions=("jinja2",)))
    # the package's metadata says the same and costs a slow import
    stated = (package / "__version.py").read_text(encoding="utf-8")
    version = re.search(r"^__version__ = .*?'([^']+)'", stated, re.MULTILINE)
    style = (resources / "style.css").read_text(encoding="utf-8")
    return pages.get_template("index.jinja2"), style, version[1] if version else ""
