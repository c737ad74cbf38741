"""A node as commands: a live run on this machine finds that node and nothing of the machine."""

import json
import os
import stat
import subprocess

import pytest

from nodeready import results
from nodeready.check import load_checks
from nodeready.gate import Gate, Request
from nodeready.node.catalogue import PROBES, quick_probes
from nodeready.simulate.write import simulate, simulate_commands

# what a quick run never asks, though evidence holds it; and what a live run reads by its own Python or not at all
LOADS = ("matmul", "allreduce", "copies", "patterns", "rdma-write", "drive-read")
NOT_BY_NAME = (*LOADS, "torch", "container-gpus", "nvml", "squeue")


@pytest.fixture(scope="module")
def checks():
    return load_checks()


@pytest.fixture(scope="module")
def sxm(tmp_path_factory):
    """The commands of a healthy node; not to be changed."""
    folder = tmp_path_factory.mktemp("commands") / "node"
    simulate_commands("sxm", folder, PROBES)
    return folder


def ask(folder, *argv, stdin=None):
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(argv, capture_output=True, env={**os.environ, "PATH": path}, timeout=20, check=False)


def test_every_probe_is_answered_with_the_recorded_bytes(sxm):
    evidence = sxm / "evidence"
    asked = [probe for probe in quick_probes() if probe.argv and "/" not in probe.argv[0]]
    answered = 0
    for probe in asked:
        said = ask(sxm, *probe.argv)
        recorded = evidence / probe.name
        if recorded.exists():
            answered += 1
            assert (said.stdout, said.returncode, said.stderr) == (recorded.read_bytes(), 0, b""), probe.name
        elif probe.is_file:
            assert said.returncode == 1
            assert said.stderr.decode() == f"cat: {probe.argv[1]}: No such file or directory\n"
        else:
            assert said.returncode == 127, probe.name
            assert said.stderr.decode() == f"{probe.argv[0]}: command not found\n"
            assert said.stdout == b""
    assert answered >= 22


def test_exit_status_and_standard_error_are_the_nodes_own(tmp_path):
    simulate_commands("sxm", tmp_path / "node", PROBES, ["docker-down", "driver-not-loaded", "fabric-manager-dead"])
    node = tmp_path / "node"
    said = ask(node, "docker", "info")
    assert said.returncode == 1
    assert said.stderr.startswith(b"ERROR: Cannot connect to the Docker daemon")
    assert said.stdout.startswith(b"Client: Docker Engine")
    assert ask(node, "nvidia-smi", "-q", "-x").returncode == 9
    state = ask(node, "systemctl", "is-active", "nvidia-fabricmanager")
    assert (state.stdout, state.returncode) == (b"inactive\n", 3)
    version = ask(node, "cat", "/proc/driver/nvidia/version")
    assert version.returncode == 1
    assert version.stderr == b"cat: /proc/driver/nvidia/version: No such file or directory\n"


@pytest.mark.parametrize(
    "argv",
    [
        ("nvidia-smi",),
        ("nvidia-smi", "-q -x"),
        ("nvidia-smi", "-q", "-x", "-i", "0"),
        ("nvidia-smi", "-pm", "1"),
        ("systemctl", "restart", "nvidia-fabricmanager"),
        ("docker", "run", "hello-world"),
        ("ip", "link", "set", "eno1", "down"),
        ("dmesg", "-C"),
    ],
)
def test_any_other_command_line_is_a_usage_error_and_touches_nothing(sxm, argv):
    said = ask(sxm, *argv)
    assert said.returncode == 2
    assert said.stdout == b""
    assert said.stderr.startswith(argv[0].encode())


def test_cat_and_sh_go_on_to_the_machines_own(sxm, tmp_path):
    file = tmp_path / "file with blanks"
    file.write_bytes(b"\x00\xffmine\n")
    assert ask(sxm, "cat", str(file)).stdout == b"\x00\xffmine\n"
    assert ask(sxm, "cat", "/proc/meminfo", str(file)).stdout.endswith(b"mine\n")
    assert ask(sxm, "sh", "-c", "echo $0 $1; exit 5", "zero", "one").stdout == b"zero one\n"
    assert ask(sxm, "sh", "-c", "exit 5").returncode == 5


