"""Every parser and reader stands a short run of the fuzzer, and the fuzzer finds what it is there to find."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEEDS = (1, 2)
SECONDS = 13  # each


def module(name):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def fuzz():
    return module("fuzz")


@pytest.fixture(scope="module")
def parsers():
    return module("fuzz_parsers")


def test_every_parser_is_in_the_table(parsers):
    there = parsers.parsers_there_are()
    assert len(there) > 40
    assert there - set(parsers.PARSERS) == set(), (
        "a new parser: add it to PARSERS of benchmarks/fuzz_parsers.py with its outputs"
    )
    assert set(parsers.PARSERS) - there == set(), "a parser that is gone"


def test_every_parser_has_a_seed_that_it_reads(parsers, captures):
    """Mutations of what a parser refuses as a whole would never reach what lies deeper in it."""
    from nodeready.reading import Unknown

    material = parsers.Material()
    for name in parsers.PARSERS:
        parser = parsers.Parser(name, material)
        read = [seed for seed in parser.seeds if not isinstance(parser.parse(seed), Unknown)]
        assert read, name


@pytest.mark.parametrize("seed", SEEDS)
def test_no_mutation_crashes_hangs_or_takes_much_memory(tmp_path, captures, seed):
    command = [sys.executable, ROOT / "benchmarks/fuzz.py", f"--seconds={SECONDS}", f"--seed={seed}"]
    command += [f"--out={tmp_path / 'found'}", f"--json={tmp_path / 'summary.json'}"]
    env = {**os.environ, "NODEREADY_CAPTURES": str(captures)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=SECONDS + 90)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["findings"] == []
    assert all(summary["executions"].values()), summary["executions"]
    assert 0 < summary["peak"] < 500e6


def test_a_case_is_made_again_from_its_seed_and_number(fuzz):
    material = fuzz.Material()
    for name in ("kernel_log.parse", "matmul.parse", "evidence.archive", "evidence.capture", "judged.node"):
        one, other = (fuzz.TARGETS[name](name, material) for _ in range(2))
        cases = [fuzz.case_of(one, 3, number) for number in range(8)]
        assert cases == [fuzz.case_of(other, 3, number) for number in range(8)]
        assert cases != [fuzz.case_of(one, 4, number) for number in range(8)]


class Planted:
    """A target whose fourth case does what no parser may do."""

    def __init__(self, name, act):
        self.name, self.act = name, act

    def case(self, rng, number):
        return b"%d" % number

    def run(self, data):
        if data == b"3":
            self.act()


def hang():
    re.fullmatch("(a+)+b", "a" * 60)


def take_memory():
    return len(b"a" * 600_000_000)


PLANTED = {
    "crash": (lambda: int("9" * 100_000), "ValueError"),
    "hang": (hang, "overran"),
    "memory": (take_memory, "MemoryError"),
    "death": (lambda: os._exit(9), "ended with 9"),
}


def test_the_fuzzer_finds_what_is_planted_and_goes_on_behind_it(fuzz, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "CALL_SECONDS", 1)
    for seconds in (4, 20, 120):  # the later ones on a busy machine only
        run = fuzz.Run([Planted(name, act) for name, (act, _) in PLANTED.items()], 0, seconds, tmp_path)
        run.go()
        found = {finding.target: finding for finding in run.findings.values()}
        if set(found) == set(PLANTED):
            break
    assert set(found) == set(PLANTED)
    for name, (_, words) in PLANTED.items():
        assert words in found[name].what
        assert (found[name].number, Path(found[name].path).read_bytes()) == (3, b"3")
    assert run.board.count(0) > 10


def test_a_parser_of_two_minds_is_found(parsers, monkeypatch):
    parser = parsers.Parser("nvcc.parse", parsers.Material())
    answers = iter(["one", "another"])
    monkeypatch.setattr(parser, "parse", lambda _: next(answers))
    with pytest.raises(AssertionError, match="two documents"):
        parser.run(b"x")
