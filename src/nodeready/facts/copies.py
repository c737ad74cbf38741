"""How fast each GPU copies within itself, to and from the host and to its peers, from the copies probe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nodeready.evidence.probe import Probe
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.probe_document import number, shown, text
from nodeready.facts.probe_document import results as results_of
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, first_unknown

WITHIN, TO_DEVICE, TO_HOST, TO_PEER = "device", "to-device", "to-host", "to-peer"
# what is copied, and how the rate counts it: memory is read and written, a link is crossed once
_COUNTED = {WITHIN: 2, TO_DEVICE: 1, TO_HOST: 1, TO_PEER: 1}
# GB/s that no GPU of this or the next generation reaches
_MOST = {WITHIN: 20_000, TO_DEVICE: 500, TO_HOST: 500, TO_PEER: 2_000}
_UNSTEADY = 0.2  # batches of a healthy GPU differ by one or two per cent of their mean
_GENERATIONS, _WIDTHS = range(1, 8), (1, 2, 4, 8, 12, 16, 32)

Key = tuple[str, str, str]  # of which GPU, which copy, to which peer


def copies_probe(python: str, script: str, *, deadline: float = 140.0) -> Probe:
    """The probe under the Python of the environment that runs jobs, on all GPUs.

    The script's own deadline is 20 s shorter than the probe's, so that it can still end its workers and
    say which GPU gave no answer. Exit status 3 says that there is no torch, which the document explains.
    """
    argv = (python, script, "--device", "all", "--deadline", f"{deadline - 20:g}")
    serves = ("pcie.bandwidth", "pcie.gpu-link-generation", "gpu.memory-bandwidth", "nvlink.bandwidth")
    return Probe("copies", argv, deadline=deadline, family="load", tier="acceptance", answers=(0, 3), serves=serves)


@dataclass(frozen=True)
class Copy:
    """One copy of one GPU: which is in the key.

    `rate` is the median over batches, in GB/s: unknown where it, `p5`, `cv` or `iterations` is no number, where they
    contradict each other, or where bytes were counted otherwise than known. `generation` and `width` are the
    least that the link was seen at meanwhile. `cpus` are the processors beside the GPU, whose memory was used;
    unknown where it could not be chosen. `skipped` tells that nothing was tried, for what befell the peer before.
    """

    rate: Reading[Quantity]
    verified: Reading[bool]
    generation: Reading[int]
    width: Reading[int]
    cpus: Reading[str]
    peer_access: Reading[bool]
    uuid: Reading[str]
    error: str = ""
    skipped: bool = False


@dataclass(frozen=True)
class Copies:
    """The probe's document; GPUs in the keys of `results` go by bus id, else by a name like cuda:3.

    `unplaced` counts entries that do not say what they measured, `unplaced_wrong` those that say bytes
    arrived wrong and not by bus id on which GPU.
    """

    torch: Reading[str]
    results: dict[Key, Copy] = field(default_factory=dict)
    unplaced: int = 0
    unplaced_wrong: int = 0

    def copy(self, device: str, what: str, peer: str = "") -> Copy:
        """One copy; where there is none all its readings are unknown, and say what is known of why.

        A GPU that never answered may have no bus id: the errors of such entries are in the reason.
        """
        if (device, what, peer) in self.results:
            return self.results[device, what, peer]
        reason = f"the copies probe has no copy {in_words(what, peer)} of {device}"
        for (name, kind, _), result in self.results.items():
            if name.startswith("cuda:") and kind == what and result.error:
                reason += f"; {name}, whose bus id is unknown: {result.error}"
        if self.unplaced:
            reason += f"; {self.unplaced} of its entries name no device, copy or peer"
        return _nothing(reason)

    def measured(self, device: str) -> bool:
        """Whether it has any entry of that GPU."""
        return any(name == device for name, _, _ in self.results)


def in_words(what: str, peer: str = "") -> str:
    """A copy as it stands in a sentence."""
    return {WITHIN: "within the device", TO_PEER: f"to {peer}"}.get(what, what.replace("-", " "))


def parse(data: bytes) -> Copies | Unknown:
    """The results of a whole document; unknown where it is cut, not the probe's, or says only an error.

    >>> found = parse(b'''{"probe": "copies", "schema": 1, "torch": "2.7.0+cu126", "error": null, "results": [
    ... {"device": "cuda:0", "uuid": "GPU-1", "bus_id": "0000:1B:00.0", "copy": "to-device", "peer": null,
    ... "bytes": 268435456, "counted": 1, "gb_s": 55.4, "p5": 55.3, "cv": 0.001, "iterations": 120,
    ... "verified": true, "peer_access": null, "host_cpus": "0-55", "clocks": null, "events": null,
    ... "link": {"generation": {"min": 5.0, "median": 5.0, "max": 5.0}, "width": null}, "error": null}]}''')
    >>> one = found.copy("0000:1b:00.0", "to-device")
    >>> str(one.rate.value), one.verified.value, one.generation.value, one.width.reason
    ('55.4 GB/s', True, 5, 'the width of the link was not read during the copy')
    >>> parse(b'{"probe": "copies", "schema": 1, "results": [], "error": "this Python has no torch"}').reason
    'this Python has no torch'
    """
    read = results_of(data, "copies", 1)
    if isinstance(read, Unknown):
        return read
    found, entries = read
    results: dict[Key, Copy] = {}
    unplaced = unplaced_wrong = 0
    for entry in entries:
        key = _key(entry)
        if (key is None or normal_bus_id(key[0]) != key[0]) and isinstance(entry, dict):
            unplaced_wrong += entry.get("verified") is False
        if key is None:
            unplaced += 1
        elif key in results:
            results[key] = _nothing(f"the copies probe has two entries {in_words(*key[1:])} of {key[0]}")
        else:
            results[key] = _copy(entry, key[1])
    return Copies(text(found.get("torch"), "torch version"), results, unplaced, unplaced_wrong)


def _key(entry: Any) -> Key | None:
    if not isinstance(entry, dict):
        return None
    device, what = (entry.get(name) for name in ("device", "copy"))
    who = _place(entry.get("bus_id"), device)
    if not isinstance(what, str) or what not in _COUNTED or who is None:
        return None
    if what != TO_PEER:
        return who, what, ""
    peer = _place(entry.get("peer"), entry.get("peer_device"))
    return None if peer is None or peer == who else (who, what, peer)


def _place(bus_id: Any, device: Any) -> str | None:
    """A GPU's bus id, else its name in CUDA."""
    placed = normal_bus_id(bus_id) if isinstance(bus_id, str) else None
    return placed or (device if isinstance(device, str) and device else None)


