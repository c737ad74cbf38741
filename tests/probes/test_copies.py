"""The copies probe: its copies on a CPU with the real torch, its parent with workers that misbehave."""

import argparse
import importlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeready.probes import copies, gpu_bytes, gpu_clock, gpu_host

SCRIPT = Path(copies.__file__)
GIB = 1 << 30


@pytest.fixture(scope="module")
def torch():
    return importlib.import_module("torch")


def ran(*options, python=()):
    argv = [sys.executable, *python, str(SCRIPT), *options]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


# ---- bytes ------------------------------------------------------------------------------------


def test_bytes_are_the_same_however_they_are_cut_into_slabs(torch, monkeypatch):
    whole = gpu_bytes.made(torch, "cpu", 0, 1000, seed=7)
    buffer = torch.zeros(1000, dtype=torch.int64)
    monkeypatch.setattr(gpu_bytes, "SLAB", 96)
    gpu_bytes.fill(torch, buffer, 7)
    assert torch.equal(whole, buffer)
    assert gpu_bytes.holds(torch, buffer, 7)
    assert not gpu_bytes.holds(torch, buffer, 8)


def test_no_two_places_hold_the_same_number_and_half_of_the_bits_are_set(torch):
    numbers = gpu_bytes.made(torch, "cpu", 0, 100_000, seed=copies.SEED)
    assert len(numbers.unique()) == 100_000
    for bit in (0, 1, 17, 31, 32, 47, 62, 63):
        assert abs(float((numbers >> bit & 1).double().mean()) - 0.5) < 0.05, bit


@pytest.mark.parametrize("place", [0, 499, 999])
@pytest.mark.parametrize("bit", [0, 31, 62])
def test_one_bit_that_arrived_wrong_is_found(torch, place, bit):
    buffer = torch.empty(1000, dtype=torch.int64)
    gpu_bytes.fill(torch, buffer, 3)
    buffer[place] ^= 1 << bit
    assert not gpu_bytes.holds(torch, buffer, 3)


@pytest.mark.parametrize("broken", ["stale", "shifted", "zeros"])
def test_a_copy_that_does_not_arrive_is_wrong(torch, broken):
    """Also one that arrived once, and whose repetition leaves zeros."""
    source, target = (torch.empty(4096, dtype=torch.int64) for _ in range(2))
    gpu_bytes.fill(torch, source, copies.SEED)
    target.copy_(source)
    run = {
        "stale": lambda: None,
        "shifted": lambda: target.copy_(source.roll(1)),
        "zeros": target.zero_,
    }[broken]
    assert copies.arrives(torch, lambda: target.copy_(source), gpu_clock.Clock(), target, 3)
    assert not copies.arrives(torch, run, gpu_clock.Clock(), target, 3)


# ---- beside the GPU ---------------------------------------------------------------------------


def listing(folder, text):
    place = folder / "0000:1b:00.0"
    place.mkdir()
    (place / "local_cpulist").write_text(text)
    return str(folder)


def test_the_processors_beside_a_gpu_are_those_that_the_kernel_lists(tmp_path):
    root = listing(tmp_path, "0-2,56,60-61\n")
    assert gpu_host.local_cpus("0000:1B:00.0", root) == ("0-2,56,60-61", {0, 1, 2, 56, 60, 61})
    assert gpu_host.local_cpus("0000:1C:00.0", root) is None


@pytest.mark.parametrize("text", ["", "\n", "all", "0-", "1,,2", "0-1;rm"])
def test_a_list_that_is_none_is_not_followed(tmp_path, text):
    assert gpu_host.stand_beside("0000:1b:00.0", listing(tmp_path, text)) is None


def test_the_thread_moves_there_or_says_that_it_could_not(tmp_path):
    before = os.sched_getaffinity(0)
    one = min(before)
    try:
        assert gpu_host.stand_beside("0000:1b:00.0", listing(tmp_path, f"{one}\n")) == str(one)
        assert os.sched_getaffinity(0) == {one}
        (tmp_path / "0000:1b:00.0" / "local_cpulist").write_text("99999")
        assert gpu_host.stand_beside("0000:1b:00.0", str(tmp_path)) is None
    finally:
        os.sched_setaffinity(0, before)


# ---- the measurement --------------------------------------------------------------------------


