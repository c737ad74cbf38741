"""The PCI bus as a tree: which ports stand above a device, how each link trained, and in which slot a device sits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from nodeready.facts import pci_files, pci_sysfs
from nodeready.reading import Known, Reading, Unknown, cite, first_of

if TYPE_CHECKING:
    from nodeready.facts.lspci import Device, Listing
    from nodeready.facts.pci_files import PciFiles
    from nodeready.node.sources import Sources

_SYSFS = pci_sysfs.PCI_LINKS.name
_FIELDS = ("generation", "width", "generation_max", "width_max")
# GB/s of one lane in one direction, behind the line's own coding
_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563, 7: 15.125}
_DEPTH = 16
# a port that can do no more than this beside a GPU is the face of a switch that emulates its ports
_EMULATED = 2


def bandwidth(generation: int, width: int) -> float:
    """GB/s of a link in one direction.

    >>> round(bandwidth(5, 16)), bandwidth(4, 16) == 2 * bandwidth(4, 8)
    (63, True)
    """
    return _LANE[generation] * width


@dataclass(frozen=True)
class LinkUp:
    """The link of a device to the port above it, as it trained and as both ends could, 0 where that is unknown."""

    device: str
    port: str
    generation: int
    width: int
    generation_max: int
    width_max: int

    @property
    def is_emulated(self) -> bool:
        """Whether what it tells of itself is no real link's."""
        return 0 < self.generation_max <= _EMULATED

    @property
    def gives(self) -> float:
        """GB/s in one direction, as it runs."""
        return bandwidth(self.generation, self.width)

    @property
    def could(self) -> float:
        """GB/s in one direction, where it trained as both its ends can."""
        return bandwidth(self.generation_max or self.generation, self.width_max or self.width)

    @property
    def is_narrow(self) -> bool:
        """Whether it runs on fewer lanes than both its ends have."""
        return self.width < self.width_max

    @property
    def trained_low(self) -> bool:
        """Whether it runs below what both its ends can do."""
        return self.gives < self.could

    def is_below(self, wanted: float) -> bool:
        """Whether it gives less than so many GB/s."""
        return self.gives < wanted and not self.is_emulated

    def __str__(self) -> str:
        best = f" of generation {self.generation_max} x{self.width_max}" if self.trained_low else ""
        return f"{self.device} below {self.port} runs at generation {self.generation} x{self.width}{best}"


