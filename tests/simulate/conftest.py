"""Simulated nodes judged in process: no folder, and every document parsed once however many nodes share it."""

from functools import cache

import pytest

from nodeready import baseline
from nodeready.check import load_checks
from nodeready.engine import Judging
from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.gate import terms_of
from nodeready.node import Node
from nodeready.node.documents import Documents
from nodeready.plan import Plan
from nodeready.simulate.outputs.names import outputs
from nodeready.verdict import join


@cache
def plan_of(node_type, settings=()):
    return Plan(baseline.load(node_type, "", list(settings)), "acceptance")


@pytest.fixture(scope="session")
def parsed():
    return {}


@pytest.fixture(scope="session")
def checks():
    return load_checks()


@pytest.fixture
def judging(monkeypatch, parsed, checks):
    """Judge a simulated node: the finished `Judging`."""
    plain = Documents._read

    def read(self, probe, parse):
        recording = self.evidence.get(probe.name)
        if recording is None:
            return plain(self, probe, parse)
        key = (recording.name, recording.rc, recording.stdout, recording.stderr)
        if key not in parsed:
            parsed[key] = plain(self, probe, parse)
        return parsed[key]

    monkeypatch.setattr(Documents, "_read", read)

    def run(node, *settings, planned=None):
        plan = plan_of(node.shape.node_type, (f"gpu.count={planned or len(node.gpus)}", *settings))
        recordings = {
            name: Recording(name, rc=output.rc, stdout=output.stdout, stderr=output.stderr)
            for name, output in outputs(node).items()
        }
        found = Judging(plan, Node(Evidence("folder", "node", recordings), terms_of(plan.baseline)))
        found.run_all(checks)
        assert found.errors == {}
        assert plan.unjudged(found.findings()) == ()
        return found

    return run


@pytest.fixture
def verdicts(judging):
    """The verdict of every (check, subject) of a simulated node, without those that its baseline leaves out."""

    def run(node, *settings, planned=None):
        found = {}
        for finding in judging(node, *settings, planned=planned).findings():
            found.setdefault((finding.check, finding.subject), []).append(finding.verdict)
        joined = {at: join(each).value for at, each in found.items()}
        return {at: verdict for at, verdict in joined.items() if verdict != "not-applicable"}

    return run
