"""Measures copies within each GPU, to and from the host, and to every other GPU; prints one JSON document.

Stand-alone: needs Python >= 3.9, torch and the files beside it, nothing of nodeready. The parent starts one process
for each device and never touches CUDA itself. Copies within a GPU run on all at once: they leave nothing of it, and
share no path. All others take turns, one GPU after the other, since GPUs share links to the host and to each other
and the rates that are demanded are those of a lone copy. What arrives is compared with bytes that the target made
itself. A worker that doesn't answer is ended, else abandoned; nobody copies to its GPU any more, and the others go on.
Exit status 0: measured (an entry may hold an error), 2: usage, 3: no usable torch.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes import gpu_bytes, gpu_clock, gpu_host, gpu_state, gpu_workers
    from nodeready.probes.gpu_devices import identity_of
else:  # a script that stands alone has its siblings beside it
    import gpu_bytes
    import gpu_clock
    import gpu_host
    import gpu_state
    import gpu_workers
    from gpu_devices import identity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WITHIN, TO_DEVICE, TO_HOST, JOIN, TO_PEER = "device", "to-device", "to-host", "join", "to-peer"
SECONDS = {WITHIN: 1.0, TO_DEVICE: 0.6, TO_HOST: 0.6, TO_PEER: 0.2}
WARM_UP = 0.5  # between GPUs there is no clock that would have to rise first
# far above what any cache holds, and a copy long enough for its launch not to count
MIB = {WITHIN: 4096, TO_DEVICE: 256, TO_HOST: 256, TO_PEER: 1024}
CPU_MIB = 64
READY_SECONDS, TURN_SECONDS = 45.0, 12.0  # for torch and a context to load; for one copy
LEAST_SAMPLES, SAMPLING_SECONDS = 3, 4.0  # nvidia-smi may take a second for each
CHECKS = 3  # how often what arrived is compared
SEED = 23
SKIP, AVOID = "skip", "avoid "
FIGURES = (
    *("bytes", "counted", "gb_s", "p5", "cv", "iterations", "verified", "peer_access", "host_cpus"),
    *("link", "clocks", "events", "error"),
)

Task = tuple[str, int]  # which copy, and to a peer: how many devices further on it is


def rate_figures(taken: Sequence[float], batch: int, moved: int) -> dict[str, Any]:
    """What the batch times say, in GB/s (1e9 bytes a second), of copies that move so many bytes each."""
    rates = sorted(moved * batch / seconds / 1e9 for seconds in taken)
    return {
        "gb_s": statistics.median(rates),
        "p5": rates[(len(rates) - 1) // 20],  # the rate that 95 % of the batches reach
        "cv": statistics.pstdev(rates) / statistics.fmean(rates),
        "iterations": batch * len(taken),
        "batch": batch,
        "measured_s": math.fsum(taken),
    }


# ---- a worker: one device ---------------------------------------------------------------------


def size_of(torch: Any, copy: str, device: str, mib: int | None) -> int:
    """How many numbers of eight bytes a buffer takes: on a GPU a quarter of its free memory at most."""
    if device == "cpu":
        return (mib or CPU_MIB) << 17
    free = int(torch.cuda.mem_get_info(device)[0])
    return min((mib or MIB[copy]) << 17, free // 4 >> 3)


def buffers(torch: Any, copy: str, device: str, peer: str, mib: int | None) -> tuple[Any, Any]:
    """Source and target of one copy; the host's side is pinned where a GPU is at the other end."""
    size = size_of(torch, copy, device, mib)
    pinned = {"device": "cpu", "pin_memory": device != "cpu"}
    of_source = pinned if copy == TO_DEVICE else {"device": device}
    of_target = pinned if copy == TO_HOST else {"device": peer if copy == TO_PEER else device}
    source, target = (torch.empty(size, dtype=torch.int64, **where) for where in (of_source, of_target))
    gpu_bytes.fill(torch, source, SEED)
    return source, target


def arrives(torch: Any, run: Callable[[], object], clock: gpu_clock.Clock, target: Any, times: int) -> bool:
    """Whether what lies in the target now, and after each of some copies over zeros, is what was sent."""
    right = gpu_bytes.holds(torch, target, SEED)
    for _ in range(times - 1):
        target.zero_()
        run()
        clock.wait(clock.mark())
        right = gpu_bytes.holds(torch, target, SEED) and right
    return right


def sampled_batches(
    times: Iterator[float], seconds: float, read: Callable[[], gpu_state.Sample] | None
) -> tuple[list[float], list[gpu_state.Sample]]:
    """Batch times, and the GPU's state while they ran: the load stays on until it was read some times."""
    with gpu_state.sampled(read) as samples:
        until = time.perf_counter() + SAMPLING_SECONDS
        taken = gpu_clock.collect(times, seconds)
        while read and len(samples) < LEAST_SAMPLES and time.perf_counter() < until:
            taken.append(next(times))
        seen = list(samples)  # the next batch still runs: none of these was read after the load
    return taken, seen


