"""The all-reduce probe: real sums over processes on a CPU, its parent with ranks that fail, die and hang."""

import doctest
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeready.facts.allreduce import parse
from nodeready.probes import allreduce, gpu_clock, gpu_numbers, gpu_state, gpu_together, nccl_log
from nodeready.reading import Known

SCRIPT = Path(allreduce.__file__)
MIB = 1 << 20
DOCUMENT = {"probe", "schema", "torch", "cuda", "cublas", "python", "started", "seconds", "dtype", "summary"}
DOCUMENT |= {"devices", "results", "error"}


@pytest.fixture(scope="module")
def torch():
    return importlib.import_module("torch")


def ran(*options, script=SCRIPT, python=(), seconds=150, **environment):
    argv = [sys.executable, *python, str(script), *options]
    kept = {**os.environ, **environment}
    return subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False, env=kept)


# ---- stand-alone ------------------------------------------------------------------------------


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(allreduce).failed == doctest.testmod(nccl_log).failed == 0


def test_a_python_without_torch_says_so_and_exits_3():
    run = ran(python=("-S",))
    document = json.loads(run.stdout)
    assert (run.returncode, document["results"]) == (3, [])
    assert document["error"] == "this Python has no torch: name one that has with --python"
    assert document.keys() == DOCUMENT


def test_a_node_without_a_gpu_is_an_error_in_a_document_with_exit_status_0():
    run = ran("--device", "all")
    assert run.returncode == 0
    assert json.loads(run.stdout)["error"].startswith("no GPU to measure: no CUDA driver here: ")


def test_one_gpu_has_nothing_to_reduce_with():
    run = ran("--device", "cuda:0")
    document = json.loads(run.stdout)
    assert (run.returncode, document["results"]) == (0, [])
    assert document["error"] == "an all-reduce needs two devices, and there is only cuda:0"


@pytest.mark.parametrize(
    "options",
    [
        ("--device=all,cuda:0",),
        ("--device=cpu,cuda:0",),
        ("--device=cpu:1",),
        ("--device=cpu", "--ranks=1"),
        ("--device=cpu", "--bytes=100"),
        ("--seconds=0",),
        ("--seconds=80",),
        ("--deadline=inf",),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(options, capsys):
    with pytest.raises(SystemExit) as ending:
        allreduce.parse_options(options)
    assert ending.value.code == 2
    assert "error: " in capsys.readouterr().err


# ---- the measurement --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured():
    """The document of three ranks, one size of which ends within a period's last part."""
    run = ran("--device=cpu", "--ranks=3", "--seconds=0.2", f"--bytes={MIB},{3 * MIB}", "--deadline=140")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_three_ranks_reduce_for_real_and_agree_with_themselves(measured):
    assert measured.keys() == DOCUMENT
    assert (measured["probe"], measured["schema"], measured["error"]) == ("allreduce", 1, None)
    assert [each["device"] for each in measured["devices"]] == ["cpu:0", "cpu:1", "cpu:2"]
    entries = measured["results"]
    assert [(e["rank"], e["size"]) for e in entries] == [(r, s) for r in range(3) for s in (MIB, 3 * MIB)]
    for entry in entries:
        assert (entry["error"], entry["verified"], entry["wrong_elements"]) == (None, True, 0)
        assert (entry["ranks"], entry["backend"], entry["nccl"], entry["bytes"]) == (3, "gloo", None, entry["size"])
        assert entry["busbw_gb_s"] == pytest.approx(entry["algbw_gb_s"] * 4 / 3)
        assert entry["p5_gb_s"] <= entry["busbw_gb_s"]
        assert entry["algbw_gb_s"] <= entry["size"] / entry["round_s"]["min"] / 1e9 * 1.000001
        assert entry["iterations"] >= allreduce.LEAST
    # all ranks make the same number of rounds, or one would wait for ever
    assert all(len({e["iterations"] for e in entries if e["size"] == size}) == 1 for size in (MIB, 3 * MIB))


def test_the_summary_is_the_slowest_rank(measured):
    for row in measured["summary"]:
        rates = [e["busbw_gb_s"] for e in measured["results"] if e["size"] == row["size"]]
        assert (row["busbw_gb_s"], row["ranks"], row["verified"]) == (min(rates), 3, True)


def test_the_parser_reads_the_probe_s_own_document(measured):
    found = parse(json.dumps(measured).encode())
    assert found.ranks.keys() == {(f"cpu:{rank}", size) for rank in range(3) for size in (MIB, 3 * MIB)}
    assert all(rank.verified == Known(True) and rank.ranks.value == 3 for rank in found.ranks.values())


def test_the_rate_is_that_of_the_slow_rounds_where_5_percent_are():
    figures = allreduce.rate_figures([0.01] * 17 + [0.02] * 3, 10**9, 2)
    assert (figures["busbw_gb_s"], figures["p5_gb_s"]) == (100.0, 50.0)
    with pytest.raises(RuntimeError, match=r"clock gave 0\.0 s"):
        allreduce.rate_figures([0.01, 0.0], 10**9, 2)


# ---- the pattern ------------------------------------------------------------------------------


@pytest.fixture
def patterns(torch, monkeypatch):
    """The patterns of four ranks over several periods, and a last one that is cut."""
    monkeypatch.setattr(gpu_numbers, "PERIOD", 1000)
    return [gpu_numbers.Pattern(torch, "cpu", rank, 4, 4321) for rank in range(4)]


def contributions(torch, patterns):
    parts = []
    for pattern in patterns:
        parts.append(torch.full((4321,), float("nan")))
        pattern.fill(parts[-1])
    return parts


def test_the_right_sum_is_right_in_whatever_order_it_is_made(torch, patterns):
    parts = contributions(torch, patterns)
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        total = torch.zeros(4321)
        for rank in order:
            total += parts[rank]
        assert [int(pattern.wrong(total)) for pattern in patterns] == [0] * 4


def test_sums_stay_exact_for_as_many_ranks_as_there_may_be(torch):
    assert 64 * (0xFFFF + gpu_numbers.PLACES) < 2**24
    pattern = gpu_numbers.Pattern(torch, "cpu", 5, 64, 5000)
    assert pattern.own.unique().numel() > 4500
    assert float(pattern.total.max()) < 2**24
    assert torch.equal(pattern.total, pattern.total.round())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda total, parts: total[4320:].add_(1),  # the last element
        lambda total, parts: total[:1].fill_(float("nan")),
        lambda total, parts: total.sub_(parts[2]),  # a rank that was left out
        lambda total, parts: total.add_(parts[2]).sub_(parts[1]),  # or taken for another
        lambda total, parts: total.copy_(total.roll(1000)),  # at the wrong place by a whole period
        lambda total, parts: total.copy_(parts[0]),  # not reduced at all
        lambda total, parts: total.mul_(4),  # reduced once more
    ],
    ids=["last", "nan", "left-out", "taken-for-another", "elsewhere", "alone", "twice"],
)
def test_a_sum_that_is_wrong_anywhere_is_found(torch, patterns, spoil):
    parts = contributions(torch, patterns)
    total = sum(parts)
    spoil(total, parts)
    assert int(patterns[1].wrong(total)) > 0


