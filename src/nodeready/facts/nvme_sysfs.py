"""Which NVMe drives the kernel drives, and in which state, from sysfs; no root needed."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts import small_files
from nodeready.facts.bus_id import normal_bus_id
from nodeready.reading import Reading, Unknown

_DRIVES = "/sys/class/nvme/nvme*"

NVME_SYSFS = command(
    "sh",
    "-c",
    small_files.script(*(f"{_DRIVES}/{name}" for name in ("state", "transport", "address", "model", "serial"))),
    name="nvme-drives",
    family="nvme",
    serves=("storage.drives",),
)

_PATH = re.compile(r".*/nvme/(nvme[0-9]{1,4})/state")


class Drive(NamedTuple):
    """One controller; `state` is a word such as `live` or `resetting`, `bus_id` None for one over a network."""

    name: str
    state: Reading[str]
    transport: Reading[str]
    bus_id: str | None
    model: Reading[str]
    serial: Reading[str]


def parse(data: bytes) -> tuple[Drive, ...] | Unknown:
    r"""The drives in the kernel's order, none where a whole list names none; unknown where it was cut.

    >>> (drive,) = parse(b'''/sys/class/nvme/nvme0/state:live
    ... /sys/class/nvme/nvme0/transport:pcie
    ... /sys/class/nvme/nvme0/address:0000:65:00.0
    ... end:
    ... ''')
    >>> drive.name, drive.state.value, drive.bus_id
    ('nvme0', 'live', '0000:65:00.0')
    """
    files = small_files.parse(data)
    if isinstance(files, Unknown):
        return files
    if not files.whole:
        return Unknown("the list of drives was cut before its end")
    names = [match[1] for path in files.values if (match := _PATH.fullmatch(path))]

    def drive(name: str) -> Drive:
        said = {field: files.one(f"/sys/class/nvme/{name}/{field}") for field in _FIELDS}
        address = said["address"]
        return Drive(
            name=name,
            state=said["state"],
            transport=said["transport"],
            bus_id=None if isinstance(address, Unknown) else normal_bus_id(address.value),
            model=said["model"],
            serial=said["serial"],
        )

    return tuple(drive(name) for name in sorted(names, key=lambda name: int(name[4:])))


_FIELDS = ("state", "transport", "address", "model", "serial")
