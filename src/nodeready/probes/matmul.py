"""Measures the rate of matrix products, on all GPUs at once, and prints one JSON document.

Stand-alone: needs Python >= 3.9 and torch, nothing of nodeready. The parent starts one process for
each device and never touches CUDA itself. Each worker warms up with the load it will measure, says
so, and keeps the load on until all others are ready: GPUs of one node share its power and air, so a
rate taken alone proves nothing. A worker that doesn't answer is ended, else abandoned, and the
others go on. Exit status 0: measured (an entry may hold an error), 2: usage, 3: no usable torch.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import importlib.util
import json
import math
import os
import platform
import re
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
import uuid
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SEED = 20
# unit roundoff of the numbers held (u) and of the sums kept while multiplying; the sums of tensor
# cores are cut off, not rounded, so float32's eps stands there, not half of it
ROUNDOFF = {
    "float16": (2.0**-11, 2.0**-23),
    "bfloat16": (2.0**-8, 2.0**-23),
    "float32": (2.0**-24, 2.0**-23),
    "float64": (2.0**-53, 2.0**-52),
}
BATCH_SECONDS = 0.05
WINDOW = 5  # batches whose medians are compared to see whether the rate is steady
STEADY = 0.02
TERM_SECONDS, KILL_SECONDS = 1.0, 3.0
NO_TORCH = "this Python has no torch: name one that has with --python"
BROKEN_TORCH = "torch does not load"
GPU_TASKS = [("float16", 8192), ("float16", 16384), ("float32", 8192)]
CPU_TASKS = [("float32", 2048)]  # half precision is emulated on most CPUs

Task = tuple[str, int]  # dtype and size


# ---- the clock and the batches ----------------------------------------------------------------


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


def rate_figures(taken: Sequence[float], batch: int, size: int) -> dict[str, Any]:
    """What the batch times say, in TFLOPS (1e12 floating-point operations a second)."""
    rates = sorted(2 * size**3 * batch / seconds / 1e12 for seconds in taken)
    return {
        "tflops": statistics.median(rates),
        "p5": rates[(len(rates) - 1) // 20],  # the rate that 95 % of the batches reach
        "cv": statistics.pstdev(rates) / statistics.fmean(rates),
        "iterations": batch * len(taken),
        "batch": batch,
        "batch_s": spread(taken),
        "measured_s": math.fsum(taken),
    }


# ---- the product and its check ----------------------------------------------------------------


def seeded_inputs(torch: Any, device: str, dtype: str, size: int) -> tuple[Any, Any]:
    """Two square matrices of standard normal numbers, the same on every run on that kind of device.

    Zeros, ones or repeated numbers switch fewer transistors: power stays lower, the clock higher,
    and the rate reads up to 15 % better than any job will see.
    """
    generator = torch.Generator(device=device).manual_seed(SEED)
    shape, kind = (size, size), getattr(torch, dtype)
    a = torch.randn(shape, generator=generator, device=device, dtype=kind)
    return a, torch.randn(shape, generator=generator, device=device, dtype=kind)


def tolerance(dtype: str, size: int) -> float:
    """The most that one entry of C x - A (B x) may be off, for normal A and B and x of +1 and -1.

    An entry c of C has standard deviation sqrt(n). Rounding it once to the dtype shifts it by
    0.6 u |c| rms at most, and n steps of summing, whose partial sums grow like sqrt(k), by
    0.4 v n rms, v the roundoff of the sums. C x adds n such shifts with random signs, so it is off
    by n (0.6 u + 0.4 v sqrt(n)) rms. Eight times that is passed by a right product with certainty,
    whatever n; a single wrong element moves the entry by its whole error, since |x| is 1, and a
    wrong row by about 1.4 n. A float32 product that was computed in TF32 is off by 0.5 x 2^-11 n.
    """
    held, summed = ROUNDOFF[dtype]
    return 8 * size * (0.6 * held + 0.4 * summed * math.sqrt(size))


def freivalds(torch: Any, a: Any, b: Any, c: Any, vectors: int = 8) -> bool:
    """Whether c is the product of a and b, standard normal, by Freivalds' check in float64.

    C x is compared with A (B x) for random vectors x of +1 and -1, which costs n^2 and not n^3, and
    shares no code path with the product judged. False also where a NaN or an infinity is in c.
    """
    size = int(a.shape[0])
    generator = torch.Generator(device=a.device).manual_seed(SEED + 1)
    x = torch.randint(0, 2, (size, vectors), generator=generator, device=a.device).double() * 2 - 1

    def times(matrix: Any, columns: Any) -> Any:
        # a slab of rows at a time: a whole matrix in float64 may not fit beside the others
        return torch.cat([matrix[i : i + 1024].double() @ columns for i in range(0, size, 1024)])

    off = (times(c, x) - times(a, times(b, x))).abs()
    return bool((off <= tolerance(str(c.dtype).rpartition(".")[2], size)).all())


# ---- clocks, power and event reasons during the run -------------------------------------------

Sample = dict[str, Any]  # sm_mhz, power_w, temperature_c, reasons (a mask of event bits); None where not told


def nvml_reader(bus_id: str) -> Callable[[], Sample] | None:
    """A function that reads the GPU's state through pynvml; None where that is not to be had."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
    except nvml.NVMLError:
        return None
    # renamed with driver 535; a binding knows one name or both
    reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    reasons = reasons or nvml.nvmlDeviceGetCurrentClocksThrottleReasons

    def value(function: Callable[..., int], *arguments: int) -> int | None:
        try:
            return function(handle, *arguments)
        except nvml.NVMLError:
            return None

    def read() -> Sample:
        power = value(nvml.nvmlDeviceGetPowerUsage)
        return {
            "sm_mhz": value(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            "power_w": None if power is None else power / 1000,
            "temperature_c": value(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            "reasons": value(reasons),
        }

    return read


def smi_sample(line: str) -> Sample:
    """One line of nvidia-smi's CSV; what is no number is None.

    >>> smi_sample("1755, 698.32, [N/A], 0x0000000000000004")
    {'sm_mhz': 1755.0, 'power_w': 698.32, 'temperature_c': None, 'reasons': 4}
    """
    sample: Sample = dict.fromkeys(("sm_mhz", "power_w", "temperature_c", "reasons"))
    fields = [field.strip() for field in line.split(",")]
    if len(fields) == 4:
        for name, field in {"sm_mhz": fields[0], "power_w": fields[1], "temperature_c": fields[2]}.items():
            if re.fullmatch(r"\d+(\.\d+)?", field):
                sample[name] = float(field)
        if re.fullmatch(r"0x[0-9a-fA-F]+", fields[3]):
            sample["reasons"] = int(fields[3], 16)
    return sample


def smi_reader(device: str) -> Callable[[], Sample]:
    """A function that reads the GPU's state through nvidia-smi; its samples are empty without one."""
    reasons = ["clocks_event_reasons.active", "clocks_throttle_reasons.active"]  # renamed with driver 535

    def read() -> Sample:
        query = f"--query-gpu=clocks.sm,power.draw,temperature.gpu,{reasons[0]}"
        argv = ["nvidia-smi", query, "--format=csv,noheader,nounits", "-i", device]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return smi_sample("")
        if done.returncode and len(reasons) > 1:
            del reasons[0]
            return read()
        return smi_sample(done.stdout.strip() if done.returncode == 0 else "")

    return read


def spread(values: Sequence[float | None]) -> dict[str, float] | None:
    """Least, middle and greatest of the values that were told."""
    told = [value for value in values if value is not None]
    return {"min": min(told), "median": statistics.median(told), "max": max(told)} if told else None


@contextlib.contextmanager
def sampled(read: Callable[[], Sample] | None, period: float = 0.1) -> Iterator[list[Sample]]:
    """The GPU's state, read in a thread while the block runs.

    The thread is a daemon and is not waited for beyond a second: a driver call may never return.
    """
    samples: list[Sample] = []
    over = threading.Event()

    def run() -> None:
        while read and not over.is_set():
            samples.append(read())
            over.wait(period)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join(1)


def sample_figures(samples: Sequence[Sample]) -> dict[str, Any]:
    """`clocks` and `events` of the entry; null where nothing was told.

    Samples are counted for each reason bit: a brake seen in 3 of 20 samples is neither none nor all.

    >>> sample_figures([smi_sample("1980, 690, 60, 0x4"), smi_sample("1755, 698, 61, 0x24")])["events"]["reasons"]
    {'0x4': 2, '0x20': 1}
    """
    clock, power, temperature = (spread([s[name] for s in samples]) for name in ("sm_mhz", "power_w", "temperature_c"))
    masks = [sample["reasons"] for sample in samples if sample["reasons"] is not None]
    bits = sorted({bit for mask in masks for bit in range(mask.bit_length()) if mask >> bit & 1})
    counts = {hex(1 << bit): sum(mask >> bit & 1 for mask in masks) for bit in bits}
    events = {"samples": len(masks), "reasons": counts, "power_w": power, "temperature_c": temperature}
    return {
        "clocks": {"samples": len(samples), "sm_mhz": clock} if clock else None,
        "events": events if masks or power or temperature else None,
    }


# ---- who the devices are ----------------------------------------------------------------------


def cuda_devices(driver: Any = None) -> list[dict[str, str]]:
    """The uuid, bus_id and name of each GPU in CUDA's own order; no context is made on any.

    The driver is asked, not torch: torch tells bus ids only since 2.6. Raises `RuntimeError` where
    the driver can't be loaded or answers with an error.
    """
    try:
        driver = driver or ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(f"no CUDA driver here: {error}") from error

    def ask(function: str, *arguments: Any) -> None:
        status = getattr(driver, function)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            driver.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{function}: error {status} ({(text.value or b'no text').decode('utf-8', 'replace')})")

    ask("cuInit", 0)
    count = ctypes.c_int()
    ask("cuDeviceGetCount", ctypes.byref(count))
    devices = []
    for ordinal in range(count.value):
        handle, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        bus_id, name = ctypes.create_string_buffer(32), ctypes.create_string_buffer(256)
        ask("cuDeviceGet", ctypes.byref(handle), ordinal)
        ask("cuDeviceGetUuid_v2", ctypes.byref(raw), handle)
        ask("cuDeviceGetPCIBusId", bus_id, 32, handle)
        ask("cuDeviceGetName", name, 256, handle)
        identity = {"uuid": f"GPU-{uuid.UUID(bytes=bytes(raw))}", "bus_id": bus_id.value.decode("ascii", "replace")}
        devices.append({**identity, "name": name.value.decode("utf-8", "replace")})
    return devices


def identity_of(device: str) -> dict[str, Any]:
    """The uuid, bus_id and name of one device; raises `RuntimeError` where there is no such device."""
    if device.startswith("cuda:"):
        devices, ordinal = cuda_devices(), int(device[5:])
        if ordinal >= len(devices):
            raise RuntimeError(f"there is no {device}: the driver shows {len(devices)} GPUs")
        return {**devices[ordinal]}
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text("utf-8", "replace")) if cpuinfo.exists() else None
    return {"uuid": None, "bus_id": None, "name": model[1] if model else platform.machine()}


def cublas_version() -> str | None:
    """The version that the loaded cuBLAS library gives itself, such as 12.4.5; None without one.

    The file that is mapped into this process is asked: an installed package need not be the one in use.
    """
    maps = Path("/proc/self/maps")
    found = re.search(r"/\S*libcublas\.so\S*", maps.read_text("utf-8", "replace")) if maps.exists() else None
    if found is None:
        return None
    parts = [ctypes.c_int(-1) for _ in range(3)]
    try:
        library = ctypes.CDLL(found[0])
    except OSError:  # replaced on disk since it was loaded
        return None
    for which, part in enumerate(parts):  # cublasGetProperty: 0 major, 1 minor, 2 patch
        library.cublasGetProperty(which, ctypes.byref(part))
    return ".".join(str(part.value) for part in parts) if parts[0].value > 0 else None


# ---- a worker: one device ---------------------------------------------------------------------


def load_torch() -> Any:
    """The torch module, set to plain float32 and to sums in float32."""
    # through importlib, since a type checker would otherwise read all of torch
    torch: Any = importlib.import_module("torch")
    torch.set_float32_matmul_precision("highest")  # no TF32
    names = ("fp16_accumulation", "fp16_reduced_precision_reduction", "bf16_reduced_precision_reduction")
    for name in (f"allow_{name}" for name in names):
        if hasattr(torch.backends.cuda.matmul, name):
            setattr(torch.backends.cuda.matmul, name, False)
    return torch


def measure(torch: Any, task: Task, options: argparse.Namespace, await_start: Callable[..., None]) -> dict[str, Any]:
    """One entry's figures; `await_start` takes batches until all devices are ready.

    Raises what torch raises: `RuntimeError` for errors of the device and for memory that runs out.
    """
    (dtype, size), device = task, options.device[0]
    identity = identity_of(device)
    a, b = seeded_inputs(torch, device, dtype, size)
    c = torch.full_like(a, math.nan)  # a product that writes nothing must not pass
    clock = CudaClock(torch, device) if device.startswith("cuda") else Clock()

    def run() -> None:
        torch.matmul(a, b, out=c)

    batch = fitting_batch(run, clock)
    times = batches(run, clock, batch)
    steady = warm_up(times, options.warmup)
    read = nvml_reader(identity["bus_id"]) or smi_reader(identity["uuid"]) if identity["bus_id"] else None
    await_start(times)
    with sampled(read) as samples:
        taken = collect(times, options.seconds)
    clock.wait(clock.mark())
    figures = {**rate_figures(taken, batch, size), "steady": steady, **sample_figures(samples)}
    return {**identity, **figures, "verified": freivalds(torch, a, b, c)}


def blank_entry(device: str, task: Task) -> dict[str, Any]:
    """An entry with nothing measured."""
    numbers = ("tflops", "p5", "cv", "iterations", "verified", "clocks", "events", "error")
    who = {"device": device, "uuid": None, "bus_id": None, "name": None}
    return {**who, "dtype": task[0], "size": task[1], **dict.fromkeys(numbers)}


def sentence(torch: Any, error: Exception) -> str:
    """An error of torch as one line."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    short = isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in text
    return f"out of memory: {text}" if short else text


def message_pipe() -> Callable[..., None]:
    """A function that says one JSON object a line to the parent.

    Libraries print to standard output: it is kept for messages, and what others print goes to standard error.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**message: Any) -> None:
        print(json.dumps(message, allow_nan=False), file=out, flush=True)

    return say


