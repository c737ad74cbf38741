"""Whether each GPU gives back what was written to its memory, and how much of it was tried, from the patterns probe."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from nodeready.evidence.probe import Probe
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.probe_document import results as results_of
from nodeready.facts.probe_document import shown, text
from nodeready.reading import Known, Reading, Unknown, first_unknown

# what has to be written and read back, upright and inverted, before memory is called right
NEEDED = ("own-address", "walking-bit", "alternating", "zeros", "random")
NAMED = 3  # wrong words that a finding tells of one by one
_BITS = re.compile(r"0x[0-9a-f]{16}")


def patterns_probe(python: str, script: str, *, deadline: float = 140.0) -> Probe:
    """The probe under the Python of the environment that runs jobs, on all GPUs at once.

    The script's own deadline is 20 s shorter than the probe's, so that it can still end its workers and
    say which GPU gave no answer. Exit status 3 says that there is no torch, which the document explains.
    """
    argv = (python, script, "--device", "all", "--deadline", f"{deadline - 20:g}")
    serves = ("gpu.memory-patterns",)
    return Probe("patterns", argv, deadline=deadline, family="load", tier="acceptance", answers=(0, 3), serves=serves)


@dataclass(frozen=True)
class Sizes:
    """Bytes: all of the memory as CUDA counts it, free before, gone over, still free then, and a cap if one was set."""

    total: int
    free: int
    covered: int
    left: int
    cap: int | None


@dataclass(frozen=True)
class Result:
    """One GPU.

    `wrong_words` counts 64-bit words that did not come back as they were written, and its note tells where the first
    were: some are known as soon as one was seen, none only after all patterns went over all blocks without
    an error. `sizes` is unknown where an error came between. `corrected` and `uncorrected` count the ECC errors that
    came meanwhile. `uuid` is the GPU's by the entry. `error` is empty or the probe's sentence.
    """

    wrong_words: Reading[int]
    sizes: Reading[Sizes]
    corrected: Reading[int]
    uncorrected: Reading[int]
    uuid: Reading[str]
    error: str = ""


@dataclass(frozen=True)
class Patterns:
    """The probe's document; a key of `results` is a bus id, else a name like cuda:3.

    `unplaced` counts entries that name no GPU, `unplaced_wrong` those that tell of wrong words and not by bus id on
    which GPU.
    """

    torch: Reading[str]
    results: dict[str, Result] = field(default_factory=dict)
    unplaced: int = 0
    unplaced_wrong: int = 0

    def result(self, device: str) -> Result:
        """The result of one GPU; where there is none all its readings are unknown, and say what is known of why."""
        if device in self.results:
            return self.results[device]
        reason = f"the patterns probe has no result of {device}"
        for name, result in self.results.items():
            if name.startswith("cuda:") and result.error:
                reason += f"; {name}, whose bus id is unknown: {result.error}"
        if self.unplaced:
            reason += f"; {self.unplaced} of its entries name no device"
        return _nothing(reason)


def parse(data: bytes) -> Patterns | Unknown:
    """The results of a whole document; unknown where it is cut, not the probe's, or says only an error.

    >>> found = parse(b'''{"probe": "patterns", "schema": 1, "torch": "2.7.0+cu126", "error": null, "results": [
    ... {"device": "cuda:0", "uuid": "GPU-1", "bus_id": "0000:1B:00.0", "total_bytes": 85045477376,
    ... "free_bytes": 84480000000, "cap_bytes": null, "covered_bytes": 82141249536, "left_bytes": 1800000000,
    ... "patterns": ["own-address", "walking-bit", "alternating", "zeros", "random"], "rounds": 1, "passes": 5,
    ... "checked_bytes": 821412495360, "wrong_words": 0, "wrong": [], "verified": true, "ecc": {
    ... "before": {"corrected": 2, "uncorrected": 0}, "after": {"corrected": 5, "uncorrected": 0}}, "error": null}]}''')
    >>> one = found.result("0000:1b:00.0")
    >>> one.wrong_words.value, one.sizes.value.covered, one.corrected.value, one.uncorrected.value
    (0, 82141249536, 3, 0)
    >>> parse(b'{"probe": "patterns", "schema": 1, "results": [], "error": "this Python has no torch"}').reason
    'this Python has no torch'
    """
    read = results_of(data, "patterns", 1)
    if isinstance(read, Unknown):
        return read
    found, entries = read
    results: dict[str, Result] = {}
    unplaced = unplaced_wrong = 0
    for entry in entries:
        key = _key(entry)
        if (key is None or normal_bus_id(key) != key) and isinstance(entry, dict):
            unplaced_wrong += _tells_of_wrong_words(entry)
        if key is None:
            unplaced += 1
        elif key in results:
            wrong = [r for r in (results[key], _result(entry)) if _is_wrong(r.wrong_words)]
            results[key] = wrong[0] if wrong else _nothing(f"the patterns probe has two entries for {key}")
        else:
            results[key] = _result(entry)
    return Patterns(text(found.get("torch"), "torch version"), results, unplaced, unplaced_wrong)


def _key(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return None
    device, bus_id = entry.get("device"), entry.get("bus_id")
    placed = normal_bus_id(bus_id) if isinstance(bus_id, str) else None
    return placed or (device if isinstance(device, str) and device else None)


def _is_wrong(words: Reading[int]) -> bool:
    return isinstance(words, Known) and words.value > 0


def _tells_of_wrong_words(entry: dict[str, Any]) -> bool:
    return entry.get("verified") is False or _is_wrong(_count(entry.get("wrong_words"), "wrong_words"))


def _nothing(reason: str) -> Result:
    gap = Unknown(reason)
    return Result(gap, gap, gap, gap, gap)


def _result(entry: dict[str, Any]) -> Result:
    said = entry.get("error")
    error = "" if said is None else (said.strip() if isinstance(said, str) else "")
    if said is not None and not error:
        error = f"the entry's error reads {shown(said)}"
    sizes: Reading[Sizes] = Unknown(error) if error else _sizes(entry)
    return Result(
        wrong_words=_wrong_words(entry, error, sizes),
        sizes=sizes,
        corrected=_came(entry.get("ecc"), "corrected"),
        uncorrected=_came(entry.get("ecc"), "uncorrected"),
        uuid=text(entry.get("uuid"), "uuid"),
        error=error,
    )


def _count(value: Any, what: str) -> Reading[int]:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return Unknown(f"{what} reads {shown(value)}, which cannot be")
    return Known(value)


def _sizes(entry: dict[str, Any]) -> Reading[Sizes]:
    total, free, covered, left = (
        _count(entry.get(name), name) for name in ("total_bytes", "free_bytes", "covered_bytes", "left_bytes")
    )
    cap = entry.get("cap_bytes", "nothing")
    limit: Reading[int] = Known(0) if cap is None else _count(cap, "cap_bytes")
    gap = first_unknown(total, free, covered, left, limit)
    if gap is not None:
        return gap
    if not total.value or max(free.value, covered.value, left.value) > total.value:
        sizes = ", ".join(f"{shown(r.value)}" for r in (total, free, covered, left))
        return Unknown(f"of total, free, covered and left bytes ({sizes}) one is above the total")
    return Known(Sizes(total.value, free.value, covered.value, left.value, None if cap is None else limit.value))


def _wrong_words(entry: dict[str, Any], error: str, sizes: Reading[Sizes]) -> Reading[int]:
    count, verified = _count(entry.get("wrong_words"), "wrong_words"), entry.get("verified")
    if _is_wrong(count) and verified is False:  # whatever came after it
        return Known(count.value, note=_places(entry.get("wrong")))
    if error:
        return Unknown(error)
    if isinstance(count, Unknown):
        return count
    if verified is not True or count.value:
        return Unknown(f"wrong_words reads {count.value}, verified reads {shown(verified)}")
    if isinstance(sizes, Unknown):
        return sizes
    return _whole(entry, sizes.value.covered)


def _whole(entry: dict[str, Any], covered: int) -> Reading[int]:
    """No wrong word, if all patterns went over all that was taken; unknown otherwise."""
    tried, rounds = entry.get("patterns"), _count(entry.get("rounds"), "rounds")
    checked = _count(entry.get("checked_bytes"), "checked_bytes")
    gap = first_unknown(rounds, checked)
    if gap is not None:
        return gap
    if not isinstance(tried, list) or any(name not in tried for name in NEEDED):
        return Unknown(f"patterns reads {shown(tried)}: not all of {', '.join(NEEDED)} were tried")
    least = 2 * len(NEEDED) * rounds.value * covered  # each upright and inverted
    if not least or checked.value < least:
        reason = f"{checked.value} bytes were compared in {rounds.value} rounds over {covered} bytes"
        return Unknown(f"{reason}: not all of them by all patterns")
    return Known(0, note=f"{rounds.value} rounds of {len(NEEDED)} patterns")


def _places(wrong: Any) -> str:
    """Where the first wrong words are, and which of their bits are wrong."""
    told = []
    for word in wrong if isinstance(wrong, list) else []:
        at, bits, pattern = (
            word.get(k) if isinstance(word, dict) else None for k in ("offset_bytes", "xor", "pattern")
        )
        if isinstance(at, int) and isinstance(bits, str) and _BITS.fullmatch(bits):
            told.append(f"at byte {at:#x} of the memory taken, bits {bits}, pattern {shown(pattern)}")
    return "; ".join(told[:NAMED])


def _came(ecc: Any, kind: str) -> Reading[int]:
    """ECC errors that came between the two looks at the counters."""
    before, after = (ecc.get(name) if isinstance(ecc, dict) else None for name in ("before", "after"))
    counts = [at.get(kind) if isinstance(at, dict) else None for at in (before, after)]
    if None in counts:
        return Unknown(f"the counter of {kind} errors was not read before and after")
    first, last = (_count(count, f"{kind} errors") for count in counts)
    gap = first_unknown(first, last)
    if gap is not None:
        return gap
    if last.value < first.value:
        return Unknown(f"the counter of {kind} errors fell from {first.value} to {last.value}")
    return Known(last.value - first.value)
