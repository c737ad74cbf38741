"""The node: what is read of it as a whole, and its GPUs in bus-id order."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from nodeready.facts import dmidecode, meminfo, nvcc, os_release, pci_sysfs
from nodeready.node.catalogue import NVML
from nodeready.node.container import Container
from nodeready.node.driver import Driver, FabricManager, Torch
from nodeready.node.gpus import Gpu
from nodeready.node.kernel import Kernel
from nodeready.node.network import Network
from nodeready.node.sources import Sources, is_gpu
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of

if TYPE_CHECKING:
    from nodeready.evidence.capture import Evidence
    from nodeready.facts.lspci import Listing
    from nodeready.facts.nvidia_smi import Smi
    from nodeready.node.terms import Terms
    from nodeready.quantity import Quantity

USABLE_SHARE = 0.97
KNOWN_SYSTEMS = ("ubuntu", "debian", "rhel", "rocky", "almalinux", "centos", "ol")


class Node:
    """One node as its evidence shows it; as many slots are planned as the terms say, whatever was found."""

    def __init__(self, evidence: Evidence, terms: Terms) -> None:
        self.evidence = evidence
        self.sources = Sources(evidence, terms)
        ids = self.sources.bus_ids
        self.gpus = tuple(Gpu(self.sources, f"gpu{index}", bus_id) for index, bus_id in enumerate(ids))
        self.driver = Driver(self.sources)
        self.fabric_manager = FabricManager(self.sources, self.driver)
        self.torch = Torch(self.sources)
        self.kernel = Kernel(self.sources, self.gpus)
        self.container = Container(self.sources)
        self.network = Network(self.sources)

    @property
    def operating_system(self) -> Reading[str]:
        """Id and version, as in `ubuntu 22.04`; of a system that is not known by its id also what it is like."""
        probe = os_release.OS_RELEASE
        release = self.sources.documents.read(probe, os_release.parse)
        if isinstance(release, Unknown):
            return release
        if isinstance(release.id, Unknown) or isinstance(release.version_id, Unknown):
            return cite(release.id if isinstance(release.id, Unknown) else release.version_id, probe.name)
        name = f"{release.id.value} {release.version_id.value}"
        if release.id.value in KNOWN_SYSTEMS or isinstance(release.id_like, Unknown):
            return Known(name, recordings=(probe.name,))
        return Known(f"{name} (like {release.id_like.value})", recordings=(probe.name,))

    @property
    def memory_installed(self) -> Reading[Quantity]:
        """The sum of the DIMMs, nearly all of which the kernel must use; without them MemTotal."""
        dimms, usable = self._dimms, self._mem_total
        if isinstance(dimms, Unknown):
            if not dimms.missing or isinstance(usable, Unknown):
                return usable if dimms.missing else dimms
            note = f"MemTotal; {dimms.reason}"
            reason = "the kernel keeps a part for itself"
            return Known(usable.value, note=note, recordings=usable.recordings, share=USABLE_SHARE, share_reason=reason)
        if isinstance(usable, Unknown):
            reason = f"the DIMMs add up to {dimms.value}, what the kernel uses of it is unknown: {usable.reason}"
            return Unknown(reason, recordings=(*dimms.recordings, *usable.recordings))
        recordings = (*dimms.recordings, *usable.recordings)
        if usable.value > dimms.value:
            reason = (
                f"the DIMMs add up to {dimms.value}, yet MemTotal is {usable.value}: a part of the DIMM list is missing"
            )
            return Unknown(reason, recordings=recordings)
        note = f"sum of the DIMMs; MemTotal {usable.value.to('GiB')}"
        defect = ""
        if usable.value < dimms.value * USABLE_SHARE:
            defect = f"the kernel uses less than {USABLE_SHARE:.0%} of it"
        return Known(dimms.value, note=note, recordings=recordings, defect=defect)

    @property
    def _dimms(self) -> Reading[Quantity]:
        memory = self.sources.documents.read(dmidecode.DMI_MEMORY, dmidecode.parse)
        if isinstance(memory, Unknown):
            return memory
        return cite(memory.installed, dmidecode.DMI_MEMORY.name).map(lambda size: size.to("GiB"))

    @property
    def _mem_total(self) -> Reading[Quantity]:
        info = self.sources.documents.read(meminfo.MEMINFO, meminfo.parse)
        if isinstance(info, Unknown):
            return info
        return cite(info.total, meminfo.MEMINFO.name).map(lambda size: size.to("GiB"))

    @property
    def gpus_on_bus(self) -> Reading[int]:
        """GPUs that answer on the PCI bus, by lspci, else by what the kernel shows."""
        listings = [self._listed_gpus(name, listing) for name, listing in self.sources.pci]
        return first_of(*listings, self._sysfs_gpus())

    def _listed_gpus(self, name: str, listing: Listing | Unknown) -> Reading[int]:
        if isinstance(listing, Unknown):
            return listing
        if listing.cut or not listing.devices:
            problem = "stops in the middle of a device" if listing.cut else "lists no device"
            return Unknown(f"{name} {problem}", recordings=(name,))
        devices = [device for device in listing.devices.values() if device.is_gpu]
        dead = sorted(device.bus_id for device in devices if not device.readable)
        note = f"{', '.join(dead)} there but unreadable (rev ff)" if dead else ""
        note = note or self._missing_from({device.bus_id for device in devices})
        return Known(len(devices) - len(dead), note=note, recordings=(name,))

    def _sysfs_gpus(self) -> Reading[int]:
        links = self.sources.sysfs
        if isinstance(links, Unknown):
            return links
        found = {bus_id for bus_id, link in links.items() if is_gpu(link)}
        return Known(len(found), note=self._missing_from(found), recordings=(pci_sysfs.PCI_LINKS.name,))

    @property
    def gpu_count(self) -> Reading[int]:
        """GPUs that the driver lists."""
        readings = [self._listed_by(name, document) for name, document in self.sources.smi]
        return first_of(*readings, self._listed_by_nvml())

    def _listed_by(self, name: str, document: Smi | Unknown) -> Reading[int]:
        if isinstance(document, Unknown):
            return explained_by(document, "driver.responds")
        reading = cite(document.attached, name)
        contradiction = self.sources.contradiction(name, document)
        if isinstance(reading, Unknown) or contradiction is not None:
            return reading if contradiction is None else contradiction
        return Known(reading.value, note=self._missing_from(set(document.gpus)), recordings=(name,))

    def _listed_by_nvml(self) -> Reading[int]:
        found = self.sources.nvml
        if isinstance(found, Unknown):
            return found
        reading = cite(found.device_count, NVML.name)
        if isinstance(reading, Unknown):
            return reading
        return Known(reading.value, note=self._missing_from(set(found.gpus)), recordings=(NVML.name,))

    def _missing_from(self, listed: set[str]) -> str:
        missing = [f"{gpu.subject} ({gpu.bus_id or 'slot unknown'})" for gpu in self.gpus if gpu.bus_id not in listed]
        return f"missing: {', '.join(missing)}" if missing else ""

    @property
    def toolkit_version(self) -> Reading[str]:
        """The release that nvcc prints."""
        found = self.sources.documents.read(nvcc.NVCC, nvcc.parse)
        return cite(found, nvcc.NVCC.name)

    def label(self, subject: str) -> str:
        """A subject with what a technician finds it by: bus id and serial number."""
        return self._labels.get(subject, subject)

    @cached_property
    def _labels(self) -> dict[str, str]:
        labels = {}
        for gpu in self.gpus:
            serial = gpu.smi("serial")
            parts = [gpu.bus_id or "slot unknown", *([f"serial {serial.value}"] if isinstance(serial, Known) else [])]
            labels[gpu.subject] = f"{gpu.subject} ({', '.join(parts)})"
        return labels

    def identity(self) -> dict[str, Any]:
        """Who this node is, for reports; what is unknown is None."""

        def text(reading: Reading[Any]) -> str | None:
            return str(reading.value) if isinstance(reading, Known) else None

        rows = []
        for gpu in self.gpus:
            device = gpu.device
            rows.append(
                {
                    "subject": gpu.subject,
                    "bus_id": gpu.bus_id,
                    "uuid": text(gpu.smi("uuid")),
                    "serial": text(gpu.smi("serial")),
                    "product": text(gpu.smi("product_name")),
                    "slot": device.value.physical_slot or None if isinstance(device, Known) else None,
                }
            )
        products = [row["product"] for row in rows if row["product"]]
        return {
            "product": ", ".join(f"{products.count(p)} x {p}" for p in dict.fromkeys(products)) or None,
            "driver": text(self.driver.version),
            "cuda": text(self.driver.cuda_version),
            "os": text(self.operating_system),
            "memory": text(self.memory_installed),
            "gpus": rows,
        }