def keep_on(times: Iterator[float], told: int = 0) -> None:
    """Run batches until the parent says `go` on the descriptor `told`; exits where the parent is gone."""
    while not select.select([told], [], [], 0)[0]:
        next(times)
    if not os.read(told, 64):
        raise SystemExit(1)


def work(options: argparse.Namespace) -> int:
    """The worker: says `about`, then `ready` and `result` for each task, and measures when told `go`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no load without a parent
    say = message_pipe()
    try:
        torch = load_torch()
    except (ImportError, OSError) as error:
        say(about={"error": f"{BROKEN_TORCH}: {error}"[:300]})
        return 3
    version = str(torch.__version__)
    say(about={"torch": version, "cuda": torch.version.cuda, "python": platform.python_version()})
    for number, task in enumerate(options.tasks):

        def await_start(times: Iterator[float], number: int = number) -> None:
            if select.select([0], [], [], 0)[0]:
                os.read(0, 64)  # a `go` that crossed with the error of the task before
            say(ready=number)
            keep_on(times)

        entry = blank_entry(options.device[0], task)
        if options.device != ["cpu"] and not torch.backends.cuda.is_built():
            entry["error"] = f"torch {version} is built without CUDA"
        else:
            try:
                entry.update(measure(torch, task, options, await_start))
            except (RuntimeError, torch.cuda.DeferredCudaCallError) as error:
                entry["error"] = sentence(torch, error)
        say(about={"cublas": cublas_version()})
        say(result=number, entry=entry)
    return 0


def list_devices() -> int:
    """The GPUs for the parent, which must not touch the driver itself: it may never answer."""
    try:
        about: dict[str, Any] = {"devices": cuda_devices()}
    except RuntimeError as error:
        about = {"devices": [], "error": str(error)}
    print(json.dumps({"about": about}), flush=True)
    return 0


# ---- the parent -------------------------------------------------------------------------------


class Worker:
    """A process of one device, as its parent sees it; `lost` says why nothing more will come of it."""

    def __init__(self, argv: Sequence[str], device: str = "", identity: dict[str, str] | None = None) -> None:
        self.device, self.identity = device, identity or {}
        self.about: dict[str, Any] = {}
        self.ready = -1
        self.entries: dict[int, dict[str, Any]] = {}
        self.lost = ""
        self.rest = b""
        environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0)

    def fileno(self) -> int:
        """Where its messages come from, for `select`."""
        assert self.process.stdout is not None  # noqa: S101 - opened as a pipe
        return self.process.stdout.fileno()

    def read(self) -> None:
        """Take in what it said; at the end of its output it is lost."""
        chunk = os.read(self.fileno(), 1 << 16)
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        try:
            for line in lines:
                message = json.loads(line)
                self.about.update(message.get("about", {}))
                self.ready = message.get("ready", self.ready)
                if "result" in message:
                    self.entries[message["result"]] = message["entry"]
        except (ValueError, AttributeError, KeyError, TypeError):
            end([self])
            self.lost = "its process said something that is no message of this probe"
            return
        if not chunk:
            end([self], grace=2)
            self.lost = self.about.get("error") or f"its process ended with {self.ending()} before it answered"

    def has_answered(self, number: int) -> bool:
        """Whether the entry of that task is there."""
        return number in self.entries

    def is_ready(self, number: int) -> bool:
        """Whether it waits to measure that task, or has nothing to measure there."""
        return self.ready >= number or number in self.entries

    def ending(self) -> str:
        """How the process came to its end, in words."""
        status = self.process.poll()
        return f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"

    def go(self) -> None:
        """Tell it to measure."""
        with contextlib.suppress(BrokenPipeError):  # it died: reading its output will say so
            assert self.process.stdin is not None  # noqa: S101 - opened as a pipe
            self.process.stdin.write(b"go\n")


def end(workers: Sequence[Worker], grace: float = 0.0) -> list[Worker]:
    """End the processes: by themselves within `grace` seconds, by TERM, by KILL; those left are abandoned."""
    left = list(workers)
    for number, limit in ((None, grace), (signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        until = time.monotonic() + limit
        for worker in left:
            if number is not None:
                worker.process.send_signal(number)
        while (left := [w for w in left if w.process.poll() is None]) and time.monotonic() < until:
            time.sleep(0.02)
    return left


def gather(workers: Sequence[Worker], arrived: Callable[[Worker], bool], seconds: float, doing: str) -> None:
    """Read messages until all workers arrived or were lost; one that hasn't in time is ended."""
    until = time.monotonic() + seconds
    while waiting := [worker for worker in workers if not worker.lost and not arrived(worker)]:
        left = until - time.monotonic()
        if left > 0:
            for worker in select.select(waiting, [], [], left)[0]:
                worker.read()
            continue
        abandoned = end(waiting)
        for worker in waiting:
            how = "could not be killed and was abandoned" if worker in abandoned else "was ended"
            worker.lost = f"no answer within {seconds:.0f} s while {doing}: its process {how}"


