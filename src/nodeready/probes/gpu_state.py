"""Clocks, power, temperature and event reasons of a GPU while something runs on it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes.gpu_clock import spread
    from nodeready.probes.gpu_devices import nvml_of
else:  # a script that stands alone has its siblings beside it
    from gpu_clock import spread
    from gpu_devices import nvml_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# sm_mhz, power_w, temperature_c, margin_c (T.Limit: degrees to the slowdown), the PCIe link's generation and
# width, and reasons (a mask of event bits); None where not told
Sample = dict[str, Any]
NUMBERS = ("sm_mhz", "power_w", "temperature_c", "link_generation", "link_width", "margin_c")
# what nvidia-smi is asked, in the order of NUMBERS, then the reasons; older drivers know neither T.Limit nor the
# reasons' name of today (renamed with 535), and one unknown field spoils the whole answer
_FIELDS = "clocks.sm,power.draw,temperature.gpu,pcie.link.gen.current,pcie.link.width.current"
_QUERIES = (
    f"{_FIELDS},temperature.gpu.tlimit,clocks_event_reasons.active",
    f"{_FIELDS},clocks_event_reasons.active",
    f"{_FIELDS},clocks_throttle_reasons.active",
)


def nvml_reader(bus_id: str) -> Callable[[], Sample] | None:
    """A function that reads the GPU's state through pynvml; None where that is not to be had."""
    nvml, handle = nvml_of(bus_id)
    if nvml is None:
        return None
    # renamed with driver 535; a binding knows one name or both
    reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    reasons = reasons or nvml.nvmlDeviceGetCurrentClocksThrottleReasons

    def value(function: Callable[..., int] | None, *arguments: int) -> int | None:
        try:
            return function(handle, *arguments) if function else None
        except nvml.NVMLError:
            return None

    margin = getattr(nvml, "nvmlDeviceGetMarginTemperature", None)  # not in older bindings

    def read() -> Sample:
        power = value(nvml.nvmlDeviceGetPowerUsage)
        return {
            "sm_mhz": value(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            "power_w": None if power is None else power / 1000,
            "temperature_c": value(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            "link_generation": value(nvml.nvmlDeviceGetCurrPcieLinkGeneration),
            "link_width": value(nvml.nvmlDeviceGetCurrPcieLinkWidth),
            "margin_c": value(margin),
            "reasons": value(reasons),
        }

    return read


def smi_sample(line: str) -> Sample:
    """One line of nvidia-smi's CSV; what is no number is None.

    >>> smi_sample("1755, 698.32, [N/A], 5, 16, 21, 0x0000000000000004")
    ... # doctest: +NORMALIZE_WHITESPACE
    {'sm_mhz': 1755.0, 'power_w': 698.32, 'temperature_c': None, 'link_generation': 5.0, 'link_width': 16.0,
     'margin_c': 21.0, 'reasons': 4}
    """
    sample: Sample = dict.fromkeys((*NUMBERS, "reasons"))
    *fields, reasons = [field.strip() for field in line.split(",")]
    if len(fields) in (len(NUMBERS), len(NUMBERS) - 1):  # without T.Limit, which is the last
        for name, field in zip(NUMBERS, fields):  # noqa: B905 - Python 3.9 knows no strict
            if re.fullmatch(r"-?\d+(\.\d+)?", field):
                sample[name] = float(field)
        if re.fullmatch(r"0x[0-9a-fA-F]+", reasons):
            sample["reasons"] = int(reasons, 16)
    return sample


def smi_reader(device: str) -> Callable[[], Sample]:
    """A function that reads the GPU's state through nvidia-smi; its samples are empty without one."""
    queries = list(_QUERIES)

    def read() -> Sample:
        argv = ["nvidia-smi", f"--query-gpu={queries[0]}", "--format=csv,noheader,nounits", "-i", device]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return smi_sample("")
        if done.returncode and len(queries) > 1:
            del queries[0]
            return read()
        return smi_sample(done.stdout.strip() if done.returncode == 0 else "")

    return read


def reader(identity: dict[str, Any]) -> Callable[[], Sample] | None:
    """How the state of a device is read, through NVML, else nvidia-smi; None of a CPU."""
    if not identity["bus_id"]:
        return None
    return nvml_reader(identity["bus_id"]) or smi_reader(identity["uuid"])


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
    """`clocks`, `events` and `link` of the entry; null where nothing was told.

    Samples are counted for each reason bit: a brake seen in 3 of 20 samples is neither none nor all.

    >>> lines = "1980, 690, 60, 5, 16, 20, 0x4", "1755, 698, 61, 5, 16, 19, 0x24"
    >>> figures = sample_figures([smi_sample(line) for line in lines])
    >>> figures["events"]["reasons"], figures["events"]["margin_c"]["min"]
    ({'0x4': 2, '0x20': 1}, 19.0)
    """
    of = {name: spread([sample[name] for sample in samples]) for name in NUMBERS}
    masks = [sample["reasons"] for sample in samples if sample["reasons"] is not None]
    bits = sorted({bit for mask in masks for bit in range(mask.bit_length()) if mask >> bit & 1})
    counts = {hex(1 << bit): sum(mask >> bit & 1 for mask in masks) for bit in bits}
    told = {name: of[name] for name in ("power_w", "temperature_c", "margin_c")}
    link = {"generation": of["link_generation"], "width": of["link_width"]}
    return {
        "clocks": {"samples": len(samples), "sm_mhz": of["sm_mhz"]} if of["sm_mhz"] else None,
        "events": {"samples": len(masks), "reasons": counts, **told} if masks or any(told.values()) else None,
        "link": link if any(link.values()) else None,
    }
