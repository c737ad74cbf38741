"""What lines of the kernel log say of PCI Express: errors by weight and device, and links that went away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.kernel_host import said

if TYPE_CHECKING:
    from collections.abc import Iterable

CORRECTED, UNCORRECTED = "corrected", "uncorrected"

_PLACE = r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
# the line that names the device which reported the error; those that announce it are not counted beside it
_ERROR = re.compile(rf"{_PLACE}: (?:AER: )?PCIe Bus Error: severity=(\w{{1,20}})")
_AWAY = re.compile(rf"{_PLACE}: (?:pciehp: Slot\([^)]{{1,20}}\): (?:Link Down|Card not present)|DPC: contain)")
# what firmware reports comes as a record of several lines: its weight, its kind, its device
_RECORD = re.compile(
    rf"\[Hardware Error\]: +(?:event severity: (?P<weight>\w{{1,20}})|section_type: (?P<kind>.{{1,60}})"
    rf"|device_id: (?P<device>{_PLACE}))"
)
_WORDS = ("PCIe", "pciehp", "DPC:", "[Hardware Error]")
_MENDED = ("corrected", "correctable", "info")


class PcieEvent(NamedTuple):
    """One event of a device, at its bus id: its weight, and its text without the time."""

    weight: str
    bus_id: str
    text: str


def pcie_events(text: Iterable[str]) -> tuple[PcieEvent, ...]:
    """The events of a log's lines, in their order; what audit records quote is no event.

    >>> lines = ["[ 9.1] pcieport 0000:37:01.0: AER: Corrected error received: 0000:3b:00.0",
    ...          "[ 9.2] nvidia 0000:3b:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer"]
    >>> [(event.weight, event.bus_id) for event in pcie_events(lines)]
    [('corrected', '0000:3b:00.0')]
    """
    found: list[PcieEvent] = []
    severity = kind = ""
    for line in text:
        if not any(word in line for word in _WORDS) or "audit" in line:
            continue
        error, away, record = _ERROR.search(line), _AWAY.search(line), _RECORD.search(line)
        if error:
            found.append(_event(error[2], error[1], line))
        elif away:
            found.append(_event(UNCORRECTED, away[1], line))
        elif record and record["weight"]:
            severity, kind = record["weight"], ""
        elif record and record["kind"]:
            kind = record["kind"].strip()
        elif record and record["device"] and kind.startswith("PCIe"):
            found.append(_event(severity, record["device"], line))
    return tuple(found)


def _event(severity: str, place: str, line: str) -> PcieEvent:
    weight = CORRECTED if severity.lower() in _MENDED else UNCORRECTED
    return PcieEvent(weight, normal_bus_id(place) or place, said(line))