# ---- what NCCL says ---------------------------------------------------------------------------


def told(*lines, size=8 << 30):
    return nccl_log.told_by_nccl("\n".join(f"node:12:34 [0] NCCL INFO {line}" for line in lines), size)


@pytest.mark.parametrize(
    ("line", "algorithm", "protocol"),
    [
        ("8589934592 Bytes -> Algo 4 proto 2 time 31890.2", "NVLS", "SIMPLE"),  # 2.20 to 2.22
        ("AllReduce: 8589934592 Bytes -> Algo 1 proto 1 time 4.2", "RING", "LL128"),  # 2.23
        ("AllReduce: 8589934592 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}", "NVLS", "SIMPLE"),
        ("AllReduce: 8589934592 Bytes -> Algo 99 proto 2 time 4.2", "99", "SIMPLE"),
        ("AllReduce: 4 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}", None, None),  # the ranks' meeting
        ("AllReduce: 18589934592 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}", None, None),
        ("Broadcast: 8589934592 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}", None, None),
    ],
)
def test_the_algorithm_is_the_one_of_that_message(line, algorithm, protocol):
    found = told(line)
    assert (found["algorithm"], found["protocol"]) == (algorithm, protocol)


@pytest.mark.parametrize(
    ("line", "channels"),
    [
        ("24 coll channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer", 16),  # to 2.19
        ("24 coll channels, 0 collnet channels, 0 nvls channels, 32 p2p channels, 2 p2p channels per peer", 0),
        ("24 coll channels, 32 p2p channels, 2 p2p channels per peer", None),  # before NVLS
    ],
)
def test_channels_are_counted(line, channels):
    assert told(line)["nvls_channels"] == channels


def test_multicast_is_there_only_if_no_device_lacks_it():
    there = "NVLS multicast support is available on dev 0"
    assert told(there)["nvls_available"] is True
    lacking = "NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 16)"
    assert told(there, lacking)["nvls_available"] is False
    assert told("Using network Socket")["nvls_available"] is None


def test_settings_are_those_that_are_not_ours():
    lines = [f"{name} set by environment to {value}" for name, value in nccl_log.OURS.items()]
    found = told(*lines, "NCCL_NVLS_ENABLE set by environment to 0.", "NCCL_ALGO set by environment to ^NVLS")
    assert found["settings"] == {"NCCL_NVLS_ENABLE": "0", "NCCL_ALGO": "^NVLS"}


