"""Which DIMMs the firmware found, from `dmidecode -t memory`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import is_cut, lines
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown

DMI_MEMORY = command(
    "dmidecode", "-t", "memory", serves=("memory.installed",), root_for="DIMM sizes (the SMBIOS tables)"
)

_HANDLE = re.compile(r"Handle (0x[0-9A-Fa-f]{1,8}), DMI type ([0-9]{1,3}), [0-9]{1,5} bytes\s*")
_SIZE = re.compile(r"([0-9]{1,9}) ([kKMGT])i?B")
_RATE = re.compile(r"([0-9]{1,6}) (?:MT/s|MHz)")
_ARRAY, _DEVICE = 16, 17
_REFUSALS = ("No SMBIOS nor DMI entry point found", "Permission denied", "Operation not permitted")


class Dimm(NamedTuple):
    """One slot of the board: `size` is 0 where it is empty; the speeds are in MT/s."""

    locator: str
    size: Reading[Quantity]
    speed: Reading[int]
    configured_speed: Reading[int]
    part: str
    serial: str


class Memory(NamedTuple):
    """The slots in the order of the tables, and the sum of what sits in them.

    `installed` is unknown as soon as one size is, or where the arrays announce more slots than the
    output lists.
    """

    dimms: tuple[Dimm, ...]
    installed: Reading[Quantity]


class _Block(NamedTuple):
    handle: str
    kind: int
    fields: dict[str, str]


def parse(data: bytes) -> Memory | Unknown:
    """The DIMMs of a whole output; unknown where it is empty, cut or speaks of no memory.

    >>> found = parse(b'''Handle 0x0010, DMI type 16, 23 bytes
    ... Physical Memory Array
    ... 	Use: System Memory
    ... 	Number Of Devices: 2
    ...
    ... Handle 0x0011, DMI type 17, 92 bytes
    ... Memory Device
    ... 	Size: 64 GB
    ... 	Locator: A1
    ...
    ... Handle 0x0012, DMI type 17, 92 bytes
    ... Memory Device
    ... 	Size: No Module Installed
    ... 	Locator: A2
    ... ''')
    >>> str(found.installed.value), [d.locator for d in found.dimms]
    ('64 GiB', ['A1', 'A2'])
    """
    if not data.strip():
        return Unknown("dmidecode printed nothing")
    if is_cut(data):
        return Unknown("the output of dmidecode stops in the middle of a line: it was cut")
    text = lines(data)
    blocks = _blocks(text)
    arrays = [block for block in blocks if block.kind == _ARRAY]
    slots = [block for block in blocks if block.kind == _DEVICE]
    if not arrays and not slots:
        refused = next((line.strip() for line in text if any(word in line for word in _REFUSALS)), "")
        return Unknown(
            f"dmidecode says: {refused[:200]}" if refused else "dmidecode lists no memory array and no memory device"
        )
    return Memory(dimms=tuple(_dimm(slot) for slot in slots), installed=_installed(arrays, slots))


def _blocks(text: list[str]) -> list[_Block]:
    blocks: list[_Block] = []
    inside = False
    for line in text:
        start = _HANDLE.fullmatch(line)
        if start:
            blocks.append(_Block(start[1].lower(), int(start[2]), {}))
            inside = True
        elif not line.strip():
            inside = False
        elif inside:
            key, colon, value = line.strip().partition(":")
            # the first decides: what follows must not change what a cut output says
            if colon:
                blocks[-1].fields.setdefault(key, value.strip())
    return blocks


def _dimm(slot: _Block) -> Dimm:
    fields = slot.fields
    configured = "Configured Memory Speed"
    if configured not in fields:
        configured = "Configured Clock Speed"  # dmidecode before 3.1
    return Dimm(
        locator=fields.get("Locator", ""),
        size=_size(slot),
        speed=_rate(fields, "Speed"),
        configured_speed=_rate(fields, configured),
        part=fields.get("Part Number", ""),
        serial=fields.get("Serial Number", ""),
    )


def _size(slot: _Block) -> Reading[Quantity]:
    """The slot's own size; volatile, cache and logical sizes are other fields and do not count."""
    where = slot.fields.get("Locator") or slot.handle
    text = slot.fields.get("Size")
    if text is None:
        return Unknown(f"dmidecode gives no size of {where}")
    if text == "No Module Installed":
        return Known(Quantity(0, "GiB"))
    match = _SIZE.fullmatch(text)
    if match is None:
        return Unknown(f"dmidecode gives the size of {where} as {text[:80]!r}")
    # dmidecode counts in powers of two, whether it writes GB (before 3.3) or GiB
    return Known(Quantity(int(match[1]), f"{match[2].upper()}iB"))


def _rate(fields: dict[str, str], key: str) -> Reading[int]:
    match = _RATE.fullmatch(fields.get(key, ""))
    return Known(int(match[1])) if match else Unknown(f"dmidecode gives {key} as {fields.get(key, 'nothing')[:80]!r}")


def _installed(arrays: list[_Block], slots: list[_Block]) -> Reading[Quantity]:
    if not arrays:
        return Unknown("dmidecode lists no memory array (type 16): how many DIMM slots there are is not known")
    counts = [array.fields.get("Number Of Devices", "") for array in arrays]
    if not all(re.fullmatch("[0-9]{1,5}", count) for count in counts):
        return Unknown("dmidecode does not say how many DIMM slots a memory array has")
    announced = sum(map(int, counts))
    if len(slots) < announced:
        return Unknown(f"dmidecode announces {announced} DIMM slots and lists {len(slots)}: the output was cut")
    if len({block.handle for block in (*arrays, *slots)}) < len(arrays) + len(slots):
        return Unknown("dmidecode lists a handle twice")
    # flash, video and cache arrays have devices too
    others = {a.handle for a in arrays if a.fields.get("Use", "System Memory") != "System Memory"}
    total = filled = 0
    for slot in slots:
        size = _size(slot)
        if slot.fields.get("Array Handle", "").lower() in others:
            continue
        if isinstance(size, Unknown):
            return size
        total += int(size.value.to("KiB").value)
        filled += size.value.value > 0
    return Known(Quantity(total, "KiB").to("GiB"), note=f"{filled} of {announced} DIMM slots filled")
