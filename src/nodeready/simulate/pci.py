"""PCI functions of a simulated node, as lspci would list them."""

from __future__ import annotations

from dataclasses import dataclass, field

RATES = {1: "2.5GT/s", 2: "5GT/s", 3: "8GT/s", 4: "16GT/s", 5: "32GT/s", 6: "64GT/s"}


@dataclass(frozen=True)
class LinkState:
    """A link: what the device can do and how it trained, as generation and lanes."""

    max_generation: int
    max_width: int
    generation: int
    width: int

    @classmethod
    def full(cls, generation: int, width: int) -> LinkState:
        """A link that trained as it can."""
        return cls(generation, width, generation, width)


@dataclass
class PciState:
    """How the bus of a node is, beside the GPUs' own links; healthy until a fault changes it.

    `trained` replaces links of other devices by their bus id. `redirecting` are ports whose access control sends
    peers' requests up. `iommu` is the type of the GPUs' IOMMU groups, empty where the kernel is too old to tell,
    `none` without groups. `reports` is false where the firmware keeps error reports to itself. `errors` are those
    that arise between two looks, by bus id: correctable, nonfatal, fatal. `unnamed` are devices without a NUMA node.
    """

    trained: dict[str, LinkState] = field(default_factory=dict)
    redirecting: set[str] = field(default_factory=set)
    iommu: str = "identity"
    options: str = "iommu=pt pci=realloc=off"
    reports: bool = True
    errors: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    unnamed: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class SwitchChip:
    """A PCI Express switch, of which every port is a bridge function."""

    vendor: str
    name: str
    ids: str
    revision: str


# above the GPUs of a board, and above the NVSwitches
PEX890XX = SwitchChip("Broadcom / LSI", "PEX890xx PCIe Gen 5 Switch", "1000:c030", "b0")
SWITCHTEC = SwitchChip("PMC-Sierra Inc.", "Device", "11f8:4128", "00")
UPSTREAM, DOWNSTREAM = "Upstream Port, MSI 00", "Downstream Port (Slot+), MSI 00"


@dataclass(frozen=True)
class PciDevice:
    """One function as lspci lists it; `vendor` and `name` come from pci.ids, `ids` are numeric.

    `port` is the kind of PCI Express function, empty where it has no such capability. `secondary` is
    the bus below a bridge. `memory` are the regions with their sizes. `sticky` are the correctable
    error bits that were set since the last reset.
    """

    bus_id: str
    kind: str
    class_code: str
    vendor: str
    name: str
    ids: str
    revision: str
    subsystem: str = ""
    port: str = "Endpoint, MSI 00"
    link: LinkState | None = None
    secondary: tuple[int, int] | None = None
    slot: int = 0
    device_name: str = ""
    numa: int = 0
    irq: int = 16
    memory: tuple[tuple[int, str], ...] = ()
    sticky: frozenset[str] = frozenset()
    lane_errors: bool = False
    acs: bool = False
    redirects: bool = False
    answers: bool = True
    driver: str = ""
    modules: str = ""
    programming: str = ""
