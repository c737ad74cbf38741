"""Fuzzes every parser and every reader of evidence by mutation of real outputs.

Run from the project's root: `.venv/bin/python benchmarks/fuzz.py [--seconds 600] [--seed 0] [--only NAME]`. What must hold:
a parser gives a document or `Unknown` and raises nothing, a reader raises nothing but `EvidenceError`; the same bytes give
the same document; no call takes more than 5 seconds; the process stays below 500 MB (its address space is limited to that).

One process makes the calls, the one that was started watches it: it saves the input of a call that hangs or dies and goes
on behind it. A case is (seed, target, number) and nothing else, so `--seed N --only NAME --case K` makes one case again.
"""

import argparse
import dataclasses
import json
import mmap
import multiprocessing
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fuzz_parsers import CAPTURES, Material
from fuzz_targets import TARGETS

CALL_SECONDS = 5
MEMORY = 500 * 10**6
# of the time, where a parser has one: readers, the whole, and those whose documents are long
SHARES = {"evidence": 3, "judged": 15} | dict.fromkeys(("kernel_log", "lspci", "nvidia_smi_text", "nvidia_smi_xml"), 4)


@dataclasses.dataclass
class Finding:
    """One broken property."""

    target: str
    number: int
    what: str
    place: str
    path: str = ""


class Board:
    """What the working process tells the watching one: shared memory, so that it outlives a killed process.

    Slots: call number of the run, target, case number, CPU and wall clock at the call's begin.
    """

    _FORM = "=qqqdd"

    def __init__(self, targets):
        self._memory = mmap.mmap(-1, 4096)
        self._counts = mmap.mmap(-1, 8 * len(targets))
        self.targets = targets

    def begin(self, calls, target, number):
        """A call begins; target -1: none is running."""
        struct.pack_into(self._FORM, self._memory, 0, calls, target, number, time.process_time(), time.monotonic())

    def running(self):
        """(calls, target, number, CPU seconds and wall clock at its begin)."""
        return struct.unpack_from(self._FORM, self._memory)

    def count(self, target, numbers=None):
        """How many cases of a target are done."""
        if numbers is not None:
            struct.pack_into("=q", self._counts, 8 * target, numbers)
        return struct.unpack_from("=q", self._counts, 8 * target)[0]


def case_of(target, seed, number):
    """The input of a case."""
    return target.case(random.Random(f"{seed}/{target.name}/{number}"), number)


