"""What runs on a target: the probes of one batch, each recording sent as a frame as soon as it is made.

It travels as text together with the few modules it imports and leaves no file behind. It needs Python 3.9
and its standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodeready.evidence import frames
from nodeready.evidence.live import LiveNode
from nodeready.evidence.probe import Probe
from nodeready.evidence.script import runnable

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.evidence.recording import Recording

PYTHON, NODENAME, SCRIPT = "@python", "@nodename", "@script:"


class ConnectionGone(BaseException):
    """Nobody reads what is sent any more; like KeyboardInterrupt an event and no error."""


def main(nonce: str, order: str) -> None:
    """Run the batch that `order` (JSON) describes."""
    batch = json.loads(order)
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)  # whatever prints by mistake does not print into a frame
    lock = threading.Lock()

    def send(kind: str, payload: bytes) -> None:
        with lock:
            _write(out, frames.frame(nonce, kind, payload))

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _gone)
    node = os.uname().nodename
    hello = {"node": node, "pid": os.getpid(), "uid": os.geteuid(), "python": list(sys.version_info[:3])}
    send("hello", json.dumps(hello).encode())
    threading.Thread(target=_watch, args=(out,), daemon=True).start()
    with contextlib.suppress(ConnectionGone):
        run_batch(batch, node, lambda recording: send("recording", frames.pack_recording(recording)))
        send("end", b"{}")


def run_batch(batch: dict[str, Any], node: str, keep: Callable[[Recording], None]) -> None:
    """Run the probes of a batch; scripts come as text and are run from memory."""
    held: list[int] = []  # open for as long as a script may be read
    probes, asked = [], {}
    for row in batch["probes"]:
        fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        wanted = Probe(**fields)
        argv = tuple(_argument(text, node, batch["scripts"], held) for text in wanted.argv)
        asked[wanted.name] = wanted.argv
        probes.append(replace(wanted, argv=argv))

    def keep_as_asked(recording: Recording) -> None:
        keep(replace(recording, argv=asked.get(recording.name, recording.argv)))

    live = LiveNode(node, keep_as_asked, tuple(batch["sudo"]))
    live.record(probes, budget=batch["budget"])


def _argument(text: str, node: str, scripts: dict[str, str], held: list[int]) -> str:
    if text == PYTHON:
        return sys.executable or "python3"
    if text == NODENAME:
        return node.partition(".")[0]
    if text.startswith(SCRIPT):
        return in_memory(runnable(text[len(SCRIPT) :], scripts.get), held)
    return text


def in_memory(source: bytes, held: list[int]) -> str:
    """A path to these bytes that other processes of this user can read and that no disk holds."""
    descriptor = os.memfd_create("nodeready-probe")
    with os.fdopen(os.dup(descriptor), "wb") as handle:
        handle.write(source)
    held.append(descriptor)
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.kill(os.getpid(), signal.SIGHUP)


def _watch(out: int) -> None:
    """A reader that is gone ends the batch, and with it everything that runs for it."""
    poll = select.poll()
    poll.register(out, 0)  # errors and hang-ups are always told
    while not poll.poll(1000):
        pass
    os.kill(os.getpid(), signal.SIGHUP)


def _gone(_number: int, _frame: object) -> None:
    raise ConnectionGone
