"""Measures the all-reduce over all GPUs of the node and prints one JSON document.

Stand-alone: needs Python >= 3.9, torch and the files beside it, nothing of nodeready. The parent starts one process
for each device and never touches CUDA itself. A worker says that its device works; when all have, they meet through a
file in a private folder, and NCCL through the loopback interface: nothing leaves the node, and nothing listens on its
addresses. Each rank contributes whole numbers whose sums are exact in float32 in whatever order they are added,
and every element of every result is compared. A rank that fails or hangs costs the measurement, not the answer: each
rank's entry says what became of it.
Exit status 0: measured (an entry may hold an error), 2: usage, 3: no usable torch.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes import gpu_clock, gpu_state, gpu_workers
    from nodeready.probes.gpu_devices import identity_of, sentence
    from nodeready.probes.gpu_numbers import Pattern
    from nodeready.probes.gpu_together import Together
    from nodeready.probes.nccl_log import NcclLog, complaint_of_nccl, told_by_nccl
else:  # a script that stands alone has its siblings beside it
    import gpu_clock
    import gpu_state
    import gpu_workers
    from gpu_devices import identity_of, sentence
    from gpu_numbers import Pattern
    from gpu_together import Together
    from nccl_log import NcclLog, complaint_of_nccl, told_by_nccl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MIB = 1 << 20
# small messages are slowed by latency: below some GiB the rate still grows with the size
GPU_SIZES, CPU_SIZES = (256 * MIB, 8192 * MIB), (MIB, 8 * MIB)
RESERVE = 2048 * MIB  # what NCCL, the pattern and the comparison take beside the message
WARM_UP, LEAST, MOST = 3, 10, 200  # rounds
FIGURES = (
    *("bytes", "busbw_gb_s", "p5_gb_s", "cv", "iterations", "algbw_gb_s", "verified", "wrong_elements"),
    *("backend", "nccl", "clocks", "events", "link", "error"),
)


# ---- a worker: one rank -----------------------------------------------------------------------


class Member:
    """One rank of the process group, which is joined when all ranks are known to be there."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.device: str = options.device[0]
        self.cuda = self.device.startswith("cuda")
        self.backend = "nccl" if self.cuda else "gloo"
        self.rank, self.ranks = options.members.index(self.device), len(options.members)
        self.store, self.patience = options.store, timedelta(seconds=options.deadline)
        self.place = self.device if self.cuda else "cpu"
        self.distributed: Any = None
        self.log = NcclLog()
        self.log.set_environment()

    def begin(self, torch: Any) -> None:
        """See that the device computes, before others wait for it."""
        distributed = torch.distributed
        if not distributed.is_available():
            raise RuntimeError(f"torch {torch.__version__} is built without torch.distributed")
        if not (distributed.is_nccl_available() if self.cuda else distributed.is_gloo_available()):
            raise RuntimeError(f"torch {torch.__version__} is built without {self.backend}")
        if self.cuda:
            torch.cuda.set_device(self.device)
        int(torch.ones(8, device=self.place).sum())

    def join(self, torch: Any) -> None:
        """Meet the others, once."""
        if self.distributed is None:
            torch.distributed.init_process_group(
                self.backend,
                init_method=f"file://{self.store}",
                rank=self.rank,
                world_size=self.ranks,
                timeout=self.patience,
            )
            self.distributed = torch.distributed

    def agree(self, torch: Any, value: float, how: str) -> float:
        """The least (`MIN`) or greatest (`MAX`) value over all ranks."""
        told = torch.tensor([value], dtype=torch.float64, device=self.place)
        self.distributed.all_reduce(told, op=getattr(self.distributed.ReduceOp, how))
        return float(told.item())

    def leave(self) -> None:
        """Give the process group back."""
        if self.distributed is not None:
            self.distributed.destroy_process_group()


