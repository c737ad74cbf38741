"""A demand may hold other bounds for nodes in service, and may leave a node alone while a job holds it."""

import json
import shutil

import pytest

from nodeready import baseline
from nodeready.baseline import BaselineError, load
from nodeready.cli import main
from nodeready.expectation import judge
from nodeready.options import OPTIONS
from nodeready.reading import Known, Unknown
from nodeready.simulate.write import simulate

REMAPS = "health.row-remaps/uncorrected"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A copy of the shipped baselines that a test may spoil."""
    copy = tmp_path / "baselines"
    shutil.copytree(baseline.baselines_dir(), copy)
    monkeypatch.setattr(baseline, "baselines_dir", lambda: copy)
    return copy


def add(site, text):
    path = site / "sxm" / "2026.12.toml"
    path.write_text(path.read_text() + "\n" + text)


@pytest.mark.parametrize(
    ("rows", "new", "serving"), [(0, "pass", "pass"), (1, "fail", "advisory"), (11, "fail", "fail")]
)
def test_one_remapped_row_rejects_a_new_gpu_and_not_one_in_service(rows, new, serving):
    for in_service, verdict in ((False, new), (True, serving)):
        demand = load("sxm", in_service=in_service).demands[REMAPS]
        assert judge(demand, Known(rows)).verdict.value == verdict


def test_a_demand_without_bounds_of_its_own_stays_what_it_is():
    new, serving = load("sxm"), load("sxm", in_service=True)
    assert new.demands["gpu.mig"] == serving.demands["gpu.mig"]
    assert new.sha256 == serving.sha256


def test_a_setting_replaces_the_bound_in_service():
    demand = load("sxm", "", [f"{REMAPS}=3"], in_service=True).demands[REMAPS]
    assert str(demand.required) == "<= 3"
    assert str(demand.recommended) == "<= 0"


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("in-service = {}", "write a table of required, recommended or both"),
        ("in-service = { demanded = { max = 1 } }", "write a table of required, recommended or both"),
        ('in-service = { required = { max = "1 W" } }', "takes a number"),
        ('in-service = { required = { equals = "@gpu.count" } }', "follows another key"),
        ("in-service = { required = { max = 12 }, recommended = { max = 0 } }", "in service loosens required"),
        ("in-service = { required = { max = 5 } }", "in service loosens recommended"),
        ('idle-only = "a job"', "loosened_because"),
        ('idle-only = ""\nloosened_because = "so"', "write why it does not apply"),
        ('several-gpus = "one GPU"', "need no longer hold for one GPU"),
        ('several-gpus = " "\nloosened_because = "so"', "write why it does not apply to one GPU"),
    ],
)
def test_bounds_in_service_that_are_refused(site, entry, says):
    key = (
        REMAPS if "loosens" in says else "health.ecc-uncorrected/sram"
    )  # one that has bounds in service, and one without
    add(site, f'["{key}"]\n{entry}')
    with pytest.raises(BaselineError, match=says):
        load("sxm")


def test_an_overlay_may_be_stricter_in_service_and_an_absent_demand_has_no_bounds(site):
    add(site, f'["{REMAPS}"]\nin-service = {{ required = {{ max = 5 }}, recommended = {{ max = 0 }} }}')
    assert str(load("sxm", in_service=True).demands[REMAPS].required) == "<= 5"
    add(site, '["health.row-remaps/corrected"]\nabsent = "no"\nloosened_because = "so"')
    assert load("sxm", in_service=True).demands["health.row-remaps/corrected"].required is None


def test_a_demand_on_an_idle_node_leaves_a_held_one_alone():
    demand = load("sxm").demands["health.leftovers/processes"]
    for reading in (Known(3), Unknown("not said")):
        held = judge(demand, reading, "Slurm job 7")
        assert held.verdict.value == "not-applicable"
        assert "Slurm job 7" in held.sentence
    assert judge(demand, Known(3)).verdict.value == "advisory"
    assert judge(load("sxm").demands["gpu.mig"], Known("Enabled"), "Slurm job 7").verdict.value == "fail"


def test_what_a_job_holds_is_left_out_of_the_coverage(judge, tmp_path):
    found = {}
    for name, faults in (("idle", []), ("held", ["job-is-running"])):
        simulate("sxm", tmp_path / name, faults, {}, 0)
        results, findings = judge(tmp_path / name, tier="quick")
        found[name] = results["coverage"]["planned"]
        verdicts = {findings["health.leftovers/memory", f"gpu{i}"]["verdict"] for i in range(8)}
        assert verdicts == {"pass" if name == "idle" else "not-applicable"}
    assert found["idle"] - found["held"] == 18


@pytest.mark.parametrize("in_service", [False, True])
def test_results_say_by_which_bounds_the_node_was_judged(in_service, tmp_path, capsys):
    simulate("pcie", tmp_path / "node", ["dram-lifetime-1"], {}, 0)
    options = ["--in-service"] if in_service else []
    reports = tmp_path / "reports"
    main(["judge", str(tmp_path / "node"), "--node-type", "pcie", "--report-dir", str(reports), *options])
    capsys.readouterr()
    (path,) = [p for p in reports.glob("*/*/results.json") if p.parent.name != "latest"]
    results = json.loads(path.read_text())
    assert results["in_service"] is in_service
    (finding,) = [f for f in results["findings"] if f["key"] == REMAPS]
    assert finding["verdict"] == ("advisory" if in_service else "fail")
    assert finding["required"] == {"max": {"value": 10 if in_service else 0, "unit": ""}}


def test_pytest_knows_the_option(gate_run, tmp_path):
    assert "--in-service" in OPTIONS
    simulate("pcie", tmp_path / "node", ["dram-lifetime-1"], {}, 0)
    options = (
        "--node-type",
        "pcie",
        "--tier",
        "quick",
        "--evidence",
        tmp_path / "node",
        "-k",
        "remapped",
        "--in-service",
    )
    _, results = gate_run(*options)
    assert results["in_service"] is True
    assert {f["verdict"] for f in results["findings"] if f["key"] == REMAPS} == {"advisory"}
