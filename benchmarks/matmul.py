"""The matmul probe's rate on this CPU against torch.utils.benchmark, in turns.

    python benchmarks/matmul.py [ROUNDS]

Both multiply the same float32 matrices in this process, for about the same time; the ratio should be
between 0.95 and 1.05. On a machine with other load single rounds stray: the median is what counts.
"""

import statistics
import sys

import torch
from torch.utils.benchmark import Timer

from nodeready.probes import gpu_clock, matmul

SECONDS = 1.0  # of each turn: short turns meet the same load of other processes
WANTED = 0.04  # seconds of one product at the size chosen, at least


def size_for_this_cpu():
    """The first power of two whose product takes WANTED seconds; a ramp, so that no product is far too large.

    blocked_autorange runs a block to its end whatever time it is given, so the size has to fit first.
    """
    for size in (256, 512, 1024, 2048, 4096, 8192):
        a, b = matmul.seeded_inputs(torch, "cpu", "float32", size)
        c = torch.empty_like(a)
        times = gpu_clock.batches(lambda a=a, b=b, c=c: torch.matmul(a, b, out=c), gpu_clock.Clock(), 1)
        next(times)
        if next(times) >= WANTED:
            break
    return size


def by_the_probe(a, b, c):
    """TFLOPS as the probe measures them: batches without a pause, their median."""
    clock = gpu_clock.Clock()

    def run():
        torch.matmul(a, b, out=c)

    batch = gpu_clock.fitting_batch(run, clock)
    taken = gpu_clock.collect(gpu_clock.batches(run, clock, batch), SECONDS)
    return matmul.rate_figures(taken, batch, len(a))["tflops"]


def by_torch(a, b, c):
    """TFLOPS by torch's own timer, with as many threads as the probe has."""
    timer = Timer(
        "torch.matmul(a, b, out=c)",
        globals={"torch": torch, "a": a, "b": b, "c": c},
        num_threads=torch.get_num_threads(),
    )
    return 2 * len(a) ** 3 / timer.blocked_autorange(min_run_time=SECONDS).median / 1e12


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    size = size_for_this_cpu()
    a, b = matmul.seeded_inputs(torch, "cpu", "float32", size)
    c = torch.empty_like(a)
    print(f"float32 {size}^3, {torch.get_num_threads()} threads, torch {torch.__version__}")
    ratios = []
    for number in range(rounds):
        turns = (by_the_probe, by_torch) if number % 2 == 0 else (by_torch, by_the_probe)
        rates = {turn: turn(a, b, c) for turn in turns}
        ratios.append(rates[by_the_probe] / rates[by_torch])
        mine, theirs = rates[by_the_probe] * 1000, rates[by_torch] * 1000
        print(f"round {number + 1}: probe {mine:7.1f} GFLOPS, torch {theirs:7.1f} GFLOPS, ratio {ratios[-1]:.3f}")
    print(f"median ratio {statistics.median(ratios):.3f} (aim: 0.95 to 1.05)")


if __name__ == "__main__":
    main()
