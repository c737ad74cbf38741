"""The NVLink fabric: its switches, which GPUs it joins, and its own word of its health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeready.facts import pci_sysfs
from nodeready.node.catalogue import NVML
from nodeready.node.link_log import LinkLog
from nodeready.node.nvlink_growth import NvLinkGrowth
from nodeready.node.peers import Peers
from nodeready.reading import Known, Reading, Unknown, cite, first_of

if TYPE_CHECKING:
    from nodeready.facts.lspci import Listing
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

NVSWITCH = "10de:22a3"
# the fields of the fabric's health, what each is about, and its good word
_HEALTH = {
    "summary": ("summary", "Healthy"),
    "bandwidth": ("bandwidth", "Full"),
    "recovery": ("route recovery in progress", "False"),
    "route": ("route unhealthy", "False"),
    "timeout": ("access timeout recovery", "False"),
    "configuration": ("configuration", "None"),
}
NOT_TOLD = "not told"


class Fabric:
    """The NVSwitches of the node, and what the kernel said of links."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.log = LinkLog(sources)

    @property
    def switches(self) -> Reading[int]:
        """NVSwitches that answer on the PCI bus, by lspci, else by what the kernel shows.

        The kernel keeps the ids of a device that answers no more, so the two are not compared.
        """
        listed = [self._listed(name, listing) for name, listing in self._sources.pci]
        return first_of(*listed, self._in_sysfs(), agree=False)

    def _listed(self, name: str, listing: Listing | Unknown) -> Reading[int]:
        if isinstance(listing, Unknown):
            return listing
        if listing.cut:
            return Unknown(f"{name} stops in the middle of a device", recordings=(name,))
        devices = [device for device in listing.devices.values() if device.is_nvswitch]
        dead = [device.bus_id for device in devices if not device.readable]
        note = f"{', '.join(dead)} there but unreadable (rev ff)" if dead else ""
        return Known(len(devices) - len(dead), note=note, recordings=(name,))

    def _in_sysfs(self) -> Reading[int]:
        links = self._sources.sysfs
        if isinstance(links, Unknown):
            return links
        ids = [link.vendor_device for link in links.values()]
        count = sum(isinstance(each, Known) and each.value == NVSWITCH for each in ids)
        return Known(count, recordings=(pci_sysfs.PCI_LINKS.name,))


class GpuFabric:
    """One GPU's part in it; `gpus` are all of the node's."""

    def __init__(self, sources: Sources, gpu: Gpu, gpus: tuple[Gpu, ...]) -> None:
        self._sources, self._gpu = sources, gpu
        self.growth = NvLinkGrowth(sources, gpu)
        self.peers = Peers(sources, gpu, gpus)

    @property
    def health(self) -> Reading[str]:
        """`healthy`, what is wrong in words, or `not told`, as most platforms of Hopper have it."""
        told: dict[str, Reading[Any]] = {
            name: self._gpu.smi(f"fabric_health_{name}", volatile=True) for name in _HEALTH
        }
        known = {name: reading for name, reading in told.items() if isinstance(reading, Known)}
        recordings = tuple(dict.fromkeys(name for reading in told.values() for name in reading.recordings))
        bad = [f"{_HEALTH[n][0]} {reading.value}" for n, reading in known.items() if reading.value != _HEALTH[n][1]]
        if bad:
            return Known(", ".join(bad), recordings=recordings)
        unknown = [r for r in told.values() if isinstance(r, Unknown) and not _is_silence(r)]
        if unknown:
            return self._by_nvml(unknown[0])
        return Known("healthy" if known else NOT_TOLD, recordings=recordings)

    def _by_nvml(self, instead: Unknown) -> Reading[str]:
        found = self._sources.nvml
        if not instead.missing or isinstance(found, Unknown):
            return instead
        word = found.gpus.get(self._gpu.bus_id or "", {}).get("fabric_health", instead)
        if isinstance(word, Unknown):
            silent = "reports no fabric health" in word.reason
            return Known(NOT_TOLD, recordings=(NVML.name,)) if silent else cite(word, NVML.name)
        return Known("healthy" if word.value == "none" else str(word.value), recordings=(NVML.name,))


def _is_silence(reading: Unknown) -> bool:
    """Whether the platform, or a driver of its time, reports no such thing."""
    return "'N/A'" in reading.reason or reading.reason.startswith("the document has no fabric/health")