def _nothing(reason: str, uuid: Reading[str] | None = None, error: str = "", *, skipped: bool = False) -> Copy:
    gap = Unknown(reason)
    return Copy(gap, gap, gap, gap, gap, gap, gap if uuid is None else uuid, error, skipped)


def _copy(entry: dict[str, Any], what: str) -> Copy:
    error, uuid = entry.get("error"), text(entry.get("uuid"), "uuid")
    if error is not None:
        said = error.strip() if isinstance(error, str) else ""
        said = said or f"the entry's error reads {shown(error)}"
        return _nothing(said, uuid, said, skipped=entry.get("skipped") is True)
    access = entry.get("peer_access")
    return Copy(
        rate=_rate(entry, what),
        verified=_verified(entry.get("verified")),
        generation=_least(entry.get("link"), "generation", _GENERATIONS),
        width=_least(entry.get("link"), "width", _WIDTHS),
        cpus=text(entry.get("host_cpus"), "host_cpus"),
        peer_access=Known(access) if isinstance(access, bool) else Unknown(f"peer_access reads {shown(access)}"),
        uuid=uuid,
    )


def _rate(entry: dict[str, Any], what: str) -> Reading[Quantity]:
    rate, p5 = number(entry.get("gb_s"), "gb_s"), number(entry.get("p5"), "p5")
    cv, size = number(entry.get("cv"), "cv", zero=True), number(entry.get("bytes"), "bytes")
    times = number(entry.get("iterations"), "iterations")
    gap = first_unknown(rate, p5, cv, size, times)
    if gap is not None:
        return gap
    counted = entry.get("counted")
    if isinstance(counted, bool) or counted != _COUNTED[what]:
        return Unknown(f"counted reads {shown(counted)}: bytes are to be counted {_COUNTED[what]} times")
    if rate.value > _MOST[what]:
        return Unknown(f"gb_s reads {rate.value:.6g}, which cannot be")
    if p5.value > rate.value:
        return Unknown(f"p5 ({p5.value:.6g}) is above the median ({rate.value:.6g})")
    if cv.value >= _UNSTEADY:
        return Unknown(f"the rate was not steady (cv {cv.value:.3g})")
    return Known(Quantity(rate.value, "GB/s"))


def _verified(value: Any) -> Reading[bool]:
    if not isinstance(value, bool):
        return Unknown(f"verified reads {shown(value)}: what arrived was not compared")
    return Known(value)


def _least(link: Any, name: str, known: Any) -> Reading[int]:
    """The least that was sampled; a value that no link has makes it unknown."""
    figures = link.get(name) if isinstance(link, dict) else None
    if not isinstance(figures, dict):
        return Unknown(f"the {name} of the link was not read during the copy")
    least = number(figures.get("min"), f"the link's {name}")
    if isinstance(least, Known) and least.value not in known:
        return Unknown(f"the link's {name} reads {shown(figures.get('min'))}, which cannot be")
    return least.map(int)
