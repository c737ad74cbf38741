"""Every case of the field is judged as an operator would, or stands here with the reason why it can't be a test."""

import functools
import importlib.util
import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from casebook import CASES, HERE, SECTIONS, field_case

from nodeready.node.catalogue import PROBES
from nodeready.simulate.build import build
from nodeready.simulate.nvml_config import render
from nodeready.simulate.write import simulate, simulate_commands

# how many cases the catalogue has in each section
HOW_MANY = {"A": 14, "B": 23, "C": 17, "D": 16, "E": 20, "F": 25, "G": 17, "H": 32, "I": 14}
TAKEN_AT_LEAST = 120


def _param(case, shown, number):
    """One row as a test; one that the suite still owes has to fail, so that whoever mends it sees it here."""
    owed = getattr(shown, "owed", "")
    marks = [pytest.mark.xfail(strict=True, raises=AssertionError, reason=owed)] if owed else []
    return pytest.param(case, shown, id=f"{case.id}-{number}" if len(case.shown) > 1 else case.id, marks=marks)


SHOWN = [_param(case, shown, number) for case in CASES for number, shown in enumerate(case.shown, 1)]
SCENES, RUNS, PROOFS = (
    [param for param in SHOWN if isinstance(param.values[1], kind)]
    for kind in (field_case.Scene, field_case.Run, field_case.Proof)
)

spec = importlib.util.spec_from_file_location("fake_nvml_build", HERE.parent / "fake_nvml" / "build.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)


def test_every_case_stands_here_once_and_in_its_place():
    ids = Counter(case.id for case in CASES)
    assert set(ids) == {f"{section}{number}" for section, many in HOW_MANY.items() for number in range(1, many + 1)}
    assert set(ids.values()) == {1}
    for module, cases in SECTIONS.items():
        section = module.split("_")[1].upper()
        assert [case.id for case in cases] == [f"{section}{number + 1}" for number in range(HOW_MANY[section])]


def test_a_case_is_shown_or_says_why_it_cannot_be():
    for case in CASES:
        assert case.symptom, case.id
        assert bool(case.shown) != bool(case.cannot), case.id
        if case.cannot:
            assert case.cannot.kind in field_case.KINDS, case.id
            assert len(case.cannot.reason) > 30, case.id
        for shown in case.shown:
            if isinstance(shown, field_case.Scene):
                assert shown.wants, case.id
        assert not case.shown or not all(getattr(shown, "owed", "") for shown in case.shown), case.id
    assert sum(bool(case.shown) for case in CASES) >= TAKEN_AT_LEAST


@functools.cache
def _node(node_type, faults, driver):
    """The files of a simulated node: name -> bytes."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        node = Path(folder) / "node"
        simulate(node_type, node, list(faults), {"driver": driver} if driver else {}, 0)
        return {path.relative_to(node).as_posix(): path.read_bytes() for path in node.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory):
    return fake.build(tmp_path_factory.getbasetemp() / "fake_nvml")


@pytest.fixture
def by_nvml(tmp_path, fake_library):
    """What the nvml probe says of a healthy node with some lines of the fake library's own."""

    def ask(node_type, driver, lines):
        config = tmp_path / "node.conf"
        node = build(node_type, 0, driver=driver) if driver else build(node_type, 0)
        config.write_text(render(node) + "".join(f"{line}\n" for line in lines))
        found, process = fake.run_probe(fake_library, config)
        assert process.returncode == 0, process.stderr
        return json.dumps(found).encode()

    return ask


@pytest.fixture
def machine_of(tmp_path, fake_library):
    """The environment in which this machine plays a simulated sxm node with a fault."""

    def play(fault):
        simulate_commands("sxm", tmp_path / "commands", PROBES, [fault])
        node = build("sxm")
        (tmp_path / "node.conf").write_text(render(node))
        path = os.pathsep.join([str(tmp_path / "commands"), os.environ["PATH"]])
        return {"PATH": path, "LD_LIBRARY_PATH": str(fake_library), "FAKE_NVML_CONFIG": str(tmp_path / "node.conf")}

    return play


@pytest.fixture
def evidence_of(captures, by_nvml, folder_of):
    """The evidence folder of a scene."""

    def make(scene):
        files = {} if scene.bare else dict(_node(scene.node_type, scene.faults, scene.driver))
        if scene.nvml is not None:
            files = {name: data for name, data in files.items() if not name.startswith("nvidia-smi_")}
            files["nvml"] = by_nvml(scene.node_type, scene.driver, scene.nvml)
        for name, path in scene.captures.items():
            files[name] = (captures / path).read_bytes()
        before = dict(files)
        if scene.edit:
            scene.edit(files)
            assert files != before
        return folder_of(files)

    return make


@pytest.mark.parametrize(("case", "scene"), SCENES)
def test_the_right_verdict(case, scene, evidence_of, judge):
    options = {"settings": scene.settings, "in_service": scene.in_service}
    results, found = judge(evidence_of(scene), scene.judged_as or scene.node_type, **options)
    assert not results["unjudged"]
    assert _wrong(scene, found) == []
    if scene.acceptance:
        assert results["acceptance"] == scene.acceptance, _not_passed(found)
    if scene.failing is not None:
        assert {key for (key, _), finding in found.items() if finding["verdict"] == "fail"} == scene.failing


def _wrong(scene, found):
    """What differs from the wants, in words."""
    wrong = []
    for want in scene.wants:
        finding = found[want.key, want.subject]
        message, observed = finding["message"], finding["observed"]
        told = f"{want.key} on {want.subject} is {finding['verdict']}: {message} [{finding['blocked_by']}]"
        right = finding["verdict"] == want.verdict and all(word in message for word in want.says)
        right = right and all(word in finding["remedy"] for word in want.remedy)
        if want.verdict == "pass":
            right = right and observed is not None and observed["value"] == _rounded(want.value)
        if want.blocked_by:
            right = right and want.blocked_by in (finding["blocked_by"] or [])
        if not right:
            wrong.append(told)
    return wrong


def _rounded(value):
    return pytest.approx(value, rel=1e-5) if isinstance(value, float) else value


def _not_passed(found):
    return [f"{f['verdict']} {f['message']}" for f in found.values() if f["verdict"] not in ("pass", "not-applicable")]


@pytest.fixture
def run_case(gate_run, tmp_path):
    """A run of the gate on a simulated node: (process, results or None)."""

    def run(shown):
        env = {}
        arguments = shown.arguments
        if shown.plugin:
            (tmp_path / "plugin").mkdir()
            (tmp_path / "plugin" / "of_the_case.py").write_text(shown.plugin)
            env = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "plugin"), os.environ.get("PYTHONPATH", "")])}
            arguments = ("-p", "of_the_case", *arguments)
        node = tmp_path / "node"
        simulate("sxm", node, list(shown.faults), {}, 0)
        return gate_run("--node-type", "sxm", "--evidence", node, *arguments, first=shown.first, env=env)

    return run


@pytest.mark.parametrize(("case", "run"), RUNS)
def test_the_right_exit_status(case, run, run_case):
    process, results = run_case(run)
    said = process.stdout + process.stderr
    assert process.returncode == run.status, said[-3000:]
    assert (results["acceptance"] if results else "") == run.acceptance
    for words in run.says:
        assert re.search(words, said), said[-3000:]


@pytest.mark.parametrize(("case", "proof"), PROOFS)
def test_the_claim_holds(case, proof, request):
    proof.claim(*(request.getfixturevalue(name) for name in proof.needs))
