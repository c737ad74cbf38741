"""The memory patterns probe: on a CPU's memory with the real torch, with bits that get stuck and memory that runs out."""

import argparse
import doctest
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeready.probes import gpu_ecc, gpu_patterns, patterns

SCRIPT = Path(patterns.__file__)
MIB = 1 << 20


@pytest.fixture(scope="module")
def torch():
    return importlib.import_module("torch")


def ran(*options, python=()):
    argv = [sys.executable, *python, str(SCRIPT), *options]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def options(**changes):
    return argparse.Namespace(**{"device": ["cpu"], "bytes": MIB, "seconds": 0.001, **changes})


def measured(torch, **changes):
    return {**patterns.blank_entry(), **patterns.measure(torch, options(**changes), lambda: None)}


def taken(torch, size=MIB):
    return patterns.take(torch, "cpu", size, {})


# ---- stand-alone ------------------------------------------------------------------------------


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(gpu_ecc) == (0, 1)


def test_the_document_of_a_cpu_agrees_with_itself():
    run = ran("--device=cpu", "--seconds=0.3")
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert (document["probe"], document["schema"], document["error"]) == ("patterns", 1, None)
    (entry,) = document["results"]
    assert entry.keys() == patterns.blank_entry().keys()
    assert (entry["error"], entry["verified"], entry["wrong_words"], entry["wrong"]) == (None, True, 0, [])
    assert entry["covered_bytes"] == entry["cap_bytes"] == 64 * MIB == entry["blocks"] * entry["block_bytes"]
    assert entry["share_of_total"] == entry["covered_bytes"] / entry["total_bytes"]
    assert entry["share_of_free"] == entry["covered_bytes"] / entry["free_bytes"]
    assert entry["passes"] >= 5 * entry["rounds"] >= 5
    assert entry["checked_bytes"] == 2 * entry["passes"] * entry["covered_bytes"]
    assert entry["patterns"] == list(gpu_patterns.PATTERNS)
    assert (entry["ecc"], entry["clocks"], entry["link"]) == (None, None, None)


def test_a_python_without_torch_says_so_and_exits_3():
    run = ran(python=("-S",))
    assert run.returncode == 3
    assert json.loads(run.stdout)["error"] == "this Python has no torch: name one that has with --python"


def test_a_node_without_a_gpu_is_an_error_in_a_document_with_exit_status_0():
    run = ran("--device", "all")
    assert run.returncode == 0
    assert json.loads(run.stdout)["error"].startswith("no GPU to measure: no CUDA driver here: ")


def test_a_gpu_that_is_not_there_is_an_error_of_its_entry():
    run = ran("--device", "cuda:0", "--seconds=1")
    (entry,) = json.loads(run.stdout)["results"]
    assert run.returncode == 0
    assert (entry["device"], entry["verified"], entry["wrong_words"]) == ("cuda:0", None, None)
    assert entry["error"]


@pytest.mark.parametrize(
    "argv",
    [["--seconds=0"], ["--seconds=120"], ["--bytes=0"], ["--device=all,cpu"], ["--deadline=inf"], ["--device=x"]],
)
def test_options_that_make_no_sense_are_refused(argv, capsys):
    with pytest.raises(SystemExit, match="2"):
        patterns.parse_options(argv)
    assert "error" in capsys.readouterr().err


# ---- the patterns -----------------------------------------------------------------------------


def filled(torch, name, words=256, first=0, seed=20):
    block = torch.empty(words, dtype=torch.int64)
    gpu_patterns.PATTERNS[name](torch, block, first, seed)
    return [word % (1 << 64) for word in block.tolist()]


def test_each_word_of_own_address_is_unlike_all_others(torch):
    far = (1 << 34) // 8 * 8
    words = filled(torch, "own-address") + filled(torch, "own-address", first=far)
    assert words == [place ^ 20 for place in (*range(256), *range(far, far + 256))]


def test_a_walking_bit_stands_at_every_place_of_a_word(torch):
    words = filled(torch, "walking-bit", seed=63)
    assert sorted(words[:64]) == [1 << bit for bit in range(64)]
    assert words[:2] == [1 << 63, 1]
    assert words[64:128] == words[:64]


