"""A probe runs in a session of its own, with a deadline, and is abandoned if it cannot be killed."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodeready.evidence.driver_root import way_to
from nodeready.evidence.recording import Ended, Recording

if TYPE_CHECKING:
    from nodeready.evidence.probe import Probe

OUTPUT_CAP = 32 * 2**20
GRACE = 1.0
DRAIN = 0.25
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def environment() -> dict[str, str]:
    """The caller's environment with the C locale, and with the sbin folders on PATH."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path += [folder for folder in _SBIN if folder not in path]
    return {**os.environ, "LC_ALL": "C", "PATH": os.pathsep.join(path)}


@dataclass
class _Streams:
    """What a child has written so far, up to the cap."""

    cap: int
    data: dict[int, bytearray]
    truncated: bool = False
    held: bool = False  # the child has exited and another process can still write

    def read(self, fd: int) -> bool:
        """Take what is there; False at the end of the stream."""
        try:
            chunk = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        room = self.cap - len(self.data[fd])
        self.data[fd] += chunk[:room]
        self.truncated = self.truncated or len(chunk) > room
        return True


def run(
    probe: Probe,
    *,
    deadline: float | None = None,
    prefix: tuple[str, ...] = (),
    cap: int = OUTPUT_CAP,
    stop: threading.Event | None = None,
) -> Recording:
    """The recording of one probe; never raises and never waits past deadline plus two graces.

    `deadline` (seconds) replaces the probe's own; `prefix` is put before the command (`sudo -n`).
    Once `stop` is set the child is ended as if its deadline had come.
    """
    way = way_to(probe.argv[0], environment()["PATH"], as_root=bool(prefix) or os.geteuid() == 0) if probe.argv else ()
    argv = (*prefix, *way, *probe.argv)
    started, begin = time.time(), time.monotonic()

    def failed(ended: Ended, reason: str) -> Recording:
        return Recording(
            probe.name, argv, ended, None, started=started, duration=time.monotonic() - begin, reason=reason
        )

    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )
    except FileNotFoundError:
        return failed(Ended.NOT_INSTALLED, f"{argv[0]}: command not found")
    except PermissionError:
        return failed(Ended.DENIED, f"{argv[0]}: permission denied")
    except OSError as error:
        return failed(Ended.NOT_RUN, f"{argv[0]} could not be started: {error.strerror}")
    limit = probe.deadline if deadline is None else deadline
    try:
        streams, ended = _follow(child, begin + limit, cap, stop or threading.Event())
    except BaseException:  # an interrupt: leave nothing running on the node
        _signal(child.pid, signal.SIGKILL)
        raise
    out, err = (bytes(buffer) for buffer in streams.data.values())
    cut, duration = streams.truncated or streams.held, time.monotonic() - begin
    rc = _reap(child, ended)
    reason = _reason(child, streams, ended, rc, limit)
    return Recording(probe.name, argv, ended, rc, out, err, started, duration, cut, reason)


def _reap(child: subprocess.Popen[bytes], ended: Ended) -> int | None:
    """The exit status; None where it was abandoned, or where the caller ignores SIGCHLD and is not told."""
    if ended is Ended.ABANDONED:
        child.returncode = -int(signal.SIGKILL)  # or Popen's finaliser would wait for it later
        return None
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        child.returncode = 0  # as Popen itself takes it; no claim, for it is not given back
        return None
    return child.wait()


def _reason(child: subprocess.Popen[bytes], streams: _Streams, ended: Ended, rc: int | None, limit: float) -> str:
    if streams.truncated:
        return f"wrote more than {streams.cap} bytes and was ended"
    if streams.held:
        return "a process that it left behind still held its output"
    if ended is Ended.TIMED_OUT:
        return f"gave no answer in {limit:g} s and was ended"
    if ended is Ended.ABANDONED:
        return f"gave no answer in {limit:g} s, cannot be killed (pid {child.pid}) and was abandoned"
    return "its exit status is not known: the process that ran it ignores SIGCHLD" if rc is None else ""


def _follow(child: subprocess.Popen[bytes], until: float, cap: int, halt: threading.Event) -> tuple[_Streams, Ended]:
    """Read the child's streams and watch the child itself: a grandchild may hold the pipes for ever."""
    if child.stdout is None or child.stderr is None:  # never so: both are PIPE
        raise AssertionError
    fds = [child.stdout.fileno(), child.stderr.fileno()]
    streams = _Streams(cap, {fd: bytearray() for fd in fds})
    with selectors.DefaultSelector() as selector:
        for fd in fds:
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ)
        watch = _watch(child, selector)
        ended = Ended.EXITED
        for stop, wait_until in ((None, until), (signal.SIGTERM, None), (signal.SIGKILL, None)):
            if stop is not None:
                ended = Ended.EXITED if streams.truncated else Ended.TIMED_OUT
                _signal(child.pid, stop)
            end = wait_until if wait_until is not None else time.monotonic() + GRACE
            if _pump(child, selector, streams, watch, end, halt if stop is None else None):
                break
        else:
            ended = Ended.ABANDONED
        if watch is not None:
            selector.unregister(watch)
            os.close(watch)
        _drain(selector, streams)
        streams.held = ended is Ended.EXITED and not streams.truncated and bool(selector.get_map())
    # what it left behind is ended too, also where it closed the pipes; the child is not reaped yet, so that
    # the number of its group is still its own
    _signal(child.pid, signal.SIGKILL)
    child.stdout.close()
    child.stderr.close()
    return streams, ended


def _watch(child: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> int | None:
    """A descriptor that becomes readable when the child ends, where the kernel has them."""
    try:
        watch = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        return None
    selector.register(watch, selectors.EVENT_READ)
    return watch


def _pump(
    child: subprocess.Popen[bytes],
    selector: selectors.BaseSelector,
    streams: _Streams,
    watch: int | None,
    until: float,
    halt: threading.Event | None,
) -> bool:
    """Read until the child has ended (True), or time is up, or the cap or a halt ended it (False).

    Once it is being ended (`halt` is None) only its end and the time count.
    """
    while not _has_ended(child.pid):
        left = until - time.monotonic()
        if left <= 0 or (halt is not None and (streams.truncated or halt.is_set())):
            return False
        pause = min(left, 0.5 if watch is not None else 0.02)
        for key, _ in selector.select(pause):
            if key.fd != watch and not streams.read(key.fd):
                selector.unregister(key.fd)
    return True


def _drain(selector: selectors.BaseSelector, streams: _Streams) -> None:
    """What is still in the pipes; a stream that stays open is not waited for."""
    end = time.monotonic() + DRAIN
    while selector.get_map() and not streams.truncated:
        ready = selector.select(max(0.0, end - time.monotonic()))
        if not ready:  # never while there is something to read, however late this thread got its turn
            break
        for key, _ in ready:
            if not streams.read(key.fd):
                selector.unregister(key.fd)


def _has_ended(pid: int) -> bool:
    """Whether the child has ended; it is left to be reaped."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # the caller ignores SIGCHLD: it is reaped by the kernel
        return True


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
