"""A probe that misbehaves costs its deadline and two graces, never the run."""

import os
import time
from pathlib import Path

import pytest

from nodeready.evidence import runner
from nodeready.evidence.live import LiveNode
from nodeready.evidence.probe import Probe, command, file
from nodeready.evidence.recording import Ended
from nodeready.evidence.runner import run


def bash(text, **options):
    return command("bash", "-c", text, name=options.pop("name", "odd"), **options)


def test_output_error_and_status_are_kept():
    r = run(bash("echo out; echo err >&2; exit 3"))
    assert (r.ended, r.rc, r.stdout, r.stderr) == (Ended.EXITED, 3, b"out\n", b"err\n")


def test_a_command_that_is_not_there():
    r = run(command("no-such-command-of-any-kind"))
    assert (r.ended, r.rc) == (Ended.NOT_INSTALLED, None)
    assert "command not found" in r.reason


def test_a_file_that_may_not_be_run(tmp_path):
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\n")
    assert run(Probe("tool", (str(script),))).ended is Ended.DENIED


def test_a_file_that_is_no_program(tmp_path):
    script = tmp_path / "tool"
    script.write_bytes(b"\x00\x01\x02")
    script.chmod(0o755)
    r = run(Probe("tool", (str(script),)))
    assert r.ended is Ended.NOT_RUN
    assert "could not be started" in r.reason


def test_a_child_that_ignores_term_is_killed_and_what_it_said_is_kept():
    r = run(bash("trap '' TERM; echo part; while :; do sleep 0.1; done"), deadline=0.5)
    assert (r.ended, r.stdout) == (Ended.TIMED_OUT, b"part\n")
    assert "0.5 s" in r.reason


@pytest.mark.parametrize("left", ["sleep 60 &", "sleep 60 >&2 &", "setsid sleep 7 &"])
def test_a_process_left_behind_that_holds_the_output_makes_it_cut(left):
    """What it would still have written is not known; it is not waited for."""
    r = run(bash(f"{left} echo done"), deadline=20)
    assert (r.ended, r.rc, r.stdout, r.truncated) == (Ended.EXITED, 0, b"done\n", True)
    assert r.reason == "a process that it left behind still held its output"
    assert r.duration < 10


def test_a_process_left_behind_that_ends_soon_cuts_nothing(monkeypatch):
    monkeypatch.setattr(runner, "DRAIN", 5.0)
    r = run(bash("(sleep 0.02; echo late) & echo done"), deadline=20)
    assert (r.rc, r.stdout, r.truncated, r.reason) == (0, b"done\nlate\n", False, "")


def test_a_process_left_behind_that_closed_its_pipes_is_ended_too(tmp_path):
    note = tmp_path / "pid"
    r = run(bash(f"(trap '' TERM HUP; exec sleep 60) >/dev/null 2>&1 & echo $! > {note}; echo done"), deadline=20)
    assert (r.ended, r.rc, r.stdout, r.truncated) == (Ended.EXITED, 0, b"done\n", False)
    assert _gone(int(note.read_text()))


def test_where_the_caller_is_not_told_of_its_children_no_exit_status_is_made_up():
    import signal

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        r = run(bash("echo out; exit 3"))
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (r.ended, r.rc, r.stdout) == (Ended.EXITED, None, b"out\n")
    assert "SIGCHLD" in r.reason


def test_a_grandchild_that_ignores_term_and_holds_the_pipe(tmp_path):
    note = tmp_path / "pid"
    r = run(
        bash(f"(trap '' TERM; echo $BASHPID > {note}; while :; do sleep 0.1; done) & trap '' TERM; wait; wait"),
        deadline=0.5,
    )
    assert r.ended is Ended.TIMED_OUT
    assert _gone(int(note.read_text()))


def _gone(pid):
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def test_a_child_that_vanishes():
    r = run(bash("echo half; kill -9 $$"))
    assert (r.ended, r.rc, r.stdout) == (Ended.EXITED, -9, b"half\n")


def test_a_child_that_floods_is_cut_at_the_cap_and_the_cut_is_recorded():
    r = run(command("yes"), deadline=20, cap=100_000)
    assert r.truncated
    assert len(r.stdout) == 100_000
    assert "more than 100000 bytes" in r.reason


