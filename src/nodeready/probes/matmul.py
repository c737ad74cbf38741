"""Measures the rate of matrix products, on all GPUs at once, and prints one JSON document.

Stand-alone: needs Python >= 3.9, torch and the files beside it, nothing of nodeready. The parent starts one process
for each device and never touches CUDA itself. Each worker warms up with the load it will measure, says
so, and keeps the load on until all others are ready: GPUs of one node share its power and air, so a
rate taken alone proves nothing. Then each product is made again and again and must come out the same to the
last bit. A worker that doesn't answer is ended, else abandoned, and the others go on.
Exit status 0: measured (an entry may hold an error), 2: usage, 3: no usable torch.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes import gpu_clock, gpu_state, gpu_workers
    from nodeready.probes.gpu_devices import identity_of
else:  # a script that stands alone has its siblings beside it
    import gpu_clock
    import gpu_state
    import gpu_workers
    from gpu_devices import identity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SEED = 20
# unit roundoff of the numbers held in the product (u) and of the sums kept while multiplying; the sums of tensor
# cores are cut off, not rounded, so float32's eps stands there, not half of it. TF32 cuts its factors off at ten bits:
# the whole product gets smaller by up to 2^-10. FP8 is summed in about 14 bits, which over thousands of terms takes
# some per cent off, and its product is held as bfloat16.
ROUNDOFF = {
    "float16": (2.0**-11, 2.0**-23),
    "bfloat16": (2.0**-8, 2.0**-23),
    "tf32": (2.0**-9, 2.0**-23),
    "float32": (2.0**-24, 2.0**-23),
    "float64": (2.0**-53, 2.0**-52),
    "float8_e4m3fn": (2.0**-8, 2.0**-11),
}
REPEAT_SECONDS, REPEATS = 1.0, 3  # how long, and how often at least, a product is made again
SLAB = 1024  # rows looked at in one go: a whole matrix of wider numbers may not fit beside the others
# half precision first: its power is what the node's cooling has to take
GPU_TASKS = [
    ("float16", 8192),
    ("float16", 16384),
    ("bfloat16", 8192),
    ("float8_e4m3fn", 8192),
    ("tf32", 8192),
    ("float32", 8192),
    ("float64", 8192),
]
CPU_TASKS = [("float32", 2048)]  # half precision is emulated on most CPUs
FIGURES = ("tflops", "p5", "cv", "iterations", "verified", "repeatable", "clocks", "events", "error")

Task = tuple[str, int]  # dtype and size


def rate_figures(taken: Sequence[float], batch: int, size: int) -> dict[str, Any]:
    """What the batch times say, in TFLOPS (1e12 floating-point operations a second)."""
    rates = sorted(2 * size**3 * batch / seconds / 1e12 for seconds in taken)
    return {
        "tflops": statistics.median(rates),
        "p5": rates[(len(rates) - 1) // 20],  # the rate that 95 % of the batches reach
        "cv": statistics.pstdev(rates) / statistics.fmean(rates),
        "iterations": batch * len(taken),
        "batch": batch,
        "batch_s": gpu_clock.spread(taken),
        "measured_s": math.fsum(taken),
    }


# ---- the product and its checks ---------------------------------------------------------------


def seeded_inputs(torch: Any, device: str, dtype: str, size: int) -> tuple[Any, Any]:
    """Two square matrices of standard normal numbers, the same on every run on that kind of device.

    Zeros, ones or repeated numbers switch fewer transistors: power stays lower, the clock higher,
    and the rate reads up to 15 % better than any job will see.
    """
    generator = torch.Generator(device=device).manual_seed(SEED)
    narrow = dtype == "float8_e4m3fn"  # made wider and rounded: torch draws no numbers of eight bits
    kind = torch.float32 if narrow or dtype == "tf32" else getattr(torch, dtype)
    a, b = (torch.randn((size, size), generator=generator, device=device, dtype=kind) for _ in range(2))
    # FP8 products take the second factor by columns
    return (a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t().contiguous().t()) if narrow else (a, b)


def multiplication(torch: Any, a: Any, b: Any, dtype: str) -> tuple[Any, Callable[[], object]]:
    """The matrix that a product is written to, and the function that makes it there."""
    if dtype != "float8_e4m3fn":
        torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
        c = torch.full_like(a, math.nan)  # a product that writes nothing must not pass
        return c, lambda: torch.matmul(a, b, out=c)
    c = torch.full(tuple(a.shape), math.nan, device=a.device, dtype=torch.bfloat16)
    one = torch.ones((), device=a.device, dtype=torch.float32)
    how = {"scale_a": one, "scale_b": one, "out_dtype": c.dtype, "use_fast_accum": True, "out": c}
    try:
        torch._scaled_mm(a, b, **how)  # noqa: SLF001 - torch has no other name for it
    except (AttributeError, TypeError) as error:
        raise RuntimeError(f"torch {torch.__version__} has no FP8 product of this form: {error}"[:300]) from error
    return c.fill_(math.nan), lambda: torch._scaled_mm(a, b, **how)  # noqa: SLF001


def tolerance(dtype: str, size: int) -> float:
    """The most that one entry of C x - A (B x) may be off, for normal A and B and x of +1 and -1.

    An entry c of C has standard deviation sqrt(n). Rounding it once to the dtype shifts it by
    0.6 u |c| rms at most, and n steps of summing, whose partial sums grow like sqrt(k), by
    0.4 v n rms, v the roundoff of the sums. Factors that are rounded first (TF32) shift it by as much
    as rounding the product would. C x adds n such shifts with random signs, so it is off
    by n (0.6 u + 0.4 v sqrt(n)) rms. Eight times that is passed by a right product with certainty,
    whatever n; a single wrong element moves the entry by its whole error, since |x| is 1, and a
    wrong row by about 1.4 n. A float32 product that was computed in TF32 is off by 0.5 x 2^-11 n.
    """
    held, summed = ROUNDOFF[dtype]
    return 8 * size * (0.6 * held + 0.4 * summed * math.sqrt(size))


def freivalds(torch: Any, a: Any, b: Any, c: Any, dtype: str, vectors: int = 8) -> bool:
    """Whether c is the product of a and b, standard normal, by Freivalds' check in float64.

    C x is compared with A (B x) for random vectors x of +1 and -1, which costs n^2 and not n^3, and
    shares no code path with the product judged. False also where a NaN or an infinity is in c.
    """
    size = int(a.shape[0])
    generator = torch.Generator(device=a.device).manual_seed(SEED + 1)
    x = torch.randint(0, 2, (size, vectors), generator=generator, device=a.device).double() * 2 - 1

    def times(matrix: Any, columns: Any) -> Any:
        return torch.cat([matrix[i : i + SLAB].double() @ columns for i in range(0, size, SLAB)])

    off = (times(c, x) - times(a, times(b, x))).abs()
    return bool((off <= tolerance(dtype, size)).all())


def digest(torch: Any, matrix: Any) -> str:
    """A number of the matrix's bits that every single change moves, as 16 hexadecimal digits.

    The bits of each element times an odd number of its place, summed without regard to overflow: an odd
    number times a difference is never 0. GPUs of one kind that computed the same have the same.
    """
    bits = matrix.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[matrix.element_size()])
    total, columns = 0, int(matrix.shape[1])
    for first in range(0, len(bits), SLAB):
        slab = bits[first : first + SLAB].to(torch.int64).flatten()
        places = torch.arange(first * columns, first * columns + len(slab), device=matrix.device) * 2 + 1
        total += int((slab * places).sum())
    return f"{total & (1 << 64) - 1:016x}"


def repeats(torch: Any, run: Callable[[], object], c: Any, seconds: float = REPEAT_SECONDS) -> dict[str, Any]:
    """Whether the product comes out the same to the last bit each time it is made again.

    cuBLAS gives the same bits on every run on GPUs with the same number of multiprocessors; so a
    difference is the GPU's.
    """
    first, same, times = c.clone(), 0, 0
    begun = time.perf_counter()
    while times < REPEATS or time.perf_counter() - begun < seconds:
        c.fill_(math.nan)
        run()
        times += 1
        same += bool(torch.equal(first, c))
    return {"repeatable": same == times, "repeats": times, "digest": digest(torch, first)}


# ---- a worker: one device ---------------------------------------------------------------------


def measure(torch: Any, task: Task, options: argparse.Namespace, await_start: Callable[..., None]) -> dict[str, Any]:
    """One entry's figures; `await_start` takes batches until all devices are ready.

    Raises what torch raises: `RuntimeError` for errors of the device and for memory that runs out.
    """
    (dtype, size), device = task, options.device[0]
    identity = identity_of(device)
    a, b = seeded_inputs(torch, device, dtype, size)
    c, run = multiplication(torch, a, b, dtype)
    clock = gpu_clock.CudaClock(torch, device) if device.startswith("cuda") else gpu_clock.Clock()
    batch = gpu_clock.fitting_batch(run, clock)
    times = gpu_clock.batches(run, clock, batch)
    steady = gpu_clock.warm_up(times, options.warmup)
    await_start(lambda: next(times))
    with gpu_state.sampled(gpu_state.reader(identity)) as samples:
        taken = gpu_clock.collect(times, options.seconds)
    clock.wait(clock.mark())
    figures = {**rate_figures(taken, batch, size), "steady": steady, **gpu_state.sample_figures(samples)}
    verified = freivalds(torch, a, b, c, dtype)
    return {**identity, **figures, "verified": verified, **repeats(torch, run, c, min(options.seconds, REPEAT_SECONDS))}


def blank_entry(task: Task) -> dict[str, Any]:
    """An entry with nothing measured."""
    return gpu_workers.blank_entry(dtype=task[0], size=task[1], **dict.fromkeys(FIGURES))


# ---- the parent -------------------------------------------------------------------------------


def new_document() -> dict[str, Any]:
    """The document before anything is known."""
    return gpu_workers.new_document("matmul", inputs="normal, seeded")


def probe(options: argparse.Namespace, script: str = __file__) -> dict[str, Any]:
    """Measure all devices at once and give the document; `script` is what the workers run."""
    document, command = new_document(), gpu_workers.worker_command(script)
    devices = gpu_workers.devices_wanted(document, command, options.device, options.deadline / 4)
    command += [f"--seconds={options.seconds}", f"--warmup={options.warmup}"]
    command += [f"--task={dtype}:{size}" for dtype, size in options.tasks]
    gpu_workers.Lead(
        words=[f"{dtype} {size}" for dtype, size in options.tasks],
        blanks=[blank_entry(task) for task in options.tasks],
        deadline=options.deadline - document["seconds"],
        least=options.seconds + 4 * options.warmup,
    ).run(document, command, devices)
    return document


# ---- the command line -------------------------------------------------------------------------


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with `tasks` the pairs of dtype and size; exits 2 where they make no sense."""
    listed = gpu_workers.listed
    parser = gpu_workers.new_parser("Measures the rate of matrix products on all GPUs at once.", 300.0)
    usual = ",".join(dict.fromkeys(dtype for dtype, _ in GPU_TASKS))
    parser.add_argument("--dtype", type=listed("|".join(ROUNDOFF)), action="extend", help=f"default: {usual}")
    parser.add_argument("--size", type=listed(r"[1-9]\d{0,5}"), action="extend", help="default: 8192,16384")
    parser.add_argument("--seconds", type=float, default=5.0, help="to measure each dtype and size (default: 5)")
    parser.add_argument("--warmup", type=float, default=3.0, help="seconds of load before that, at least (default: 3)")
    parser.add_argument("--task", action="append", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if "all" in options.device and len(options.device) > 1:
        parser.error("--device all stands alone")
    options.tasks = [(t.partition(":")[0], int(t.partition(":")[2])) for t in options.task] or _tasks(options)
    needed = len(options.tasks) * (options.seconds + options.warmup)
    if not (options.seconds > 0 and options.warmup > 0 and (options.worker or needed < options.deadline < math.inf)):
        parser.error(f"--seconds and --warmup must be above 0, --deadline above the {needed:g} s that the tasks take")
    return options


def _tasks(options: argparse.Namespace) -> list[Task]:
    usual = CPU_TASKS if options.device == ["cpu"] else GPU_TASKS
    if not (options.dtype or options.size):
        return usual
    dtypes = options.dtype or list(dict.fromkeys(dtype for dtype, _ in usual))
    sizes = [int(size) for size in options.size or []]
    pairs = [(d, n) for d in dtypes for n in sizes or [n for t, n in usual if t == d] or [usual[0][1]]]
    return list(dict.fromkeys(pairs))


def main(argv: Sequence[str] | None = None) -> int:
    """Run as a worker or as the parent; the exit status."""
    options = parse_options(argv)
    if not options.worker:
        return gpu_workers.print_document(new_document(), lambda: probe(options))
    if options.device == ["all"]:
        return gpu_workers.list_devices()
    tasks = options.tasks
    return gpu_workers.serve(
        options.device[0],
        [blank_entry(task) for task in tasks],
        lambda torch, number, await_start: measure(torch, tasks[number], options, await_start),
    )


if __name__ == "__main__":
    sys.exit(main())
