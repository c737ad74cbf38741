"""How fast each NVMe drive reads past the page cache, and which failed to read, from the drive-read probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodeready.evidence.probe import Probe
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.probe_document import number, shown, text
from nodeready.facts.probe_document import results as results_of
from nodeready.reading import Known, Reading, Unknown, first_unknown

_BLOCK = 1 << 20  # the floors are those of such reads
_MOST = 130.0  # GB/s: sixteen lanes of PCIe 6
_COUNTS = 0.01  # GB/s of others that may lower a rate: a log that is written is less, a job's data more
# what the kernel makes of a drive's own word: media error, failed command, time-out, checksum, target, device gone
FAILURES = ("EIO", "ENODATA", "ETIMEDOUT", "EILSEQ", "EREMOTEIO", "ENXIO", "ENODEV")
# the part of what goes over a lane that is data, by GT/s: 8 of 10 bits, 128 of 130, 242 of 256 bytes
_CODED = {2.5: 0.8, 5.0: 0.8, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 242 / 256}


def drive_read_probe(python: str, script: str, *, deadline: float = 120.0) -> Probe:
    """The probe on all drives; a plain user may not open them.

    The script's own deadline is 20 s shorter than the probe's, so that it can still give up a drive that does not
    answer, and say which.
    """
    argv = (python, script, "--deadline", f"{deadline - 20:g}")
    serves = ("storage.read-rate",)
    root_for = "how fast NVMe drives read"
    return Probe("drive-read", argv, deadline, family="load", tier="acceptance", serves=serves, root_for=root_for)


@dataclass(frozen=True)
class ReadDrive:
    """One namespace: what it read, in GB/s, and what the link of its drive carries at most, by both ends of it.

    `busy` says what others did to it before or beside the reading, empty where nothing that counts was seen; it is
    unknown where the kernel did not count. `blank` is the part of the blocks that held only zeros. `failed` is what
    the drive said instead of data, empty where it read or was not asked.
    """

    name: str
    drive: str
    bus_id: str | None
    model: str
    rate: Reading[float]
    link: Reading[float]
    busy: Reading[str]
    blank: float
    failed: str = ""


@dataclass(frozen=True)
class DriveRead:
    """The probe's document: each namespace by a name such as nvme0n1.

    `unplaced` counts entries that do not say what they are of, or are the second of it.
    """

    drives: dict[str, ReadDrive]
    unplaced: int = 0


def parse(data: bytes) -> DriveRead | Unknown:
    """The drives of a whole document; unknown where it is cut, not the probe's, or says only an error.

    >>> found = parse(b'''{"probe": "drive-read", "schema": 1, "block_bytes": 1048576, "error": null, "results": [
    ... {"device": "nvme0n1", "drive": "nvme0", "bus_id": "0000:65:00.0", "model": "SSD", "link_gts": 16.0,
    ... "link_width": 4, "in_flight": 0, "others_before_gb_s": 0.0, "others_during_gb_s": 0.0, "gb_s": 6.75,
    ... "blocks": 14484, "blank": 0.0, "read_errno": null, "read_offset": null, "error": null}]}''')
    >>> drive = found.drives["nvme0n1"]
    >>> drive.rate.value, round(drive.link.value, 3), drive.busy.value, drive.failed
    (6.75, 7.877, '', '')
    >>> parse(b'{"probe": "drive-read", "schema": 1, "results": null, "error": null}').reason
    'results of the drive-read probe reads null, no list'
    """
    read = results_of(data, "drive-read", 1)
    if isinstance(read, Unknown):
        return read
    found, entries = read
    block = found.get("block_bytes")
    if isinstance(block, bool) or block != _BLOCK:
        return Unknown(f"block_bytes reads {shown(block)}, the floors are of reads of {_BLOCK}")
    drives: dict[str, ReadDrive] = {}
    for entry in entries:
        drive = _drive(entry)
        if drive is not None and drive.name not in drives:
            drives[drive.name] = drive
    return DriveRead(drives, len(entries) - len(drives))


def _drive(entry: Any) -> ReadDrive | None:
    if not isinstance(entry, dict):
        return None
    name, bus_id, blank = text(entry.get("device"), "device"), entry.get("bus_id"), entry.get("blank")
    if isinstance(name, Unknown):
        return None
    drive, model = text(entry.get("drive"), "drive"), text(entry.get("model"), "model")
    part = number(blank, "blank", zero=True)
    rate = _rate(entry)
    return ReadDrive(
        name=name.value,
        drive=drive.value if isinstance(drive, Known) else "",
        bus_id=normal_bus_id(bus_id) if isinstance(bus_id, str) else None,
        model=model.value if isinstance(model, Known) else "",
        rate=rate,
        link=_link(entry),
        busy=_busy(entry),
        blank=min(part.value, 1.0) if isinstance(part, Known) else 0.0,
        failed=rate.reason if isinstance(rate, Unknown) and entry.get("read_errno") in FAILURES else "",
    )


def _rate(entry: dict[str, Any]) -> Reading[float]:
    error, code = entry.get("error"), entry.get("read_errno")
    if error is not None:
        said = isinstance(error, str) and error.strip()
        return Unknown(said or f"the entry's error reads {shown(error)}")
    if code is not None:
        return Unknown(f"a read failed with {shown(code)}")
    blocks, rate = number(entry.get("blocks"), "blocks"), number(entry.get("gb_s"), "gb_s")
    if isinstance(blocks, Unknown) or isinstance(rate, Unknown):
        return blocks if isinstance(blocks, Unknown) else rate
    return rate if rate.value <= _MOST else Unknown(f"gb_s reads {shown(rate.value)}, which cannot be")


def _link(entry: dict[str, Any]) -> Reading[float]:
    """What the link carries at most, in GB/s."""
    speed, width = number(entry.get("link_gts"), "link_gts"), number(entry.get("link_width"), "link_width")
    if isinstance(speed, Unknown) or isinstance(width, Unknown):
        return speed if isinstance(speed, Unknown) else width
    if speed.value not in _CODED or width.value not in (1, 2, 4, 8, 16):
        return Unknown(f"a link of {speed.value:g} GT/s and {width.value:g} lanes cannot be")
    return Known(speed.value * _CODED[speed.value] * width.value / 8)


def _busy(entry: dict[str, Any]) -> Reading[str]:
    names = ("others_before_gb_s", "others_during_gb_s", "in_flight")
    before, during, waiting = (number(entry.get(name), name, zero=True) for name in names)
    seen = []
    if isinstance(before, Known) and before.value >= _COUNTS:
        seen.append(f"others moved {before.value:.3g} GB/s before it was read")
    if isinstance(during, Known) and during.value >= _COUNTS:
        seen.append(f"others moved {during.value:.3g} GB/s meanwhile")
    if isinstance(waiting, Known) and waiting.value and not seen:
        seen.append(f"{waiting.value:g} requests of others were under way before it was read")
    if seen:
        return Known(" and ".join(seen))
    unknown = first_unknown(before, waiting, during)
    return Known("") if unknown is None else unknown