def conduct(workers: Sequence[Worker], tasks: Sequence[Task], deadline: float, least: float) -> None:
    """Lead all workers through the tasks in step; `least` is the seconds that one task takes at its best."""
    finish = time.monotonic() + deadline
    patience = max(deadline / (len(tasks) + 1), 2 * least)

    def left() -> float:
        return max(0.0, min(patience, finish - time.monotonic()))

    for number, (dtype, size) in enumerate(tasks):
        gather(workers, methodcaller("is_ready", number), left(), f"getting ready for {dtype} {size}")
        for worker in workers:
            if not worker.lost and not worker.has_answered(number):
                worker.go()
        gather(workers, methodcaller("has_answered", number), left(), f"measuring {dtype} {size}")


def entry_of(worker: Worker, number: int, task: Task) -> dict[str, Any]:
    """What became of one task on one device."""
    entry = {**blank_entry(worker.device, task), **worker.entries.get(number, {"error": worker.lost})}
    known = {key: entry[key] or value for key, value in worker.identity.items()}
    return {**entry, **known, "device": worker.device}


def new_document() -> dict[str, Any]:
    """The document before anything is known."""
    about = dict.fromkeys(("torch", "cuda", "cublas"))
    head = {"probe": "matmul", "schema": 1, **about, "python": platform.python_version(), "started": time.time()}
    return {**head, "seconds": 0.0, "inputs": "normal, seeded", "devices": [], "results": [], "error": None}