def test_constant_patterns_and_their_inverse_set_and_clear_every_bit(torch):
    assert set(filled(torch, "alternating")) == {0x5555555555555555}
    assert set(filled(torch, "zeros")) == {0}


def test_random_words_are_the_same_for_the_same_seed_and_place_only(torch):
    words = filled(torch, "random", 4096)
    assert words == filled(torch, "random", 4096)
    assert words != filled(torch, "random", 4096, seed=21)
    assert words != filled(torch, "random", 4096, first=4096)
    for bit in range(64):  # all bits are used, the highest too
        assert 0.4 < sum(word >> bit & 1 for word in words) / 4096 < 0.6


# ---- wrong words ------------------------------------------------------------------------------


@pytest.mark.parametrize(("bit", "value"), [(0, 1), (17, 0), (63, 1)])
def test_a_stuck_bit_is_found_where_it_is(torch, monkeypatch, bit, value):
    plain, stuck = patterns.check, MIB // 8 - 77

    def check(torch, memory, number, *rest, **how):
        block = memory.blocks[number]
        place = stuck - number * block.numel()
        if 0 <= place < block.numel():
            mask = 1 << bit if bit < 63 else -(1 << 63)
            block[place] = block[place] | mask if value else block[place] & ~mask
        return plain(torch, memory, number, *rest, **how)

    monkeypatch.setattr(patterns, "check", check)
    entry = measured(torch)
    assert (entry["verified"], entry["error"]) == (False, None)
    # what it should be is the other value once of two reads, for every pattern
    assert entry["wrong_words"] == entry["passes"]
    assert {word["offset_bytes"] for word in entry["wrong"]} == {stuck * 8}
    assert {word["xor"] for word in entry["wrong"]} == {f"0x{1 << bit:016x}"}
    assert len(entry["wrong"]) == min(8, entry["wrong_words"])


def test_a_word_that_flips_once_between_write_and_read_is_enough(torch, monkeypatch):
    plain = patterns.write
    flips = [5]

    def write(torch, memory, name, seed):
        plain(torch, memory, name, seed)
        if name == "random" and flips:
            memory.blocks[3][flips.pop()] ^= 1 << 40

    monkeypatch.setattr(patterns, "write", write)
    entry = measured(torch)
    assert (entry["wrong_words"], entry["verified"]) == (1, False)
    (word,) = entry["wrong"]
    size = entry["block_bytes"]
    assert word == {"offset_bytes": 3 * size + 40, "xor": f"0x{1 << 40:016x}", "pattern": "random"}


def test_two_addresses_that_are_one_word_are_found(torch):
    memory, tally = taken(torch), patterns.Tally()
    memory.blocks[6] = memory.blocks[2]
    patterns.invert(torch, memory, "own-address", 20, tally)
    assert tally.wrong_words >= memory.blocks[2].numel()
    # constants are the same everywhere: written alone they show nothing of it, their inverses do
    tally = patterns.Tally()
    patterns.invert(torch, memory, "zeros", 20, tally)
    assert tally.wrong_words >= memory.blocks[2].numel()


def test_a_whole_block_that_is_wrong_is_counted_and_only_its_first_words_told(torch, monkeypatch):
    monkeypatch.setattr(patterns, "SLICE", 64)
    memory, tally = taken(torch), patterns.Tally()
    patterns.write(torch, memory, "zeros", 0)
    memory.blocks[1].fill_(-1)
    patterns.check(torch, memory, 1, "zeros", 0, tally, inverted=False)
    words = memory.blocks[1].numel()
    assert tally.wrong_words == words
    assert [word["offset_bytes"] for word in tally.wrong] == [(words + place) * 8 for place in range(8)]


def test_places_are_found_across_slices(torch, monkeypatch):
    monkeypatch.setattr(patterns, "SLICE", 10)
    differs = torch.zeros(95, dtype=torch.bool)
    differs[[0, 9, 10, 55, 94]] = True
    assert patterns.places(differs, 8) == [0, 9, 10, 55, 94]
    assert patterns.places(differs, 3) == [0, 9, 10]
    assert patterns.places(differs, 0) == []


