"""Reading one disk or file past the page cache, by several threads in a process of their own; never a write.

Part of drive_read.py, beside which it lies; needs Python >= 3.9, nothing else.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import random
import select
import signal
import statistics
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BLOCK, THREADS, RUN = 1 << 20, 8, 64  # bytes of a read, readers at once, blocks of a run
PAGE = 4096  # how much of a block is looked at on either end
WARM_SECONDS, WINDOW_SECONDS = 0.25, 0.25
FIGURES = ("gb_s", "p5", "cv", "blocks", "blank")

_ZEROS = bytes(PAGE)


@dataclass
class Reader:
    """One thread's part of the reading: when each block came, how many were blank, and what failed."""

    first: int
    blocks: int
    rng: random.Random
    came: list[float] = field(default_factory=list)
    blank: int = 0
    failed: tuple[int | None, int, str] | None = None  # errno, offset, words

    def offsets(self) -> Iterator[int]:
        """Runs of neighbouring blocks from places over the whole part, for ever."""
        while True:
            at = self.rng.randrange(self.blocks)
            for block in range(at, min(at + RUN, self.blocks)):
                yield (self.first + block) * BLOCK

    def read(self, handle: int, until: float, stop: threading.Event) -> None:
        """Read until then, or until something fails."""
        with mmap.mmap(-1, BLOCK) as buffer:  # begins at a page, as direct reads want it
            for offset in self.offsets():
                if stop.is_set() or time.monotonic() >= until:
                    return
                try:
                    _read_block(handle, buffer, offset)
                except OSError as error:
                    self.failed = (error.errno, offset, error.strerror or str(error))
                    stop.set()
                    return
                self.came.append(time.monotonic())
                self.blank += buffer[:PAGE] == _ZEROS and buffer[-PAGE:] == _ZEROS


def _read_block(handle: int, buffer: mmap.mmap, offset: int) -> None:
    """A whole block: where a read ends early, the rest is asked for, so that the error behind it is told."""
    got = 0
    while got < BLOCK:
        with memoryview(buffer) as whole, whole[got:] as rest:
            count = os.preadv(handle, [rest], offset + got)
        if not count:
            raise OSError(None, f"it ends at byte {offset + got}")
        got += count


def read_disk(path: str, seconds: float, seed: int) -> dict[str, Any]:
    """The figures of one disk, or its error; in seconds and GB/s."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        return {"error": f"{path} cannot be opened for direct reads: {error.strerror}"}
    try:
        size = os.lseek(handle, 0, os.SEEK_END)
        return _read_open(handle, size, path, seconds, seed)
    finally:
        os.close(handle)


def _read_open(handle: int, size: int, path: str, seconds: float, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = {"bytes": size}
    blocks = size // BLOCK
    if not blocks:
        return {**found, "error": f"{path} is smaller than one block of {BLOCK} bytes"}
    count = min(THREADS, blocks)
    part = blocks // count
    rngs = [random.Random(f"{seed}/{path}/{number}") for number in range(count)]  # noqa: S311 - places
    readers = [Reader(number * part, part, rng) for number, rng in enumerate(rngs)]
    stop, begun = threading.Event(), time.monotonic()
    until = begun + WARM_SECONDS + seconds
    threads = [threading.Thread(target=reader.read, args=(handle, until, stop)) for reader in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    came = sorted(at - begun for reader in readers for at in reader.came)
    found |= {"read_bytes": len(came) * BLOCK, "seconds": round(time.monotonic() - begun, 3)}
    failed = next((reader.failed for reader in readers if reader.failed), None)
    if failed:
        code, offset, words = failed
        name = errno.errorcode.get(code, str(code)) if code else None
        return {**found, "read_errno": name, "read_offset": offset, "error": f"read at byte {offset}: {words}"}
    blank = sum(reader.blank for reader in readers)
    return {**found, **figures(came, seconds), "blocks": len(came), "blank": round(blank / max(len(came), 1), 3)}


def figures(came: Sequence[float], seconds: float) -> dict[str, Any]:
    """Median, 5th percentile and variation over windows of the time after the start, in GB/s.

    >>> figures([0.3, 0.4, 0.6, 0.7], 0.5)
    {'gb_s': 0.0084, 'p5': 0.0084, 'cv': 0.0}
    """
    counts = [0] * max(1, round(seconds / WINDOW_SECONDS))
    for at in came:
        window = int((at - WARM_SECONDS) // WINDOW_SECONDS)
        if 0 <= window < len(counts):
            counts[window] += 1
    rates = sorted(count * BLOCK / WINDOW_SECONDS / 1e9 for count in counts)
    middle, mean = statistics.median(rates), statistics.fmean(rates)
    if not middle:
        return {"error": f"not one block came in half of the {seconds:g} s"}
    low = rates[int(0.05 * (len(rates) - 1))]
    return {"gb_s": round(middle, 4), "p5": round(low, 4), "cv": round(statistics.pstdev(rates) / mean, 4)}


def in_child(path: str, seconds: float, seed: int, patience: float) -> dict[str, Any]:
    """Read in a process of its own: one that hangs in the kernel is abandoned, and holds nothing of ours."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        _be_child(path, seconds, seed, into)
    os.close(into)
    data, until, status = b"", time.monotonic() + patience, None
    try:
        while (left := until - time.monotonic()) > 0 and select.select([out], [], [], left)[0]:
            piece = os.read(out, 65536)
            if not piece:
                status = os.waitpid(child, 0)[1]
                break
            data += piece
    finally:
        os.close(out)
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, os.WNOHANG)
    if status is None:
        return {"error": f"it gave no answer in {patience:g} s"}
    return json.loads(data) if not status and data else {"error": f"its reader ended with wait status {status}"}


def _be_child(path: str, seconds: float, seed: int, into: int) -> None:
    """Never returns; standard streams are let go, so that nobody waits for one that was abandoned."""
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os.write(into, json.dumps(read_disk(path, seconds, seed)).encode())
        status = 0
    finally:
        os._exit(status)
