"""Workers that measure one thing together: none goes without all others, and where one fails the rest is let go."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from nodeready.probes import gpu_workers
else:  # a script that stands alone has its siblings beside it
    import gpu_workers

if TYPE_CHECKING:
    from collections.abc import Sequence

GRACE = 10.0  # seconds that the others get to end a collective after one rank has failed


def trouble(worker: gpu_workers.Worker, number: int) -> str:
    """Why a rank takes no part any more; empty where it does."""
    return worker.lost or str(worker.entries.get(number, {}).get("error") or "")


@dataclass(frozen=True)
class Together(gpu_workers.Lead):
    """Ranks are led together: none is told to go without all others, and where one fails the rest is let go."""

    def conduct(self, workers: Sequence[gpu_workers.Worker]) -> None:
        """Lead the workers through the sizes; ends at the deadline, whatever they do."""
        finish = time.monotonic() + self.deadline

        def left(share: float = 1.0) -> float:
            return max(0.0, (finish - time.monotonic()) * share)

        for number, words in enumerate(self.words):

            def is_ready(worker: gpu_workers.Worker, number: int = number) -> bool:
                return worker.is_ready(number)

            def has_answered(worker: gpu_workers.Worker, number: int = number) -> bool:
                return worker.has_answered(number)

            def is_settled(worker: gpu_workers.Worker, number: int = number) -> bool:
                return worker.has_answered(number) or any(trouble(each, number) for each in workers)

            gpu_workers.gather(workers, is_ready, left(0.5), f"getting ready for {words}")
            if self._is_broken(workers, number, words):
                return
            for worker in workers:
                worker.go()
            gpu_workers.gather(workers, is_settled, left(), f"measuring {words}")
            failed = next((worker for worker in workers if trouble(worker, number)), None)
            if failed is not None:
                # the others may have met the same failure, and are about to say so
                after = f"measuring {words}, {GRACE:.0f} s after {failed.device} failed"
                gpu_workers.gather(workers, has_answered, min(GRACE, left()), after)
                self._is_broken(workers, number, "more")
                return

    @staticmethod
    def _is_broken(workers: Sequence[gpu_workers.Worker], number: int, what: str) -> bool:
        """Whether a rank takes no part; the others then are ended, and each says whose fault it was."""
        failed = next((worker for worker in workers if trouble(worker, number)), None)
        if failed is None:
            return False
        why, alone = trouble(failed, number), [worker for worker in workers if not worker.lost]
        gpu_workers.end(alone)
        for worker in alone:
            without = f"no {what} without {failed.device}, which took no part: {why}"[:300]
            worker.lost = why if worker is failed else without
        return True
