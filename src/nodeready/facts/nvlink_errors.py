"""`nvidia-smi nvlink -e`, asked twice: the error counters of every NVLink, which on Hopper are those of its data layer.

The older counters of NVML (CRC by field value) answer 0 on Hopper whatever happens, and are not asked.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import Probe, command
from nodeready.facts import uptime
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

_NAME = "nvidia-smi_nvlink_-e"


def _probe(name: str, after: str = "") -> Probe:
    # two samples are two commands, also for who answers by the command's text
    script = f"{uptime.SCRIPT}{': a second time; ' if after else ''}exec nvidia-smi nvlink -e"
    return command("sh", "-c", script, name=name, after=after, family="nvidia", serves=("nvlink.errors",))


NVLINK_ERRORS = _probe(_NAME)
NVLINK_ERRORS_LATER = _probe(f"{_NAME}-later", after=_NAME)

_GPU = re.compile(r"GPU ([0-9]{1,3}): .+?(?: \(UUID: ([^()\s]+)\))?")
_COUNTER = re.compile(r"Link ([0-9]{1,3}): ([A-Za-z][A-Za-z ]{1,40}): (\S{1,40})")
_INACTIVE = re.compile(r"Link ([0-9]{1,3}): <?inactive>?", re.IGNORECASE)
_ALL_INACTIVE = "all links are inactive"
_KINDS = {
    "replay errors": "replay",
    "recovery errors": "recovery",
    "crc errors": "crc",
    "crc flit errors": "crc",
}
_COUNT = re.compile(r"[0-9]{1,18}")


class Counters(NamedTuple):
    """What one link has counted since the driver was loaded."""

    replay: int
    recovery: int
    crc: int


class GpuCounters(NamedTuple):
    """One GPU's counters by link; a link that is inactive has none. Links could be missing at the end of a cut list."""

    uuid: Reading[str]
    links: Reading[dict[int, Counters]]


class NvLinkErrors(NamedTuple):
    """One sample: when it was taken (seconds since boot), and the GPUs by nvidia-smi's index."""

    uptime: Reading[float]
    gpus: dict[int, GpuCounters]


def parse(data: bytes) -> NvLinkErrors | Unknown:
    """Every GPU's counters; unknown where a line is strange, a counter is missing, or the output stops in a line.

    >>> sample = parse(b'''uptime:93841.27
    ... GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691)
    ...          Link 0: Replay Errors: 0
    ...          Link 0: Recovery Errors: 2
    ...          Link 0: CRC Errors: 14
    ... ''')
    >>> sample.uptime.value, sample.gpus[0].links.value
    (93841.27, {0: Counters(replay=0, recovery=2, crc=14)})
    """
    if not data.strip():
        return Unknown("nvidia-smi nvlink -e printed nothing")
    text = [line.strip() for line in lines(data) if line.strip()]
    blocks: list[tuple[int, str | None, list[str]]] = []
    for line in text:
        match = _GPU.fullmatch(line)
        if match:
            blocks.append((int(match[1]), match[2], []))
        elif blocks:
            blocks[-1][2].append(line)
    if not blocks:
        return Unknown(f"no GPU is listed: {text[-1]!r:.200}" if text else "the output is cut in its first line")
    gpus: dict[int, GpuCounters] = {}
    for number, (index, uuid, body) in enumerate(blocks):
        links = _links(body)
        if is_cut(data) and number == len(blocks) - 1:
            links = Unknown("the output stops in the middle of a line: the last list may be cut")
        if index in gpus:
            links = Unknown(f"GPU {index} is listed twice")
        named: Reading[str] = Known(uuid) if uuid else Unknown("the output has no UUID of this GPU")
        gpus[index] = GpuCounters(named, links)
    return NvLinkErrors(uptime.read(text), gpus)


def _links(body: list[str]) -> Reading[dict[int, Counters]]:
    if not body:
        return Unknown("no link is listed")
    if len(body) == 1 and _ALL_INACTIVE in body[0].lower():
        return Known({}, note=body[0][:200])
    said: dict[int, dict[str, int]] = {}
    for line in body:
        if _INACTIVE.fullmatch(line):
            continue
        match = _COUNTER.fullmatch(line)
        if match is None:
            return Unknown(f"a line is not understood: {line!r:.200}")
        kind = _KINDS.get(match[2].lower())
        counted = said.setdefault(int(match[1]), {})
        if kind is None:
            continue
        if kind in counted or not _COUNT.fullmatch(match[3]):
            return Unknown(f"link {match[1]}: {match[2]} reads {match[3]!r:.40}, or is given twice")
        counted[kind] = int(match[3])
    short = next((link for link, counted in said.items() if len(counted) < 3), None)
    if short is not None:
        return Unknown(f"link {short} has not all three counters: the output was cut, or is of another driver")
    return Known({link: Counters(**counted) for link, counted in said.items()})
