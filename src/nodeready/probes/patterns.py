"""Writes patterns over all free memory of all GPUs at once, reads them back, and prints one JSON document.

Stand-alone: needs Python >= 3.9, torch and the files beside it, nothing of nodeready. The parent starts one process
for each device and never touches CUDA itself. Each worker takes nearly all memory that is free, in blocks, and then
goes over the whole of it: a pattern is written everywhere, read back everywhere while its inverse is written, and the
inverse is read back from the last block to the first. So a word that was never touched, a bit that is stuck, and an
address that leads to another place are all seen. With ECC on, single bits are mended before they are read: they show
in the error counters, which are read before and after.
Exit status 0: measured (an entry may hold an error), 2: usage, 3: no usable torch.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes import gpu_ecc, gpu_state, gpu_workers
    from nodeready.probes.gpu_devices import identity_of, sentence
    from nodeready.probes.gpu_patterns import GREATEST, PATTERNS
else:  # a script that stands alone has its siblings beside it
    import gpu_ecc
    import gpu_state
    import gpu_workers
    from gpu_devices import identity_of, sentence
    from gpu_patterns import GREATEST, PATTERNS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

SEED = 20
MIB = 1 << 20
BLOCK_BYTES = 256 * MIB  # one block is written and compared at a time, which takes as much again beside it
# kernels are loaded when they are first used, and a comparison needs a little room
RESERVE_BYTES, RESERVE_SHARE = 1024 * MIB, 0.02
CPU_BYTES = 64 * MIB
SHOWN = 8  # wrong words that are told of one by one
SLICE = 1 << 20  # words searched for them in one go
SETTLE_SECONDS = 0.5  # the driver hears of a memory error a moment after the kernel has ended
SIZES = ("total_bytes", "free_bytes", "cap_bytes", "covered_bytes", "left_bytes", "blocks", "block_bytes")
FIGURES = (
    *(*SIZES, "share_of_total", "share_of_free", "patterns", "rounds", "passes", "checked_bytes", "measured_s"),
    *("wrong_words", "wrong", "verified", "ecc", "clocks", "events", "link", "error"),
)


# ---- the memory and what was found in it ------------------------------------------------------


@dataclass
class Memory:
    """Blocks of 64-bit words; `expected` is as large as one, and `differs` has a truth value for each of its words."""

    expected: Any
    differs: Any
    blocks: list[Any] = field(default_factory=list)


@dataclass
class Tally:
    """What has been looked at so far, and how many words were wrong; `wrong` tells of the first of them."""

    rounds: int = 0
    passes: int = 0
    checked_bytes: int = 0
    wrong_words: int = 0
    wrong: list[dict[str, Any]] = field(default_factory=list)


def write(torch: Any, memory: Memory, name: str, seed: int) -> None:
    """Write a pattern to all blocks."""
    for number, block in enumerate(memory.blocks):
        PATTERNS[name](torch, block, number * block.numel(), seed)


def check(torch: Any, memory: Memory, number: int, name: str, seed: int, tally: Tally, *, inverted: bool) -> None:
    """Compare one block with the pattern, made anew; leaves the inverse of what was expected in `memory.expected`."""
    block, expected, differs = memory.blocks[number], memory.expected, memory.differs
    first = number * block.numel()
    PATTERNS[name](torch, expected, first, seed)
    if inverted:
        expected.bitwise_not_()
    torch.ne(block, expected, out=differs)
    count = int(torch.count_nonzero(differs))
    tally.checked_bytes += block.numel() * 8
    if count:
        tally.wrong_words += count
        for place in places(differs, SHOWN - len(tally.wrong)):
            bits = (int(block[place]) ^ int(expected[place])) % (2 * GREATEST)
            what = f"{name}, inverted" if inverted else name
            tally.wrong.append({"offset_bytes": (first + place) * 8, "xor": f"0x{bits:016x}", "pattern": what})
    expected.bitwise_not_()


def places(differs: Any, most: int) -> list[int]:
    """Where the first wrong words are, in words from the start of the block.

    It is searched by parts: the places of all, where all are wrong, may not fit beside the blocks.
    """
    found: list[int] = []
    for start in range(0, differs.numel(), SLICE):
        if len(found) >= most:
            break
        found += [start + int(at) for at in differs[start : start + SLICE].nonzero().flatten()[: most - len(found)]]
    return found


def invert(torch: Any, memory: Memory, name: str, seed: int, tally: Tally) -> None:
    """Write a pattern everywhere; read it back upwards and write its inverse; read that back downwards.

    The way down starts at what was written last, of which the cache may still hold some; the way up does not.
    """
    write(torch, memory, name, seed)
    for number, block in enumerate(memory.blocks):
        check(torch, memory, number, name, seed, tally, inverted=False)
        block.copy_(memory.expected)
    for number in reversed(range(len(memory.blocks))):
        check(torch, memory, number, name, seed, tally, inverted=True)
    tally.passes += 1


def plant(torch: Any, memory: Memory) -> None:
    """Make one word wrong on purpose; raises `RuntimeError` where the comparison does not see it.

    Words that are all found right prove something only where a wrong one is found.
    """
    last, tally = len(memory.blocks) - 1, Tally()
    write(torch, memory, "own-address", SEED)
    memory.blocks[last][-1:].bitwise_xor_(1 << 17)
    check(torch, memory, last, "own-address", SEED, tally, inverted=False)
    if not tally.wrong_words:
        raise RuntimeError("the comparison did not see a word that was made wrong on purpose")


def go_over(torch: Any, memory: Memory, seconds: float, tally: Tally) -> None:
    """Go over the memory with all patterns at least once, and on with other seeds until the time is over."""
    begun = time.perf_counter()
    while True:
        seed = random.Random(SEED + tally.rounds).getrandbits(62)  # noqa: S311 - patterns are no secrets
        for name in PATTERNS:
            if tally.rounds and time.perf_counter() - begun >= seconds:
                return
            invert(torch, memory, name, seed, tally)
        tally.rounds += 1


# ---- a worker: one device ---------------------------------------------------------------------


def memory_info(torch: Any, device: str) -> tuple[int, int]:
    """Free and total bytes of a device."""
    if device.startswith("cuda"):
        free, total = torch.cuda.mem_get_info(device)
        return int(free), int(total)
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def take(torch: Any, device: str, cap: int | None, sizes: dict[str, Any]) -> Memory:
    """Nearly all free memory in blocks, no more than `cap` bytes; `sizes` is filled with how much that is.

    Raises `RuntimeError` where not even one block can be had. That another process takes memory meanwhile is no
    error: fewer blocks are taken.
    """
    if device.startswith("cuda"):
        torch.cuda.set_device(device)  # else each worker would hold a context on the first GPU as well
    torch.zeros(64, dtype=torch.int64, device=device).bitwise_not_()  # the context takes its part before it is counted
    free, total = memory_info(torch, device)
    sizes.update(total_bytes=total, free_bytes=free, cap_bytes=cap, covered_bytes=0)
    size = BLOCK_BYTES if cap is None else max(512, min(BLOCK_BYTES, cap // 8 // 512 * 512))
    reserve = max(RESERVE_BYTES, int(total * RESERVE_SHARE)) if device.startswith("cuda") else 0
    kind = {"dtype": torch.int64, "device": device}
    words = size // 8
    memory = Memory(torch.empty(words, **kind), torch.empty(words, dtype=torch.bool, device=device))
    while (len(memory.blocks) + 1) * size <= (free if cap is None else cap):
        if memory_info(torch, device)[0] < reserve + size:
            break
        try:
            memory.blocks.append(torch.empty(words, **kind))
        except RuntimeError as error:
            if not sentence(torch, error).startswith("out of memory"):
                raise
            break
    covered = len(memory.blocks) * size
    sizes.update(covered_bytes=covered, left_bytes=memory_info(torch, device)[0])
    sizes.update(blocks=len(memory.blocks), block_bytes=size)
    sizes.update(share_of_total=covered / total, share_of_free=covered / max(free, 1))
    if not memory.blocks:
        raise RuntimeError(f"out of memory: {free} of {total} bytes are free, too few for a block of {size}")
    return memory


def measure(torch: Any, options: argparse.Namespace, await_start: Callable[..., None]) -> dict[str, Any]:
    """The entry of one device; an error of the device is in it, beside what was found before it came."""
    device = options.device[0]
    identity = identity_of(device)
    read = gpu_ecc.reader(identity)
    before, tally, entry = (read() if read else None), Tally(), {**identity, "patterns": list(PATTERNS)}
    samples: list[gpu_state.Sample] = []
    begun = time.perf_counter()
    try:
        memory = take(torch, device, options.bytes, entry)
        await_start()
        begun = time.perf_counter()
        with gpu_state.sampled(gpu_state.reader(identity)) as samples:
            plant(torch, memory)
            go_over(torch, memory, options.seconds, tally)
        memory.blocks.clear()
        del memory
        if device.startswith("cuda"):
            torch.cuda.empty_cache()
    except (RuntimeError, torch.cuda.DeferredCudaCallError) as error:
        entry["error"] = sentence(torch, error)
    entry["measured_s"] = round(time.perf_counter() - begun, 3)
    whole = tally.rounds > 0 and entry.get("error") is None
    verified = False if tally.wrong_words else True if whole else None
    entry.update(vars(tally), verified=verified, **gpu_state.sample_figures(samples))
    if read:
        time.sleep(SETTLE_SECONDS)
        entry["ecc"] = {"before": before, "after": read()}
    return entry


def blank_entry() -> dict[str, Any]:
    """An entry with nothing measured."""
    return gpu_workers.blank_entry(**dict.fromkeys(FIGURES))


# ---- the parent and the command line ----------------------------------------------------------


def new_document() -> dict[str, Any]:
    """The document before anything is known."""
    return gpu_workers.new_document("patterns")


def probe(options: argparse.Namespace, script: str = __file__) -> dict[str, Any]:
    """Go over the memory of all devices at once and give the document; `script` is what the workers run."""
    document, command = new_document(), gpu_workers.worker_command(script)
    devices = gpu_workers.devices_wanted(document, command, options.device, options.deadline / 4)
    command += [f"--seconds={options.seconds}", *([f"--bytes={options.bytes}"] if options.bytes else [])]
    gpu_workers.Lead(
        words=["patterns over all memory"],
        blanks=[blank_entry()],
        deadline=options.deadline - document["seconds"],
        least=options.seconds + 15,
    ).run(document, command, devices)
    return document


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options; exits 2 where they make no sense."""
    what = "Writes patterns over all free memory of all GPUs at once and reads them back."
    parser = gpu_workers.new_parser(what, 120.0)
    parser.add_argument("--seconds", type=float, default=20.0, help="to go over all of it again (default: 20)")
    parser.add_argument("--bytes", type=int, help="take no more memory than this (default of a CPU: 64 MiB)")
    options = parser.parse_args(argv)
    if "all" in options.device and len(options.device) > 1:
        parser.error("--device all stands alone")
    if not (options.seconds > 0 and (options.worker or options.seconds < options.deadline < math.inf)):
        parser.error("--seconds must be above 0, and --deadline above it")
    if options.bytes is not None and options.bytes < 4096:
        parser.error("--bytes must be 4096 or more")
    if options.device == ["cpu"] and options.bytes is None:
        options.bytes = CPU_BYTES
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run as a worker or as the parent; the exit status."""
    options = parse_options(argv)
    if not options.worker:
        return gpu_workers.print_document(new_document(), lambda: probe(options))
    if options.device == ["all"]:
        return gpu_workers.list_devices()
    return gpu_workers.serve(
        options.device[0], [blank_entry()], lambda torch, _, await_start: measure(torch, options, await_start)
    )


if __name__ == "__main__":
    sys.exit(main())
