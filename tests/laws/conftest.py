"""Nodes of every type, judged in process with every unchanged document parsed once."""

from types import SimpleNamespace

import pytest

from nodeready.baseline import load, node_types
from nodeready.check import load_checks
from nodeready.engine import Judging
from nodeready.evidence.capture import Evidence
from nodeready.evidence.folder import read_evidence
from nodeready.gate import terms_of
from nodeready.node import Node
from nodeready.node.catalogue import evidence_names
from nodeready.node.documents import Documents
from nodeready.plan import Plan
from nodeready.simulate.write import simulate

CHECKS = load_checks()
PARSED = {}


PARSE = Documents._read


def _read_once(documents, probe, parse):
    """Mutants share the parse of the recordings that they leave as they are."""
    recording = documents.evidence.get(probe.name)
    if recording is None or recording.rc or not recording.stdout:
        return PARSE(documents, probe, parse)
    key = (probe.name, recording.stdout)
    if key not in PARSED:
        if len(PARSED) > 2000:
            PARSED.clear()
        PARSED[key] = PARSE(documents, probe, parse)
    return PARSED[key]


@pytest.fixture(autouse=True, scope="session")
def _parse_once():
    Documents._read = _read_once
    yield
    Documents._read = PARSE


class Bench:
    """One healthy node: its evidence, plan and findings."""

    def __init__(self, node_type, evidence):
        self.node_type, self.evidence = node_type, evidence
        baseline = load(node_type)
        self.plan, self.terms = Plan(baseline, "acceptance"), terms_of(baseline)
        self.healthy = {(f.key, f.subject): f for f in self.findings({})}

    def judging(self, changes):
        """The node with some recordings changed (bytes, or None: not recorded)."""
        recordings = dict(self.evidence.recordings)
        for name, data in changes.items():
            if data is None:
                recordings.pop(name, None)
            else:
                recordings[name] = SimpleNamespace(**{**recordings[name].__dict__, "stdout": data, "complaint": ""})
        evidence = Evidence("folder", "h", recordings)
        return Judging(self.plan, Node(evidence, self.terms))

    def findings(self, changes):
        judging = self.judging(changes)
        judging.run_all(CHECKS)
        assert not judging.errors, judging.errors
        return judging.findings()

    def finding(self, changes, key, subject):
        """The finding of one key on one subject."""
        judging = self.judging(changes)
        judging.run(CHECKS[key.partition("/")[0]], subject)
        assert not judging.errors, judging.errors
        return judging.found[key, subject]


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    """The bench of a node type, with some faults."""
    made = {}

    def make(node_type, *faults):
        if (node_type, faults) not in made:
            folder = tmp_path_factory.mktemp("bench") / "node"
            simulate(node_type, folder, list(faults), {}, 1)
            made[node_type, faults] = Bench(node_type, read_evidence(folder, evidence_names()))
        return made[node_type, faults]

    return make


def pytest_generate_tests(metafunc):
    if "node_type" in metafunc.fixturenames:
        metafunc.parametrize("node_type", node_types())