def test_the_last_warning_is_the_complaint():
    log = "\n\n[2026-12-01 09:00:00] n:1:2 [0] n.cc:9 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory\n"
    assert nccl_log.complaint_of_nccl(log) == "Failed to bind NVLink SHARP (NVLS) Multicast memory"
    assert nccl_log.complaint_of_nccl("NCCL INFO all is well") == ""


def test_nccl_s_log_is_kept_in_memory_and_stays_on_the_node(monkeypatch):
    for name in (*nccl_log.OURS, *nccl_log.NOT_HERE):
        monkeypatch.setenv(name, "somebody else's")
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")
    log = nccl_log.NcclLog()
    log.set_environment()
    with Path(os.environ["NCCL_DEBUG_FILE"]).open("w") as written:  # as NCCL opens it
        written.write("NCCL WARN broken\n")
    assert log.text() == "NCCL WARN broken\n"
    assert os.environ["NCCL_SOCKET_IFNAME"] == os.environ["GLOO_SOCKET_IFNAME"] == "lo"
    assert "NCCL_COMM_ID" not in os.environ
    assert os.environ["NCCL_NVLS_ENABLE"] == "0"  # what jobs get is what is measured
    os.close(log.descriptor)


# ---- a GPU's rank, without a GPU --------------------------------------------------------------


class TestOneRankOfGpus:
    @pytest.fixture
    def member(self, torch, monkeypatch):
        """A rank on cuda:0 whose tensors lie on the CPU and whose partner gives what it gives."""
        who = {"uuid": "GPU-1", "bus_id": "0000:1B:00.0", "name": "NVIDIA H100 80GB HBM3"}
        monkeypatch.setattr(allreduce, "identity_of", {"cuda:0": who}.get)
        monkeypatch.setattr(gpu_clock, "CudaClock", lambda *_: gpu_clock.Clock())
        monkeypatch.setattr(gpu_state, "reader", lambda _: None)
        options = SimpleNamespace(device=["cuda:0"], members=["cuda:0", "cuda:1"], store="", deadline=60.0)
        with monkeypatch.context() as patch:
            patch.setattr(allreduce.NcclLog, "set_environment", lambda _: None)
            member = allreduce.Member(options)
        partner = gpu_numbers.Pattern(torch, "cpu", 1, 2, 2 * MIB // 4)

        def all_reduce(message, op=None):
            if message.numel() * 4 == 2 * MIB:
                other = torch.empty_like(message)
                partner.fill(other)
                message += other

        member.place, member.begin, member.join = "cpu", lambda _: None, lambda _: None
        member.distributed = SimpleNamespace(all_reduce=all_reduce, ReduceOp=torch.distributed.ReduceOp)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (allreduce.RESERVE + 2 * MIB + 17, 0))
        monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 26, 2))
        yield member
        os.close(member.log.descriptor)

    def test_a_message_is_as_large_as_memory_allows(self, torch, member):
        os.write(member.log.descriptor, b"NCCL INFO AllReduce: 2097152 Bytes -> Algo NVLS proto SIMPLE channel{}\n")
        entry = allreduce.measure(torch, 8 << 30, 0.05, member, lambda: None)
        assert (entry["bytes"], entry["verified"]) == (2 * MIB, True)
        assert (entry["nccl"]["version"], entry["nccl"]["algorithm"]) == ("2.26.2", "NVLS")
        assert entry["bus_id"] == "0000:1B:00.0"

    def test_no_memory_is_an_error_of_all_ranks(self, torch, member, monkeypatch):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (allreduce.RESERVE, 0))
        with pytest.raises(RuntimeError, match="^out of memory: a device has no 2048 MiB free"):
            allreduce.measure(torch, 8 << 30, 0.05, member, lambda: None)

    def test_what_nccl_warned_of_stands_beside_torch_s_error(self, torch, member, monkeypatch):
        os.write(member.log.descriptor, b"x [0] NCCL WARN Failed to bind NVLS memory\n")

        def refuse(*_):
            raise RuntimeError("NCCL error: unhandled cuda error\nmore")

        monkeypatch.setattr(member, "join", refuse)
        with pytest.raises(RuntimeError, match=r"unhandled cuda error; NCCL: Failed to bind NVLS memory$"):
            allreduce.measure(torch, 8 << 30, 0.05, member, lambda: None)


# ---- ranks that misbehave ---------------------------------------------------------------------


ENTRY = {"busbw_gb_s": 400.0, "verified": True, "nccl": None, "error": None}


