"""Measures how fast each NVMe drive reads, one after the other, and prints one JSON document. It never writes.

Stand-alone: needs Python >= 3.9 and the file beside it. Each namespace is opened for reading alone, past the page cache
(O_DIRECT), and read by several threads in blocks of 1 MiB: runs of neighbouring blocks from seeded places over the
whole size. A drive in use may be read too; what others read and wrote beside it is told. Blocks that hold only zeros
may come from no flash: their part is told. A drive that does not answer is abandoned, and costs its own entry.
Exit status 0: measured (an entry may hold an error), 2: usage.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from nodeready.probes.drive_reader import BLOCK, FIGURES, THREADS, WARM_SECONDS, in_child
else:  # a script that stands alone has its sibling beside it
    sys.dont_write_bytecode = True  # root runs it too, and would leave its file in somebody's folder
    from drive_reader import BLOCK, FIGURES, THREADS, WARM_SECONDS, in_child

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTOR, LOOK_SECONDS = 512, 0.25  # bytes in sysfs, and how long what others do is looked at
PATIENCE = 12.0  # seconds beyond its time in which a drive may still answer
ENDING_SECONDS = 2.0

_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s")
_NAMESPACE = re.compile(r"nvme\d+n\d+")
_PATH_TO = re.compile(r"nvme(\d+)c\d+(n\d+)")  # a hidden disk: one way to a namespace that may have several


@dataclass
class Namespace:
    """What is read: a device file, and what the kernel says of the drive behind it."""

    device: str
    path: str
    drive: str | None = None
    about: dict[str, Any] = field(default_factory=dict)
    counters: list[Path] = field(default_factory=list)
    error: str | None = None

    def entry(self) -> dict[str, Any]:
        """What is known before it is read."""
        names = ("bus_id", "model", "serial", "bytes", "link_gts", "link_width")
        asked = ("in_flight", "others_before_gb_s", "others_during_gb_s", "seconds", *FIGURES)
        return {
            "device": self.device,
            "drive": self.drive,
            **dict.fromkeys(names),
            **self.about,
            **dict.fromkeys((*asked, "read_errno", "read_offset")),
            "error": self.error,
        }


# ---- what the kernel shows --------------------------------------------------------------------


def text(path: Path) -> str:
    """A small file without blanks around it; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def in_order(name: str) -> list[Any]:
    """nvme2 before nvme10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def namespaces(sysfs: Path, dev: Path) -> list[Namespace]:
    """All namespaces of the drives in this machine, and each drive that has none."""
    disks = [disk for disk in (sysfs / "block").glob("nvme*") if _NAMESPACE.fullmatch(disk.name)]
    found, behind = [], set()
    for disk in sorted(disks, key=lambda disk: in_order(disk.name)):
        drives = _drives_of(disk)
        behind |= {drive.name for drive in drives}
        local = [drive for drive in drives if text(drive / "transport") == "pcie"]
        if local:
            found.append(described(sysfs, disk, local[0], str(dev / disk.name)))
    for drive in sorted((sysfs / "class/nvme").glob("nvme*"), key=lambda drive: in_order(drive.name)):
        if drive.name not in behind and text(drive / "transport") == "pcie":
            error = f"{drive.name} shows no namespace, its state is {text(drive / 'state') or 'not told'}"
            found.append(Namespace(drive.name, "", drive.name, _about_drive(sysfs, drive), error=error))
    return found


def _drives_of(disk: Path) -> list[Path]:
    """The controllers behind a namespace: one, or those of the subsystem that it hangs below."""
    above = Path(os.path.realpath(disk / "device"))
    return (
        [above]
        if (above / "transport").exists()
        else sorted(p for p in above.glob("nvme*") if (p / "address").exists())
    )


def described(sysfs: Path, disk: Path, drive: Path | None, path: str) -> Namespace:
    """A disk by what sysfs says of it, of the drive behind it and of that drive's link."""
    sectors = text(disk / "size")
    hidden = [way for way in disk.parent.glob("nvme*") if (m := _PATH_TO.fullmatch(way.name)) and _same(m, disk.name)]
    about = {
        **(_about_drive(sysfs, drive) if drive else {}),
        "bytes": int(sectors) * SECTOR if sectors.isdigit() else None,
    }
    return Namespace(
        disk.name, path, drive.name if drive else None, about, [disk / "stat", *(w / "stat" for w in hidden)]
    )


def _same(way: re.Match[str], name: str) -> bool:
    return f"nvme{way[1]}{way[2]}" == name


def _about_drive(sysfs: Path, drive: Path) -> dict[str, Any]:
    address = text(drive / "address")
    gts, width = most_of_link(sysfs / "bus/pci/devices" / address) if address else (None, None)
    named = {"bus_id": address, "model": text(drive / "model"), "serial": text(drive / "serial")}
    return {**{name: value or None for name, value in named.items()}, "link_gts": gts, "link_width": width}


