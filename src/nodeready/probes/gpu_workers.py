"""One process for each device: the worker's side, and the parent that leads all of them through tasks.

The parent never touches CUDA itself. A worker that doesn't answer is ended, else abandoned, and the
others go on: a sick GPU costs its own entry and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import json
import os
import platform
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes.gpu_devices import cublas_version, cuda_devices, load_torch, sentence
else:  # a script that stands alone has its siblings beside it
    from gpu_devices import cublas_version, cuda_devices, load_torch, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TERM_SECONDS, KILL_SECONDS = 1.0, 3.0
_WORD = 4096  # bytes of what a parent tells at most; a pipe takes as many in one piece
NO_TORCH = "this Python has no torch: name one that has with --python"
BROKEN_TORCH = "torch does not load"
WHO = ("device", "uuid", "bus_id", "name")

Entry = dict[str, Any]
Identity = dict[str, str]  # uuid, bus_id and name; empty of a device that was not listed


# ---- a worker: one device ---------------------------------------------------------------------


def message_pipe() -> Callable[..., None]:
    """A function that says one JSON object a line to the parent.

    Libraries print to standard output: it is kept for messages, and what others print goes to standard error.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**message: Any) -> None:
        print(json.dumps(message, allow_nan=False), file=out, flush=True)

    return say


def await_go(meanwhile: Callable[[], object] | None = None, told: int = 0) -> str:
    """The parent's word on the descriptor `told`, once it is there: `go` as a rule; exits where the parent is gone.

    `meanwhile` is run over and over until then, such as the load that is to be measured.
    """
    while meanwhile and not select.select([told], [], [], 0)[0]:
        meanwhile()
    word = os.read(told, _WORD)
    if not word:
        raise SystemExit(1)
    return word.decode("ascii", "replace").strip()


