"""A node that is reached by a transport: each batch of probes is one round trip."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from nodeready.evidence.batch import Batch, unheard
from nodeready.evidence.capture import Evidence
from nodeready.evidence.live import QUICK_BUDGET, held_interrupts
from nodeready.evidence.recording import Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nodeready.evidence.batch import Answer
    from nodeready.evidence.probe import Probe
    from nodeready.evidence.recording import Recording
    from nodeready.evidence.transport import Transport

ON_TOP = 10.0  # seconds for connection, login shell and the ending of probes, on top of a batch's own budget
_NO_PYTHON = "the target has no python3 of 3.9 or newer, which this probe needs"
_NO_TIME = "not asked: no time was left, or one like it hung"


class RemoteNode:
    """Runs probes on a target and keeps every recording, as `LiveNode` does on this machine.

    `hello` is how the target presented itself, empty where it never answered; `trouble` says why a batch
    did not come to its end, in the words of the transport.
    """

    def __init__(
        self,
        host: str,
        transport: Transport,
        keep: Callable[[Recording], None],
        sudo: tuple[str, ...] = (),
        python: str = "python3",
    ) -> None:
        self.host, self.sudo, self.python = host, sudo, python
        self.recordings: dict[str, Recording] = {}
        self.hello: dict[str, Any] = {}
        self.trouble = ""
        self._transport, self._keep = transport, keep
        self._stop = threading.Event()

    def record(self, probes: Iterable[Probe], budget: float = QUICK_BUDGET) -> None:
        """Run the probes in one round trip; what the connection did not bring is recorded as lost."""
        wanted = list(probes)
        if self.trouble:
            for probe in wanted:
                self._lose(probe)
            return
        batch = Batch(wanted, budget, self.sudo, self.python)
        with held_interrupts(self._stop):
            came = self._transport.ask(batch.argv, budget + ON_TOP, self._stop)
            answer = batch.answer(came.stdout)
            self.hello = answer.hello or self.hello
            if not answer.whole:
                self.trouble = _trouble(came, answer)
                self._end_what_runs(answer, batch.nonce)
            for recording in answer.recordings.values():
                self._store(recording)
            for probe in wanted:
                self._fill(probe, answer)

    def evidence(self) -> Evidence:
        """What has been recorded so far."""
        return Evidence("live", self.host, dict(self.recordings))

    def keep_not_run(self, probe: Probe, reason: str) -> None:
        """Record that a probe was not run, and why."""
        self._store(unheard(probe, Ended.NOT_RUN, reason, self.python))

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def _lose(self, probe: Probe) -> None:
        self._store(unheard(probe, Ended.TRANSPORT_LOST, self.trouble, self.python))

    def _store(self, recording: Recording) -> None:
        self.recordings[recording.name] = recording
        self._keep(recording)

    def _fill(self, probe: Probe, answer: Answer) -> None:
        """A recording for what did not come, where it should have."""
        if probe.name in answer.recordings:
            return
        if not answer.whole:
            self._lose(probe)
        elif "pid" not in answer.hello:
            self.keep_not_run(probe, _NO_PYTHON if _by_python(probe) else _NO_TIME)

    def _end_what_runs(self, answer: Answer, nonce: str) -> None:
        """A container's processes do not learn that nobody listens any more: tell the agent, if it is still there."""
        pid = answer.hello.get("pid")
        if type(pid) is int and pid > 1 and not self._stop_is_hopeless:
            text = f"grep -q {nonce} /proc/{pid}/cmdline && kill -TERM {pid}"
            self._transport.ask((text,), 5.0)

    @property
    def _stop_is_hopeless(self) -> bool:
        """An ssh server ends what it started by itself: no second connection is tried."""
        return self._transport.spec.startswith("ssh:")


def _by_python(probe: Probe) -> bool:
    return any(argument.endswith(".py") for argument in probe.argv)


def _trouble(came: Recording, answer: Answer) -> str:
    """Why a batch did not come to its end."""
    said = came.stderr.decode("utf-8", "replace").strip().splitlines()
    words = said[-1][:200] if said else ""
    if came.ended in (Ended.TIMED_OUT, Ended.ABANDONED):
        return f"the connection {came.reason}" + (f" ({words})" if words else "")
    if came.ended is not Ended.EXITED:
        return came.reason
    if came.truncated:
        return f"what came over the connection was too much: {came.reason}"
    if answer.hello:
        return f"the connection was lost before the end (exit status {came.rc}{': ' + words if words else ''})"
    if words:
        return words
    return f"the target's shell did not run what it was sent (exit status {came.rc}, nothing on standard error)"
