"""How fast each GPU multiplies matrices, and whether the product is right, from the matmul probe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from nodeready.evidence.probe import Probe
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.probe_document import number, shown, text
from nodeready.facts.probe_document import results as results_of
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, first_unknown

Key = tuple[str, str, int]

_VERSION = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){1,3}")
_DIGEST = re.compile(r"[0-9a-f]{16}")
_BIT = re.compile(r"0x[0-9a-f]{1,16}")
# batches of a healthy GPU differ by a few per cent of their mean, and a floor stands about a sixth below its rate:
# where they differ by a tenth, a twentieth of them may lie beyond that floor whichever side the median is on
_UNSTEADY = 0.1
_ALSO = ("compute.repeatable", "consistency.products", "consistency.matmul-rate", "power.draw")


def matmul_probe(python: str, script: str, *, deadline: float = 300.0) -> Probe:
    """The probe under the Python of the environment that runs jobs, on all GPUs at once.

    Each of the seven products takes about 10 s; the script's own deadline is 60 s shorter than the
    probe's, so that it can still end its workers and say which GPU gave no answer. Exit status 3
    says that there is no torch, which the document explains.
    """
    argv = (python, script, "--device", "all", "--deadline", f"{deadline - 60:g}")
    serves = (*(f"compute.matmul-{kind}" for kind in ("fp16", "bf16", "fp8", "tf32", "fp32", "fp64")), *_ALSO)
    return Probe("matmul", argv, deadline=deadline, family="load", tier="acceptance", answers=(0, 3), serves=serves)


@dataclass(frozen=True)
class Result:
    """One product on one GPU: its dtype and size are in the key.

    `tflops` is the median over batches and `p5` the rate that 95 % of them reach, `cv` their standard
    deviation over their mean: both rates are unknown where any of these or `iterations` is, where they
    contradict each other, or where the rate never got steady. `repeatable` says that the product came out
    the same to the last bit each time, and `digest` is a number of those bits. `clock` and `power` are
    medians meanwhile, `margin` is the least T.Limit, `events` the share of samples in which each clock
    event reason was active, by NVML's bit. `uuid` is the GPU's by the entry. `error` is empty or the
    probe's sentence.
    """

    tflops: Reading[Quantity]
    p5: Reading[Quantity]
    cv: Reading[float]
    verified: Reading[bool]
    repeatable: Reading[bool]
    digest: Reading[str]
    iterations: Reading[int]
    clock: Reading[Quantity]
    power: Reading[Quantity]
    margin: Reading[Quantity]
    events: Reading[dict[int, float]]
    uuid: Reading[str]
    error: str = ""


@dataclass(frozen=True)
class Matmul:
    """The probe's document; a key of `results` is a bus id (else a name like cuda:3), a dtype and a size.

    `unplaced` counts entries that do not say what they measured, `unplaced_wrong` those that say a product
    was wrong and not by bus id on which GPU.
    """

    cublas: Reading[str]
    torch: Reading[str]
    results: dict[Key, Result]
    unplaced: int = 0
    unplaced_wrong: int = 0

    def result(self, device: str, dtype: str, size: int) -> Result:
        """One result; where there is none all its readings are unknown, and say what is known of why.

        A GPU that never answered may have no bus id: the errors of such entries are in the reason.
        """
        if (device, dtype, size) in self.results:
            return self.results[device, dtype, size]
        reason = f"the matmul probe has no {dtype} {size} of {device}"
        for (name, kind, n), result in self.results.items():
            if name.startswith("cuda:") and (kind, n) == (dtype, size) and result.error:
                reason += f"; {name}, whose bus id is unknown: {result.error}"
        if self.unplaced:
            reason += f"; {self.unplaced} of its entries name no device, dtype or size"
        return _nothing(reason)


def parse(data: bytes) -> Matmul | Unknown:
    """The results of a whole document; unknown where it is cut, not the probe's, or says only an error.

    >>> found = parse(b'''{"probe": "matmul", "schema": 1, "torch": "2.7.0+cu126", "cublas": "12.6.4", "error": null,
    ... "inputs": "normal, seeded", "results": [{"device": "cuda:0", "uuid": "GPU-1", "bus_id": "00000000:1B:00.0",
    ... "dtype": "float16", "size": 8192, "tflops": 736.2, "p5": 728.9, "cv": 0.004, "iterations": 3360,
    ... "verified": true, "clocks": null, "events": null, "error": null}]}''')
    >>> result = found.result("0000:1b:00.0", "float16", 8192)
    >>> str(result.tflops.value), result.verified.value, found.cublas.value
    ('736.2 TFLOPS', True, '12.6.4')
    >>> parse(b'{"probe": "matmul", "schema": 1, "results": [], "error": "this Python has no torch"}').reason
    'this Python has no torch'
    """
    read = results_of(data, "matmul", 1)
    if isinstance(read, Unknown):
        return read
    found, entries = read
    inputs = _inputs(found.get("inputs"))
    results: dict[Key, Result] = {}
    unplaced = unplaced_wrong = 0
    for entry in entries:
        key = _key(entry)
        if (key is None or normal_bus_id(key[0]) != key[0]) and isinstance(entry, dict):
            unplaced_wrong += entry.get("verified") is False
        if key is None:
            unplaced += 1
        elif key in results:
            results[key] = _nothing(f"the matmul probe has two entries for {key[1]} {key[2]} of {key[0]}")
        else:
            results[key] = _result(entry, inputs)
    return Matmul(_cublas(found), text(found.get("torch"), "torch version"), results, unplaced, unplaced_wrong)


def _key(entry: Any) -> Key | None:
    if not isinstance(entry, dict):
        return None
    device, dtype, size, bus_id = (entry.get(name) for name in ("device", "dtype", "size", "bus_id"))
    if not isinstance(device, str) or not isinstance(dtype, str) or not isinstance(size, int):
        return None
    if not device or not dtype or isinstance(size, bool) or size <= 0:
        return None
    return (normal_bus_id(bus_id) if isinstance(bus_id, str) else None) or device, dtype, size


def _inputs(value: Any) -> Reading[str]:
    """What was multiplied: the rate of zeros or of repeated numbers is higher than a job will see."""
    if not isinstance(value, str) or not value.startswith("normal"):
        return Unknown(f"inputs were {shown(value)}, not random")
    return Known(value)


def _nothing(reason: str, error: str = "", uuid: Reading[str] | None = None) -> Result:
    gap = Unknown(reason)
    figures = (gap, gap, gap, gap, gap, gap, gap, gap, gap, gap, gap)  # all but the last two
    return Result(*figures, gap if uuid is None else uuid, error)


def _result(entry: dict[str, Any], inputs: Reading[str]) -> Result:
    error, uuid = entry.get("error"), text(entry.get("uuid"), "uuid")
    if error is not None:
        said = error if isinstance(error, str) and error.strip() else f"the entry's error reads {shown(error)}"
        return _nothing(said, error=said, uuid=uuid)
    tflops, p5 = number(entry.get("tflops"), "tflops"), number(entry.get("p5"), "p5")
    cv, iterations = number(entry.get("cv"), "cv", zero=True), _iterations(entry.get("iterations"))
    gap = first_unknown(tflops, p5, cv, iterations, inputs, _warm(entry))
    if gap is None:
        gap = _contradiction(tflops.value, p5.value, cv.value)
    if gap is not None:
        tflops, p5 = (rate if isinstance(rate, Unknown) else gap for rate in (tflops, p5))
    return Result(
        tflops=tflops.map(lambda rate: Quantity(rate, "TFLOPS")),
        p5=p5.map(lambda rate: Quantity(rate, "TFLOPS")),
        cv=cv,
        verified=_verified(entry.get("verified"), inputs),
        repeatable=_repeatable(entry),
        digest=_digest(entry.get("digest")),
        iterations=iterations,
        clock=_clock(entry.get("clocks")),
        power=_meanwhile(entry, "power_w", "median").map(lambda watts: Quantity(watts, "W")),
        margin=_meanwhile(entry, "margin_c", "min", negative=True).map(lambda degrees: Quantity(degrees, "degC")),
        events=_events(entry.get("events")),
        uuid=uuid,
    )


def _warm(entry: dict[str, Any]) -> Reading[bool]:
    """Whether the warm-up ended with a rate that had settled; a document that does not say so is taken at its cv."""
    steady = entry.get("steady", True)
    if not isinstance(steady, bool):
        return Unknown(f"steady reads {shown(steady)}")
    return Known(steady) if steady else Unknown("the rate was not steady: it still moved when the warm-up ended")


def _contradiction(median: float, p5: float, cv: float) -> Unknown | None:
    """Why three known figures are no rate: a slow end above the median, or batches that differ too much."""
    if p5 > median:
        return Unknown(f"p5 ({p5:.6g}) is above the median ({median:.6g})")
    if cv >= _UNSTEADY:
        return Unknown(f"the rate was not steady (cv {cv:.3g})")
    return None


def _verified(value: Any, inputs: Reading[str]) -> Reading[bool]:
    if not isinstance(value, bool):
        return Unknown(f"verified reads {shown(value)}: the product was not checked")
    if value and isinstance(inputs, Unknown):  # zeros multiply right on any GPU
        return inputs
    return Known(value)


def _repeatable(entry: dict[str, Any]) -> Reading[bool]:
    """One product proves nothing of the next: it has to have been made again at least once."""
    value, repeats = entry.get("repeatable"), entry.get("repeats")
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        return Unknown(f"repeats reads {shown(repeats)}: the product was not made again")
    return Known(value) if isinstance(value, bool) else Unknown(f"repeatable reads {shown(value)}")


def _digest(value: Any) -> Reading[str]:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        return Unknown(f"digest reads {shown(value)}, no 16 hexadecimal digits")
    return Known(value)


def _meanwhile(entry: dict[str, Any], name: str, which: str, *, negative: bool = False) -> Reading[float]:
    """What was sampled while the products ran."""
    events = entry.get("events")
    figures = events.get(name) if isinstance(events, dict) else None
    if not isinstance(figures, dict):
        return Unknown(f"{name} was not read during the run")
    return number(figures.get(which), name, negative=negative)


def _iterations(value: Any) -> Reading[int]:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return Unknown(f"iterations reads {shown(value)}, which cannot be")
    return Known(value)


def _clock(clocks: Any) -> Reading[Quantity]:
    figures = clocks.get("sm_mhz") if isinstance(clocks, dict) else None
    if not isinstance(figures, dict):
        return Unknown("the SM clock was not read during the run")
    return number(figures.get("median"), "SM clock").map(lambda clock: Quantity(clock, "MHz"))


def _events(events: Any) -> Reading[dict[int, float]]:
    counts = events.get("reasons") if isinstance(events, dict) else None
    total = number(events.get("samples"), "samples") if isinstance(events, dict) else Unknown("")
    if not isinstance(counts, dict) or isinstance(total, Unknown):
        return Unknown("the clock event reasons were not read during the run")
    shares = {}
    for bit, count in counts.items():
        seen = number(count, f"event reason {bit}", zero=True)
        if isinstance(seen, Unknown):
            return seen
        if not _BIT.fullmatch(bit) or seen.value > total.value:
            return Unknown(f"event reasons read {shown(counts)} of {total.value:g} samples, which cannot be")
        shares[int(bit, 16)] = seen.value / total.value
    return Known(shares)


def _cublas(found: dict[str, Any]) -> Reading[str]:
    version = text(found.get("cublas"), "cuBLAS version")
    if isinstance(version, Known) and not _VERSION.fullmatch(version.value):
        return Unknown(f"cuBLAS version reads {shown(version.value)}, no version")
    return version
