"""`nvidia-smi --query-gpu=pci.bus_id,compute_cap --format=csv`: what `nvidia-smi -q` does not say."""

from __future__ import annotations

import re

from nodeready.evidence.probe import command
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.text import lines, word
from nodeready.reading import Known, Reading, Unknown

COMPUTE_CAPABILITY = command("nvidia-smi", "--query-gpu=pci.bus_id,compute_cap", "--format=csv", family="nvidia")

_BUS_ID, _CAPABILITY = "pci.bus_id", "compute_cap"
_VALUE = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}")


def parse(data: bytes) -> dict[str, Reading[str]] | Unknown:
    """The compute capability of every GPU by normalised bus id; nothing is ever raised.

    The header line must be there, and says which columns to read. A row names its own GPU, so that a
    line that is no row hides no other: its GPU is simply not in the result.

    >>> read = parse(b'''pci.bus_id, compute_cap
    ... 00000000:53:00.0, 9.0
    ... 00000000:64:00.0, [N/A]
    ... ''')
    >>> read["0000:53:00.0"].value, read["0000:64:00.0"].reason
    ('9.0', "compute_cap reads '[N/A]'")
    """
    if not data.strip():
        return Unknown("the output is empty")
    rows = [[cell.strip() for cell in line.split(",")] for line in lines(data) if line.strip()]
    if not rows:
        return Unknown("the output is cut in its first line")
    head = rows[0]
    if head.count(_BUS_ID) != 1 or head.count(_CAPABILITY) != 1:
        return Unknown(f"not a table of {_BUS_ID} and {_CAPABILITY}: {', '.join(head)!r:.200}")
    read: dict[str, Reading[str]] = {}
    for row in rows[1:]:
        bus_id = normal_bus_id(row[head.index(_BUS_ID)]) if len(row) == len(head) else None
        if bus_id is None:
            continue
        twice = bus_id in read
        read[bus_id] = Unknown(f"GPU {bus_id} is listed twice") if twice else _capability(row[head.index(_CAPABILITY)])
    if not read:
        return Unknown(f"no row names a GPU: {', '.join(rows[-1])!r:.200}")
    return read


def _capability(text: str) -> Reading[str]:
    said = word(text, _CAPABILITY)
    if isinstance(said, Known) and not _VALUE.fullmatch(said.value):
        return Unknown(f"{_CAPABILITY} reads {text!r:.80}")
    return said