def test_a_comparison_that_sees_nothing_is_no_measurement(torch, monkeypatch):
    monkeypatch.setattr(torch, "ne", lambda block, expected, out: out.zero_())
    entry = measured(torch)
    assert entry["error"] == "the comparison did not see a word that was made wrong on purpose"
    assert (entry["verified"], entry["rounds"]) == (None, 0)


def test_every_block_is_written_before_any_is_read(torch, monkeypatch):
    log = []
    plain = gpu_patterns.zeros

    def zeros(torch, out, first, seed):
        log.append(("expected" if out is memory.expected else "written", first))
        plain(torch, out, first, seed)

    memory = taken(torch)
    monkeypatch.setitem(gpu_patterns.PATTERNS, "zeros", zeros)
    patterns.invert(torch, memory, "zeros", 0, patterns.Tally())
    firsts = [number * memory.blocks[0].numel() for number in range(len(memory.blocks))]
    assert log[: len(firsts)] == [("written", first) for first in firsts]
    assert log[len(firsts) :] == [("expected", first) for first in (*firsts, *reversed(firsts))]


# ---- memory that is not to be had -------------------------------------------------------------


class Device:
    """A GPU's allocator in front of the CPU's: so much is free, so much is given before it says that there is no more."""

    def __init__(self, torch, monkeypatch, *, total, free, given):
        self.total, self.free, self.given = total, free, given
        plain = torch.empty

        def empty(words, *, dtype, device):
            size = words * dtype.itemsize
            if size > self.given:
                raise torch.cuda.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes")
            self.given -= size
            self.free -= size
            return plain(words, dtype=dtype)

        zeros = torch.zeros
        monkeypatch.setattr(torch, "empty", empty)
        monkeypatch.setattr(torch, "zeros", lambda words, *, dtype, device: zeros(words, dtype=dtype))
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (self.free, self.total))
        monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        monkeypatch.setattr(patterns, "BLOCK_BYTES", 64 * 1024)
        monkeypatch.setattr(patterns, "RESERVE_BYTES", 128 * 1024)
        monkeypatch.setattr(patterns, "SETTLE_SECONDS", 0.0)
        identity = {"uuid": "GPU-1", "bus_id": "0000:1B:00.0", "name": "a GPU"}
        monkeypatch.setattr(patterns, "identity_of", lambda device: identity)
        monkeypatch.setattr(patterns.gpu_state, "reader", lambda identity: None)
        self.counts = iter([{"corrected": 1, "uncorrected": 0}, {"corrected": 3, "uncorrected": 1}])
        monkeypatch.setattr(gpu_ecc, "reader", lambda identity: lambda: next(self.counts))


def on_gpu(torch):
    return measured(torch, device=["cuda:0"], bytes=None)


def test_nearly_all_free_memory_is_taken_and_a_reserve_left(torch, monkeypatch):
    Device(torch, monkeypatch, total=8 * MIB, free=8 * MIB, given=8 * MIB)
    entry = on_gpu(torch)
    assert entry["error"] is None
    assert 8 * MIB - 128 * 1024 - 3 * 64 * 1024 <= entry["covered_bytes"] <= 8 * MIB - 128 * 1024
    assert (entry["total_bytes"], entry["free_bytes"], entry["cap_bytes"]) == (8 * MIB, 8 * MIB, None)
    assert entry["left_bytes"] >= 128 * 1024
    assert entry["share_of_total"] > 0.95
    assert entry["ecc"] == {"before": {"corrected": 1, "uncorrected": 0}, "after": {"corrected": 3, "uncorrected": 1}}


def test_memory_that_others_hold_makes_the_share_smaller_and_is_no_error(torch, monkeypatch):
    Device(torch, monkeypatch, total=8 * MIB, free=4 * MIB, given=8 * MIB)
    entry = on_gpu(torch)
    assert (entry["error"], entry["verified"]) == (None, True)
    assert 0.4 < entry["share_of_total"] < 0.5
    assert entry["share_of_free"] > 0.9


