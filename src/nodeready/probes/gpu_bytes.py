"""Bytes that any device makes by itself, so that a copy can be compared with what was never copied."""

from __future__ import annotations

from typing import Any

SLAB = 1 << 24  # numbers made in one go: the whole buffer again would not always fit beside it
_ODD = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9)


def made(torch: Any, device: str, first: int, count: int, seed: int) -> Any:
    """So many numbers of 64 mixed bits from place `first` on, the same on every device for the same seed.

    Each is made of its place by integer steps alone. A generator of random numbers would not do: what torch
    draws on a GPU depends on how many multiprocessors it has. The steps can be undone, so no two places hold
    the same number, and bytes that landed in the wrong place are found.
    """
    bits = torch.arange(first, first + count, device=device, dtype=torch.int64)
    bits.add_(seed << 40).mul_(_ODD[0])
    # shifts of torch repeat the sign, which would leave the highest bit of all numbers at 0
    bits.bitwise_xor_((bits >> 29).bitwise_and_((1 << 35) - 1)).mul_(_ODD[1])
    return bits.bitwise_xor_((bits >> 32).bitwise_and_((1 << 32) - 1))


def fill(torch: Any, buffer: Any, seed: int) -> None:
    """Let the buffer's own device write the bytes of that seed."""
    for first in range(0, len(buffer), SLAB):
        slab = buffer[first : first + SLAB]
        slab.copy_(made(torch, buffer.device, first, len(slab), seed))


def holds(torch: Any, buffer: Any, seed: int) -> bool:
    """Whether the buffer holds the bytes of that seed to the last bit, by its own device's making."""
    slabs = ((first, buffer[first : first + SLAB]) for first in range(0, len(buffer), SLAB))
    return all(torch.equal(slab, made(torch, buffer.device, first, len(slab), seed)) for first, slab in slabs)