def measure_copy(
    torch: Any, copy: str, device: str, peer: str, options: argparse.Namespace, await_start: Callable[[], str]
) -> dict[str, Any]:
    """The figures of one copy. Raises what torch raises: `RuntimeError` for errors of a device, or out of memory."""
    identity = identity_of(device)
    figures: dict[str, Any] = {"peer_access": bool(torch.cuda.can_device_access_peer(device, peer)) if peer else None}
    if copy in (TO_DEVICE, TO_HOST) and identity["bus_id"]:
        figures["host_cpus"] = gpu_host.stand_beside(identity["bus_id"])
    source, target = buffers(torch, copy, device, peer, options.mib)
    target.zero_()
    clock = gpu_clock.CudaClock(torch, device) if device.startswith("cuda") else gpu_clock.Clock()
    await_start()

    def run() -> None:
        target.copy_(source, non_blocking=True)

    batch = gpu_clock.fitting_batch(run, clock)
    times = gpu_clock.batches(run, clock, batch)
    if not peer:
        figures["steady"] = gpu_clock.warm_up(times, WARM_UP if options.seconds is None else options.seconds / 2)
    read = None if peer else gpu_state.reader(identity)
    taken, samples = sampled_batches(times, SECONDS[copy] if options.seconds is None else options.seconds, read)
    clock.wait(clock.mark())
    figures["counted"] = counted = 2 if copy == WITHIN else 1  # memory is read and written
    figures["bytes"] = size = int(source.numel()) * 8
    figures.update(rate_figures(taken, batch, size * counted), **gpu_state.sample_figures(samples))
    checks = 1 if copy == TO_HOST else CHECKS  # the host is slow at making so many bytes
    return {**identity, **figures, "verified": arrives(torch, run, clock, target, checks), "checks": checks}


def join(torch: Any, device: str, peers: Sequence[str], word: str) -> dict[str, Any]:
    """Make a context on every other GPU but those to avoid: it takes long, and would stand in the way of a copy."""
    for step in range(1, len(peers)):
        peer = peer_of(peers, device, step)
        # what fails here fails again when it is copied to, and is told there
        with contextlib.suppress(RuntimeError):
            if peer not in word.split():
                torch.empty(1, device=peer)
    return {}


def peer_of(devices: Sequence[str], device: str, step: int) -> str:
    """The device that is so many further on; at any time no two workers are at the same one."""
    return devices[(devices.index(device) + step) % len(devices)]


def measure(torch: Any, task: Task, options: argparse.Namespace, await_start: Callable[..., str]) -> dict[str, Any]:
    """One entry's figures."""
    (copy, step), device = task, options.device[0]
    if device != "cpu":
        torch.cuda.empty_cache()  # what the copy before held; peers need room here too
    if copy == JOIN:
        return join(torch, device, options.peers, await_start())
    peer = peer_of(options.peers, device, step) if copy == TO_PEER else ""
    if copy in (WITHIN, TO_DEVICE):
        return measure_copy(torch, copy, device, peer, options, await_start)
    if await_start() == SKIP:  # nothing is made ready while others measure
        return {"skipped": True, "error": f"not copied: {peer} failed, or gave no answer, before"}
    return measure_copy(torch, copy, device, peer, options, lambda: "go")


def blank_entry(task: Task) -> dict[str, Any]:
    """An entry with nothing measured."""
    return gpu_workers.blank_entry(copy=task[0], peer=None, peer_device=None, **dict.fromkeys(FIGURES))


# ---- the parent -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turns(gpu_workers.Lead):
    """Leads workers through copies; a device that failed or hung at one is not copied to again."""

    tasks: Sequence[Task] = ()

    def conduct(self, workers: Sequence[gpu_workers.Worker]) -> None:
        """Copies within a GPU, and contexts on peers, on all at once; each other copy in a turn of its own."""
        finish = time.monotonic() + self.deadline
        devices = [worker.device for worker in workers]
        hung: set[str] = set()

        def gather(some: Sequence[gpu_workers.Worker], done: Callable[..., bool], most: float, doing: str) -> None:
            gpu_workers.gather(some, done, max(0.0, min(most, finish - time.monotonic())), doing)

        def bad() -> set[str]:
            return hung | {worker.device for worker in workers if worker.lost or failed(worker)}

        for number, (copy, step) in enumerate(self.tasks if workers else ()):
            words = self.words[number]
            gather(workers, lambda worker, n=number: worker.is_ready(n), READY_SECONDS, f"getting ready for {words}")
            at_once = copy in (WITHIN, JOIN)
            for some in [list(workers)] if at_once else [[worker] for worker in workers]:
                for worker in some:
                    peer = peer_of(devices, worker.device, step) if copy == TO_PEER else ""
                    word = AVOID + " ".join(sorted(bad())) if copy == JOIN else SKIP if peer in bad() else "go"
                    if not worker.lost and not worker.has_answered(number):
                        worker.go(word)
                gone = some[0].lost
                most = READY_SECONDS if copy == JOIN else TURN_SECONDS
                gather(some, lambda worker, n=number: worker.has_answered(n), most, f"measuring {words}")
                if copy == TO_PEER and some[0].lost != gone:  # either end may be the sick one
                    hung.add(peer_of(devices, some[0].device, step))


