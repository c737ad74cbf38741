"""What the kernel itself keeps of the PCI bus: its options, the slots, and how many errors each device reported.

The counters are asked twice. The kernel counts an error (AER) only where the firmware leaves error reports to
it: there a root port has the service `pcie002`. Else the counters stay at 0 whatever happens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from nodeready.evidence.probe import Probe, command
from nodeready.facts import small_files, uptime
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.text import lines, word
from nodeready.reading import Reading, Unknown

_COMMAND_LINE = "/proc/cmdline"
_SLOTS = "/sys/bus/pci/slots"
_SERVICES = "/sys/bus/pci_express/devices"
_DEVICES = "/sys/bus/pci/devices"
# one grep for a thousand files of thirty lines: of each the total, and the kinds that ever occurred
_COUNTERS = f"grep -sHE '^TOTAL| [1-9]' {_DEVICES}/*/aer_dev_[cnf]*; "
_REPORTING = f'for d in {_SERVICES}/*:pcie002; do [ ! -e "$d" ] || echo "$d:yes"; done; '

PCI_FILES = command(
    "sh",
    "-c",
    uptime.SCRIPT + small_files.script(_COMMAND_LINE, f"{_SLOTS}/*/address", more=_REPORTING + _COUNTERS),
    name="pci-files",
    family="pci",
    serves=("pcie.gpu-errors", "pcie.replays", "pcie.iommu", "pcie.gpu-present"),
)
PCI_FILES_LATER: Probe = command(
    "sh",
    "-c",
    f"{uptime.SCRIPT}{_COUNTERS}echo {small_files.END}",
    name="pci-files-later",
    after=PCI_FILES.name,
    family="pci",
    serves=("pcie.gpu-errors",),
)

_BUS_ID = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}"
_WEIGHTS = {"correctable", "nonfatal", "fatal"}
_TOTAL = "TOTAL"
_COUNTER = re.compile(
    rf"{_DEVICES}/({_BUS_ID}\.[0-7])/aer_dev_(correctable|nonfatal|fatal):([A-Za-z_]{{1,40}}) ([0-9]{{1,19}})"
)
_SLOT = re.compile(rf"{_SLOTS}/([^/:]{{1,40}})/address:({_BUS_ID})")
_SERVICE = re.compile(rf"{_SERVICES}/({_BUS_ID}\.[0-7]):pcie002:yes")


@dataclass(frozen=True)
class Errors:
    """What one device reported since boot: the totals by weight, and the kinds that occurred with their number."""

    correctable: int
    nonfatal: int
    fatal: int
    kinds: dict[str, int] = field(default_factory=dict)


class PciFiles(NamedTuple):
    """One sample.

    `uptime` is when it was taken. `options` are the words of the kernel's command line. `slots` maps the place
    of a device, its bus id without the function, to the name of the slot. `reporting` are the root ports whose
    errors the kernel is told of. `errors` are by bus id, for devices with all three counters.
    """

    uptime: Reading[float]
    options: Reading[tuple[str, ...]]
    slots: dict[str, str]
    reporting: frozenset[str]
    errors: dict[str, Errors]


def parse(data: bytes) -> PciFiles | Unknown:
    r"""One sample, the first or the second; unknown where it was cut before its closing line.

    >>> found = parse(b'''uptime:93841.27
    ... /proc/cmdline:BOOT_IMAGE=/vmlinuz ro iommu=pt
    ... /sys/bus/pci/slots/24/address:0000:3b:00
    ... /sys/bus/pci_express/devices/0000:37:01.0:pcie002:yes
    ... /sys/bus/pci/devices/0000:3b:00.0/aer_dev_correctable:BadTLP 2
    ... /sys/bus/pci/devices/0000:3b:00.0/aer_dev_correctable:TOTAL_ERR_COR 2
    ... /sys/bus/pci/devices/0000:3b:00.0/aer_dev_fatal:TOTAL_ERR_FATAL 0
    ... /sys/bus/pci/devices/0000:3b:00.0/aer_dev_nonfatal:TOTAL_ERR_NONFATAL 0
    ... end:
    ... ''')
    >>> found.options.value, found.slots, sorted(found.reporting)
    (('BOOT_IMAGE=/vmlinuz', 'ro', 'iommu=pt'), {'0000:3b:00': '24'}, ['0000:37:01.0'])
    >>> found.errors["0000:3b:00.0"]
    Errors(correctable=2, nonfatal=0, fatal=0, kinds={'BadTLP': 2})
    """
    text = lines(data)
    if small_files.END not in text:
        return Unknown("the list was cut before its end")
    options: str | None = None
    slots: dict[str, str] = {}
    reporting: set[str] = set()
    said: dict[str, dict[str, int]] = {}
    for line in text:
        if line.startswith(f"{_COMMAND_LINE}:"):
            options = line.partition(":")[2]
        elif match := _SLOT.fullmatch(line):
            slots[match[2].lower()] = match[1]
        elif match := _SERVICE.fullmatch(line):
            reporting.add(normal_bus_id(match[1]) or match[1])
        elif match := _COUNTER.fullmatch(line):
            weight = match[2] if match[3].startswith(_TOTAL) else match[3]
            said.setdefault(normal_bus_id(match[1]) or match[1], {})[weight] = int(match[4])
    return PciFiles(
        uptime=uptime.read(text[:1]),
        options=word(options, _COMMAND_LINE).map(lambda words: tuple(words.split())),
        slots=slots,
        reporting=frozenset(reporting),
        errors={bus_id: _errors(counted) for bus_id, counted in said.items() if counted.keys() >= _WEIGHTS},
    )


def _errors(counted: dict[str, int]) -> Errors:
    kinds = {name: number for name, number in counted.items() if name not in _WEIGHTS}
    return Errors(counted["correctable"], counted["nonfatal"], counted["fatal"], kinds)
