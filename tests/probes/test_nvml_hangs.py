"""The NVML probe where calls hang or crawl: one GPU is lost, the run is not."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodeready.probes import nvml

SCRIPT = Path(nvml.__file__)
REMOTES = [f"{link} remote 00000000:{0x83 + link % 4:X}:00.0" for link in range(18)]

spec = importlib.util.spec_from_file_location("fake_nvml_build", Path(__file__).parents[1] / "fake_nvml" / "build.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return fake.build(tmp_path_factory.getbasetemp() / "fake_nvml")


@pytest.fixture
def run(tmp_path, library):
    """Run the probe on a node of these GPUs: (document, process)."""

    def start(gpus=None, *arguments, python=(), env=None, **node):
        config = fake.write_config(tmp_path / "node.conf", gpus=gpus, **node)
        return fake.run_probe(library, config, *arguments, python=python, env=env)

    return start


def two(**changes):
    return [fake.h100(0, **changes), fake.h100(1)]


def test_a_hang_costs_one_gpu_and_is_named(run):
    gpus = [fake.h100(index, link=REMOTES) for index in range(8)]
    gpus[2]["fault"] = "hang nvmlDeviceGetTemperature"
    began = time.monotonic()
    document, _ = run(gpus, "--deadline", 2)
    assert time.monotonic() - began < 2 * nvml.WHOLE + 1
    sick = document["devices"].pop(2)
    assert sick["errors"] == {"nvmlDeviceGetTemperature": "no answer in 2 s"}
    assert sick["unfinished"] == "nvmlDeviceGetTemperature: no answer in 2 s"
    for device in document["devices"]:
        assert len(device["nvlink"]) == device["nvlink_count"] == 18
        assert "unfinished" not in device
        assert len(device["p2p_nvlink"]) == 6
        assert device["errors"] == {f"nvmlDeviceGetP2PStatus({device['index']}, 2)": "not asked: GPU 2 gave no answer"}


@pytest.mark.parametrize(
    ("fault", "asked", "kept"),
    [
        ("hang nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", set()),
        ("hang nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkState(0)", {"bus_id", "serial", "processes"}),
        ("hang-at-call 4", "nvmlDeviceGetSerial", {"bus_id", "uuid"}),
    ],
)
def test_a_hang_anywhere_is_named(run, fault, asked, kept):
    sick, well = run(two(fault=fault), "--deadline", 1)[0]["devices"]
    assert sick["errors"] == {asked: "no answer in 1 s"}
    assert kept <= sick.keys()
    assert "nvlink_count" not in sick
    assert well["nvlink_count"] == 18


def test_what_was_read_before_a_hang_is_kept(run):
    sick = run(two(fault="hang nvmlDeviceGetTemperature"), "--deadline", 1)[0]["devices"][0]
    assert (sick["serial"], sick["power_draw_watts"], sick["recovery_action"]) == ("1650624000000", 68.57, "None")
    assert not {"temperature_degc", "margin_degc", "nvlink", "p2p_nvlink"} & sick.keys()


def test_a_hang_of_a_pair_leaves_the_gpus_whole(run):
    gpus = two(fault="hang nvmlDeviceGetP2PStatus")
    document, _ = run([*gpus, fake.h100(2)], "--deadline", 1)
    first, second, _ = document["devices"]
    assert first["errors"]["nvmlDeviceGetP2PStatus(0, 1)"].startswith("no answer in ")
    assert second["errors"]["nvmlDeviceGetP2PStatus(1, 2)"].startswith("not asked: nvmlDeviceGetP2PStatus(0, 1): no ")
    assert first["nvlink_count"] == second["nvlink_count"] == 18
    assert "unfinished" not in first


@pytest.mark.parametrize(("call", "asked"), [("nvmlInitWithFlags", "nvmlInit"), ("nvmlSystemGetNVMLVersion",) * 2])
def test_a_library_that_hangs_ends_in_time(run, call, asked):
    began = time.monotonic()
    document, process = run(None, "--deadline", 1, lines=[f"hang {call}"])
    assert time.monotonic() - began < 3
    assert process.returncode == 0
    assert document["errors"][asked].startswith("no answer in ")
    assert (document["devices"], document["device_count"]) == ([], None)
    assert document["driver_version"] == (None if asked == "nvmlInit" else "580.105.08")


def test_slow_answers_are_waited_for_as_long_as_there_is_time(run):
    document, _ = run([fake.h100(0, fault="slow 2"), fake.h100(1, fault="slow 150")], "--deadline", 1.5)
    patient, late = document["devices"]
    assert patient["nvlink_count"] == len(patient["nvlink"]) == 18
    assert "unfinished" not in patient
    (error,) = [error for error in late["errors"].values() if "time was up" in error]
    assert error.startswith("time was up after 1.5 s, 0.")
    assert late["serial"] == "1650624000001"
    assert "power_draw_watts" not in late


def test_an_end_of_the_parent_ends_the_others(tmp_path, library):
    config = fake.write_config(tmp_path / "node.conf", gpus=two(fault="hang nvmlDeviceGetSerial"))
    env = {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML_CONFIG": str(config)}
    argv = [sys.executable, str(SCRIPT), "--deadline", "20"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env, start_new_session=True) as parent:
        time.sleep(0.7)
        parent.terminate()
        assert parent.wait(5) == 128 + signal.SIGTERM
        for _ in range(50):  # the group is empty once its last process is reaped
            try:
                os.killpg(parent.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
    pytest.fail("a process that asks outlived its parent")


def test_a_caller_that_ignores_its_children_changes_nothing(tmp_path, library):
    config = fake.write_config(tmp_path / "node.conf", gpus=two())
    env = {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML_CONFIG": str(config)}
    code = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    argv = [sys.executable, "-c", code, sys.executable, str(SCRIPT)]
    process = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=30, check=False)
    assert len(json.loads(process.stdout)["devices"]) == 2


def test_a_process_that_cannot_be_killed_is_abandoned(monkeypatch):
    killed = []
    monkeypatch.setattr(nvml.os, "kill", lambda pid, _: killed.append(pid))

    def wedged(reader):
        reader.tell(ask="nvmlDeviceGetSerial")
        time.sleep(60)

    worker = nvml.Worker(None, 5, wedged, 0.3)
    began = time.monotonic()
    nvml.follow([worker], 0.3)
    assert time.monotonic() - began < 2
    assert killed == [worker.pid]
    (error,) = worker.entry.errors.values()
    assert error == f"no answer in 0.3 s; process {worker.pid} cannot be killed and was abandoned"
    monkeypatch.undo()
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)