def test_memory_that_is_refused_is_told_with_what_was_still_called_free(torch, monkeypatch):
    Device(torch, monkeypatch, total=8 * MIB, free=8 * MIB, given=4 * MIB)
    entry = on_gpu(torch)
    assert (entry["error"], entry["verified"]) == (None, True)
    assert entry["covered_bytes"] < 4 * MIB <= entry["left_bytes"]


def test_too_little_memory_for_one_block_is_said_in_numbers(torch, monkeypatch):
    Device(torch, monkeypatch, total=8 * MIB, free=MIB // 8, given=8 * MIB)
    entry = on_gpu(torch)
    free = MIB // 8
    assert entry["error"] == f"out of memory: {free} of {8 * MIB} bytes are free, too few for a block of {64 * 1024}"
    assert (entry["verified"], entry["covered_bytes"], entry["wrong_words"]) == (None, 0, 0)


def test_an_error_of_the_gpu_keeps_what_was_found_before_it(torch, monkeypatch):
    Device(torch, monkeypatch, total=8 * MIB, free=8 * MIB, given=8 * MIB)
    plain = patterns.invert

    def invert(torch, memory, name, seed, tally):
        if name == "alternating":
            tally.wrong_words += 1
            raise RuntimeError("CUDA error: uncorrectable ECC error encountered\nCompile with TORCH_USE_CUDA_DSA")
        plain(torch, memory, name, seed, tally)

    monkeypatch.setattr(patterns, "invert", invert)
    entry = on_gpu(torch)
    assert entry["error"] == "CUDA error: uncorrectable ECC error encountered"
    assert (entry["verified"], entry["wrong_words"], entry["rounds"]) == (False, 1, 0)
    assert entry["ecc"]["after"]["uncorrected"] == 1


def test_an_error_that_is_not_about_memory_is_not_taken_for_its_end(torch, monkeypatch):
    Device(torch, monkeypatch, total=8 * MIB, free=8 * MIB, given=8 * MIB)

    def empty(words, **kind):
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch, "empty", empty)
    assert on_gpu(torch)["error"] == "CUDA error: device-side assert triggered"


# ---- ECC counters -----------------------------------------------------------------------------


class Nvml:
    """A pynvml with one GPU, which counts corrected errors and refuses to tell the others."""

    NVML_VOLATILE_ECC, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 0, 1

    class NVMLError(Exception):
        pass

    def __init__(self, *, known=True):
        self.known = known

    def nvmlInit(self):  # noqa: N802 - the library's name
        pass

    def nvmlDeviceGetHandleByPciBusId(self, bus_id):  # noqa: N802 - the library's name
        if not self.known:
            raise self.NVMLError
        return bus_id

    def nvmlDeviceGetTotalEccErrors(self, handle, kind, period):  # noqa: N802 - the library's name
        assert (handle, period) == (b"0000:1B:00.0", 0)
        if kind == 1:
            raise self.NVMLError
        return 12


IDENTITY = {"uuid": "GPU-1", "bus_id": "0000:1B:00.0", "name": "a GPU"}


def test_counters_come_through_nvml_each_by_itself(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    assert gpu_ecc.reader(IDENTITY)() == {"corrected": 12, "uncorrected": None}


@pytest.mark.parametrize(
    ("stdout", "status", "counts"),
    [("3, 1\n", 0, (3, 1)), ("[N/A], [N/A]\n", 0, (None, None)), ("3, 1\n", 6, (None, None)), ("", 0, (None, None))],
)
def test_without_nvml_nvidia_smi_is_asked(monkeypatch, stdout, status, counts):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(known=False))
    asked = []

    def run(argv, **_):
        asked.append(argv)
        return SimpleNamespace(stdout=stdout, returncode=status)

    monkeypatch.setattr(gpu_ecc.subprocess, "run", run)
    assert tuple(gpu_ecc.reader(IDENTITY)().values()) == counts
    assert asked[0][-2:] == ["-i", "GPU-1"]


def test_without_either_nothing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", "")
    assert gpu_ecc.reader(IDENTITY)() == {"corrected": None, "uncorrected": None}
    assert gpu_ecc.reader({"bus_id": None}) is None
