"""Live runs in which nvidia-smi, NVML, torch or a container fails or hangs: the others are judged all the same.

The machine under the run plays a simulated node: its commands come first on PATH, and NVML is the fake library.
"""

import importlib.util
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nodeready import load, results
from nodeready.check import load_checks
from nodeready.evidence.recording import Ended
from nodeready.gate import Gate, Request
from nodeready.node.catalogue import CONTAINER_GPUS, MATMUL, NVML, PROBES, TORCH, load_by
from nodeready.simulate.build import build
from nodeready.simulate.nvml_config import render
from nodeready.simulate.write import simulate, simulate_commands

spec = importlib.util.spec_from_file_location("fake_nvml_build", Path(__file__).parents[1] / "fake_nvml" / "build.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)

SICK = 4
FOR_EVER = "trap '' TERM\nwhile :; do sleep 1; done\n"
HANGS = f"#!/bin/bash\n{FOR_EVER}"
GIVES_UP = "#!/bin/sh\necho 'Unable to determine the device handle for GPU00000000:9B:00.0: Unknown Error'\nexit 255\n"
# what nvidia-smi alone tells of the node, at tier quick
BY_NVIDIA_SMI = {
    *((key, "node") for key in ("driver.responds", "driver.matches-library", "gpu.confidential-computing")),
    *((key, "node") for key in ("consistency.gpu-part", "consistency.inforom")),
    *(
        (key, f"gpu{index}")
        for key in ("firmware.inforom", "gpu.application-clocks", "nvlink.peers")
        for index in range(8)
    ),
}
# what a GPU has told before the call that hangs
TOLD_BEFORE = {"gpu.product"}
QUICK = ("--node-type", "sxm", "--tier", "quick")


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return fake.build(tmp_path_factory.getbasetemp() / "fake_nvml")


@pytest.fixture
def machine(tmp_path, library):
    """The environment in which this machine plays an sxm node, with other scripts for some of its commands."""

    def make(scripts=None, faults=(), nvml_lines=(), nvml=library):
        node = tmp_path / "node"
        simulate_commands("sxm", node, PROBES, faults)
        for name, text in (scripts or {}).items():
            (node / name).write_text(text)
            (node / name).chmod(0o755)
        config = tmp_path / "node.conf"
        config.write_text(render(build("sxm")) + "".join(f"{line}\n" for line in nvml_lines))
        path = f"{node}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "LD_LIBRARY_PATH": str(nvml), "FAKE_NVML_CONFIG": str(config)}

    return make


@pytest.fixture
def no_library(tmp_path):
    """A folder whose NVML does not load, whatever this machine has."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / fake.LIBRARY).write_bytes(b"")
    return folder


def by_key(found):
    return {(f["key"], f["subject"]): f for f in found["findings"]}


def verdicts(found):
    return {at: finding["verdict"] for at, finding in by_key(found).items()}


def served(found):
    """The findings of checks that NVML can answer, by key and subject."""
    return {at: finding for at, finding in by_key(found).items() if finding["check"] in NVML.serves}


def left_running(folder):
    """Command lines of processes that run scripts of that folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in text:
            found.append(text)
    return found


def test_nvml_answers_where_nvidia_smi_hangs(gate_run, machine, tmp_path):
    begin = time.monotonic()
    process, found = gate_run(*QUICK, env=machine({"nvidia-smi": HANGS}))
    assert time.monotonic() - begin < 40
    assert (process.returncode, found["acceptance"]) == (1, "rejected")
    responds = by_key(found)["driver.responds", "node"]
    assert responds["verdict"] == "fail"
    assert "gave no answer in 10 s" in responds["message"]
    judged = served(found)
    assert {subject for _, subject in judged} == {"node", *(f"gpu{index}" for index in range(8))}
    assert {at for at, finding in judged.items() if finding["verdict"] != "pass"} == set()
    assert all(NVML.name in finding["evidence"] for (_, subject), finding in judged.items() if subject != "node")
    told = verdicts(found).items()
    assert {at for at, verdict in told if verdict not in ("pass", "not-applicable")} == BY_NVIDIA_SMI
    assert left_running(tmp_path / "node") == []


def test_one_gpus_nvml_hangs_and_the_other_seven_are_judged(gate_run, machine):
    env = machine({"nvidia-smi": GIVES_UP}, nvml_lines=[f"gpu {SICK} fault hang nvmlDeviceGetUUID"])
    begin = time.monotonic()
    process, found = gate_run(*QUICK, env=env)
    assert time.monotonic() - begin < 40
    assert process.returncode == 1
    assert "exit status 255" in by_key(found)["driver.responds", "node"]["message"]
    sick = {key: finding for (key, subject), finding in served(found).items() if subject == f"gpu{SICK}"}
    assert {key for key, finding in sick.items() if finding["verdict"] == "pass"} == TOLD_BEFORE
    for key in sick.keys() - TOLD_BEFORE:
        assert sick[key]["verdict"] == "unverified", key
        assert "nvmlDeviceGetUUID: no answer in 8 s" in sick[key]["message"], key
    others = {at: finding["verdict"] for at, finding in served(found).items() if at[1] != f"gpu{SICK}"}
    assert len({subject for _, subject in others}) == 8
    assert set(others.values()) == {"pass"}


def test_a_healthy_node_is_accepted_without_an_nvml_library(gate_run, machine, no_library, healthy, judge):
    process, found = gate_run(*QUICK, env=machine(nvml=no_library))
    assert (process.returncode, found["acceptance"]) == (0, "accepted"), process.stdout
    by_evidence, _ = judge(healthy, tier="quick")
    assert verdicts(found) == verdicts(by_evidence)


def test_without_nvidia_smi_and_nvml_the_gpus_are_unverified_for_want_of_a_driver(
    gate_run, machine, no_library, tmp_path, judge
):
    fault = "nvidia-smi-missing"
    simulate("sxm", tmp_path / "evidence", [fault])
    by_evidence, _ = judge(tmp_path / "evidence", tier="quick")
    process, found = gate_run(*QUICK, env=machine(faults=[fault], nvml=no_library))
    assert process.returncode == 1
    assert verdicts(found) == verdicts(by_evidence)
    memory = by_key(found)["gpu.memory", "gpu0"]
    assert (memory["verdict"], memory["blocked_by"]) == ("unverified", ["driver.responds@node"])
    assert "LIBRARY_NOT_FOUND" in memory["message"]


def test_a_torch_and_a_container_that_hang_cost_what_they_would_have_told(machine, tmp_path, monkeypatch, judge):
    podman = f'#!/bin/bash\n[ "$1" = run ] || exit 125\n{FOR_EVER}'
    python = tmp_path / "python"
    python.write_text(HANGS)
    python.chmod(0o755)
    for name, value in machine({"podman": podman}).items():
        monkeypatch.setenv(name, value)
    torch_by, container_probe = load.torch_by, load.container_probe
    monkeypatch.setattr(load, "torch_by", lambda python: replace(torch_by(python), deadline=2.0))
    monkeypatch.setattr(load, "container_probe", lambda *asked: replace(container_probe(*asked), deadline=2.0))

    gate = Gate.open(Request(node_type="sxm", python=str(python), report_dir=str(tmp_path / "reports")))
    gate.make_folder()
    judging = gate.gather(lambda _: None)
    judging.run_all(load_checks())
    found = results.build(gate, judging)

    recordings = gate.evidence.recordings
    assert {recordings[name].ended for name in (TORCH.name, CONTAINER_GPUS.name)} == {Ended.TIMED_OUT}
    assert recordings[MATMUL.name].ended is Ended.NOT_RUN
    for key, name in (("frameworks.torch", TORCH.name), ("container.gpu-visible", CONTAINER_GPUS.name)):
        finding = by_key(found)[key, "node"]
        assert (finding["verdict"], finding["observed"]) == ("unverified", None)
        assert f"{name}: gave no answer in 2 s" in finding["message"]
    product = by_key(found)["compute.matmul-fp16", "gpu0"]
    assert product["verdict"] == "unverified"
    assert f"{python} cannot run torch" in product["message"]
    assert (found["acceptance"], found["unjudged"]) == ("incomplete", [])

    simulate("sxm", tmp_path / "evidence")
    for name in (TORCH.name, CONTAINER_GPUS.name, *(probe.name for probe in load_by(""))):
        (tmp_path / "evidence" / name).unlink()
    without, _ = judge(tmp_path / "evidence")
    assert verdicts(found) == verdicts(without)
    assert list(verdicts(found).values()).count("pass") > 150
    assert left_running(tmp_path) == []