def test_a_child_that_cannot_be_killed_is_abandoned(monkeypatch):
    monkeypatch.setattr(runner, "GRACE", 0.2)
    sent = []
    monkeypatch.setattr(runner, "_signal", lambda pid, number: sent.append((pid, number)))
    r = run(bash("sleep 5"), deadline=0.2)
    assert (r.ended, r.rc) == (Ended.ABANDONED, None)
    assert "abandoned" in r.reason
    assert r.duration < 4
    os.killpg(sent[0][0], 9)


def test_the_environment_is_plain_and_standard_input_is_empty():
    r = run(bash('echo "$LC_ALL"; case ":$PATH:" in *:/usr/sbin:*) echo sbin;; esac; cat | wc -c'))
    assert r.stdout.split() == [b"C", b"sbin", b"0"]


def test_files_are_read_by_a_process_of_their_own():
    r = run(file("/proc/meminfo"))
    assert r.name == "proc/meminfo"
    assert b"MemTotal" in r.stdout


def record(*probes, budget=30.0):
    kept = []
    node = LiveNode("host", kept.append)
    node.record(probes, budget)
    assert {r.name for r in kept} == set(node.recordings)
    return node.recordings


def test_a_wedged_family_is_asked_no_further_and_the_others_go_on():
    recordings = record(
        bash("trap '' TERM; while :; do sleep 0.1; done", name="first", family="nvidia", deadline=0.3),
        bash("echo never", name="second", family="nvidia"),
        bash("echo fine", name="third", family="pci"),
    )
    assert recordings["first"].ended is Ended.TIMED_OUT
    assert recordings["second"].ended is Ended.NOT_RUN
    assert "first" in recordings["second"].reason
    assert recordings["third"].stdout == b"fine\n"


def test_a_stand_in_runs_only_where_its_primary_gave_nothing():
    stand_ins = [bash("echo b", name="b", instead_of="a"), bash("echo d", name="d", instead_of="c")]
    recordings = record(bash("echo a", name="a"), bash("exit 1", name="c"), *stand_ins)
    assert "b" not in recordings
    assert recordings["d"].stdout == b"d\n"


def test_every_probe_hung_ends_within_the_budget():
    begin = time.monotonic()
    hung = [bash("trap '' TERM; while :; do sleep 0.2; done", name=f"p{i}", family=f"f{i % 3}") for i in range(9)]
    recordings = record(*hung, budget=1.0)
    assert time.monotonic() - begin < 10
    assert len(recordings) == 9
    assert all(r.ended in (Ended.TIMED_OUT, Ended.NOT_RUN) for r in recordings.values())


def test_independent_probes_run_at_once(tmp_path):
    """Each waits for the other's mark: one after the other they would both overrun."""
    a, b = tmp_path / "a", tmp_path / "b"
    wait = "touch {0}; while [ ! -e {1} ]; do sleep 0.02; done; echo met"
    recordings = record(
        bash(wait.format(a, b), name="one", deadline=10), bash(wait.format(b, a), name="two", deadline=10)
    )
    assert {r.stdout for r in recordings.values()} == {b"met\n"}


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_second_interrupt_does_not_cut_the_ending_of_the_probes_short(tmp_path, name):
    """The probe itself sends both, the second while it is being ended: so none can come later."""
    import signal

    note = tmp_path / "pid"
    probe = bash(
        f"trap '' TERM; echo $$ > {note}; kill -{name} $PPID; sleep 0.2; kill -INT $PPID; echo sent; sleep 60",
        deadline=50,
    )
    kept = []
    term = signal.signal(signal.SIGTERM, signal.default_int_handler)
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            LiveNode("host", kept.append).record([probe, bash("sleep 60", name="other", deadline=50)])
        assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before
    finally:
        signal.signal(signal.SIGTERM, term)
    assert not Path(f"/proc/{int(note.read_text())}").exists()
    assert time.monotonic() - begin < 10
    assert {r.name: r.ended for r in kept} == {"odd": Ended.TIMED_OUT, "other": Ended.TIMED_OUT}
    assert next(r.stdout for r in kept if r.name == "odd") == b"sent\n"


@pytest.mark.parametrize("prefix", [(), ("env", "-i", "PATH=/usr/bin:/bin")])
def test_a_prefix_is_put_before_the_command(prefix):
    r = run(command("sh", "-c", "echo ok"), prefix=prefix)
    assert r.argv[: len(prefix)] == prefix
    assert r.stdout == b"ok\n"