def message_for(torch: Any, member: Member, size: int) -> tuple[Any, Pattern]:
    """A message of that many bytes and its pattern, or of as many as the fullest device has room for.

    All ranks go on, or all raise `RuntimeError`: one that went on alone would wait for ever.
    """
    room = size
    if member.cuda:
        torch.cuda.empty_cache()  # the message before this one
        room = min(size, torch.cuda.mem_get_info()[0] - RESERVE)
    length = int(member.agree(torch, room // MIB * MIB, "MIN")) // 4
    if length <= 0:
        raise RuntimeError(f"out of memory: a device has no {RESERVE // MIB} MiB free beside the message")
    failure = ""
    try:
        message = torch.empty(length, device=member.place, dtype=torch.float32)
        pattern = Pattern(torch, member.place, member.rank, member.ranks, length)
    except RuntimeError as error:
        failure = sentence(torch, error)
    if member.agree(torch, float(not failure), "MIN") < 1:
        raise RuntimeError(failure or "another rank got no memory for its message")
    return message, pattern


def rounds(torch: Any, member: Member, seconds: float, message: Any, pattern: Pattern) -> tuple[list[float], Any]:
    """The seconds of each all-reduce, and how many elements were wrong in all of them."""
    clock = gpu_clock.CudaClock(torch, member.device) if member.cuda else gpu_clock.Clock()
    meeting = torch.zeros(1, device=member.place)

    def once() -> tuple[Any, Any, Any]:
        pattern.fill(message)
        member.distributed.all_reduce(meeting)  # a rank that comes late would lengthen the others' time
        start = clock.mark()
        member.distributed.all_reduce(message)
        end = clock.mark()
        return start, end, pattern.wrong(message)

    wrong, took = torch.zeros((), device=member.place, dtype=torch.int64), 0.0
    for _ in range(WARM_UP):  # the first loads kernels and lets NCCL connect the GPUs
        begun = time.perf_counter()
        wrong += once()[2]
        clock.wait(clock.mark())
        took = time.perf_counter() - begun
    slowest = member.agree(torch, took, "MAX")  # all ranks make the same number of rounds
    marks = []
    for _ in range(max(LEAST, min(MOST, int(seconds / max(slowest, 1e-6))))):
        start, end, off = once()
        wrong += off
        marks.append((start, end))
    clock.wait(clock.mark())
    return [clock.between(start, end) for start, end in marks], wrong


def rate_figures(taken: Sequence[float], size: int, ranks: int) -> dict[str, Any]:
    """What the times say, in GB/s (1e9 bytes a second).

    The rate of the algorithm is bytes over time; that of the bus is what each GPU's links carried: 2 (n - 1) / n of it.

    >>> figures = rate_figures([0.032, 0.032, 0.04], 8_000_000_000, 8)
    >>> figures["algbw_gb_s"], figures["busbw_gb_s"], figures["p5_gb_s"]
    (250.0, 437.5, 350.0)
    """
    factor = 2 * (ranks - 1) / ranks
    if not min(taken) > 0:
        raise RuntimeError(f"the device's clock gave {min(taken)} s for an all-reduce")
    rates = sorted(size / seconds / 1e9 for seconds in taken)
    return {
        "bytes": size,
        "busbw_gb_s": statistics.median(rates) * factor,
        "p5_gb_s": rates[(len(rates) - 1) // 20] * factor,  # the rate that 95 % of the rounds reach
        "cv": statistics.pstdev(rates) / statistics.fmean(rates),
        "iterations": len(taken),
        "algbw_gb_s": statistics.median(rates),
        "round_s": gpu_clock.spread(taken),
    }


def measure(torch: Any, size: int, seconds: float, member: Member, await_start: Callable[..., None]) -> dict[str, Any]:
    """One entry's figures; raises `RuntimeError` with what torch and NCCL say."""
    identity = identity_of(member.device)
    member.begin(torch)
    await_start()
    try:
        member.join(torch)
        message, pattern = message_for(torch, member, size)
        with gpu_state.sampled(gpu_state.reader(identity)) as samples:
            taken, wrong = rounds(torch, member, seconds, message, pattern)
        count = int(wrong)
    except RuntimeError as error:
        said = complaint_of_nccl(member.log.text())
        if not said:
            raise
        raise RuntimeError(f"{sentence(torch, error)}; NCCL: {said}") from error
    length = len(message) * 4
    figures = {**rate_figures(taken, length, member.ranks), **gpu_state.sample_figures(samples)}
    nccl = None
    if member.cuda:
        version = ".".join(map(str, torch.cuda.nccl.version()))
        nccl = {"version": version, **told_by_nccl(member.log.text(), length)}
    told = {"verified": count == 0, "wrong_elements": count, "backend": member.backend, "nccl": nccl}
    return {**identity, **figures, **told}


def blank_entry(size: int, ranks: int) -> dict[str, Any]:
    """An entry with nothing measured."""
    return gpu_workers.blank_entry(size=size, rank=None, ranks=ranks, **dict.fromkeys(FIGURES))


# ---- the parent -------------------------------------------------------------------------------


def summary(results: Sequence[dict[str, Any]], sizes: Sequence[int]) -> list[dict[str, Any]]:
    """For each size the node's rate, which is that of the slowest rank; null where a rank has none."""
    rows = []
    for size in sizes:
        entries = [entry for entry in results if entry["size"] == size]
        rates = [entry["busbw_gb_s"] for entry in entries]
        whole = bool(rates) and None not in rates
        algorithms = [entry["nccl"]["algorithm"] for entry in entries if entry["nccl"]]
        rows.append(
            {
                "size": size,
                "ranks": len(entries),
                "busbw_gb_s": min(rates) if whole else None,
                "verified": all(entry["verified"] for entry in entries) if whole else None,
                "algorithm": next((name for name in algorithms if name), None),
            }
        )
    return rows


def new_document() -> dict[str, Any]:
    """The document before anything is known."""
    return gpu_workers.new_document("allreduce", dtype="float32", summary=[])


def probe(options: argparse.Namespace, script: str = __file__) -> dict[str, Any]:
    """Measure over all devices together and give the document; `script` is what the workers run."""
    document, command = new_document(), gpu_workers.worker_command(script)
    if options.device == ["cpu"]:
        devices: dict[str, gpu_workers.Identity] = {f"cpu:{rank}": {} for rank in range(options.ranks)}
    else:
        devices = gpu_workers.devices_wanted(document, command, options.device, options.deadline / 4)
    if len(devices) < 2:
        alone = " and ".join(devices)
        document["error"] = document["error"] or f"an all-reduce needs two devices, and there is only {alone}"
        return document
    command += [f"--seconds={options.seconds}", f"--deadline={options.deadline}", f"--members={','.join(devices)}"]
    command += [f"--bytes={','.join(map(str, options.sizes))}"]
    with tempfile.TemporaryDirectory(prefix="nodeready-") as folder:
        Together(
            words=[f"all-reduce of {size // MIB} MiB" for size in options.sizes],
            blanks=[blank_entry(size, len(devices)) for size in options.sizes],
            deadline=options.deadline - document["seconds"],
            least=options.seconds,
        ).run(document, [*command, f"--store={Path(folder) / 'meeting'}"], devices)
    for entry in document["results"]:
        entry["rank"] = [*devices].index(entry["device"])
    document["summary"] = summary(document["results"], options.sizes)
    return document


# ---- the command line -------------------------------------------------------------------------


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with `sizes` in bytes; exits 2 where they make no sense."""
    what = "Measures the all-reduce over all GPUs of this node, one process a GPU."
    parser = gpu_workers.new_parser(what, 120.0, devices=r"cuda:\d+|cpu|cpu:\d+|all")
    parser.add_argument("--ranks", type=int, default=2, help="processes, with --device cpu (default: 2)")
    parser.add_argument("--bytes", type=gpu_workers.listed(r"[1-9]\d{0,12}"), help="default: 256 MiB and 8 GiB")
    parser.add_argument("--seconds", type=float, default=3.0, help="to measure each size (default: 3)")
    for name in ("--members", "--store"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    cpu = options.device == ["cpu"]
    if len(options.device) > 1 and {"all", "cpu"} & set(options.device):
        parser.error("--device all and --device cpu stand alone")
    if not options.worker and any(device.startswith("cpu:") for device in options.device):
        parser.error("--device cpu takes --ranks")
    usual = CPU_SIZES if cpu else GPU_SIZES
    options.sizes = [int(size) for size in options.bytes] if options.bytes else list(usual)
    options.members = options.members.split(",")
    if not (2 <= options.ranks <= 64 and all(size >= MIB for size in options.sizes)):
        parser.error("--ranks is 2 to 64, and --bytes at least 1 MiB (1048576)")
    if not (options.seconds > 0 and len(options.sizes) * options.seconds < options.deadline < math.inf):
        parser.error("--seconds must be above 0, and --deadline above what all sizes take")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run as a worker or as the parent; the exit status."""
    options = parse_options(argv)
    if not options.worker:
        return gpu_workers.print_document(new_document(), lambda: probe(options))
    if options.device == ["all"]:
        return gpu_workers.list_devices()
    member, sizes = Member(options), options.sizes
    try:
        return gpu_workers.serve(
            options.device[0] if member.cuda else "cpu",
            [blank_entry(size, member.ranks) for size in sizes],
            lambda torch, number, await_start: measure(torch, sizes[number], options.seconds, member, await_start),
        )
    finally:
        member.leave()


if __name__ == "__main__":
    sys.exit(main())
