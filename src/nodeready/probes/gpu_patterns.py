"""Patterns for memory, as functions that fill a block of 64-bit words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

GREATEST = 1 << 63


def own_address(torch: Any, out: Any, first: int, seed: int) -> None:
    """Each word its place xor the seed: no two words of the memory are the same."""
    torch.arange(first, first + out.numel(), out=out)
    out.bitwise_xor_(seed)


def walking_bit(torch: Any, out: Any, first: int, seed: int) -> None:  # noqa: ARG001 - blocks hold whole rows of 64
    """One bit of 64 is set, the next one in the next word; inverted, one bit is clear."""
    bits = [1 << bit if bit < 63 else -GREATEST for bit in range(64)]
    turn = seed % 64
    out.view(-1, 64).copy_(torch.tensor(bits[turn:] + bits[:turn], dtype=torch.int64, device=out.device))


def alternating(torch: Any, out: Any, first: int, seed: int) -> None:  # noqa: ARG001 - the same everywhere
    """0x55 in every byte; inverted, 0xAA."""
    out.fill_(0x5555555555555555)


def zeros(torch: Any, out: Any, first: int, seed: int) -> None:  # noqa: ARG001 - the same everywhere
    """No bit is set; inverted, all are."""
    out.zero_()


def seeded_random(torch: Any, out: Any, first: int, seed: int) -> None:
    """Random bits, the same for the same seed and place."""
    generator = torch.Generator(device=out.device).manual_seed(seed ^ first)
    out.random_(-GREATEST, None, generator=generator)


PATTERNS: dict[str, Callable[[Any, Any, int, int], None]] = {
    "own-address": own_address,
    "walking-bit": walking_bit,
    "alternating": alternating,
    "zeros": zeros,
    "random": seeded_random,
}
