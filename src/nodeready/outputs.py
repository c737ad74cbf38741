"""Filling a run folder: the renderings, then results.json, each whole or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.evidence.capture import write_beside
from nodeready.render import certificate, html_report, junit, prometheus, terminal
from nodeready.render.escape import Seen

if TYPE_CHECKING:
    from nodeready.gate import Gate


def write(gate: Gate, results: dict[str, Any], *, with_report: bool) -> Seen:
    """Write all files of a run; `with_report` is false where pytest-html itself writes report.html.

    Returned is the harmless form of the results, which the summary can take: making it costs as much as a report.
    """
    folder = gate.folder
    if folder is None:
        raise RuntimeError("the run has no folder")
    gate.pack_capture()
    seen = Seen.of(results)
    write_beside(folder / "certificate.html", certificate.render(seen).encode())
    write_beside(folder / "junit.xml", junit.render(seen).encode())
    write_beside(folder / "node.prom", prometheus.render(seen).encode())
    if with_report:
        write_beside(folder / "report.html", html_report.render(seen).encode())
    write_beside(folder / "results.json", as_json(results).encode())  # last: a run without it is not finished
    gate.point_latest()
    return seen


def as_json(results: dict[str, Any]) -> str:
    """The results as JSON, one line for each top-level key and each finding: quick to write, fit for diff."""
    rows = []
    for key, value in results.items():
        if key in ("findings", "unjudged") and value:
            rows.append(f'"{key}": [\n  ' + ",\n  ".join(json.dumps(entry) for entry in value) + "\n ]")
        else:
            rows.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n " + ",\n ".join(rows) + "\n}\n"


def summary(gate: Gate, results: dict[str, Any], *, colour: bool) -> list[str]:
    """What is said on the terminal; its last line is the sentence to act on."""
    return terminal.summary(results, colour=colour, folder=str(gate.folder))
