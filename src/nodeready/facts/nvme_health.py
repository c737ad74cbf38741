"""What NVMe drives say of their own health (SMART), from nvme-cli or smartctl, one after the other in one probe."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import lines
from nodeready.reading import Known, Reading, Unknown

# smartctl's exit status is a set of bits that a worn drive sets too: the document decides
_SCRIPT = (
    'if command -v nvme >/dev/null; then t="nvme smart-log -o json"; '
    'elif command -v smartctl >/dev/null; then t="smartctl -j -i -H -A"; '
    "else echo 'neither nvme-cli nor smartctl is installed' >&2; exit 127; fi; "
    "for d in /dev/nvme[0-9] /dev/nvme[0-9][0-9]; do "
    '[ -e "$d" ] || continue; echo "drive:$d"; $t "$d"; echo "status:$?"; done; echo end:'
)

NVME_HEALTH = command(
    "sh",
    "-c",
    _SCRIPT,
    name="nvme-health",
    family="nvme",
    serves=("storage.health",),
    root_for="the health of NVMe drives (SMART)",
)

_START = re.compile(r"drive:/dev/(nvme[0-9]{1,4})")
# nvme-cli's name, then smartctl's
_NAMES = {
    "warning": ("critical_warning", "critical_warning"),
    "spare": ("avail_spare", "available_spare"),
    "spare_threshold": ("spare_thresh", "available_spare_threshold"),
    "used": ("percent_used", "percentage_used"),
    "media_errors": ("media_errors", "media_errors"),
}


class Health(NamedTuple):
    """One drive: `warning` is its critical warning bits, the spare and what is used are in percent."""

    warning: Reading[int]
    spare: Reading[int]
    spare_threshold: Reading[int]
    used: Reading[int]
    media_errors: Reading[int]


def parse(data: bytes) -> dict[str, Health | Unknown] | Unknown:
    r"""The health of each drive by its name; unknown where the list was cut.

    A drive whose tool printed no whole document is there, and unknown.

    >>> found = parse(b'''drive:/dev/nvme0
    ... {"critical_warning":0, "avail_spare":100, "spare_thresh":10, "percent_used":2, "media_errors":0}
    ... status:0
    ... end:
    ... ''')
    >>> found["nvme0"].spare.value, found["nvme0"].used.value
    (100, 2)
    """
    documents: dict[str, list[str]] = {}
    name, whole = "", False
    for line in lines(data):
        start = _START.fullmatch(line)
        if start:
            name = start[1]
            documents[name] = []
        elif line == "end:":
            whole = True
        elif name:
            documents[name].append(line)
    if not whole:
        return Unknown("the list of drives was cut before its end")
    return {name: _health("\n".join(text)) for name, text in documents.items()}


def _health(text: str) -> Health | Unknown:
    body, _, status = text.rpartition("status:")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        said = next((line.strip() for line in body.splitlines() if line.strip()), f"exit status {status.strip()}")
        return Unknown(f"no document: {said[:120]}")
    if isinstance(found, dict) and "nvme_smart_health_information_log" in found:
        found = found["nvme_smart_health_information_log"]
    if not isinstance(found, dict):
        return Unknown("the document is no health log")
    return Health(**{field: _number(found, names) for field, names in _NAMES.items()})


def _number(table: dict[str, Any], names: tuple[str, ...]) -> Reading[int]:
    value = next((table[name] for name in names if name in table), None)
    if isinstance(value, dict):  # nvme-cli 2 spells the bits out beside their value
        value = value.get("value")
    if isinstance(value, str) and re.fullmatch("[0-9]{1,40}", value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Known(value)
    return Unknown(f"the health log has no {names[-1]}")
