"""Filling a run folder: results.json first, then its renderings, each whole or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.evidence.capture import write_beside
from nodeready.render import certificate, html_report, junit, prometheus, terminal

if TYPE_CHECKING:
    from nodeready.gate import Gate


def write(gate: Gate, results: dict[str, Any], *, with_report: bool) -> None:
    """Write all files of a run; `with_report` is false where pytest-html itself writes report.html."""
    folder = gate.folder
    if folder is None:
        raise RuntimeError("the run has no folder")
    gate.pack_capture()
    write_beside(folder / "results.json", (json.dumps(results, indent=1) + "\n").encode())
    write_beside(folder / "certificate.html", certificate.render(results).encode())
    write_beside(folder / "junit.xml", junit.render(results).encode())
    write_beside(folder / "node.prom", prometheus.render(results).encode())
    if with_report:
        write_beside(folder / "report.html", html_report.render(results).encode())
    gate.point_latest()


def summary(gate: Gate, results: dict[str, Any], *, colour: bool) -> list[str]:
    """What is said on the terminal; its last line is the sentence to act on."""
    lines: list[str] = terminal.summary(results, colour=colour)
    return [*lines[:-1], f"reports: {gate.folder}", *lines[-1:]]