def test_the_document_of_a_cpu_agrees_with_itself():
    run = ran("--device=cpu", "--seconds=0.1", "--mib=4")
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert (document["probe"], document["schema"], document["error"]) == ("copies", 1, None)
    assert [entry["copy"] for entry in document["results"]] == ["device", "to-device", "to-host"]
    assert [device["device"] for device in document["devices"]] == ["cpu"]
    for entry in document["results"]:
        assert entry.keys() >= {"device", "uuid", "bus_id", "name", "copy", "peer", *copies.FIGURES}
        assert (entry["error"], entry["verified"], entry["link"], entry["peer_access"]) == (None, True, None, None)
        assert (entry["bytes"], entry["counted"]) == (4 << 20, 2 if entry["copy"] == "device" else 1)
        assert 0 < entry["p5"] <= entry["gb_s"]
        overall = entry["bytes"] * entry["counted"] * entry["iterations"] / entry["measured_s"] / 1e9
        assert overall / 3 < entry["gb_s"] < overall * 3


def test_figures_are_those_of_the_batches():
    figures = copies.rate_figures([0.05] * 15 + [0.1] * 5, batch=4, moved=2 * GIB)
    assert figures["gb_s"] == pytest.approx(8 * GIB / 0.05 / 1e9)
    assert figures["p5"] == pytest.approx(8 * GIB / 0.1 / 1e9)
    assert figures["iterations"] == 80


def test_the_load_stays_on_until_the_state_was_read_often_enough():
    """nvidia-smi may take longer for one answer than all copies do."""

    def slow():
        time.sleep(0.05)
        return dict.fromkeys(("sm_mhz", "reasons"))

    ran = itertools.count()
    times = iter(lambda: time.sleep(0.002) or next(ran) or 0.002, None)
    taken, samples = copies.sampled_batches(times, 0.01, slow)
    assert len(samples) >= copies.LEAST_SAMPLES
    assert len(taken) == next(ran)
    assert copies.sampled_batches(itertools.repeat(0.002), 0.01, None)[1] == []


def test_a_buffer_is_a_quarter_of_the_free_memory_at_most():
    fake = SimpleNamespace(cuda=SimpleNamespace(mem_get_info=lambda _: (80 * GIB, 80 * GIB)))
    assert copies.size_of(fake, "device", "cuda:0", None) * 8 == 4 * GIB
    assert copies.size_of(fake, "to-device", "cuda:0", None) * 8 == GIB // 4
    fake.cuda.mem_get_info = lambda _: (2 * GIB, 80 * GIB)
    assert copies.size_of(fake, "device", "cuda:0", None) * 8 == GIB // 2
    assert copies.size_of(fake, "device", "cuda:0", 1) * 8 == 1 << 20


class Gpus:
    """A torch whose GPUs are this machine's memory: what is asked where is kept."""

    def __init__(self, torch):
        self.torch, self.int64, self.made, self.refuse = torch, torch.int64, [], ""
        self.cuda = SimpleNamespace(
            can_device_access_peer=lambda one, other: (one, other) != ("cuda:0", "cuda:2"),
            mem_get_info=lambda _: (1 << 24, 1 << 24),
            empty_cache=lambda: self.made.append("emptied"),
        )

    def __getattr__(self, name):
        return getattr(self.torch, name)

    def empty(self, size, device, pin_memory=False, dtype=None):
        self.made.append((device, pin_memory))
        if device == self.refuse:
            raise RuntimeError("CUDA error: busy")
        return self.torch.empty(size, dtype=dtype)


@pytest.fixture
def gpus(torch, monkeypatch):
    who = {"uuid": "GPU-0", "bus_id": "0000:19:00.0", "name": "H100"}
    monkeypatch.setattr(copies, "identity_of", lambda _: dict(who))
    monkeypatch.setattr(copies.gpu_clock, "CudaClock", lambda *_: gpu_clock.Clock())
    monkeypatch.setattr(copies.gpu_host, "stand_beside", lambda bus_id: f"beside {bus_id}")
    sample = {"sm_mhz": 1980, "link_generation": 5, "link_width": 16}
    names = (*copies.gpu_state.NUMBERS, "reasons")
    monkeypatch.setattr(copies.gpu_state, "reader", lambda _: lambda: {**dict.fromkeys(names), **sample})
    return Gpus(torch)


def options_of(device="cuda:0", peers=("cuda:0", "cuda:1", "cuda:2")):
    return argparse.Namespace(device=[device], peers=list(peers), seconds=0.02, mib=1)