class PciTree:
    """The tree by sysfs, and by lspci where it was not recorded."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def files(self) -> PciFiles | Unknown:
        """What the kernel keeps beside the tree itself."""
        return self._sources.documents.read(pci_files.PCI_FILES, pci_files.parse)

    @cached_property
    def listing(self) -> Reading[Listing]:
        """The fullest listing of lspci that is there, whole and verbose or not."""
        absent = []
        for name, listing in self._sources.pci:
            if not isinstance(listing, Unknown):
                return Known(listing, recordings=(name,))
            absent.append(listing)
            if not listing.missing:
                return listing
        return Unknown("; ".join(each.reason for each in absent), missing=True)

    def path(self, bus_id: str) -> Reading[tuple[str, ...]]:
        """The ports above a device, the nearest first; none where it stands on a root bus."""
        return first_of(self._path_by_sysfs(bus_id), self._path_by_lspci(bus_id), agree=False)

    def _path_by_sysfs(self, bus_id: str) -> Reading[tuple[str, ...]]:
        links = self._sources.sysfs
        if isinstance(links, Unknown):
            return links
        if bus_id not in links:
            return Unknown(f"{_SYSFS} lists no device at {bus_id}", missing=True, recordings=(_SYSFS,))
        found: list[str] = []
        at = bus_id
        while len(found) < _DEPTH:
            link = links.get(at)
            if link is None:
                return Unknown(f"{_SYSFS} does not list {at}, which is above {bus_id}", recordings=(_SYSFS,))
            if link.on_root_bus:
                return Known(tuple(found), recordings=(_SYSFS,))
            if isinstance(link.above, Unknown):
                # a copied tree knows no paths
                return Unknown(link.above.reason, missing=True, recordings=(_SYSFS,))
            at = link.above.value
            found.append(at)
        return Unknown(f"{_SYSFS} puts more than {_DEPTH} ports above {bus_id}", recordings=(_SYSFS,))

    def _path_by_lspci(self, bus_id: str) -> Reading[tuple[str, ...]]:
        listing = self.listing
        if isinstance(listing, Unknown):
            return listing
        if listing.value.cut:
            return Unknown("lspci stops in the middle of a device", recordings=listing.recordings)
        if not self._bridges:
            return Unknown("this form of lspci shows no bridges", missing=True, recordings=listing.recordings)
        found: list[str] = []
        at = bus_id
        while len(found) < _DEPTH:
            port = self._bridges.get(_bus(at))
            if port is None:
                return Known(tuple(found), recordings=listing.recordings)
            found.append(port)
            at = port
        return Unknown(f"lspci puts more than {_DEPTH} ports above {bus_id}", recordings=listing.recordings)

    @cached_property
    def _bridges(self) -> dict[tuple[str, int], str]:
        """The bridge above each bus, by domain and bus number."""
        listing = self.listing
        if isinstance(listing, Unknown):
            return {}
        devices = listing.value.devices.values()
        return {(d.bus_id.split(":")[0], d.below): d.bus_id for d in devices if d.below is not None}

    def device(self, bus_id: str) -> Device | None:
        """A device as lspci lists it, None where it does not."""
        listing = self.listing
        return None if isinstance(listing, Unknown) else listing.value.devices.get(bus_id)

    def field(self, bus_id: str, name: str) -> Reading[int]:
        """A field of a device's link by sysfs, then by lspci."""
        links, device = self._sources.sysfs, self.device(bus_id)
        by_sysfs: Reading[int] = Unknown(f"{_SYSFS} lists no device at {bus_id}", missing=True, recordings=(_SYSFS,))
        if isinstance(links, Unknown):
            by_sysfs = links
        elif bus_id in links:
            by_sysfs = cite(getattr(links[bus_id], name), _SYSFS)
        by_lspci: Reading[int] = Unknown(f"no listing shows {bus_id}", missing=True)
        if device is not None:
            by_lspci = cite(getattr(device, f"link_{name}"), *self.listing.recordings)
        return first_of(by_sysfs, by_lspci, agree=False)

    def link(self, device: str, port: str) -> Reading[LinkUp]:
        """The link between a device and the port above it, of two ends that differ the lower."""
        said = {at: {name: self.field(at, name) for name in _FIELDS} for at in (device, port)}
        lowest: dict[str, int] = {}
        for name in _FIELDS:
            known = [fields[name].value for fields in said.values() if isinstance(fields[name], Known)]
            if not known and not name.endswith("_max"):
                return Unknown(
                    f"the link of {device} below {port}: {said[device][name].reason}",  # type: ignore[union-attr]
                    recordings=said[device][name].recordings,
                )
            lowest[name] = min(known, default=0)
        recordings = tuple(dict.fromkeys(r for fields in said.values() for f in fields.values() for r in f.recordings))
        return Known(LinkUp(device, port, **lowest), recordings=recordings)

    def links_above(self, bus_id: str) -> Reading[tuple[LinkUp, ...]]:
        """The links on the way up from the switch that a device hangs off; none where it hangs off the processor.

        The port right above a device tells of the device's own link. A switch has two ports on the way, of which
        the upper one has a link to the port above the switch.
        """
        path = self.path(bus_id)
        if isinstance(path, Unknown):
            return path
        found = []
        for device, port in zip(path.value[1::2], path.value[2::2], strict=False):
            link = self.link(device, port)
            if isinstance(link, Unknown):
                return link
            found.append(link.value)
        return Known(tuple(found), recordings=path.recordings)

    def own_link(self, bus_id: str) -> Reading[LinkUp]:
        """The link between a device and the port right above it."""
        path = self.path(bus_id)
        if isinstance(path, Unknown):
            return path
        if not path.value:
            return Unknown(f"{bus_id} is on a root bus: no port is above it", recordings=path.recordings)
        return self.link(bus_id, path.value[0])

    def of_class(self, prefix: str, *names: str) -> Reading[tuple[str, ...]]:
        """All devices of a class, by its number or in lspci's words, in bus-id order."""
        return first_of(self._class_by_sysfs(prefix), self._class_by_lspci(prefix, names), agree=False)

    def _class_by_sysfs(self, prefix: str) -> Reading[tuple[str, ...]]:
        links = self._sources.sysfs
        if isinstance(links, Unknown):
            return links
        codes = {bus_id: link.class_code for bus_id, link in links.items()}
        found = [b for b, code in codes.items() if isinstance(code, Known) and code.value.startswith(prefix)]
        if not found and not isinstance(self.listing, Unknown):
            # an older recording holds NVIDIA's devices alone
            return Unknown(f"{_SYSFS} lists no such device", missing=True, recordings=(_SYSFS,))
        return Known(tuple(sorted(found)), recordings=(_SYSFS,))

    def _class_by_lspci(self, prefix: str, names: tuple[str, ...]) -> Reading[tuple[str, ...]]:
        listing = self.listing
        if isinstance(listing, Unknown):
            return listing
        if listing.value.cut:
            return Unknown("lspci stops in the middle of a device", recordings=listing.recordings)
        devices = listing.value.devices.values()
        found = [d.bus_id for d in devices if (d.class_code or "").startswith(prefix) or d.class_name in names]
        return Known(tuple(sorted(found)), recordings=listing.recordings)

    def slot(self, bus_id: str) -> str:
        """The physical slot of a device that is there or gone, as the board calls it; empty where nobody says."""
        device = self.device(bus_id)
        if device is not None and device.physical_slot:
            return device.physical_slot
        above = self._bridges.get(_bus(bus_id))
        port = self.device(above) if above else None
        if port is not None and port.physical_slot:
            return port.physical_slot
        files = self.files
        return "" if isinstance(files, Unknown) else files.slots.get(bus_id.rpartition(".")[0], "")

    def named(self, bus_id: str) -> str:
        """A device with its slot, for a technician."""
        slot = self.slot(bus_id)
        return f"{bus_id} (slot {slot})" if slot else bus_id


def _bus(bus_id: str) -> tuple[str, int]:
    domain, bus, _ = bus_id.split(":")
    return domain, int(bus, 16)
