"""What the power supplies are rated for, from `dmidecode -t 39`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.small_files import closing, is_whole
from nodeready.facts.text import lines
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown

DMI_POWER = command(
    "sh",
    "-c",
    closing("dmidecode -t 39"),
    name="dmidecode_-t_39",
    serves=("power.supply-rating",),
    root_for="the rated power of the supplies (SMBIOS)",
)

_HANDLE = re.compile(r"Handle 0x[0-9A-Fa-f]{1,8}, DMI type 39, [0-9]{1,5} bytes\s*")
_WATTS = re.compile(r"([0-9]{1,6}) W")


class Supply(NamedTuple):
    """One power supply: whether it is there, and the most that it can give."""

    name: str
    present: bool
    rated: Reading[Quantity]


def parse(data: bytes) -> tuple[Supply, ...] | Unknown:
    """The supplies in the order of the tables; unknown where the output was cut or names none.

    >>> (supply,) = parse(b'''Handle 0x2700, DMI type 39, 22 bytes
    ... System Power Supply
    ... 	Location: PSU.Slot.1
    ... 	Max Power Capacity: 2800 W
    ... 	Status: Present, OK
    ...
    ... end:
    ... ''')
    >>> supply.name, supply.present, str(supply.rated.value)
    ('PSU.Slot.1', True, '2800 W')
    """
    if not is_whole(data):
        return Unknown("the output of dmidecode lacks its closing line: it was cut")
    tables: list[dict[str, str]] = []
    inside = False
    for line in lines(data):
        if _HANDLE.fullmatch(line):
            tables.append({})
            inside = True
        elif not line.strip():
            inside = False
        elif inside:
            key, colon, value = line.strip().partition(":")
            if colon:
                tables[-1].setdefault(key, value.strip())
    if not tables:
        return Unknown("dmidecode lists no power supply (type 39)")
    return tuple(_supply(table, number) for number, table in enumerate(tables, 1))


def _supply(table: dict[str, str], number: int) -> Supply:
    name = next((table[key] for key in ("Location", "Name") if table.get(key)), f"supply {number}")
    text = table.get("Max Power Capacity", "")
    match = _WATTS.fullmatch(text)
    rated: Reading[Quantity]
    rated = Known(Quantity(int(match[1]), "W")) if match else Unknown(f"the rating of {name} reads {text[:40]!r}")
    return Supply(name, not table.get("Status", "").startswith("Not Present"), rated)
