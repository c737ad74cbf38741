"""The matmul probe: its measurement on a CPU with the real torch, its parent with workers that misbehave."""

import argparse
import ast
import ctypes
import doctest
import importlib
import itertools
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeready.probes import gpu_clock, gpu_devices, gpu_state, gpu_workers, matmul

SCRIPT = Path(matmul.__file__)
ENTRY = {"device", "uuid", "bus_id", "name", "dtype", "size", "tflops", "p5", "cv", "iterations", "verified"}
ENTRY |= {"clocks", "events", "error"}
DOCUMENT = {"probe", "schema", "torch", "cuda", "cublas", "python", "started", "seconds", "inputs", "devices"}
DOCUMENT |= {"results", "error"}


@pytest.fixture(scope="module")
def torch():
    return importlib.import_module("torch")


def ran(*options, python=()):
    argv = [sys.executable, *python, str(SCRIPT), *options]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def is_alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def becomes(true, seconds=60.0):
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return true()


# ---- stand-alone ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.name for path in SCRIPT.parent.glob("[!_]*.py")))
def test_a_probe_script_needs_nothing_but_the_standard_library_of_python_3_9(name):
    tree = ast.parse((SCRIPT.parent / name).read_text(), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    beside = {path.stem for path in SCRIPT.parent.glob("[!_]*.py")}
    assert imported
    # `nodeready` stands in the branch for type checkers and for tests
    assert {module.partition(".")[0] for module in imported} - beside - {"nodeready"} <= sys.stdlib_module_names


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(gpu_state) == (0, 4)


def test_a_python_without_torch_says_so_and_exits_3():
    run = ran(python=("-S",))
    document = json.loads(run.stdout)
    assert run.returncode == 3
    assert document["error"] == "this Python has no torch: name one that has with --python"
    assert document.keys() == DOCUMENT
    assert document["results"] == []


def test_a_node_without_a_gpu_is_an_error_in_a_document_with_exit_status_0():
    run = ran("--device", "all")
    document = json.loads(run.stdout)
    assert run.returncode == 0
    assert document["results"] == []
    assert document["error"].startswith("no GPU to measure: no CUDA driver here: ")


# ---- the measurement --------------------------------------------------------------------------


def test_the_document_of_a_cpu_agrees_with_itself():
    run = ran("--device=cpu", "--dtype=float32,float64", "--size=128", "--seconds=0.2", "--warmup=0.1")
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert document.keys() == DOCUMENT
    assert (document["probe"], document["schema"], document["inputs"]) == ("matmul", 1, "normal, seeded")
    assert document["torch"].startswith("2.")
    assert [d["device"] for d in document["devices"]] == ["cpu"]
    assert [(e["dtype"], e["size"]) for e in document["results"]] == [("float32", 128), ("float64", 128)]
    for entry in document["results"]:
        assert entry.keys() >= ENTRY
        assert (entry["error"], entry["verified"], entry["clocks"], entry["events"]) == (None, True, None, None)
        rates = {name: 2 * 128**3 * entry["batch"] / s / 1e12 for name, s in entry["batch_s"].items()}
        assert rates["max"] <= entry["p5"] <= entry["tflops"] <= rates["min"]
        overall = 2 * 128**3 * entry["iterations"] / entry["measured_s"] / 1e12
        assert rates["max"] <= overall * (1 + 1e-9)
        assert overall <= rates["min"] * (1 + 1e-9)
        assert entry["measured_s"] >= 3 * entry["batch_s"]["min"]


def test_figures_are_those_of_the_batches():
    taken = [0.05] * 15 + [0.1] * 5
    figures = matmul.rate_figures(taken, batch=40, size=1000)
    rates = [2e9 * 40 / s / 1e12 for s in taken]
    assert figures["tflops"] == pytest.approx(1.6)
    assert figures["p5"] == pytest.approx(0.8)
    assert figures["cv"] == pytest.approx(statistics.pstdev(rates) / statistics.mean(rates))
    assert figures["iterations"] == 800
    assert figures["measured_s"] == pytest.approx(1.25)


class StepClock(gpu_clock.Clock):
    """A device that takes a given time for each run and whose marks are times of that device."""

    def __init__(self, seconds):
        self.seconds, self.now, self.log = seconds, 0.0, []

    def run(self):
        self.now += self.seconds
        self.log.append("run")

    def mark(self):
        return self.now

    def wait(self, mark):
        self.log.append("wait")


def test_a_batch_is_sized_to_about_50_ms():
    assert gpu_clock.fitting_batch((clock := StepClock(0.0015)).run, clock) in range(27, 70)
    assert gpu_clock.fitting_batch((clock := StepClock(0.2)).run, clock) == 1
    assert gpu_clock.fitting_batch((clock := StepClock(0.000001)).run, clock) in range(40_000, 100_001)


def test_the_device_always_has_the_next_batch_before_one_is_waited_for():
    clock = StepClock(0.01)
    times = gpu_clock.batches(clock.run, clock, 3)
    assert list(itertools.islice(times, 2)) == pytest.approx([0.03, 0.03])
    assert clock.log == ["run"] * 6 + ["wait"] + ["run"] * 3 + ["wait"]


def test_a_clock_that_stands_still_is_an_error_not_a_rate():
    clock = StepClock(0.0)
    with pytest.raises(RuntimeError, match="clock gave 0"):
        next(gpu_clock.batches(clock.run, clock, 3))


def fed(monkeypatch, seconds):
    """Batch times that also move the clock of the host."""
    now = [0.0]
    monkeypatch.setattr(gpu_clock, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def batches():
        for second in seconds:
            now[0] += second
            yield second

    return batches()


def test_warm_up_lasts_until_the_rate_is_steady(monkeypatch):
    falling = [0.05 * 1.05**i for i in range(30)]
    times = fed(monkeypatch, itertools.chain(falling, itertools.repeat(0.3, 10), itertools.repeat(0.4)))
    assert gpu_clock.warm_up(times, 3.0) is True
    assert list(itertools.islice(times, 4)).count(0.4) == 2


def test_warm_up_lasts_its_least_time_and_ends_after_four_of_them(monkeypatch):
    short = fed(monkeypatch, [0.05] * 61)
    assert gpu_clock.warm_up(short, 3.0) is True
    assert len(list(short)) <= 1
    slowing = fed(monkeypatch, (0.05 * 1.05**i for i in itertools.count()))
    assert gpu_clock.warm_up(slowing, 3.0) is False
    assert 0.5 < next(slowing) < 0.8  # what comes after 12 s


def test_the_load_stays_on_until_the_parent_says_go():
    told, tell = os.pipe()
    batches = iter(lambda: os.write(tell, b"go\n") if next(count) == 4 else 0.05, None)
    count = itertools.count()
    gpu_workers.await_go(lambda: next(batches), told)
    assert next(count) == 5
    os.close(tell)
    with pytest.raises(SystemExit):
        gpu_workers.await_go(lambda: next(batches), told)
    os.close(told)


def test_batches_are_collected_for_the_time_asked_and_three_at_least(monkeypatch):
    assert len(gpu_clock.collect(fed(monkeypatch, itertools.repeat(0.5)), 5.0)) == 10
    assert len(gpu_clock.collect(fed(monkeypatch, itertools.repeat(60.0)), 5.0)) == 3


# ---- the product ------------------------------------------------------------------------------


def test_inputs_are_normal_and_the_same_on_every_run(torch):
    a, b = matmul.seeded_inputs(torch, "cpu", "float32", 128)
    again, _ = matmul.seeded_inputs(torch, "cpu", "float32", 128)
    assert torch.equal(a, again)
    assert not torch.equal(a, b)
    assert abs(float(a.mean())) < 0.05
    assert abs(float(a.std()) - 1) < 0.05
    assert len(a.unique()) > 16_000


@pytest.fixture(scope="module")
def products(torch):
    """Right products by dtype."""
    sizes = {"float32": 300, "float16": 128, "bfloat16": 128, "float64": 200}
    pairs = {dtype: matmul.seeded_inputs(torch, "cpu", dtype, size) for dtype, size in sizes.items()}
    return {dtype: (a, b, a @ b) for dtype, (a, b) in pairs.items()}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
class TestFreivalds:
    def test_a_right_product_passes(self, torch, products, dtype):
        assert matmul.freivalds(torch, *products[dtype], dtype) is True

    @pytest.mark.parametrize("row", [0, 77, -1])
    def test_one_wrong_row_is_caught(self, torch, products, dtype, row):
        a, b, c = products[dtype]
        wrong = c.clone()
        wrong[row] = c[5]
        assert matmul.freivalds(torch, a, b, wrong, dtype) is False

    def test_one_wrong_element_is_caught(self, torch, products, dtype):
        a, b, c = products[dtype]
        wrong = c.clone()
        wrong[3, 9] += 4 * math.sqrt(len(c))
        assert matmul.freivalds(torch, a, b, wrong, dtype) is False

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_a_product_that_was_never_written_is_caught(self, torch, products, dtype, bad):
        a, b, c = products[dtype]
        assert matmul.freivalds(torch, a, b, torch.full_like(c, bad), dtype) is False
        wrong = c.clone()
        wrong[-1, -1] = bad
        assert matmul.freivalds(torch, a, b, wrong, dtype) is False


def test_float32_that_was_multiplied_in_tf32_is_caught(torch, products):
    a, b, _ = products["float32"]

    def tf32(x):  # ten bits of mantissa
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

    assert matmul.freivalds(torch, a, b, tf32(a) @ tf32(b), "float32") is False


@pytest.mark.parametrize("dtype", ["tf32", "float8_e4m3fn"])
def test_products_of_rounded_factors_are_checked_too(torch, dtype):
    a, b = matmul.seeded_inputs(torch, "cpu", dtype, 128)
    c, run = matmul.multiplication(torch, a, b, dtype)
    assert matmul.freivalds(torch, a, b, c, dtype) is False  # not made yet
    run()
    assert matmul.freivalds(torch, a, b, c, dtype) is True
    c[7] = c[8].clone()
    assert matmul.freivalds(torch, a, b, c, dtype) is False


def test_factors_cut_off_at_ten_bits_are_a_right_tf32_product(torch):
    a, b = matmul.seeded_inputs(torch, "cpu", "tf32", 512)

    def cut(x):
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

    assert matmul.freivalds(torch, a, b, cut(a) @ cut(b), "tf32") is True


def test_a_torch_without_fp8_products_says_so(torch, monkeypatch):
    a, b = matmul.seeded_inputs(torch, "cpu", "float8_e4m3fn", 64)
    monkeypatch.delattr(torch, "_scaled_mm")
    with pytest.raises(RuntimeError, match="has no FP8 product"):
        matmul.multiplication(torch, a, b, "float8_e4m3fn")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_changed_bit_moves_the_digest(torch, products, dtype):
    c = products[dtype][2]
    before = matmul.digest(torch, c)
    assert matmul.digest(torch, c.clone()) == before
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[c.element_size()]
    for place, flip in ((0, 1), (77, 4), (c.numel() - 1, 1 << 9)):
        other = c.clone()
        other.view(bits).view(-1)[place] ^= flip
        assert matmul.digest(torch, other) != before
    swapped = c.clone()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert matmul.digest(torch, swapped) != before


def test_the_digest_does_not_depend_on_the_slabs(torch, products, monkeypatch):
    c = products["float32"][2]
    whole = matmul.digest(torch, c)
    monkeypatch.setattr(matmul, "SLAB", 7)
    assert matmul.digest(torch, c) == whole


def test_one_product_that_differs_in_one_bit_is_not_repeatable(torch):
    c, made = torch.ones(8, 8), itertools.count(1)

    def run():
        c.fill_(1.0)
        if next(made) == 2:
            c[3, 3] = 1.0 + 2**-23

    found = matmul.repeats(torch, run, c, seconds=0.0)
    assert (found["repeatable"], found["repeats"]) == (False, 3)
    assert matmul.repeats(torch, lambda: c.fill_(1.0), c, seconds=0.0)["repeatable"] is True


def test_a_product_that_is_not_made_again_is_not_repeatable(torch):
    assert matmul.repeats(torch, lambda: None, torch.ones(8, 8), seconds=0.0)["repeatable"] is False


def test_the_tolerance_is_some_way_above_the_error_of_right_products(torch, products):
    for dtype, (a, b, c) in products.items():
        x = torch.ones(len(c), dtype=torch.float64)
        off = (c.double() @ x - a.double() @ (b.double() @ x)).abs().max()
        assert 0 < float(off) < matmul.tolerance(dtype, len(c)) / 1.4


def test_a_device_error_becomes_one_sentence(torch):
    def said(error):
        return gpu_devices.sentence(torch, error)

    assert said(torch.cuda.OutOfMemoryError("CUDA out of memory.\nmore")) == "out of memory: CUDA out of memory."
    assert said(RuntimeError("CUDA error: uncorrectable ECC error\nlines")) == "CUDA error: uncorrectable ECC error"
    assert said(RuntimeError()) == "RuntimeError"


def test_cuda_events_are_the_clock_of_a_gpu():
    log = []

    class Event:
        def __init__(self, enable_timing):
            log.append(("event", enable_timing))

        def record(self, stream):
            log.append(("record", stream))

        def synchronize(self):
            log.append("synchronize")

        def elapsed_time(self, end):
            return 47.5

    cuda = SimpleNamespace(Event=Event, set_device=log.append, current_stream=lambda: "stream")
    clock = gpu_clock.CudaClock(SimpleNamespace(cuda=cuda), "cuda:3")
    start, end = clock.mark(), clock.mark()
    clock.wait(end)
    assert clock.between(start, end) == pytest.approx(0.0475)
    assert log == ["cuda:3", *[("event", True), ("record", "stream")] * 2, "synchronize"]


def test_a_gpu_s_entry_holds_its_identity_and_its_clocks(torch, monkeypatch):
    who = {"uuid": "GPU-1", "bus_id": "0000:1B:00.0", "name": "NVIDIA H100 80GB HBM3"}
    inputs = matmul.seeded_inputs(torch, "cpu", "float32", 64)
    monkeypatch.setattr(matmul, "identity_of", {"cuda:1": who}.get)
    monkeypatch.setattr(matmul, "seeded_inputs", lambda *_: inputs)
    monkeypatch.setattr(gpu_clock, "CudaClock", lambda *_: gpu_clock.Clock())
    sample = gpu_state.smi_sample("1980, 690, 60, 5, 16, 21, 0x4")
    monkeypatch.setattr(gpu_state, "nvml_reader", {"0000:1B:00.0": lambda: sample}.get)
    options = argparse.Namespace(device=["cuda:1"], seconds=0.05, warmup=0.05)
    awaited = []
    entry = matmul.measure(torch, ("float32", 64), options, awaited.append)
    assert len(awaited) == 1
    assert entry.items() >= {**who, "verified": True}.items()
    assert entry["clocks"]["sm_mhz"]["median"] == 1980
    assert entry["events"]["reasons"].keys() == {"0x4"}


# ---- clocks and events ------------------------------------------------------------------------


NOTHING = {"clocks": None, "events": None, "link": None}


def test_nothing_told_is_null():
    assert gpu_state.sample_figures([]) == NOTHING
    silent = gpu_state.smi_sample(", ".join(["[N/A]"] * 7))
    assert gpu_state.sample_figures([silent, gpu_state.smi_sample("")]) == NOTHING


def test_event_reasons_are_counted_bit_by_bit():
    lines = ["1980, 690.5, 60, 5, 16, 21, 0x0000000000000004"] * 3 + ["1200, 480, 88, 4, 16, -1, 0x0000000000000048"]
    figures = gpu_state.sample_figures([gpu_state.smi_sample(line) for line in lines])
    assert figures["clocks"] == {"samples": 4, "sm_mhz": {"min": 1200.0, "median": 1980.0, "max": 1980.0}}
    assert figures["events"] == {
        "samples": 4,
        "reasons": {"0x4": 3, "0x8": 1, "0x40": 1},
        "power_w": {"min": 480.0, "median": 690.5, "max": 690.5},
        "temperature_c": {"min": 60.0, "median": 60.0, "max": 88.0},
        "margin_c": {"min": -1.0, "median": 21.0, "max": 21.0},
    }
    assert figures["link"] == {
        "generation": {"min": 4.0, "median": 5.0, "max": 5.0},
        "width": {"min": 16.0, "median": 16.0, "max": 16.0},
    }


def test_nvidia_smi_is_asked_for_less_where_it_does_not_know_all(tmp_path, monkeypatch):
    smi = tmp_path / "nvidia-smi"
    script = 'case "$*" in *tlimit*|*clocks_event*) exit 2;; *"-i GPU-1") echo "1755, 350, 61, 5, 16, 0x4";; esac'
    smi.write_text(f"#!/bin/sh\n{script}\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    read = gpu_state.smi_reader("GPU-1")
    expected = {"sm_mhz": 1755.0, "power_w": 350.0, "temperature_c": 61.0, "reasons": 4}
    expected |= {"link_generation": 5.0, "link_width": 16.0, "margin_c": None}
    assert read() == read() == expected


def test_without_nvidia_smi_a_sample_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_state.smi_reader("GPU-1")() == gpu_state.smi_sample("")


def test_nvml_tells_what_it_can(monkeypatch):
    class NVMLError(Exception):
        pass

    def refuse(*_):
        raise NVMLError

    nvml = SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda bus_id: bus_id,
        nvmlDeviceGetClockInfo=lambda handle, kind: {b"0000:1b:00.0": 1980}[handle] * kind,
        nvmlDeviceGetPowerUsage=lambda _: 698_500,
        nvmlDeviceGetTemperature=refuse,
        nvmlDeviceGetCurrPcieLinkGeneration=lambda _: 5,
        nvmlDeviceGetCurrPcieLinkWidth=refuse,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x4,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    read = gpu_state.nvml_reader("0000:1b:00.0")
    told = {"sm_mhz": 1980, "power_w": 698.5, "link_generation": 5, "reasons": 4}
    assert read() == {**dict.fromkeys(("temperature_c", "link_width", "margin_c")), **told}
    nvml.nvmlDeviceGetMarginTemperature = lambda _: 21
    assert gpu_state.nvml_reader("0000:1b:00.0")()["margin_c"] == 21
    nvml.nvmlInit = refuse
    assert gpu_state.nvml_reader("0000:1b:00.0") is None


def test_sampling_ends_with_the_block_and_does_not_wait_for_a_call_that_hangs():
    with gpu_state.sampled(lambda: "sample", period=0.001) as samples:
        assert becomes(lambda: len(samples) > 2)
    count = len(samples)
    time.sleep(0.02)
    assert len(samples) == count
    begun = time.monotonic()
    with gpu_state.sampled(lambda: time.sleep(30)):
        pass
    assert time.monotonic() - begun < 20


# ---- who the devices are ----------------------------------------------------------------------


class Driver:
    """libcuda of a node with two GPUs, or one that answers with an error."""

    def __init__(self, error=0):
        self.error = error

    def cuInit(self, _):  # noqa: N802 - the driver's own names
        return self.error

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, handle, ordinal):  # noqa: N802
        handle._obj.value = 40 + ordinal
        return 0

    def cuDeviceGetUuid_v2(self, raw, handle):  # noqa: N802
        raw._obj[:] = bytes(range(16)) if handle.value == 40 else bytes(16)
        return 0

    def cuDeviceGetPCIBusId(self, text, length, handle):  # noqa: N802
        text.value = b"0000:1B:00.0" if handle.value == 40 else b"0000:43:00.0"
        return 0 if length == len(text) else 1

    def cuDeviceGetName(self, text, length, handle):  # noqa: N802
        text.value = b"NVIDIA H100 80GB HBM3"
        return 0

    def cuGetErrorString(self, status, text):  # noqa: N802
        text._obj.value = b"system not yet initialized"
        return 0


def test_the_driver_names_the_gpus():
    assert gpu_devices.cuda_devices(Driver()) == [
        {"uuid": "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", "bus_id": "0000:1B:00.0", "name": "NVIDIA H100 80GB HBM3"},
        {"uuid": "GPU-00000000-0000-0000-0000-000000000000", "bus_id": "0000:43:00.0", "name": "NVIDIA H100 80GB HBM3"},
    ]


def test_the_driver_s_error_is_told_with_its_text():
    with pytest.raises(RuntimeError, match=r"cuInit: error 802 \(system not yet initialized\)"):
        gpu_devices.cuda_devices(Driver(error=802))


def test_a_device_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: Driver())
    assert matmul.identity_of("cuda:1")["bus_id"] == "0000:43:00.0"
    with pytest.raises(RuntimeError, match="there is no cuda:2: the driver shows 2 GPUs"):
        matmul.identity_of("cuda:2")


# ---- the parent and workers that misbehave ----------------------------------------------------

FAKE = """
import json, os, signal, sys, time
from pathlib import Path

device = sys.argv[sys.argv.index("--device") + 1]
def say(**message):
    print(json.dumps(message), flush=True)
def entry(**figures):
    say(result=0, entry=figures)
if device == "all":
    say(about={"devices": [{"uuid": f"GPU-{n}", "bus_id": f"0000:0{n}:00.0", "name": "H100"} for n in range(6)]})
    sys.exit()
(Path(__file__).parent / device).write_text(str(os.getpid()))
if device == "cuda:1":  # never gets ready, and does not go when it is asked to
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
say(about={"torch": "2.7.0+cu126", "cuda": "12.6"})
if device == "cuda:2":
    time.sleep(0.7)
    os.kill(os.getpid(), signal.SIGKILL)
if device == "cuda:3":
    print("Segmentation fault", flush=True)
    time.sleep(600)
if device == "cuda:4":
    entry(error="CUDA error: uncorrectable ECC error")
    sys.exit()
if device == "cuda:5":
    time.sleep(0.5)
ready = time.monotonic()
say(ready=0)
sys.stdin.readline()
if device == "cuda:6":
    time.sleep(600)
entry(tflops=time.monotonic(), p5=ready, verified=True, error=None, device="cpu")
"""


@pytest.fixture(scope="module")
def led(tmp_path_factory):
    """The document of a run with six kinds of worker, its duration and where the workers left their ids."""
    folder = tmp_path_factory.mktemp("fake")
    (folder / "fake.py").write_text(FAKE)
    argv = ["--device", ",".join(f"cuda:{n}" for n in range(7)), "--size=8", "--dtype=float16"]
    options = matmul.parse_options([*argv, "--seconds=0.2", "--warmup=0.05", "--deadline=6"])
    begun = time.monotonic()
    document = matmul.probe(options, str(folder / "fake.py"))
    return document, time.monotonic() - begun, folder


def errors(document):
    return {entry["device"]: entry["error"] for entry in document["results"]}


def test_a_worker_that_never_gets_ready_is_killed_and_the_others_measure(led):
    document, seconds, folder = led
    assert errors(document)["cuda:1"] == (
        "no answer within 3 s while getting ready for float16 8: its process was ended"
    )
    assert errors(document)["cuda:0"] is errors(document)["cuda:5"] is None
    assert not any(is_alive(int((folder / f"cuda:{n}").read_text())) for n in range(7))
    assert seconds < 6 + 3 * 4  # the deadline, and TERM and KILL for each stage and at the end


def test_all_measure_at_the_same_time(led):
    measured = [e for e in led[0]["results"] if e["error"] is None]
    assert len(measured) == 2
    assert min(e["tflops"] for e in measured) >= max(e["p5"] for e in measured)


def test_each_worker_that_fails_has_an_entry_that_says_how(led):
    said = errors(led[0])
    assert said["cuda:2"] == "its process ended with signal 9 before it answered"
    assert said["cuda:3"] == "its process said something that is no message of this probe"
    assert said["cuda:4"] == "CUDA error: uncorrectable ECC error"
    assert said["cuda:6"].startswith("no answer within ")
    assert "while measuring float16 8: its process was ended" in said["cuda:6"]


def test_a_gpu_whose_worker_gave_no_answer_is_still_named(led):
    hung, unlisted = (next(e for e in led[0]["results"] if e["device"] == d) for d in ("cuda:1", "cuda:6"))
    assert (hung["uuid"], hung["bus_id"], hung["name"]) == ("GPU-1", "0000:01:00.0", "H100")
    assert unlisted["bus_id"] is None
    assert led[0]["torch"] == "2.7.0+cu126"
    assert [d["bus_id"] for d in led[0]["devices"]][:2] == ["0000:00:00.0", "0000:01:00.0"]


def test_a_worker_that_cannot_be_killed_is_abandoned(monkeypatch):
    sent = []
    stuck = SimpleNamespace(process=SimpleNamespace(poll=lambda: None, send_signal=sent.append))
    monkeypatch.setattr(gpu_workers, "TERM_SECONDS", 0.01)
    monkeypatch.setattr(gpu_workers, "KILL_SECONDS", 0.01)
    assert gpu_workers.end([stuck], grace=0.01) == [stuck]
    assert sent == [signal.SIGTERM, signal.SIGKILL]


def test_an_abandoned_worker_is_told_from_one_that_was_ended(monkeypatch):
    monkeypatch.setattr(gpu_workers, "end", lambda workers: workers)
    stuck = SimpleNamespace(lost="")
    gpu_workers.gather([stuck], lambda _: False, 0, "measuring")
    assert stuck.lost.endswith("its process could not be killed and was abandoned")


STUB = """
class OutOfMemoryError(RuntimeError): pass
class Names:
    def __init__(self, **names): self.__dict__.update(names)
def refuse(*_, **__): raise OutOfMemoryError("CUDA out of memory. Tried to allocate 512.00 MiB")
__version__, version = "2.7.0", Names(cuda=None)
cuda = Names(OutOfMemoryError=OutOfMemoryError, DeferredCudaCallError=type("Deferred", (Exception,), {}))
backends = Names(cuda=Names(matmul=Names(), is_built=lambda: BUILT))
float16, randn, set_float32_matmul_precision = "float16", refuse, print
Generator = lambda device: Names(manual_seed=print)
"""


@pytest.mark.parametrize(
    ("device", "built", "error"),
    [
        ("cpu", True, "out of memory: CUDA out of memory. Tried to allocate 512.00 MiB"),
        ("cuda:0", True, "no CUDA driver here: libcuda.so.1"),
        ("cuda:0", False, "torch 2.7.0 is built without CUDA"),
    ],
)
def test_an_error_of_the_device_is_its_entry_s_and_exits_0(tmp_path, monkeypatch, device, built, error):
    (tmp_path / "torch.py").write_text(STUB.replace("BUILT", str(built)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = ran("--device", device, "--size=8", "--dtype=float16")
    (entry,) = json.loads(run.stdout)["results"]
    assert run.returncode == 0
    assert entry["error"].startswith(error)
    assert entry["verified"] is None


def test_a_torch_that_does_not_load_is_an_error_of_the_document(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.12: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = ran("--device", "cpu", "--size", "8")
    document = json.loads(run.stdout)
    assert run.returncode == 3
    assert document["error"] == "torch does not load: libcudart.so.12: cannot open shared object file"
    assert document["results"][0]["error"] == document["error"]


@pytest.fixture
def busy():
    """A parent that measures for a minute, and its worker's id."""
    argv = [sys.executable, str(SCRIPT), "--device=cpu", "--size=128", "--dtype=float32", "--seconds=60"]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = []

    def children():
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                name_and_rest = stat.read_text().rpartition(")")
            except OSError:  # it ended meanwhile
                continue
            if int(name_and_rest[2].split()[1]) == parent.pid:
                found.append(int(stat.parent.name))
        return found

    assert becomes(children)
    worker = found[0]
    # torch is loaded after the worker has tied itself to its parent
    assert becomes(lambda: "libtorch" in Path(f"/proc/{worker}/maps").read_text())
    yield parent, worker
    for pid in (parent.pid, worker):
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    parent.communicate()


def test_term_ends_the_workers_too(busy):
    parent, worker = busy
    parent.terminate()
    assert parent.communicate(timeout=30)[0] == b""
    assert parent.returncode == 128 + signal.SIGTERM
    assert not is_alive(worker)


def test_no_worker_outlives_a_parent_that_was_killed(busy):
    parent, worker = busy
    parent.kill()
    parent.wait(30)
    assert becomes(lambda: not is_alive(worker), 30)


# ---- the command line -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "tasks"),
    [
        ([], matmul.GPU_TASKS),
        (["--device", "cpu"], [("float32", 2048)]),
        (["--dtype", "float32"], [("float32", 8192)]),
        (["--dtype", "bfloat16"], [("bfloat16", 8192)]),
        (["--dtype", "float16", "--size", "16384"], [("float16", 16384)]),
        (["--dtype=float16,float32", "--dtype=float16", "--size=64", "--size=32"], None),
    ],
)
def test_the_tasks_follow_from_the_options(argv, tasks):
    expected = tasks or [(dtype, size) for dtype in ("float16", "float32") for size in (64, 32)]
    assert matmul.parse_options(argv).tasks == expected


@pytest.mark.parametrize(
    "argv",
    [
        ["--device", "cuda"],
        ["--device", "all,cpu"],
        ["--dtype", "fp16"],
        ["--size", "0"],
        ["--size", "-5"],
        ["--seconds", "0"],
        ["--seconds", "nan"],
        ["--warmup", "0"],
        ["--deadline", "20"],
        ["--deadline", "inf"],
    ],
)
def test_options_that_make_no_sense_are_refused(argv, capsys):
    with pytest.raises(SystemExit) as refused:
        matmul.parse_options(argv)
    assert refused.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_cublas_is_unknown_where_none_is_loaded():
    assert gpu_devices.cublas_version() is None


def test_cublas_says_its_version_itself(tmp_path):
    source = tmp_path / "blas.c"
    source.write_text(
        "int cublasGetProperty(int which, int *v) { *v = which == 0 ? 12 : which == 1 ? 4 : 5; return 0; }"
    )
    library = tmp_path / "libcublas.so.12"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    code = f"import ctypes, sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); ctypes.CDLL({str(library)!r})\n"
    code += "import gpu_devices; print(gpu_devices.cublas_version())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "12.4.5\n"


def test_worker_options_reach_the_worker_as_they_were():
    argv = ["--worker", "--device=cuda:3", "--seconds=5.0", "--warmup=3.0", "--task=float16:8192", "--task=float32:64"]
    options = matmul.parse_options(argv)
    assert isinstance(options, argparse.Namespace)
    assert (options.device, options.tasks) == (["cuda:3"], [("float16", 8192), ("float32", 64)])