def failed(worker: gpu_workers.Worker) -> bool:
    """Whether its first task, the copy within the device, ended in an error."""
    return bool(worker.entries.get(0, {}).get("error"))


def tasks_of(devices: Sequence[str]) -> list[Task]:
    """What each device does, in order."""
    alone: list[Task] = [(WITHIN, 0), (TO_DEVICE, 0), (TO_HOST, 0)]
    if len(devices) < 2:
        return alone
    return [*alone, (JOIN, 0), *((TO_PEER, step) for step in range(1, len(devices)))]


def in_words(task: Task) -> str:
    """A task as it stands in a sentence."""
    copy, step = task
    return {
        WITHIN: "the copy within the device",
        JOIN: "contexts on the other devices",
        TO_PEER: f"the copy to the device {step} further on",
    }.get(copy, f"the copy {copy.replace('-', ' ')}")


def name_peers(document: dict[str, Any], tasks: Sequence[Task]) -> None:
    """Take contexts out of the results, and tell of each copy to a peer which one it is."""
    bus_ids = {gpu["device"]: gpu["bus_id"] for gpu in document["devices"]}
    named = []
    for entry, (copy, step) in zip(document["results"], list(tasks) * len(bus_ids)):  # noqa: B905 - not in 3.9
        if copy == TO_PEER:
            entry["peer_device"] = peer_of(list(bus_ids), entry["device"], step)
            entry["peer"] = bus_ids[entry["peer_device"]]
        named += [entry] if copy != JOIN else []
    document["results"] = named


def new_document() -> dict[str, Any]:
    """The document before anything is known."""
    return gpu_workers.new_document("copies", contents="mixed bits, made by source and target")


def probe(options: argparse.Namespace, script: str = __file__) -> dict[str, Any]:
    """Measure all devices and give the document; `script` is what the workers run."""
    document, command = new_document(), gpu_workers.worker_command(script)
    devices = gpu_workers.devices_wanted(document, command, options.device, options.deadline / 4)
    tasks = tasks_of(list(devices))
    command += [f"--peers={','.join(devices)}"] if devices else []
    command += [f"--{name}={value}" for name in ("seconds", "mib") if (value := getattr(options, name)) is not None]
    Turns(
        words=[in_words(task) for task in tasks],
        blanks=[blank_entry(task) for task in tasks],
        deadline=options.deadline - document["seconds"],
        least=0.0,
        turns=True,
        tasks=tasks,
    ).run(document, command, devices)
    name_peers(document, tasks)
    return document


# ---- the command line -------------------------------------------------------------------------


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options; exits 2 where they make no sense."""
    parser = gpu_workers.new_parser("Measures copies within, to and from each GPU, and between GPUs.", 120.0)
    parser.add_argument("--seconds", type=float, help="for each copy (default: 1 within a GPU, 0.6 host, 0.2 peers)")
    parser.add_argument("--mib", type=int, help="of each buffer (default: 4096 within a GPU, 256 host, 1024 peers)")
    parser.add_argument("--peers", type=gpu_workers.listed(r"cuda:\d+|cpu"), default=[], help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if "all" in options.device and len(options.device) > 1:
        parser.error("--device all stands alone")
    if "cpu" in options.device and len(options.device) > 1:
        parser.error("--device cpu stands alone")
    if not (options.deadline > 0 and (options.seconds is None or options.seconds > 0)) or options.deadline == math.inf:
        parser.error("--seconds and --deadline must be above 0")
    if options.mib is not None and options.mib < 1:
        parser.error("--mib must be 1 or more")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run as a worker or as the parent; the exit status."""
    options = parse_options(argv)
    if not options.worker:
        return gpu_workers.print_document(new_document(), lambda: probe(options))
    if options.device == ["all"]:
        return gpu_workers.list_devices()
    tasks = tasks_of(options.peers)
    return gpu_workers.serve(
        options.device[0],
        [blank_entry(task) for task in tasks],
        lambda torch, number, await_start: measure(torch, tasks[number], options, await_start),
    )


if __name__ == "__main__":
    sys.exit(main())