def gpus_present(command: Sequence[str], seconds: float) -> tuple[list[dict[str, str]], str]:
    """The GPUs in CUDA's order, listed by a child; without any, why."""
    lister = Worker([*command, "--device", "all"])
    try:
        gather([lister], lambda worker: bool(worker.about), seconds, "listing the GPUs")
    finally:
        end([lister])
    reason = lister.about.get("error") or lister.lost or "the CUDA driver shows none"
    return lister.about.get("devices", []), f"no GPU to measure: {reason}"


def probe(options: argparse.Namespace, script: str = __file__) -> dict[str, Any]:
    """Measure all devices at once and give the document; `script` is what the workers run."""
    document, begun = new_document(), time.monotonic()
    command = [sys.executable, str(Path(script).absolute()), "--worker"]
    devices, tasks = options.device, options.tasks
    gpus: list[dict[str, str]] = []
    if devices != ["cpu"]:
        gpus, complaint = gpus_present(command, options.deadline / 4)
        if "all" in devices:
            devices = [f"cuda:{ordinal}" for ordinal in range(len(gpus))]
            document["error"] = None if gpus else complaint
    command += [f"--seconds={options.seconds}", f"--warmup={options.warmup}", *(f"--task={t}:{n}" for t, n in tasks)]
    identities = {f"cuda:{ordinal}": gpu for ordinal, gpu in enumerate(gpus)}
    workers: list[Worker] = []
    try:
        for device in devices:
            workers.append(Worker([*command, "--device", device], device, identities.get(device)))  # noqa: PERF401 - ended below
        left = options.deadline - (time.monotonic() - begun)
        conduct(workers, tasks, left, least=options.seconds + 4 * options.warmup)
        end(workers, grace=5)
    finally:
        end(workers)
    for worker in workers:
        document.update({key: value for key, value in worker.about.items() if value is not None})
        document["results"] += [entry_of(worker, number, task) for number, task in enumerate(tasks)]
    keys = ("device", "uuid", "bus_id", "name")
    document["devices"] = [{key: entry[key] for key in keys} for entry in document["results"][:: len(tasks)]]
    document["seconds"] = round(time.monotonic() - begun, 3)
    return document


