"""Whole numbers for GPUs to add up: their sums are exact, whatever the order."""

from __future__ import annotations

from typing import Any

PERIOD = 1 << 24  # elements after which the pattern comes again, with another number added
PLACES = 251


class Pattern:
    """What each rank contributes, and what comes out: whole numbers, so small that their sums are exact in float32.

    The numbers of a rank are a hash of place and rank, and each period has another number added: data of a wrong
    rank, of a wrong place or of the round before does not fit.
    """

    def __init__(self, torch: Any, device: str, rank: int, ranks: int, length: int) -> None:
        self.torch, self.ranks = torch, ranks
        places = torch.arange(min(PERIOD, length), device=device, dtype=torch.int64)
        self.own = self._numbers(places, rank)
        self.total = torch.zeros_like(self.own)
        for each in range(ranks):
            self.total += self._numbers(places, each)

    def _numbers(self, places: Any, rank: int) -> Any:
        return ((places * 2654435761 + (rank + 1) * 2654435769) >> 15 & 0xFFFF).to(self.torch.float32)

    def fill(self, message: Any) -> None:
        """Write this rank's contribution."""
        for number, part in enumerate(message.split(PERIOD)):
            self.torch.add(self.own[: len(part)], number % PLACES, out=part)

    def wrong(self, message: Any) -> Any:
        """How many elements are not the sum, as a tensor: the device is not waited for."""
        count = self.torch.zeros((), device=message.device, dtype=self.torch.int64)
        for number, part in enumerate(message.split(PERIOD)):
            count += part.ne(self.total[: len(part)] + self.ranks * (number % PLACES)).sum()
        return count