def test_a_tool_that_the_node_lacks_is_not_found_whatever_the_machine_has(sxm):
    assert "podman" in {path.name for path in sxm.iterdir()}
    for tool in ("podman", "ctr", "lsmod"):
        said = ask(sxm, tool, "version")
        assert (said.returncode, said.stderr) == (127, f"{tool}: command not found\n".encode())


def test_the_folder_can_be_moved_and_its_scripts_run(sxm, tmp_path):
    moved = tmp_path / "elsewhere with a blank"
    moved.parent.mkdir(exist_ok=True)
    subprocess.run(["cp", "-r", str(sxm), str(moved)], check=True)
    assert ask(moved, "ibstat").stdout == (sxm / "evidence" / "ibstat").read_bytes()
    for path in sxm.iterdir():
        assert path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        assert path.is_dir() or path.read_text().startswith("#!/bin/sh\n")


def judged(found):
    """What a run says of each demand: everything but where it was read."""
    return {
        (f["key"], f["subject"]): {name: f[name] for name in ("verdict", "observed", "message", "blocked_by")}
        for f in found["findings"]
    }


def evidence_of(folder, faults=()):
    """The evidence that a quick run would have gathered."""
    simulate("sxm", folder, faults)
    for name in LOADS:
        (folder / name).unlink()
    return str(folder)


@pytest.fixture
def run(tmp_path, checks):
    """One quick run in process: live, or of evidence."""

    def go(**options):
        reports = str(tmp_path / f"reports{len(list(tmp_path.glob('reports*')))}")
        gate = Gate.open(Request(node_type="sxm", tier="quick", report_dir=reports, **options))
        gate.make_folder()
        judging = gate.gather(lambda _: None)
        judging.run_all(checks)
        return judged(results.build(gate, judging))

    return go


@pytest.mark.parametrize(
    "faults",
    [
        ["gpu-fell-off-the-bus"],
        ["nvlink-link-down", "row-remap-pending"],
        ["ports-down", "old-toolkit", "fabric-manager-dead"],
        ["podman-without-cdi", "nvcc-missing"],
        ["kernel-log-denied", "dmidecode-denied", "docker-down"],
        ["journal-instead-of-dmesg"],
    ],
    ids="+".join,
)
def test_a_live_run_says_what_a_run_of_the_evidence_says(faults, tmp_path, monkeypatch, run):
    by_evidence = run(evidence=evidence_of(tmp_path / "evidence", faults))
    simulate_commands("sxm", tmp_path / "node", PROBES, faults)
    monkeypatch.setenv("PATH", f"{tmp_path / 'node'}{os.pathsep}{os.environ['PATH']}")
    live = run()
    assert live == by_evidence
    assert len(live) > 190


def test_a_dead_driver_is_the_same_failure_live(tmp_path, monkeypatch, run):
    """Messages differ in one thing: NVML is asked by the suite's own Python, which a folder cannot answer for."""
    by_evidence = run(evidence=evidence_of(tmp_path / "evidence", ["driver-not-loaded"]))
    simulate_commands("sxm", tmp_path / "node", PROBES, ["driver-not-loaded"])
    monkeypatch.setenv("PATH", f"{tmp_path / 'node'}{os.pathsep}{os.environ['PATH']}")
    live = run()
    for at, finding in by_evidence.items():
        assert {**live[at], "message": ""} == {**finding, "message": ""}, at
    assert live["driver.responds", "node"] == by_evidence["driver.responds", "node"]


def test_the_gate_itself_runs_on_a_healthy_node(sxm, tmp_path, gate_run, run):
    process, found = gate_run(
        "--node-type", "sxm", "--tier", "quick", env={"PATH": f"{sxm}{os.pathsep}{os.environ['PATH']}"}
    )
    assert process.returncode == 0, process.stdout
    assert "ACCEPTED at tier quick" in process.stdout
    assert judged(json.loads(json.dumps(found))) == run(evidence=evidence_of(tmp_path / "evidence"))


def test_no_probe_is_left_out_but_those_of_a_python():
    by_path = {probe.name for probe in PROBES if not probe.argv or "/" in probe.argv[0]}
    assert by_path == set(NOT_BY_NAME)
