"""The collector as one file: a bare Python 3.9 or newer makes a capture that judges as a live run does."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nodeready.cli import main
from nodeready.node.catalogue import PROBES
from nodeready.simulate.write import simulate_commands


def pythons():
    """This Python, and the oldest that is meant to do, where this machine has one."""
    found = {"this": sys.executable}
    places = [*Path.home().glob(".pyenv/versions/3.9.*/bin/python3"), Path("/usr/bin/python3.9")]
    oldest = next((path for path in places if path.exists()), None)
    return found | ({"3.9": str(oldest)} if oldest else {})


PYTHONS = pythons()


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    target = tmp_path_factory.mktemp("collector") / "collect.pyz"
    assert main(["collect", "--as-zipapp", str(target)]) == 0
    return target


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
@pytest.mark.parametrize("faults", [(), ("row-remap-failure", "ports-down")], ids=["healthy", "sick"])
def test_a_bare_python_makes_a_capture_that_judges_like_the_live_run(
    python, faults, collector, tmp_path, judge, monkeypatch
):
    from nodeready import results
    from nodeready.check import load_checks
    from nodeready.gate import Gate, Request

    simulate_commands("sxm", tmp_path / "node", PROBES, faults)
    path = f"{tmp_path / 'node'}:/usr/bin:/bin"
    command = [python, "-I", "-S", str(collector), "--out", str(tmp_path / "capture.tar.gz")]
    done = subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "--tier quick" in done.stdout
    found, _ = judge(tmp_path / "capture.tar.gz", tier="quick")
    monkeypatch.setenv("PATH", path)
    gate = Gate.open(Request(node_type="sxm", tier="quick", report_dir=str(tmp_path / "live")))
    gate.make_folder()
    judging = gate.gather(lambda _: None)
    judging.run_all(load_checks())
    live = results.build(gate, judging)

    def verdicts(of):
        return {(f["key"], f["subject"]): (f["verdict"], f["observed"]) for f in of["findings"]}

    assert verdicts(found) == verdicts(live)
    assert found["exit_status"] == (1 if faults else 0)


def test_the_script_probes_run_out_of_the_zip(collector, tmp_path):
    """Without pynvml the nvml probe says so itself: it was run, from memory, and is recorded by its name."""
    command = [sys.executable, "-I", "-S", str(collector), "--out", str(tmp_path / "capture.tar.gz")]
    subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=True, cwd=tmp_path)
    from nodeready.evidence.folder import read_evidence

    recording = read_evidence(tmp_path / "capture.tar.gz", {p.name: p for p in PROBES}).get("nvml")
    assert recording.argv[-1] == "nvml.py"
    assert b'"probe": "nvml"' in recording.stdout


def test_the_same_version_is_the_same_file_and_holds_nothing_that_judges(collector, tmp_path):
    assert main(["collect", "--as-zipapp", str(tmp_path / "again.pyz")]) == 0
    assert (tmp_path / "again.pyz").read_bytes() == collector.read_bytes()
    assert os.access(collector, os.X_OK)
    names = zipfile.ZipFile(collector).namelist()
    assert "nodeready/evidence/live.py" in names
    assert not [name for name in names if "render" in name or "baseline" in name or "pytest" in name]


def test_what_is_there_is_not_written_over(collector, capsys):
    assert main(["collect", "--as-zipapp", str(collector)]) == 4
    assert "is there already" in capsys.readouterr().err


def test_an_older_python_gets_a_plain_sentence(collector):
    places = [p for version in ("3.8", "3.7") for p in Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")]
    text = zipfile.ZipFile(collector).read("__main__.py").decode()
    assert text.index("version_info < (3, 9)") < text.index("from nodeready")
    for python in places[:1]:
        done = subprocess.run([python, str(collector)], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "needs python3 of 3.9 or newer" in done.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--hosts", "node1"], "say how to reach it, such as ssh://node1"),
        (["--ssh-config", "x"], "--ssh-config is for remote hosts"),
    ],
)
def test_hosts_that_cannot_be_reached_like_this_are_a_usage_error(options, sentence, capsys):
    assert main(["collect", *options]) == 4
    assert sentence in capsys.readouterr().err
