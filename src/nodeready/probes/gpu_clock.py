"""The clock of a device, and batches of work that keep it busy while they are timed."""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BATCH_SECONDS = 0.05
WINDOW = 5  # batches whose medians are compared to see whether the rate is steady
STEADY = 0.02


class Clock:
    """The time a CPU takes: a product on it is done when the call returns."""

    def mark(self) -> Any:
        """A point in the device's work, passed once all that was handed over before it is done."""
        return time.perf_counter()

    def wait(self, mark: Any) -> None:
        """Return once the device has passed the mark."""

    def between(self, start: Any, end: Any) -> float:
        """Seconds between two marks that were passed."""
        return float(end - start)


class CudaClock(Clock):
    """CUDA events: times taken on the host would include the launches, or nothing but them."""

    def __init__(self, torch: Any, device: str) -> None:
        torch.cuda.set_device(device)
        self.torch, self.stream = torch, torch.cuda.current_stream()

    def mark(self) -> Any:
        """An event in the device's stream."""
        event = self.torch.cuda.Event(enable_timing=True)
        event.record(self.stream)
        return event

    def wait(self, mark: Any) -> None:
        """Block until the event is passed."""
        mark.synchronize()

    def between(self, start: Any, end: Any) -> float:
        """Seconds; CUDA says milliseconds."""
        return float(start.elapsed_time(end)) / 1000


def fitting_batch(run: Callable[[], object], clock: Clock) -> int:
    """How many products take about BATCH_SECONDS."""
    run()  # the first product loads libraries and kernels
    clock.wait(clock.mark())
    size = 1
    while size < 100_000:
        start = clock.mark()
        for _ in range(size):
            run()
        end = clock.mark()
        clock.wait(end)
        seconds = clock.between(start, end)
        if seconds >= 0.8 * BATCH_SECONDS:
            break
        size = min(size * 8, math.ceil(size * BATCH_SECONDS / max(seconds, 1e-6)))
    return size


def batches(run: Callable[[], object], clock: Clock, size: int) -> Iterator[float]:
    """The seconds of one batch after the other, without a pause between them.

    One batch is always handed over ahead: a device that waits for this process cools, and would
    look faster than it is under a steady load. Raises `RuntimeError` where the clock stands still.
    """

    def submit() -> Any:
        for _ in range(size):
            run()
        return clock.mark()

    start = clock.mark()
    end = submit()
    while True:
        following = submit()
        clock.wait(end)
        seconds = clock.between(start, end)
        if not seconds > 0:
            raise RuntimeError(f"the device's clock gave {seconds} s for a batch")
        yield seconds
        start, end = end, following


def warm_up(times: Iterator[float], seconds: float) -> bool:
    """Run batches for at least `seconds`, until the rate is steady; whether it was within 4 x that."""
    begun = time.perf_counter()
    seen: list[float] = []
    while True:
        seen.append(next(times))
        elapsed = time.perf_counter() - begun
        if elapsed >= seconds and len(seen) >= 2 * WINDOW:
            earlier, later = (statistics.median(s) for s in (seen[-2 * WINDOW : -WINDOW], seen[-WINDOW:]))
            if abs(later / earlier - 1) < STEADY:
                return True
        if elapsed >= 4 * seconds:
            return False


def collect(times: Iterator[float], seconds: float) -> list[float]:
    """The seconds of each batch over at least `seconds` and three batches."""
    begun = time.perf_counter()
    taken: list[float] = []
    while len(taken) < 3 or time.perf_counter() - begun < seconds:
        taken.append(next(times))
    return taken


def spread(values: Sequence[float | None]) -> dict[str, float] | None:
    """Least, middle and greatest of the values that were told."""
    told = [value for value in values if value is not None]
    return {"min": min(told), "median": statistics.median(told), "max": max(told)} if told else None
