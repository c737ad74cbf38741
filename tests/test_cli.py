"""`nodeready` as an operator runs it, and its exit statuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodeready import cli

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def nodeready(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            status = cli.main([str(a) for a in arguments])
        except SystemExit as end:
            status = end.code
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


def test_judge_writes_a_run_folder_and_exits_by_the_acceptance(nodeready, healthy):
    status, out, _ = nodeready("judge", healthy, "--node-type", "sxm")
    assert status == 0
    (folder,) = list(Path("reports").glob("*/2*"))
    assert {p.name for p in folder.iterdir()} == {
        "results.json",
        "certificate.html",
        "report.html",
        "junit.xml",
        "node.prom",
        "capture.tar.gz",
    }
    assert json.loads((folder / "results.json").read_text())["exit_status"] == 0
    assert out.strip().splitlines()[-1].startswith("ACCEPTED")


def test_judge_of_one_document_is_incomplete(nodeready, captures):
    status, out, _ = nodeready("judge", captures / "nvidia-smi-q-xml/01-h100-hw.txt", "--node-type", "sxm")
    assert status == 10
    assert out.strip().splitlines()[-1].startswith("INCOMPLETE")
    assert (
        nodeready("judge", captures / "nvidia-smi-q-xml/01-h100-hw.txt", "--node-type", "sxm", "--report-only")[0] == 0
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["judge", "none", "--node-type", "sxm"], "there is no evidence at none"),
        (["judge", "."], "--node-type is missing"),
        (["judge", ".", "--node-type", "no-such-type"], "known: .*sxm"),
        (["judge"], "required"),
        (["juge", "."], "invalid choice"),
        (["fleet"], "invalid choice"),
        (["simulate", "sxm"], "--out is missing"),
        (["simulate", "no-such-type", "--out", "x"], "sxm"),
        (["simulate", "sxm", "--out", "x", "--fault", "row-remap-pendin"], "row-remap-pending"),
        (["simulate", "sxm", "--out", "x", "--set", "gpu.count"], "KEY=VALUE"),
        (["explain", "gpu.cuont"], "gpu.count"),
        (["judge", ".", "--node-type", "sxm", "--against", "none"], "there is no results.json at none"),
        (["baseline"], "required"),
        (["baseline", "from"], "required"),
        (["baseline", "from", "none"], "there is no evidence at none"),
        (["baseline", "from", ".", "--node-type", "no-such-type"], "known: .*sxm"),
    ],
)
def test_usage_errors(nodeready, arguments, says):
    import re

    status, out, err = nodeready(*arguments)
    assert status == 4
    assert re.search(says, err)
    assert "Traceback" not in err
    assert not out
    assert not Path("reports").exists()
    assert not Path("x").exists()


def test_explain_evidence_lists_every_name(nodeready):
    from nodeready.node.catalogue import evidence_names

    status, out, _ = nodeready("explain", "evidence")
    assert status == 0
    assert all(name in out for name in evidence_names())


def test_explain_checks_and_one_check(nodeready):
    status, out, _ = nodeready("explain", "checks")
    assert status == 0
    assert "health.ecc-uncorrected/sram" in out
    status, out, _ = nodeready("explain", "thermal.margin")
    assert status == 0
    assert ">= -1 degC, recommended >= 1 degC" in out


def test_collect_records_what_can_be_read(nodeready, tmp_path):
    status, out, _ = nodeready("collect", "--out", tmp_path / "c.tar.gz")
    assert status == 0
    assert "recordings" in out
    status, _, _ = nodeready("judge", tmp_path / "c.tar.gz", "--node-type", "sxm", "--tier", "quick")
    assert status in (1, 10)
    assert nodeready("collect", "--out", tmp_path / "c.tar.gz")[0] == 4


def test_list_faults_as_json(nodeready):
    status, out, _ = nodeready("simulate", "sxm", "--list-faults", "--json")
    assert status == 0
    faults = json.loads(out)
    assert len({fault["name"] for fault in faults}) == len(faults) >= 12
    assert {f["expects"][0]["check"].split(".")[0] for f in faults if f["expects"]} >= {
        "pcie",
        "memory",
        "driver",
        "container",
        "gpu",
        "compute",
        "health",
    }


def test_an_internal_error_is_no_verdict(nodeready, healthy, monkeypatch):
    from nodeready.render import certificate

    monkeypatch.setattr(certificate, "render", lambda _: 1 / 0)
    status, _, err = nodeready("judge", healthy, "--node-type", "sxm")
    assert status == 3
    assert "internal error" in err


def test_it_is_installed_as_a_command(healthy, tmp_path):
    command = [
        Path(sys.executable).parent / "nodeready",
        "judge",
        healthy,
        "--node-type",
        "sxm",
        "--report-dir",
        tmp_path,
    ]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0


def test_a_run_folder_is_judged_again_and_nothing_differs(nodeready, healthy):
    assert nodeready("judge", healthy, "--node-type", "sxm")[0] == 0
    first = Path("reports/node/latest").resolve()
    for evidence in (first, first / "capture.tar.gz"):
        status, out, _ = nodeready("judge", evidence, "--baseline", "sxm@2026.12")
        assert status == 0
        *_, compared, last = out.splitlines()
        assert compared.startswith("no verdict differs from sxm@2026.12 (draft, sha256 ")
        assert last.startswith("ACCEPTED at tier acceptance")
        told = json.loads(Path("reports/node/latest/difference.json").read_text())
        assert (told["changed"], told["demands"]) == ([], {"new": [], "gone": []})


def test_the_difference_stands_before_the_last_sentence(nodeready, healthy):
    assert nodeready("judge", healthy, "--node-type", "sxm", "--tier", "quick")[0] == 0
    first = Path("reports/node/latest").resolve()
    status, out, _ = nodeready("judge", healthy, "--node-type", "sxm", "--against", first, "--set", "gpu.count=9")
    assert status == 1
    lines = out.splitlines()
    assert lines[-1].startswith("REJECTED")
    told = json.loads(Path("reports/node/latest/difference.json").read_text())
    assert told["overrides"] == {"before": {}, "after": {"gpu.count": "9"}}
    assert told["tier"] == {"before": "quick", "after": "acceptance"}
    assert "compute.matmul-fp16" in told["demands"]["new"]
    assert [row["turn"] for row in told["changed"]] == sorted(
        (row["turn"] for row in told["changed"]), key=["worse", "same", "better"].index
    )
    worse = [line for line in lines if line.startswith("  worse: ")]
    assert "  worse: gpu.count on node: pass -> fail (other bound: required 8 -> 9; observed 8)" in worse


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[:200], "is damaged"),
        (lambda text: text.replace('"host": "node"', '"host": "other"'), "the first is of host other, this one of"),
        (lambda text: text.replace('"node_type": "sxm"', '"node_type": "nvl"'), "the first is of node type nvl"),
    ],
)
def test_what_cannot_be_compared_is_said_and_the_judgement_stands(nodeready, healthy, damage, says):
    assert nodeready("judge", healthy, "--node-type", "sxm")[0] == 0
    first = Path("reports/node/latest").resolve()
    (first / "results.json").write_text(damage((first / "results.json").read_text()))
    status, out, err = nodeready("judge", first, "--node-type", "sxm")
    assert (status, err) == (0, "")
    *_, compared, last = out.splitlines()
    assert compared.startswith("not compared with ")
    assert says in compared
    assert last.startswith("ACCEPTED")
    assert not Path("reports/node/latest/difference.json").exists()


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("settings", "status"), [([], 0), (["--set", "gpu.count=4"], 1)])
def test_a_reader_that_has_gone_changes_no_verdict(healthy, tmp_path, unbuffered, settings, status):
    command = [Path(sys.executable).parent / "nodeready", "judge", healthy, "--node-type", "sxm", *settings]
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait(timeout=10)
    process = subprocess.run(
        [*command, "--report-dir", tmp_path],
        stdout=reader.stdin,
        stderr=subprocess.PIPE,
        timeout=60,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    reader.stdin.close()
    assert (process.returncode, process.stderr) == (status, b"")
    assert list(tmp_path.glob("*/2*/results.json"))


@pytest.mark.parametrize("arguments", [["--help"], ["explain", "checks"], ["simulate", "sxm", "--list-faults"]])
def test_no_command_complains_of_a_reader_that_has_gone(arguments):
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait(timeout=10)
    command = [Path(sys.executable).parent / "nodeready", *arguments]
    process = subprocess.run(command, stdout=reader.stdin, stderr=subprocess.PIPE, timeout=60)
    reader.stdin.close()
    assert (process.returncode, process.stderr) == (0, b"")
