"""The node under the suite: independent probes at once, a wedged device asked no further."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING

from nodeready.evidence.capture import Evidence
from nodeready.evidence.probe import Probe
from nodeready.evidence.recording import Ended, Recording
from nodeready.evidence.runner import GRACE, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

QUICK_BUDGET = 30.0
_ENDING = 2 * GRACE + 3  # seconds in which a probe that was told to end has ended or is abandoned
_LOOK = 0.2  # seconds: Python acts on a signal only when the main thread wakes up
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NEVER_ANSWERED = (Ended.TIMED_OUT, Ended.ABANDONED)


class LiveNode:
    """Runs probes on this machine and keeps every recording.

    `keep` is called with each recording as it is made. `sudo` is put before the probes that need
    root. All probes together end within `budget` seconds plus the graces of one.
    """

    def __init__(self, host: str, keep: Callable[[Recording], None], sudo: tuple[str, ...] = ()) -> None:
        self.host, self.sudo = host, sudo
        self._keep = keep
        self._lock = threading.Lock()
        self.recordings: dict[str, Recording] = {}
        self._wedged: dict[str, str] = {}
        self._stop = threading.Event()

    def record(self, probes: Iterable[Probe], budget: float = QUICK_BUDGET) -> None:
        """Run the probes: families side by side, one family's in their order, then stand-ins, then second samples."""
        until = time.monotonic() + budget
        wanted = list(probes)
        self._wave([p for p in wanted if not p.instead_of and not p.after], until)
        self._wave([p for p in wanted if p.instead_of and self._gave_nothing(p.instead_of)], until)
        again = [p for p in wanted if p.after and not self._gave_nothing(p.after)]
        self._let_pass(again, until)
        self._wave(again, until)

    def evidence(self) -> Evidence:
        """What has been recorded so far."""
        with self._lock:
            return Evidence("live", self.host, dict(self.recordings))

    def keep_not_run(self, probe: Probe, reason: str) -> None:
        """Record that a probe was not run, and why."""
        self._store(_not_run(probe, reason))

    def _store(self, recording: Recording) -> None:
        with self._lock:
            self.recordings[recording.name] = recording
            self._keep(recording)

    def _gave_nothing(self, name: str) -> bool:
        recording = self.recordings.get(name)
        return recording is None or recording.ended is not Ended.EXITED or recording.rc != 0

    def _let_pass(self, again: list[Probe], until: float) -> None:
        """Wait until the pause between two samples has passed for all of them, or time is up."""
        due = [self.recordings[probe.after].started + probe.pause - time.time() for probe in again]
        if due and not self._stop.is_set():
            self._stop.wait(max(0.0, min(max(due), until - time.monotonic())))

    def _wave(self, probes: list[Probe], until: float) -> None:
        families: dict[str, list[Probe]] = {}
        for probe in probes:
            families.setdefault(probe.family or probe.name, []).append(probe)
        threads = [
            threading.Thread(target=self._family, args=(family, members, until), daemon=True)
            for family, members in families.items()
        ]
        with held_interrupts(self._stop):
            try:
                for thread in threads:
                    thread.start()
                self._join(threads)
            except BaseException:  # such as a thread that could not be started: end what runs
                self._stop.set()
                self._join([thread for thread in threads if thread.ident is not None])
                raise

    def _join(self, threads: list[threading.Thread]) -> None:
        """Wait for the threads; once they were told to stop, only as long as ending a probe takes."""
        end = float("inf")
        for thread in threads:
            while thread.is_alive() and time.monotonic() < end:
                thread.join(_LOOK)
                if self._stop.is_set():
                    end = min(end, time.monotonic() + _ENDING)

    def _family(self, family: str, probes: list[Probe], until: float) -> None:
        for probe in probes:
            left = until - time.monotonic()
            wedged = self._wedged.get(family)
            if self._stop.is_set():
                return
            if wedged:
                recording = _not_run(probe, f"not asked: {wedged} before it never answered")
            elif left <= 0:
                recording = _not_run(probe, "not asked: the time for all probes was used up")
            else:
                prefix = self.sudo if probe.root_for else ()
                recording = run(probe, deadline=min(probe.deadline, left), prefix=prefix, stop=self._stop)
                if recording.ended in _NEVER_ANSWERED:
                    self._wedged[family] = probe.name
                    if probe.undo:
                        run(Probe(f"{probe.name}-undo", probe.undo), deadline=10.0)
            self._store(recording)


def _not_run(probe: Probe, reason: str) -> Recording:
    return Recording(probe.name, probe.argv, Ended.NOT_RUN, None, started=time.time(), reason=reason)


@contextlib.contextmanager
def held_interrupts(stop: threading.Event) -> Iterator[None]:
    """Within it the first interrupt only sets `stop`, and further ones are ignored; it takes effect on leaving.

    So an impatient second Ctrl-C cannot cut short the ending of the probes. Signals without a handler
    written in Python keep their effect, and so do all where this is not the main thread.
    """
    first: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if not first:
            first.append((number, frame))
            stop.set()

    before = {}
    if threading.current_thread() is threading.main_thread():
        for either in _INTERRUPTS:
            handler = signal.getsignal(either)
            if callable(handler):
                before[int(either)] = handler
                signal.signal(either, hold)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number, frame in first[:1]:
        before[number](number, frame)