def serve(device: str, blanks: Sequence[Entry], measure: Callable[[Any, int, Callable[..., Any]], Entry]) -> int:
    """The worker: says `about`, then `ready` and `result` for each task, and measures when told `go`.

    `blanks` are the entries of the tasks with nothing in them. `measure(torch, number, await_start)` gives the
    figures of one; it calls `await_start` when it is about to measure, and raises `RuntimeError` for an error of
    the device.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no load without a parent
    say = message_pipe()
    try:
        torch = load_torch()
    except (ImportError, OSError) as error:
        say(about={"error": f"{BROKEN_TORCH}: {error}"[:300]})
        return 3
    version = str(torch.__version__)
    say(about={"torch": version, "cuda": torch.version.cuda, "python": platform.python_version()})
    for number, blank in enumerate(blanks):

        def await_start(meanwhile: Callable[[], object] | None = None, number: int = number) -> str:
            if select.select([0], [], [], 0)[0]:
                os.read(0, _WORD)  # a `go` that crossed with the error of the task before
            say(ready=number)
            return await_go(meanwhile)

        entry = dict(blank)
        if device != "cpu" and not torch.backends.cuda.is_built():
            entry["error"] = f"torch {version} is built without CUDA"
        else:
            try:
                entry.update(measure(torch, number, await_start))
            except (RuntimeError, torch.cuda.DeferredCudaCallError) as error:
                entry["error"] = sentence(torch, error)
        say(about={"cublas": cublas_version()})
        say(result=number, entry=entry)
    return 0


def list_devices() -> int:
    """The GPUs for the parent, which must not touch the driver itself: it may never answer."""
    try:
        about: dict[str, Any] = {"devices": cuda_devices()}
    except RuntimeError as error:
        about = {"devices": [], "error": str(error)}
    print(json.dumps({"about": about}), flush=True)
    return 0


# ---- the parent -------------------------------------------------------------------------------


class Worker:
    """A process of one device, as its parent sees it; `lost` says why nothing more will come of it."""

    def __init__(self, argv: Sequence[str], device: str = "", identity: Identity | None = None) -> None:
        self.device, self.identity = device, identity or {}
        self.about: dict[str, Any] = {}
        self.ready = -1
        self.entries: dict[int, Entry] = {}
        self.lost = ""
        self.rest = b""
        environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0)

    def fileno(self) -> int:
        """Where its messages come from, for `select`."""
        assert self.process.stdout is not None  # noqa: S101 - opened as a pipe
        return self.process.stdout.fileno()

    def read(self) -> None:
        """Take in what it said; at the end of its output it is lost."""
        chunk = os.read(self.fileno(), 1 << 16)
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        try:
            for line in lines:
                message = json.loads(line)
                self.about.update(message.get("about", {}))
                self.ready = message.get("ready", self.ready)
                if "result" in message:
                    self.entries[message["result"]] = message["entry"]
        except (ValueError, AttributeError, KeyError, TypeError):
            end([self])
            self.lost = "its process said something that is no message of this probe"
            return
        if not chunk:
            end([self], grace=2)
            self.lost = self.about.get("error") or f"its process ended with {self.ending()} before it answered"

    def has_answered(self, number: int) -> bool:
        """Whether the entry of that task is there."""
        return number in self.entries

    def is_ready(self, number: int) -> bool:
        """Whether it waits to measure that task, or has nothing to measure there."""
        return self.ready >= number or number in self.entries

    def ending(self) -> str:
        """How the process came to its end, in words."""
        status = self.process.poll()
        return f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"

    def go(self, word: str = "go") -> None:
        """Tell it to measure; `word` is what its `await_start` gives."""
        with contextlib.suppress(BrokenPipeError):  # it died: reading its output will say so
            assert self.process.stdin is not None  # noqa: S101 - opened as a pipe
            self.process.stdin.write(f"{word}\n".encode("ascii"))

    def entry(self, number: int, blank: Entry) -> Entry:
        """What became of one task."""
        entry = {**blank, "device": self.device, **self.entries.get(number, {"error": self.lost})}
        known = {key: entry[key] or value for key, value in self.identity.items()}
        return {**entry, **known, "device": self.device}


def end(workers: Sequence[Worker], grace: float = 0.0) -> list[Worker]:
    """End the processes: by themselves within `grace` seconds, by TERM, by KILL; those left are abandoned."""
    left = list(workers)
    for number, limit in ((None, grace), (signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        until = time.monotonic() + limit
        for worker in left:
            if number is not None:
                worker.process.send_signal(number)
        while (left := [w for w in left if w.process.poll() is None]) and time.monotonic() < until:
            time.sleep(0.02)
    return left


def gather(workers: Sequence[Worker], arrived: Callable[[Worker], bool], seconds: float, doing: str) -> None:
    """Read messages until all workers arrived or were lost; one that hasn't in time is ended."""
    until = time.monotonic() + seconds
    while waiting := [worker for worker in workers if not worker.lost and not arrived(worker)]:
        left = until - time.monotonic()
        if left > 0:
            for worker in select.select(waiting, [], [], left)[0]:
                worker.read()
            continue
        abandoned = end(waiting)
        for worker in waiting:
            how = "could not be killed and was abandoned" if worker in abandoned else "was ended"
            worker.lost = f"no answer within {seconds:.0f} s while {doing}: its process {how}"


@dataclass(frozen=True)
class Lead:
    """How workers are led: the tasks in words, and their blank entries; all workers at once, or in `turns`.

    `deadline` is in seconds for all of it, `least` the seconds that one task takes at its best.
    """

    words: Sequence[str]
    blanks: Sequence[Entry]
    deadline: float
    least: float
    turns: bool = False

    def conduct(self, workers: Sequence[Worker]) -> None:
        """Lead the workers through the tasks in step."""
        finish = time.monotonic() + self.deadline
        patience = max(self.deadline / (len(self.words) + 1), 2 * self.least)

        def left() -> float:
            return max(0.0, min(patience, finish - time.monotonic()))

        for number, words in enumerate(self.words):

            def is_ready(worker: Worker, number: int = number) -> bool:
                return worker.is_ready(number)

            def has_answered(worker: Worker, number: int = number) -> bool:
                return worker.has_answered(number)

            gather(workers, is_ready, left(), f"getting ready for {words}")
            for some in [[worker] for worker in workers] if self.turns else [workers]:
                for worker in some:
                    if not worker.lost and not worker.has_answered(number):
                        worker.go()
                gather(some, has_answered, left(), f"measuring {words}")

    def run(self, document: dict[str, Any], command: Sequence[str], devices: dict[str, Identity]) -> None:
        """Measure on all devices and fill the document; `command` runs a worker, told its `--device`."""
        begun, workers = time.monotonic(), list[Worker]()
        try:
            for device, identity in devices.items():
                workers.append(Worker([*command, "--device", device], device, identity))
            self.conduct(workers)
            end(workers, grace=5)
        finally:
            end(workers)
        for worker in workers:
            document.update({key: value for key, value in worker.about.items() if value is not None})
            document["results"] += [worker.entry(number, blank) for number, blank in enumerate(self.blanks)]
            document["devices"].append({key: document["results"][-1][key] for key in WHO})
        document["seconds"] = round(document["seconds"] + time.monotonic() - begun, 3)