def most_of_link(device: Path) -> tuple[float | None, int | None]:
    """The most that a device's link could be, by what both its ends are able to: GT/s and lanes."""
    ends = [end for end in (Path(os.path.realpath(device)), Path(os.path.realpath(device)).parent) if end.is_dir()]
    speeds = [float(found[1]) for end in ends if (found := _SPEED.match(text(end / "max_link_speed")))]
    lanes = [int(said) for end in ends if (said := text(end / "max_link_width")).isdigit() and 0 < int(said) <= 32]
    return (min(speeds) if speeds else None), (min(lanes) if lanes else None)


def named_on_command_line(path: str, sysfs: Path) -> Namespace:
    """A device or a file that somebody wants to be read."""
    disk = sysfs / "block" / Path(os.path.realpath(path)).name
    if disk.is_dir():
        drives = [drive for drive in _drives_of(disk) if (drive / "address").exists()]
        return described(sysfs, disk, drives[0] if drives else None, path)
    return Namespace(path, path)


@dataclass
class Traffic:
    """What the kernel counted of a disk up to now: bytes read and written, and requests under way."""

    read: int
    written: int
    in_flight: int

    @classmethod
    def of(cls, counters: Sequence[Path]) -> Traffic | None:
        """By the disk or by the hidden ways to it, whichever counts: not every kernel counts at both."""
        rows = [[int(word) for word in text(path).split() if word.isdigit()] for path in counters]
        if not rows or any(len(row) < 9 for row in rows):
            return None
        read, written, in_flight = (max(rows[0][at], sum(row[at] for row in rows[1:])) for at in (2, 6, 8))
        return cls(read * SECTOR, written * SECTOR, in_flight)


# ---- one disk after the other -----------------------------------------------------------------


def measured(namespace: Namespace, options: argparse.Namespace, left: float) -> dict[str, Any]:
    """The entry of one disk: what others did to it before and beside, and how fast it reads."""
    entry = namespace.entry()
    if entry["error"]:
        return entry
    if left < options.seconds + WARM_SECONDS + LOOK_SECONDS:
        return {**entry, "error": f"the {options.deadline:g} s were over before its turn"}
    first = Traffic.of(namespace.counters)
    if first:
        time.sleep(LOOK_SECONDS)
    before, begun = Traffic.of(namespace.counters), time.monotonic()
    found = in_child(namespace.path, options.seconds, options.seed, min(left, options.seconds + PATIENCE))
    after, ended, own = Traffic.of(namespace.counters), time.monotonic(), found.pop("read_bytes", None)
    if first and before:
        entry["in_flight"] = min(first.in_flight, before.in_flight)
        entry["others_before_gb_s"] = rate(before, first, 0, LOOK_SECONDS)
    if before and after and own is not None and (after.read - before.read) >= 0.9 * own:  # else it counts nothing
        entry["others_during_gb_s"] = rate(after, before, own, ended - begun)
    return {**entry, **found}


def rate(now: Traffic, then: Traffic, own: int, seconds: float) -> float:
    """What others read and wrote, in GB/s; a little more than `own` may be under way, and is less than counts."""
    moved = max(0, now.read - then.read - own) + max(0, now.written - then.written)
    return round(moved / seconds / 1e9, 4)


def probe(document: dict[str, Any], options: argparse.Namespace) -> None:
    """Read all disks and fill the document."""
    begun = time.monotonic()
    finish = begun + options.deadline - ENDING_SECONDS
    wanted = [named_on_command_line(path, options.sysfs) for path in options.device or ()]
    for namespace in wanted or namespaces(options.sysfs, options.dev):
        document["results"].append(measured(namespace, options, finish - time.monotonic()))
    document["seconds"] = round(time.monotonic() - begun, 3)


# ---- the command line -------------------------------------------------------------------------


def new_document(options: argparse.Namespace) -> dict[str, Any]:
    """The document before anything is known."""
    about = {"probe": "drive-read", "schema": 1, "python": platform.python_version(), "started": time.time()}
    how = {"seed": options.seed, "block_bytes": BLOCK, "threads": THREADS}
    return {**about, **how, "seconds": 0.0, "results": [], "error": None}


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options; exits 2 where they make no sense."""
    parser = argparse.ArgumentParser(description="Measures how fast each NVMe drive reads. It never writes.")
    parser.add_argument(
        "--device", action="append", help="a device or file to read, again for more (default: all NVMe)"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="of each drive, at least 0.5 (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="of the places that are read (default: 1)")
    parser.add_argument("--deadline", type=float, default=100.0, help="seconds for everything (default: 100)")
    parser.add_argument("--sysfs", type=Path, default=Path("/sys"), help="another place of sysfs, for tests")
    parser.add_argument("--dev", type=Path, default=Path("/dev"), help="another place of the device files, for tests")
    options = parser.parse_args(argv)
    least = options.seconds + WARM_SECONDS + LOOK_SECONDS + ENDING_SECONDS
    if not (options.seconds >= 0.5 and least < options.deadline < math.inf):
        parser.error(f"--seconds must be 0.5 or more, --deadline above {least:g}")
    return options


def stop(number: int, _: object) -> None:
    """Leave by the way that ends the reader."""
    raise SystemExit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the document; the exit status."""
    options = parse_options(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    document = new_document(options)
    probe(document, options)
    print(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