# ---- the command line -------------------------------------------------------------------------


def listed(pattern: str) -> Callable[[str], list[str]]:
    """An option's type: a comma list whose parts match the pattern."""

    def parts(text: str) -> list[str]:
        found = [part.strip() for part in text.split(",")]
        for part in found:
            if not re.fullmatch(pattern, part):
                raise argparse.ArgumentTypeError(f"{part!r} is none of {pattern.replace('|', ', ')}")
        return list(dict.fromkeys(found))

    return parts


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with `tasks` the pairs of dtype and size; exits 2 where they make no sense."""
    parser = argparse.ArgumentParser(description="Measures the rate of matrix products on all GPUs at once.")
    parser.add_argument("--device", type=listed(r"cuda:\d+|cpu|all"), default=["all"], help="default: all GPUs")
    parser.add_argument("--dtype", type=listed("|".join(ROUNDOFF)), action="extend", help="default: float16,float32")
    parser.add_argument("--size", type=listed(r"[1-9]\d{0,5}"), action="extend", help="default: 8192,16384")
    parser.add_argument("--seconds", type=float, default=5.0, help="to measure each dtype and size (default: 5)")
    parser.add_argument("--warmup", type=float, default=3.0, help="seconds of load before that, at least (default: 3)")
    parser.add_argument("--deadline", type=float, default=300.0, help="seconds for everything (default: 300)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--task", action="append", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if "all" in options.device and len(options.device) > 1:
        parser.error("--device all stands alone")
    usual = CPU_TASKS if options.device == ["cpu"] else GPU_TASKS
    if options.dtype or options.size:
        dtypes = options.dtype or list(dict.fromkeys(dtype for dtype, _ in usual))
        sizes = [int(size) for size in options.size or []]
        pairs = [(d, n) for d in dtypes for n in sizes or [n for t, n in usual if t == d] or [usual[0][1]]]
        usual = list(dict.fromkeys(pairs))
    options.tasks = [(t.partition(":")[0], int(t.partition(":")[2])) for t in options.task] or usual
    needed = len(options.tasks) * (options.seconds + options.warmup)
    if not (options.seconds > 0 and options.warmup > 0 and (options.worker or needed < options.deadline < math.inf)):
        parser.error(f"--seconds and --warmup must be above 0, --deadline above the {needed:g} s that the tasks take")
    return options


def stop(number: int, _: object) -> None:
    """Leave by the way that ends the workers."""
    for either in (signal.SIGTERM, signal.SIGINT):
        signal.signal(either, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Run as a worker or as the parent; the exit status."""
    options = parse_options(argv)
    if options.worker:
        return list_devices() if options.device == ["all"] else work(options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    absent = importlib.util.find_spec("torch") is None
    document = {**new_document(), "error": NO_TORCH} if absent else probe(options)
    print(json.dumps(document))
    return 3 if absent or (document["error"] or "").startswith(BROKEN_TORCH) else 0


if __name__ == "__main__":
    sys.exit(main())