def test_host_memory_is_pinned_beside_the_gpu_and_the_link_is_watched(gpus):
    found = copies.measure(gpus, ("to-device", 0), options_of(), lambda: "go")
    assert gpus.made == ["emptied", ("cpu", True), ("cuda:0", False)]
    assert (found["host_cpus"], found["verified"]) == ("beside 0000:19:00.0", True)
    assert found["link"]["generation"]["min"] == 5
    gpus.made.clear()
    copies.measure(gpus, ("to-host", 0), options_of(), lambda: "go")
    assert gpus.made == ["emptied", ("cuda:0", False), ("cpu", True)]


def test_a_copy_to_a_peer_says_whether_it_had_access(gpus):
    near, far = (copies.measure(gpus, ("to-peer", step), options_of(), lambda: "go") for step in (1, 2))
    assert gpus.made == [
        "emptied",
        ("cuda:0", False),
        ("cuda:1", False),
        "emptied",
        ("cuda:0", False),
        ("cuda:2", False),
    ]
    assert (near["peer_access"], far["peer_access"]) == (True, False)
    assert near["counted"] == 1
    assert near["verified"] is True


def test_nothing_is_made_ready_for_a_peer_before_the_word_comes(gpus):
    seen = []
    copies.measure(gpus, ("to-peer", 1), options_of(), lambda: seen.append(list(gpus.made)) or "go")
    assert seen == [["emptied"]]
    skipped = copies.measure(gpus, ("to-peer", 1), options_of(), lambda: copies.SKIP)
    assert skipped == {"skipped": True, "error": "not copied: cuda:1 failed, or gave no answer, before"}


def test_contexts_are_made_on_all_peers_but_those_to_avoid(gpus):
    gpus.refuse = "cuda:1"
    peers = tuple(f"cuda:{n}" for n in range(5))
    copies.measure(gpus, ("join", 0), options_of("cuda:3", peers), lambda: "avoid cuda:0 cuda:4")
    assert gpus.made == ["emptied", ("cuda:1", False), ("cuda:2", False)]


def test_each_pair_is_measured_once_and_no_two_go_to_the_same_device_in_one_task():
    devices = [f"cuda:{n}" for n in range(8)]
    steps = [step for copy, step in copies.tasks_of(devices) if copy == "to-peer"]
    pairs = {(device, copies.peer_of(devices, device, step)) for step in steps for device in devices}
    assert pairs == {(a, b) for a in devices for b in devices if a != b}
    for step in steps:
        assert len({copies.peer_of(devices, device, step) for device in devices}) == 8
    assert copies.tasks_of(["cuda:0"]) == [("device", 0), ("to-device", 0), ("to-host", 0)]


# ---- the parent and workers that misbehave ----------------------------------------------------

FAKE = """
import json, os, signal, sys, time
from pathlib import Path

def say(**message):
    print(json.dumps(message), flush=True)
device = sys.argv[sys.argv.index("--device") + 1]
if device == "all":
    say(about={"devices": [{"uuid": f"GPU-{n}", "bus_id": f"0000:0{n}:00.0", "name": "H100"} for n in range(4)]})
    sys.exit()
peers = next(a for a in sys.argv if a.startswith("--peers="))[8:].split(",")
tasks = ["device", "to-device", "to-host", "join"] + [f"to-peer {s}" for s in range(1, len(peers))]
heard = Path(__file__).parent / device
say(about={"torch": "2.7.0+cu126", "cuda": "12.6"})
for number, task in enumerate(tasks):
    say(ready=number)
    word = sys.stdin.readline().strip()
    with heard.open("a") as file:
        file.write(f"{task}: {word}\\n")
    begun = time.monotonic()
    if (device, task) in BAD:
        time.sleep(600)
    time.sleep(0.05)
    if (device, task) in BROKEN:
        say(result=number, entry={"copy": task.split()[0], "error": "CUDA error: uncorrectable ECC error"})
    elif word == "skip":
        say(result=number, entry={"copy": task.split()[0], "skipped": True, "error": "not copied"})
    else:
        span = [begun, time.monotonic()]
        say(result=number, entry={"copy": task.split()[0], "gb_s": span, "verified": True, "error": None})
"""


def lead(folder, bad=(), broken=()):
    (folder / "fake.py").write_text(f"BAD, BROKEN = {list(bad)!r}, {list(broken)!r}\n{FAKE}")
    patch = pytest.MonkeyPatch()
    patch.setattr(copies, "TURN_SECONDS", 1.0)
    with patch.context():
        document = copies.probe(copies.parse_options(["--device=all", "--deadline=30"]), str(folder / "fake.py"))
    patch.undo()
    heard = {path.name: path.read_text().splitlines() for path in folder.glob("cuda:*")}
    return document, heard


