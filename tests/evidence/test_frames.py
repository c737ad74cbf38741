"""Frames and batches: what a shell prints beside them, a cut, or a liar is never taken for a recording."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.evidence.batch import Batch
from nodeready.evidence.frames import frame, frames, pack_recording, unpack_recording
from nodeready.evidence.probe import Probe
from nodeready.evidence.recording import Ended, Recording

RECORDING = Recording("dmesg", ("dmesg",), Ended.EXITED, 1, b"out\x00\xff\n", b"err", 5.0, 0.25, reason="because")


@given(st.binary(max_size=2000), st.binary(max_size=200), st.binary(max_size=200))
def test_what_is_framed_comes_back_whatever_stands_around_it(payload, before, after):
    assert ("recording", payload) in list(frames("abc", before + frame("abc", "recording", payload) + after))


@given(st.data())
def test_a_cut_stream_gives_whole_frames_or_none(data):
    payloads = [b"one" * 50, b"", b"three"]
    stream = b"".join(frame("abc", "recording", payload) for payload in payloads)
    cut = data.draw(st.integers(0, len(stream)))
    got = [payload for _, payload in frames("abc", stream[:cut])]
    assert got == payloads[: len(got)]


@given(st.data())
def test_a_stream_with_a_changed_byte_gives_no_other_payload(data):
    payloads = [b"one" * 50, b"two"]
    stream = bytearray(b"".join(frame("abc", "recording", payload) for payload in payloads))
    at = data.draw(st.integers(0, len(stream) - 1))
    stream[at] ^= data.draw(st.integers(1, 255))
    assert all(payload in payloads for _, payload in frames("abc", bytes(stream)))


def test_a_recording_comes_back_as_it_was():
    assert unpack_recording(pack_recording(RECORDING)) == RECORDING


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"rc": 1', b'"rc": 1000'),
        (b'"rc": 1', b'"rc": "1"'),
        (b'"bytes": 6', b'"bytes": 5'),
        (b'"bytes": 6', b'"bytes": -6'),
        (b'"ended": "exited"', b'"ended": "well"'),
        (b'"name": "dmesg"', b'"name": 7'),
        (b'"argv": ["dmesg"]', b'"argv": [7]'),
        (b'"started": 5.0', b'"started": null'),
        (b"{", b"["),
    ],
)
def test_a_payload_that_does_not_keep_the_form_is_no_recording(before, after):
    packed = pack_recording(RECORDING)
    assert before in packed
    assert unpack_recording(packed.replace(before, after, 1)) is None


def run(batch, **options):
    argv = ("/bin/sh", "-c", *batch.argv)
    return subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=30, check=False, **options)


PROBES = [
    Probe("words", ("printf", "a b\\000c")),
    Probe("fails", ("sh", "-c", "echo out; echo err >&2; exit 3")),
    Probe("missing", ("no-such-tool", "-x")),
    Probe("slow", ("sleep", "30"), deadline=0.5, family="slow"),
    Probe("behind", ("echo", "x"), family="slow"),
]


@pytest.mark.parametrize("python", ["python3", "no-python-here"])
def test_a_batch_gives_the_same_recordings_by_python_and_by_shell(python):
    batch = Batch(PROBES, 20.0, (), python)
    answer = batch.answer(run(batch).stdout)
    assert answer.whole
    assert answer.hello["node"]
    got = {name: (r.ended, r.rc, r.stdout, r.stderr) for name, r in answer.recordings.items()}
    assert got["words"] == (Ended.EXITED, 0, b"a b\x00c", b"")
    assert got["fails"] == (Ended.EXITED, 3, b"out\n", b"err\n")
    assert got["missing"][0] is Ended.NOT_INSTALLED
    assert got["slow"][0] is Ended.TIMED_OUT
    assert got.get("behind", (Ended.NOT_RUN,))[0] is Ended.NOT_RUN


def test_a_python_that_is_too_old_leaves_the_probes_to_the_shell(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 97\n")
    old.chmod(0o755)
    batch = Batch(PROBES[:2], 20.0, (), str(old))
    answer = batch.answer(run(batch).stdout)
    assert answer.whole
    assert "pid" not in answer.hello
    assert set(answer.recordings) == {"words", "fails"}


def test_more_than_one_command_line_holds_is_said():
    with pytest.raises(ValueError, match="more than one remote command may have"):
        Batch([Probe(f"p{n}", ("echo", f"{n}" * 400)) for n in range(600)], 20.0)


def test_all_probes_of_a_run_fit_into_one_command_line_with_room_for_more():
    from nodeready.node.catalogue import MATMUL, TORCH, quick_probes

    batch = Batch([*quick_probes(), TORCH, MATMUL], 30.0, ("sudo", "-n"))
    assert sum(map(len, batch.argv)) < 100_000


def test_everything_that_the_agent_imports_travels_with_it_and_before_it():
    import re
    from pathlib import Path

    from nodeready.evidence import batch

    folder, before = Path(batch.__file__).parent, []
    for name in batch._TRAVELS:
        text = (folder / f"{name}.py").read_text().partition("if TYPE_CHECKING:")[0]
        found = set(re.findall(r"^from nodeready\.evidence\.(\w+) import", text, re.MULTILINE))
        found |= set(re.findall(r"^from nodeready\.evidence import (\w+)$", text, re.MULTILINE))
        assert found <= set(before), name
        assert not re.search(r"^(from|import) nodeready(?!\.evidence)", text, re.MULTILINE), name
        before.append(name)