def conducted(folder, before_ready="", after_go="", deadline=20, ranks=3):
    """The errors of three ranks of two sizes, of which cpu:1 does something else, and the seconds that took."""
    script = folder / "rank.py"
    script.write_text(
        f"""import json, os, sys, time
def say(**message):
    print(json.dumps(message), flush=True)
device = sys.argv[sys.argv.index("--device") + 1]
for number in range(2):
    entry = {ENTRY!r}
    if device == "cpu:1":
        {before_ready or "pass"}
    say(ready=number)
    if not sys.stdin.readline():
        sys.exit(1)
    if device == "cpu:1":
        {after_go or "pass"}
    {"time.sleep(600)" if after_go and "number" not in after_go else "pass"}
    say(result=number, entry=entry)
"""
    )
    sizes = f"--bytes={MIB},{2 * MIB}"
    options = allreduce.parse_options(["--device=cpu", f"--ranks={ranks}", sizes, f"--deadline={deadline}"])
    begun = time.monotonic()
    document = allreduce.probe(options, str(script))
    return [entry["error"] for entry in document["results"]], time.monotonic() - begun, document


def test_ranks_that_behave_are_led_through_all_sizes(tmp_path):
    errors, _, document = conducted(tmp_path)
    assert errors == [None] * 6
    assert [row["busbw_gb_s"] for row in document["summary"]] == [400.0, 400.0]


def test_no_rank_is_told_to_go_without_one_that_fails(tmp_path):
    fail = "say(result=number, entry={**entry, 'error': 'ECC'}); sys.stdin.readline(); sys.exit(0)"
    errors, seconds, document = conducted(tmp_path, before_ready=fail)
    let_go = "no all-reduce of 1 MiB without cpu:1, which took no part: ECC"
    assert errors[::2] == [let_go, "ECC", let_go]
    assert errors[1] == errors[5] == let_go  # nor the larger size
    assert errors[3] == "ECC"
    assert seconds < 15
    assert [row["busbw_gb_s"] for row in document["summary"]] == [None, None]


def test_a_rank_that_dies_before_it_is_ready_is_named(tmp_path):
    errors, seconds, _ = conducted(tmp_path, before_ready="os._exit(9)")
    died = "its process ended with exit status 9 before it answered"
    assert errors[2] == died
    assert errors[0] == f"no all-reduce of 1 MiB without cpu:1, which took no part: {died}"
    assert seconds < 15


def test_a_rank_that_dies_in_the_middle_ends_the_others_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_together, "GRACE", 1.0)
    errors, seconds, _ = conducted(tmp_path, after_go="os._exit(9)", deadline=100)
    assert errors[2] == "its process ended with exit status 9 before it answered"
    expected = "no answer within 1 s while measuring all-reduce of 1 MiB, 1 s after cpu:1 failed: its process was ended"
    assert errors[0] == errors[4] == expected
    assert seconds < 60  # nobody waits for the deadline


def test_what_was_measured_before_a_rank_died_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_together, "GRACE", 1.0)
    errors, _, document = conducted(tmp_path, after_go="number and os._exit(9)")
    assert errors[::2] == [None, None, None]
    assert errors[3] == "its process ended with exit status 9 before it answered"
    assert [row["busbw_gb_s"] for row in document["summary"]] == [400.0, None]


def test_a_collective_that_hangs_ends_at_the_deadline_and_each_rank_says_so(tmp_path):
    errors, seconds, _ = conducted(tmp_path, after_go="pass", deadline=8)
    assert [error.startswith("no answer within ") for error in errors] == [True] * 6
    assert all("s while measuring all-reduce of 1 MiB: its process was ended" in error for error in errors)
    assert 7 < seconds < 25


def test_a_rank_that_never_gets_ready_takes_the_others_along(tmp_path):
    errors, seconds, _ = conducted(tmp_path, before_ready="time.sleep(600)", deadline=8)
    assert errors[2].endswith("while getting ready for all-reduce of 1 MiB: its process was ended")
    assert errors[0].startswith("no all-reduce of 1 MiB without cpu:1, which took no part: no answer within ")
    assert seconds < 20


def test_a_wrong_element_on_one_rank_is_found_by_it(tmp_path):
    script = tmp_path / "spoiled.py"
    script.write_text(
        f"""import sys; sys.path.insert(0, {str(SCRIPT.parent)!r})
import allreduce
real = allreduce.Pattern.wrong
def wrong(self, message):
    if "cpu:1" in sys.argv:
        message[12345] += 1
    return real(self, message)
allreduce.Pattern.wrong = wrong
allreduce.probe.__defaults__ = (__file__,)
sys.exit(allreduce.main())
"""
    )
    run = ran("--device=cpu", "--seconds=0.1", f"--bytes={MIB}", script=script, TMPDIR=str(tmp_path))
    document = json.loads(run.stdout)
    assert [entry["verified"] for entry in document["results"]] == [True, False]
    assert document["results"][1]["wrong_elements"] >= allreduce.LEAST
    assert document["summary"][0]["verified"] is False
    assert list(tmp_path.glob("nodeready-*")) == []  # where they met
