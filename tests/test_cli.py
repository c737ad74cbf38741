"""`nodeready` as an operator runs it, and its exit statuses."""

import json
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
