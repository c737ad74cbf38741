"""Every fault live: a run on a machine that plays the faulty node gives the verdicts that the fault lists.

The node's commands come first on PATH and NVML is the fake library, so a run asks as it asks any machine. What it says
is held against what the fault lists, and what it recorded against what the node gives as evidence. `make test` runs
every fault on one type, by turns; NODEREADY_SWEEP=all runs every fault on every type, about 2,000 runs.
"""

import importlib.util
import os
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from nodeready.engine import Judging
from nodeready.evidence import live
from nodeready.evidence.capture import CaptureWriter, Evidence
from nodeready.evidence.recording import Ended, Recording
from nodeready.gate import Gate, Request
from nodeready.node import Node
from nodeready.node.catalogue import NVML, PROBES, quick_probes
from nodeready.node.documents import Documents
from nodeready.simulate.build import build
from nodeready.simulate.commands import RECORDED
from nodeready.simulate.faults import faults
from nodeready.simulate.nvml_config import render
from nodeready.simulate.outputs.names import other_forms, outputs
from nodeready.simulate.outputs.output import Output
from nodeready.simulate.shapes import SHAPES
from nodeready.simulate.write import faulty, write_node_commands
from nodeready.verdict import join

spec = importlib.util.spec_from_file_location("fake_nvml_build", Path(__file__).parents[1] / "fake_nvml" / "build.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)

PARSE = Documents._read
RUN = live.run
FAULTS = {node_type: {fault.name: fault for fault in faults(node_type)} for node_type in SHAPES}
HEALTHY = {node_type: build(node_type) for node_type in SHAPES}
WORSE = ("pass", "advisory", "unverified", "fail")
# checks of tier quick to which tier acceptance adds demands: what a fault lists for them is the join of both
JOINED_WITH_LOAD = {"health.clock-events", "thermal.margin"}
QUICK = {probe.name for probe in quick_probes()}


@dataclass(frozen=True)
class Difference:
    """Why a live run at tier quick judges otherwise than a fault lists, and how: what is listed -> what is said.

    `on` is a type of node on which it does.
    """

    why: str
    verdicts: set[tuple[str, str]]
    on: str = "sxm-1"


TOLD = {("unverified", "pass")}
NO_DEVICE = Difference(
    "nvidia-smi says nothing of a node whose only GPU is gone; NVML counts none and tells its version",
    {*TOLD, ("unverified", "fail")},
)
NVML_TELLS = "the evidence lacks what NVML, which a live run asks too, tells as well"
NOT_STARTED = (
    "whether CUDA starts without the file, or has it made, is seen by a CUDA context, which tier quick does not try"
)
HANDED_IN = "no run asks for it: an operator runs dcgmi and hands the output in"
DIFFERENCES = {
    "gpu-fell-off-the-bus": NO_DEVICE,
    "gpu-fell-off-with-pcie-errors": NO_DEVICE,
    "gpu-rev-ff": NO_DEVICE,
    "lost-gpu-hides-all": Difference(
        "nvidia-smi gives up at the lost GPU; NVML counts and tells of the others",
        {*TOLD, ("unverified", "fail")},
        on="nvl",
    ),
    "nvidia-smi-missing": Difference("the library is there without nvidia-smi, and tells of every GPU", TOLD),
    "cut-xml": Difference(
        "`nvidia-smi nvlink -s` names GPUs by UUID: the cut document tells none, NVML does; of a link the load told",
        {*TOLD, ("pass", "unverified")},
        on="nvl",
    ),
    "nvlink-errors-not-asked": Difference(NVML_TELLS, TOLD, on="nvl"),
    "peer-access-untold": Difference(NVML_TELLS, TOLD, on="sxm-4"),
    "forms-disagree": Difference("the text that contradicts the XML is asked only where the XML gave nothing", TOLD),
    "fabric-not-shown": Difference(
        "that the fabric is not shown is right where a CUDA context works, which tier quick does not try",
        {("pass", "unverified")},
    ),
    "pcie-idle-link": Difference(
        "a link that rests runs at full speed under load, which tier quick does not put", {("pass", "unverified")}
    ),
    "link-drops-under-load": Difference("tier quick puts no load", {("fail", "pass")}),
    "uvm-missing": Difference(NOT_STARTED, {("fail", "advisory")}),
    "uvm-not-loaded": Difference(NOT_STARTED, {("fail", "advisory")}),
    "uvm-made-late": Difference(NOT_STARTED, {("pass", "advisory")}),
    "leftover-process": Difference(
        "without Slurm's word, which tier quick does not ask for, a process may be that of a job", TOLD
    ),
    "dcgm-test-failed": Difference(HANDED_IN, {("fail", "pass")}),
    "dcgm-test-skipped": Difference(HANDED_IN, {("advisory", "pass")}),
    "dcgm-output-cut": Difference(HANDED_IN, TOLD),
}


def cases():
    """Every fault on one type that can have it, by turns, seldom on one of eight GPUs; or on all types."""
    extent = os.environ.get("NODEREADY_SWEEP", "some")
    if extent not in ("some", "all"):
        raise ValueError(f"NODEREADY_SWEEP={extent}: write all, or unset it")
    if extent == "all":
        return [(node_type, name) for node_type, known in FAULTS.items() for name in known]
    having = defaultdict(list)
    for node_type, known in FAULTS.items():
        for name in known:
            having[name].append(node_type)
    found = defaultdict(list)
    for turn, (name, types) in enumerate(having.items()):
        small = [node_type for node_type in types if SHAPES[node_type].gpus < 8]
        fit = small if small and turn % 10 else types
        found[fit[turn % len(fit)]].append(name)
    return [(node_type, name) for node_type in SHAPES for name in found[node_type]]


def parse_once(known):
    """Parses every document once, however many nodes give it."""

    def read(self, probe, parse):
        it = self.evidence.get(probe.name)
        if it is None:
            return PARSE(self, probe, parse)
        key = (it.name, it.ended, it.rc, it.stdout, it.stderr, it.truncated, it.reason)
        if key not in known:
            known[key] = PARSE(self, probe, parse)
        return known[key]

    return read


def question(probe):
    """All that the answer to a probe depends on: the configuration of NVML, or a command and what it was told to say."""
    if probe.name == NVML.name:
        return Path(os.environ["FAKE_NVML_CONFIG"]).read_bytes(), probe.argv
    node = Path(os.environ["PATH"].partition(os.pathsep)[0])
    told = node / RECORDED / probe.name
    said = (told, told.with_name(f"{told.name}.err"))
    return (node / probe.argv[0]).read_bytes(), probe.argv, *(p.read_bytes() if p.exists() else None for p in said)


def ask_once(known):
    """Runs a probe where its answer is not known yet; a library that hangs is given less time than on a real node."""

    def run(probe, **options):
        asked = question(probe)
        if asked not in known:
            hangs = probe.name == NVML.name and b"hang" in asked[0]
            known[asked] = RUN(replace(probe, argv=(*probe.argv, "--deadline", "2")) if hangs else probe, **options)
        return replace(known[asked], started=time.time())

    return run


def as_evidence(given):
    """Outputs as the recordings of an evidence folder."""
    return {n: Recording(n, rc=o.rc, stdout=o.stdout, stderr=o.stderr) for n, o in given.items()}


def verdicts(judging, checks):
    """The verdict of some checks on every subject of one node."""
    judging.run_all(checks)
    findings = [finding for finding in judging.findings() if finding.check in checks]
    assert judging.errors == {}
    assert {o.demand.check for o in judging.plan.unjudged(findings)}.isdisjoint(checks)
    found = defaultdict(list)
    for finding in findings:
        found[finding.check, finding.subject].append(finding.verdict)
    return {at: join(each).value for at, each in found.items()}


@pytest.fixture(scope="module")
def gates():
    """The quick gate of every type, open."""
    return {node_type: Gate.open(Request(node_type=node_type, tier="quick")) for node_type in SHAPES}


@pytest.fixture(scope="module")
def healthy_verdicts(gates, checks):
    """What evidence of a healthy node of every type is judged at tier quick."""
    found = {}
    for node_type, gate in gates.items():
        evidence = Evidence("folder", "n", as_evidence(outputs(HEALTHY[node_type])))
        found[node_type] = verdicts(Judging(gate.plan, Node(evidence, gate.terms)), checks)
    return found


@pytest.fixture(scope="module")
def known():
    """What was parsed and what was answered, of all nodes so far."""
    return {}, {}


@pytest.fixture
def sweep(gates, known, checks, tmp_path_factory, monkeypatch):
    """Judges a node live on this machine: the verdicts, and that nothing but that node was found."""
    library = fake.build(tmp_path_factory.getbasetemp() / "fake_nvml")
    monkeypatch.setattr(Documents, "_read", parse_once(known[0]))
    monkeypatch.setattr(live, "run", ask_once(known[1]))
    # the samples that a node gives hold their times: nothing has to pass between them
    monkeypatch.setattr(live.LiveNode, "_let_pass", lambda *_: None)
    # a capture would take as long as the run
    monkeypatch.setattr(CaptureWriter, "add", lambda *_: None)

    def by_machine(node, recorded, folder):
        gate = gates[node.shape.node_type]
        write_node_commands(folder / "node", node, recorded, PROBES)
        (folder / "node.conf").write_text(render(node))
        with monkeypatch.context() as of_the_run:
            of_the_run.setenv("PATH", str(folder / "node"), prepend=os.pathsep)
            of_the_run.setenv("LD_LIBRARY_PATH", str(library))
            of_the_run.setenv("FAKE_NVML_CONFIG", str(folder / "node.conf"))
            gate = replace(gate, request=replace(gate.request, report_dir=str(folder / "reports")))
            gate.make_folder()
            return gate, gate.gather(lambda _: None)

    def run(node_type, *names):
        node = faulty(node_type, names, {}, 0)
        recorded = outputs(node)
        with TemporaryDirectory() as folder:
            gate, judging = by_machine(node, recorded, Path(folder))
        asked = gate.evidence.recordings
        assert gate.evidence.kind == "live"
        assert NVML.name in asked.keys() <= QUICK
        given = {**other_forms(node), **recorded}
        for name, found in asked.items():
            assert found.ended is Ended.EXITED, name
            if name in given:
                assert Output(found.stdout, found.rc, found.stderr) == given[name], name
            elif name != NVML.name:
                assert (found.stdout, found.rc in (1, 127)) == (b"", True), name
        said = verdicts(judging, checks)
        # of these no list tells what tier quick says
        some = {check: checks[check] for check in JOINED_WITH_LOAD}
        same = as_evidence({name: output for name, output in given.items() if name in asked})
        node = Node(Evidence("folder", "n", {**same, NVML.name: asked[NVML.name]}), gate.terms)
        by_evidence = verdicts(Judging(gate.plan, node), some)
        assert {at: said[at] for at in by_evidence} == by_evidence
        assert by_evidence.keys() == {at for at in said if at[0] in JOINED_WITH_LOAD}
        return said

    return run


@pytest.mark.parametrize("node_type", SHAPES)
def test_a_healthy_node_passes_everything_live(node_type, sweep, healthy_verdicts):
    said = sweep(node_type)
    assert said == healthy_verdicts[node_type]
    assert set(said.values()) == {"pass", "not-applicable"}


def changes(node_type, name, said, healthy):
    """The verdicts of tier quick that are not those that a fault lists: what it lists and what is said.

    What does not apply is told from what passes by no fault.
    """
    said = {at: "pass" if verdict == "not-applicable" else verdict for at, verdict in said.items()}
    rows = {(row.check, row.subject): row.verdict for row in FAULTS[node_type][name].expects(HEALTHY[node_type])}
    found = {}
    for at in healthy:
        listed = rows.get(at, "pass")
        if at[0] in JOINED_WITH_LOAD:
            assert WORSE.index(said[at]) <= WORSE.index(listed), at
        elif said[at] != listed:
            found[at] = (listed, said[at])
    return found


@pytest.mark.parametrize(("node_type", "name"), cases(), ids=map(":".join, cases()))
def test_a_fault_gives_live_what_it_lists(node_type, name, sweep, healthy_verdicts):
    changed = changes(node_type, name, sweep(node_type, name), healthy_verdicts[node_type])
    known = DIFFERENCES[name].verdicts if name in DIFFERENCES else set()
    assert {at: pair for at, pair in changed.items() if pair not in known} == {}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_that_is_known_is_there(name, sweep, healthy_verdicts):
    node_type = DIFFERENCES[name].on
    found = changes(node_type, name, sweep(node_type, name), healthy_verdicts[node_type])
    assert set(found.values()) == DIFFERENCES[name].verdicts


def test_only_some_checks_are_of_both_tiers(gates):
    whole = {t: Gate.open(Request(node_type=t)).plan.demands.values() for t in SHAPES}
    quick = {t: {d.check for d in gate.plan.demands.values()} for t, gate in gates.items()}
    both = {d.check for t, demands in whole.items() for d in demands if d.tier != "quick" and d.check in quick[t]}
    assert both == JOINED_WITH_LOAD