def work(targets, seed, board, deadline, reports):
    """Make calls until the deadline, always of the target that had the least time; reports findings and peak memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    spent, calls, slowest = [0.0] * len(targets), board.running()[0], (0.0, "", 0)
    while time.monotonic() < deadline:
        at = spent.index(min(spent))
        target, number = targets[at], board.count(at)
        begin = time.process_time()
        data = case_of(target, seed, number)
        called = time.process_time()
        board.begin(calls, at, number)
        try:
            target.run(data)
        except Exception as error:  # noqa: BLE001 - what comes is what is looked for
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            reports.put(("finding", target.name, number, f"{type(error).__name__}: {error}"[:300], place))
        ended = time.process_time()
        board.begin(calls := calls + 1, -1, 0)
        board.count(at, number + 1)
        spent[at] += (ended - begin) / SHARES.get(target.name.partition(".")[0], 1)
        if ended - called > slowest[0]:
            slowest = (ended - called, target.name, number)
            reports.put(("slowest", *slowest))
        if ended - called > CALL_SECONDS:
            reports.put(("finding", target.name, number, f"took {ended - called:.1f} s", target.name))
    reports.put(("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


def _cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _overran(board, process):
    _, at, _, cpu, wall = board.running()
    if at < 0 or time.monotonic() - wall < CALL_SECONDS:
        return False
    try:
        used = _cpu_seconds(process.pid) - cpu
    except (FileNotFoundError, ProcessLookupError):
        return False
    return (
        used > CALL_SECONDS or time.monotonic() - wall > 6 * CALL_SECONDS
    )  # a busy machine, or one that waits for ever


class Run:
    """One run of the watching process."""

    def __init__(self, targets, seed, seconds, out):
        self.targets, self.seed, self.out = targets, seed, out
        self.board, self.deadline = Board(targets), time.monotonic() + seconds
        self.findings, self.peak, self.slowest = {}, 0, (0.0, "", 0)
        self._context = multiprocessing.get_context("fork")

    def go(self):
        """Until the deadline, with a new working process after each that hung or died."""
        while time.monotonic() < self.deadline:
            reports = self._context.SimpleQueue()
            arguments = (self.targets, self.seed, self.board, self.deadline, reports)
            process = self._context.Process(target=work, args=arguments, daemon=True)
            process.start()
            self._watch(process, reports)

    def _watch(self, process, reports):
        killed = False
        while process.is_alive():
            process.join(0.2)
            self._collect(reports)
            if _overran(self.board, process):
                os.kill(process.pid, signal.SIGKILL)
                process.join()
                killed = True
        self._collect(reports)
        _, at, number, _, _ = self.board.running()
        if process.exitcode == 0 and not killed:
            return
        if at < 0 and killed:
            return  # the call came to its end just before the signal
        if at < 0:
            raise SystemExit(f"the fuzzer itself ended with {process.exitcode} between two calls")
        what = f"overran {CALL_SECONDS} s and was killed" if killed else f"the process ended with {process.exitcode}"
        self._add(self.targets[at].name, number, what, self.targets[at].name)
        self.board.count(at, number + 1)
        self.board.begin(self.board.running()[0] + 1, -1, 0)

    def _collect(self, reports):
        while not reports.empty():
            kind, *rest = reports.get()
            if kind == "finding":
                self._add(*rest)
            elif kind == "slowest":
                self.slowest = max(self.slowest, tuple(rest))
            else:
                self.peak = max(self.peak, *rest)

    def _add(self, name, number, what, place):
        """Findings of one place and kind are one; the first is saved."""
        key = (name, what.partition(":")[0], place)
        if key in self.findings:
            return
        target = next(target for target in self.targets if target.name == name)
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / f"{name}-{self.seed}-{number}.bin"
        path.write_bytes(case_of(target, self.seed, number))
        self.findings[key] = Finding(name, number, what, place, str(path))
        print(f"FOUND {name} case {number}: {what} at {place}; input in {path}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="NAME", help="targets whose name begins so")
    parser.add_argument("--case", type=int, help="make and run this one case in this process")
    parser.add_argument(
        "--out", type=Path, default=Path(tempfile.gettempdir(), "nodeready-fuzz"), help="where inputs of findings go"
    )
    parser.add_argument("--json", type=Path, help="write the summary there as well")
    asked = parser.parse_args()
    if not CAPTURES.is_dir():
        print(f"NO CAPTURES at {CAPTURES}: only simulated outputs and examples are mutated")
    material = Material()
    targets = [make(name, material) for name, make in TARGETS.items() if name.startswith(asked.only)]
    if not targets:
        raise SystemExit(f"--only {asked.only}: no target begins so; there are {', '.join(TARGETS)}")
    if asked.case is not None:
        for target in targets:
            target.run(case_of(target, asked.seed, asked.case))
        return 0
    run = Run(targets, asked.seed, asked.seconds, asked.out)
    run.go()
    counts = {target.name: run.board.count(at) for at, target in enumerate(targets)}
    for name, number in counts.items():
        print(f"{name:32} {number:8} cases")
    print(
        f"{sum(counts.values())} executions over {len(targets)} targets, seed {asked.seed}, {len(run.findings)} findings"
    )
    print(
        f"peak memory {run.peak / 1e6:.0f} MB; slowest call {run.slowest[0]:.2f} s ({run.slowest[1]} case {run.slowest[2]})"
    )
    if asked.json:
        summary = {
            "executions": counts,
            "findings": [dataclasses.asdict(f) for f in run.findings.values()],
            "peak": run.peak,
            "slowest": run.slowest,
        }
        asked.json.write_text(json.dumps(summary, indent=1))
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())
