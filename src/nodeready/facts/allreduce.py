"""How fast the GPUs of a node reduce together, whether the sums are right, and by which algorithm."""

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

Key = tuple[str, int]

_ALGORITHM = re.compile(r"[A-Z][A-Z0-9_]{1,30}( and [A-Z][A-Z0-9_]{1,30}){0,6}")
_SETTING = re.compile(r"NCCL_[A-Z0-9_]{1,60}")
# rounds of healthy GPUs differ by a per cent or two: see the matrix products
_UNSTEADY = 0.1
_LEAST, _MOST = 1 << 20, 2_000  # bytes of a message; GB/s that no GPU of this or the next generation reaches


def allreduce_probe(python: str, script: str, *, deadline: float = 140.0) -> Probe:
    """The probe under the Python of the environment that runs jobs, over all GPUs together.

    It takes about half a minute; the script's own deadline is 20 s shorter than the probe's, so that it can
    still end its workers and say what became of each rank. Exit status 3 says that there is no torch.
    """
    argv = (python, script, "--device", "all", "--deadline", f"{deadline - 20:g}")
    serves = ("nvlink.all-reduce",)
    return Probe("allreduce", argv, deadline=deadline, family="load", tier="acceptance", answers=(0, 3), serves=serves)


@dataclass(frozen=True)
class Rank:
    """One rank's part in the all-reduce of one size: which GPU and which size are in the key.

    `busbw` is the median over rounds and `p5` the rate that 95 % of them reach, both unknown where these, `cv`,
    `iterations`, the size of the message or the number of ranks are, or contradict each other. `algorithm` is
    NCCL's word, which rank 0 alone has; `nvls_channels` what it set aside for NVLS; `settings` are the variables
    that NCCL was given. `error` is empty or the probe's sentence.
    """

    busbw: Reading[Quantity]
    p5: Reading[Quantity]
    message: Reading[int]
    ranks: Reading[int]
    verified: Reading[bool]
    version: Reading[str]
    algorithm: Reading[str]
    nvls_channels: Reading[int]
    settings: dict[str, str]
    uuid: Reading[str]
    error: str = ""


@dataclass(frozen=True)
class Allreduce:
    """The probe's document; a key of `ranks` is a bus id (else a name like cuda:3) and the bytes asked for.

    `unplaced` counts entries that do not say of what they are, `unplaced_wrong` those that say a sum was wrong
    and not by bus id on which GPU.
    """

    ranks: dict[Key, Rank]
    unplaced: int = 0
    unplaced_wrong: int = 0

    def of(self, device: str) -> dict[int, Rank]:
        """What one GPU did, by the bytes that were asked for."""
        return {size: rank for (name, size), rank in self.ranks.items() if name == device}


def parse(data: bytes) -> Allreduce | Unknown:
    """The ranks of a whole document; unknown where it is cut, not the probe's, or says only an error.

    >>> found = parse(b'''{"probe": "allreduce", "schema": 1, "error": null, "results": [{"device": "cuda:0",
    ... "uuid": "GPU-1", "bus_id": "00000000:1B:00.0", "size": 8589934592, "bytes": 8589934592, "ranks": 8,
    ... "busbw_gb_s": 476.2, "p5_gb_s": 474.9, "cv": 0.002, "iterations": 60, "verified": true, "error": null,
    ... "nccl": {"version": "2.26.2", "algorithm": "NVLS", "nvls_channels": 16, "settings": {}}}]}''')
    >>> rank = found.of("0000:1b:00.0")[8 << 30]
    >>> str(rank.busbw.value), rank.verified.value, rank.algorithm.value
    ('476.2 GB/s', True, 'NVLS')
    """
    read = results_of(data, "allreduce", 1)
    if isinstance(read, Unknown):
        return read
    _, entries = read
    ranks: dict[Key, Rank] = {}
    unplaced = unplaced_wrong = 0
    for entry in entries:
        key = _key(entry)
        if (key is None or normal_bus_id(key[0]) != key[0]) and isinstance(entry, dict):
            unplaced_wrong += entry.get("verified") is False
        if key is None:
            unplaced += 1
        elif key in ranks:
            ranks[key] = _nothing(f"the allreduce probe has two entries for {key[1]} bytes of {key[0]}")
        else:
            ranks[key] = _rank(entry)
    return Allreduce(ranks, unplaced, unplaced_wrong)


