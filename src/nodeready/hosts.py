"""Several hosts side by side: a judge for each, a process of its own, and the parent joins."""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import time
import traceback
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nodeready.check import Check
    from nodeready.gate import Gate
    from nodeready.render.escape import Seen

ORDER = (3, 2, 4, 5, 1, 10, 11, 0)  # the first of these that occurred is the status of several hosts
AT_ONCE = 64
WAITS = {"quick": 120.0, "acceptance": 1200.0}  # seconds after which a judge itself is given up
INTERNAL, INTERRUPTED = 3, 2
_SHOWN = 5


@dataclass(frozen=True)
class Outcome:
    """What one judge said of its host: exit status, the sentence to act on, where the run lies, and further lines."""

    host: str
    status: int
    sentence: str
    folder: str = ""
    said: tuple[str, ...] = ()
    subset: bool = False


@dataclass
class _Judge:
    gate: Gate
    pid: int
    pipe: int
    until: float
    data: bytearray = field(default_factory=bytearray)


def joined(statuses: Iterable[int]) -> int:
    """The exit status of several hosts, or of a host and pytest itself.

    >>> joined([0, 11, 10]), joined([1, 4]), joined([0, 0])
    (10, 4, 0)
    """
    found = set(statuses)
    return next((status for status in ORDER if status in found), INTERNAL)


def judge_hosts(
    gates: Sequence[Gate],
    selected: Sequence[tuple[Check, str]],
    tell: Callable[[Outcome], None],
    most_failures: int = 0,
) -> list[Outcome]:
    """Gather and judge every host at once, `tell` as each one ends; the outcomes in the order of the gates.

    `selected` are the checks to run, each with its subject. An interrupt ends the judges, and is raised again.
    """
    waiting = list(reversed(gates))
    running: dict[int, _Judge] = {}
    outcomes: dict[int, Outcome] = {}
    gc.collect()
    gc.freeze()  # what is there already stays shared between the judges
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < AT_ONCE:
                    judge = _start(waiting.pop(), selected, most_failures)
                    running[judge.pipe] = judge
                    selector.register(judge.pipe, selectors.EVENT_READ)
                for pipe in _ended(selector, running):
                    judge = running.pop(pipe)
                    selector.unregister(pipe)
                    outcomes[id(judge.gate)] = outcome = _outcome(judge)
                    tell(outcome)
        except BaseException:
            _end(running.values())
            raise
        finally:
            gc.unfreeze()
    return [outcomes[id(gate)] for gate in gates]


def _start(gate: Gate, selected: Sequence[tuple[Check, str]], most_failures: int) -> _Judge:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _be_judge(gate, selected, most_failures, write)
    os.close(write)
    os.set_blocking(read, False)
    return _Judge(gate, pid, read, time.monotonic() + WAITS.get(gate.plan.tier, 1200.0))


def _be_judge(gate: Gate, selected: Sequence[tuple[Check, str]], most_failures: int, write: int) -> None:
    """The life of a judge; it never returns."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    said: list[str] = []
    try:
        outcome = judge_one(gate, selected, said.append, most_failures)
    except BaseException as error:  # noqa: BLE001 - told to the parent; this process must not run on as pytest
        interrupted = isinstance(error, KeyboardInterrupt)
        sentence = "interrupted; not judged" if interrupted else f"not judged: {traceback.format_exc()}"
        if not interrupted and isinstance(error, ValueError):
            sentence = f"not judged: {error}"
        status = INTERRUPTED if interrupted else INTERNAL
        outcome = Outcome(gate.host, status, sentence, str(gate.folder or ""), tuple(said))
    try:
        with os.fdopen(write, "wb") as pipe:
            pipe.write(json.dumps(asdict(outcome)).encode())
    finally:
        os._exit(0)


def judge_one(
    gate: Gate, selected: Sequence[tuple[Check, str]], announce: Callable[[str], None], most_failures: int = 0
) -> Outcome:
    """Gather the evidence of one host, run the selected checks and fill its run folder."""
    from nodeready import outputs, results
    from nodeready.interrupt import interruptible
    from nodeready.verdict import Verdict

    gate.make_folder()
    with interruptible():
        judging = gate.gather(announce)
    failures, ran = 0, set[tuple[str, str]]()
    for check, subject in () if gate.busy else selected:
        verdict = judging.run(check, subject)
        ran.add((check.id, subject))
        failures += verdict in (Verdict.FAIL, Verdict.UNVERIFIED)
        if most_failures and failures >= most_failures:
            break
    planned = {(o.demand.check, o.subject) for o in gate.plan.obligations}
    gate.subset = not gate.busy and bool(planned - ran)
    found = results.build(gate, judging)
    seen = outputs.write(gate, found, with_report=True)
    sentence = outputs.summary(gate, seen, colour=False)[-1]
    return Outcome(gate.host, int(found["exit_status"]), sentence, str(gate.folder), _failures(seen), gate.subset)


def _failures(seen: Seen) -> tuple[str, ...]:
    """The failures of a host, one line each; its reports hold the rest."""
    rows = [row for row in seen["findings"] if row["verdict"] == "fail"]
    more = (f"and {len(rows) - _SHOWN} failures more",) if len(rows) > _SHOWN else ()
    return (*(f"{row['key']}: {row['message']}"[:200] for row in rows[:_SHOWN]), *more)


def _ended(selector: selectors.BaseSelector, running: dict[int, _Judge]) -> list[int]:
    """The pipes of the judges that have said all, or that were given up."""
    ended = []
    for key, _ in selector.select(0.5):
        judge = running[key.fd]
        chunk = os.read(key.fd, 1 << 16)
        judge.data += chunk
        if not chunk:
            ended.append(key.fd)
    late = [judge for judge in running.values() if time.monotonic() > judge.until and judge.pipe not in ended]
    for judge in late:
        os.kill(judge.pid, signal.SIGKILL)
        ended.append(judge.pipe)
    return ended


def _outcome(judge: _Judge) -> Outcome:
    os.close(judge.pipe)
    os.waitpid(judge.pid, 0)
    try:
        told = json.loads(judge.data)
        return Outcome(**{**told, "said": tuple(told["said"])})
    except (ValueError, TypeError, KeyError):
        return Outcome(judge.gate.host, INTERNAL, "not judged: its judge gave no answer and was given up")


def _end(judges: Iterable[_Judge]) -> None:
    """Tell the judges to end what they run, and give them the time that takes."""
    left = list(judges)
    for judge in left:
        os.kill(judge.pid, signal.SIGINT)
    end = time.monotonic() + 8.0
    while left and time.monotonic() < end:
        left = [judge for judge in left if os.waitpid(judge.pid, os.WNOHANG) == (0, 0)]
        time.sleep(0.05)
    for judge in left:
        os.kill(judge.pid, signal.SIGKILL)
        os.waitpid(judge.pid, 0)