def blank_entry(**names: Any) -> Entry:
    """An entry with nothing measured: who and what, then every figure of `names` as it is without one."""
    return {**dict.fromkeys(WHO), **names}


def new_document(probe: str, **more: Any) -> dict[str, Any]:
    """The document before anything is known."""
    about = dict.fromkeys(("torch", "cuda", "cublas"))
    head = {"probe": probe, "schema": 1, **about, "python": platform.python_version(), "started": time.time()}
    return {**head, "seconds": 0.0, **more, "devices": [], "results": [], "error": None}


def devices_wanted(
    document: dict[str, Any], command: Sequence[str], wanted: Sequence[str], seconds: float
) -> dict[str, Identity]:
    """Who the wanted devices are, in CUDA's order; where all were wanted and there are none, the document says why.

    A child lists them: the driver may never answer.
    """
    if list(wanted) == ["cpu"]:
        return {"cpu": {}}
    begun = time.monotonic()
    lister = Worker([*command, "--device", "all"])
    try:
        gather([lister], lambda worker: bool(worker.about), seconds, "listing the GPUs")
    finally:
        end([lister])
    document["seconds"] += time.monotonic() - begun
    gpus = {f"cuda:{ordinal}": gpu for ordinal, gpu in enumerate(lister.about.get("devices", []))}
    if "all" not in wanted:
        return {device: gpus.get(device, {}) for device in wanted}
    if not gpus:
        reason = lister.about.get("error") or lister.lost or "the CUDA driver shows none"
        document["error"] = f"no GPU to measure: {reason}"
    return gpus


def worker_command(script: str) -> list[str]:
    """The command line of a worker that runs the same script; one out of a zip is run by the zip's path."""
    path = Path(script).absolute()
    return [sys.executable, str(path if path.is_file() else path.parent), "--worker"]


# ---- the command line -------------------------------------------------------------------------


def listed(pattern: str) -> Callable[[str], list[str]]:
    """An option's type: a comma list whose parts match the pattern."""

    def parts(text: str) -> list[str]:
        found = [part.strip() for part in text.split(",")]
        for part in found:
            if not re.fullmatch(pattern, part):
                raise argparse.ArgumentTypeError(f"{part!r} is none of {pattern.replace('|', ', ')}")
        return list(dict.fromkeys(found))

    return parts


def new_parser(description: str, deadline: float, devices: str = r"cuda:\d+|cpu|all") -> argparse.ArgumentParser:
    """A parser with the options that all probes on devices have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", type=listed(devices), default=["all"], help="default: all GPUs")
    parser.add_argument(
        "--deadline", type=float, default=deadline, help=f"seconds for everything (default: {deadline:g})"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser


def stop(number: int, _: object) -> None:
    """Leave by the way that ends the workers."""
    for either in (signal.SIGTERM, signal.SIGINT):
        signal.signal(either, signal.SIG_IGN)
    raise SystemExit(128 + number)


def print_document(blank: dict[str, Any], fill: Callable[[], dict[str, Any]]) -> int:
    """Print what `fill` gives, or without torch the `blank` document; the exit status."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    absent = importlib.util.find_spec("torch") is None
    document = {**blank, "error": NO_TORCH} if absent else fill()
    print(json.dumps(document))
    return 3 if absent or (document["error"] or "").startswith(BROKEN_TORCH) else 0