def _key(entry: Any) -> Key | None:
    if not isinstance(entry, dict):
        return None
    device, size, bus_id = (entry.get(name) for name in ("device", "size", "bus_id"))
    if not isinstance(device, str) or not device or isinstance(_count(size, "size"), Unknown):
        return None
    return (normal_bus_id(bus_id) if isinstance(bus_id, str) else None) or device, int(size)  # type: ignore[arg-type]


def _count(value: Any, what: str, least: int = 1) -> Reading[int]:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        return Unknown(f"{what} reads {shown(value)}, which cannot be")
    return Known(value)


def _nothing(reason: str, error: str = "", uuid: Reading[str] | None = None) -> Rank:
    gap = Unknown(reason)
    return Rank(gap, gap, gap, gap, gap, gap, gap, gap, {}, gap if uuid is None else uuid, error)


def _rank(entry: dict[str, Any]) -> Rank:
    error, uuid = entry.get("error"), text(entry.get("uuid"), "uuid")
    if error is not None:
        said = error if isinstance(error, str) and error.strip() else f"the entry's error reads {shown(error)}"
        return _nothing(said, error=said, uuid=uuid)
    busbw, p5 = number(entry.get("busbw_gb_s"), "busbw_gb_s"), number(entry.get("p5_gb_s"), "p5_gb_s")
    cv, rounds = number(entry.get("cv"), "cv", zero=True), _count(entry.get("iterations"), "iterations")
    message, ranks = _count(entry.get("bytes"), "bytes", _LEAST), _count(entry.get("ranks"), "ranks", 2)
    gap = first_unknown(busbw, p5, cv, rounds, message, ranks)
    if gap is None:
        gap = _contradiction(busbw.value, p5.value, cv.value)
    if gap is not None:
        busbw, p5 = (rate if isinstance(rate, Unknown) else gap for rate in (busbw, p5))
    nccl = entry.get("nccl")
    told: dict[str, Any] = nccl if isinstance(nccl, dict) else {}
    return Rank(
        busbw=busbw.map(lambda rate: Quantity(rate, "GB/s")),
        p5=p5.map(lambda rate: Quantity(rate, "GB/s")),
        message=message,
        ranks=ranks,
        verified=_verified(entry.get("verified")),
        version=text(told.get("version"), "NCCL's version"),
        algorithm=_algorithm(told.get("algorithm")),
        nvls_channels=_count(told.get("nvls_channels"), "nvls_channels", 0),
        settings=_settings(told.get("settings")),
        uuid=uuid,
    )


def _contradiction(median: float, p5: float, cv: float) -> Unknown | None:
    """Why three known figures are no rate: one that cannot be, a slow end above it, or rounds that differ too much."""
    if median > _MOST:
        return Unknown(f"busbw_gb_s reads {median:.6g}, which cannot be")
    if p5 > median:
        return Unknown(f"p5 ({p5:.6g}) is above the median ({median:.6g})")
    return Unknown(f"the rate was not steady (cv {cv:.3g})") if cv >= _UNSTEADY else None


def _verified(value: Any) -> Reading[bool]:
    if not isinstance(value, bool):
        return Unknown(f"verified reads {shown(value)}: the sums were not checked")
    return Known(value)


def _algorithm(value: Any) -> Reading[str]:
    if not isinstance(value, str) or not _ALGORITHM.fullmatch(value):
        return Unknown("NCCL's log names no algorithm" if value is None else f"algorithm reads {shown(value)}")
    return Known(value)


def _settings(value: Any) -> dict[str, str]:
    """Words for a note: what is no variable of NCCL's is left out, what is long is cut."""
    pairs = value.items() if isinstance(value, dict) else ()
    return {name: each[:60] for name, each in pairs if _SETTING.fullmatch(name) and isinstance(each, str)}
