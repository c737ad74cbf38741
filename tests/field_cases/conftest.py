"""The modules of this folder under their own names, the count of cases, and nodes whose documents are parsed once."""

import importlib.util
import sys
from pathlib import Path

import pytest

from nodeready.node.documents import Documents

_spec = importlib.util.spec_from_file_location("casebook", Path(__file__).with_name("casebook.py"))
casebook = importlib.util.module_from_spec(_spec)
sys.modules["casebook"] = casebook
_spec.loader.exec_module(casebook)


def pytest_terminal_summary(terminalreporter):
    kinds = [case.cannot.kind for case in casebook.CASES if case.cannot]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in casebook.field_case.KINDS if kind in kinds)
    owed = [case.id for case in casebook.CASES for shown in case.shown if getattr(shown, "owed", "")]
    taken = f"field cases: {len(casebook.CASES) - len(kinds)} taken, {len(kinds)} cannot ({told})"
    terminalreporter.write_line(f"{taken}; owed in part: {', '.join(dict.fromkeys(owed)) or 'none'}")


@pytest.fixture(autouse=True, scope="session")
def _parse_once():
    """Nodes that share a document share its parse: a parser is a function of what was recorded, and of nothing else."""
    plain, parsed = Documents._read, {}

    def read(documents, probe, parse):
        recording = documents.evidence.get(probe.name)
        if recording is None or recording.rc or not recording.stdout:
            return plain(documents, probe, parse)
        key = (probe.name, recording.stdout, recording.stderr)
        if key not in parsed:
            parsed[key] = plain(documents, probe, parse)
        return parsed[key]

    Documents._read = read
    yield
    Documents._read = plain