def pairs_of(document):
    return {(e["device"], e["peer_device"]): e["error"] for e in document["results"] if e["copy"] == "to-peer"}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return lead(tmp_path_factory.mktemp("healthy"))


def test_every_pair_is_named_by_bus_id_and_contexts_are_no_result(healthy):
    document, _ = healthy
    assert len(document["results"]) == 4 * 3 + 4 * 3
    assert {e["copy"] for e in document["results"]} == {"device", "to-device", "to-host", "to-peer"}
    for entry in document["results"]:
        if entry["copy"] == "to-peer":
            assert entry["peer"] == f"0000:0{entry['peer_device'][-1]}:00.0"
        else:
            assert entry["peer"] is entry["peer_device"] is None
    assert set(pairs_of(document).values()) == {None}


def test_copies_within_run_at_once_and_all_others_alone(healthy):
    spans = {copy: [e["gb_s"] for e in healthy[0]["results"] if e["copy"] == copy] for copy in copies.MIB}
    within = spans.pop("device")
    assert max(begun for begun, _ in within) < min(ended for _, ended in within)
    others = sorted(span for found in spans.values() for span in found)
    assert len(others) == 20
    assert all(ended <= begun for (_, ended), (begun, _) in itertools.pairwise(others))


def test_a_device_whose_worker_hangs_is_not_copied_to_and_the_others_are_measured(tmp_path):
    document, heard = lead(tmp_path, bad=[("cuda:2", "device")])
    assert heard["cuda:0"][3] == "join: avoid cuda:2"
    errors = pairs_of(document)
    for (device, peer), error in errors.items():
        if device == "cuda:2":
            assert error.startswith("no answer within 1 s while measuring the copy within the device")
        elif peer == "cuda:2":
            assert error == "not copied"
        else:
            assert error is None
    hung = [e for e in document["results"] if e["device"] == "cuda:2"]
    assert len(hung) == 6
    assert {e["bus_id"] for e in hung} == {"0000:02:00.0"}


def test_a_device_that_failed_by_itself_is_not_copied_to(tmp_path):
    document, heard = lead(tmp_path, broken=[("cuda:1", "device")])
    assert heard["cuda:3"][3] == "join: avoid cuda:1"
    assert {pair for pair, error in pairs_of(document).items() if error == "not copied"} == {
        ("cuda:0", "cuda:1"),
        ("cuda:2", "cuda:1"),
        ("cuda:3", "cuda:1"),
    }


def test_after_a_copy_between_two_hung_neither_is_copied_to(tmp_path):
    document, _ = lead(tmp_path, bad=[("cuda:0", "to-peer 1")])
    errors = pairs_of(document)
    assert errors["cuda:0", "cuda:1"].startswith(
        "no answer within 1 s while measuring the copy to the device 1 further"
    )
    measured = {pair for pair, error in errors.items() if error is None}
    assert measured == {("cuda:1", "cuda:2"), ("cuda:1", "cuda:3"), ("cuda:2", "cuda:3"), ("cuda:3", "cuda:2")}


# ---- the command line -------------------------------------------------------------------------


def test_a_python_without_torch_says_so_and_exits_3():
    run = ran(python=("-S",))
    document = json.loads(run.stdout)
    assert run.returncode == 3
    assert (document["probe"], document["results"]) == ("copies", [])
    assert document["error"] == "this Python has no torch: name one that has with --python"


def test_a_node_without_a_gpu_is_an_error_in_a_document_with_exit_status_0():
    run = ran("--device", "all")
    document = json.loads(run.stdout)
    assert (run.returncode, document["results"]) == (0, [])
    assert document["error"].startswith("no GPU to measure: ")


@pytest.mark.parametrize(
    "argv",
    [
        ["--device=all,cuda:0"],
        ["--device=cpu,cuda:0"],
        ["--device=gpu0"],
        ["--seconds=0"],
        ["--mib=0"],
        ["--deadline=0"],
        ["--deadline=inf"],
    ],
)
def test_options_that_make_no_sense_are_refused(argv, capsys):
    with pytest.raises(SystemExit) as refusal:
        copies.parse_options(argv)
    assert refusal.value.code == 2
    assert "error: " in capsys.readouterr().err
