"""The node: what is read of it as a whole, and its GPUs in bus-id order."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nodeready.facts import dmidecode, meminfo, nvcc, os_release, pci_sysfs
from nodeready.facts.pci_sysfs import is_gpu
from nodeready.node.adapters import Adapters
from nodeready.node.all_reduce import AllReduce
from nodeready.node.bmc import Bmc
from nodeready.node.catalogue import NVML
from nodeready.node.consistency import Consistency
from nodeready.node.container import Container
from nodeready.node.container_parts import ContainerParts
from nodeready.node.copies import GpuCopies
from nodeready.node.dcgm import Dcgm
from nodeready.node.dimms import Dimms
from nodeready.node.drive_rates import DriveRates
from nodeready.node.driver import Driver, FabricManager, Torch
from nodeready.node.driver_parts import DriverParts
from nodeready.node.fabric import Fabric, GpuFabric
from nodeready.node.firmware import Firmware
from nodeready.node.frameworks import Frameworks
from nodeready.node.gpus import Gpu
from nodeready.node.host import Host
from nodeready.node.host_log import HostLog
from nodeready.node.kernel import Kernel
from nodeready.node.network import Network
from nodeready.node.occupation import held_by
from nodeready.node.pci_bus import PciBus
from nodeready.node.pci_tree import PciTree
from nodeready.node.pcie_paths import PciePath
from nodeready.node.places import Places
from nodeready.node.port_bandwidth import PortBandwidth
from nodeready.node.sources import Sources
from nodeready.node.storage import Storage
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
        self.pci_tree = PciTree(self.sources)
        for gpu in self.gpus:
            gpu.tree, gpu.path = self.pci_tree, PciePath(self.sources, gpu, self.pci_tree)
        self.pci = PciBus(self.sources, self.gpus, self.pci_tree)
        self.places = Places(self.sources, self.gpus, self.pci_tree, self.pci)
        self.driver = Driver(self.sources)
        self.driver_parts = DriverParts(self.sources, self.gpus, self.driver)
        self.consistency = Consistency(self.gpus)
        for gpu in self.gpus:
            gpu.firmware = Firmware(self.sources, gpu, self.driver)
            gpu.fabric, gpu.copies = GpuFabric(self.sources, gpu, self.gpus), GpuCopies(self.sources, gpu, self.gpus)
        self.all_reduce = AllReduce(self.sources, self.gpus)
        self.fabric_manager = FabricManager(self.sources, self.driver)
        self.torch = Torch(self.sources)
        self.fabric, self.frameworks = Fabric(self.sources), Frameworks(self.sources, self.driver)
        self.kernel = Kernel(self.sources, self.gpus)
        self.container = Container(self.sources)
        self.container_parts = ContainerParts(self.sources, self.container)
        self.network, self.adapters = Network(self.sources), Adapters(self.sources)
        self.port_bandwidth = PortBandwidth(self.sources)
        self.host, self.host_log = Host(self.sources), HostLog(self.sources)
        self.dimms, self.storage = Dimms(self.sources, self.host), Storage(self.sources, self.host)
        self.drive_rates = DriveRates(self.sources)
        self.bmc = Bmc(self.sources, self.host)
        self.dcgm = Dcgm(self.sources, self.gpus)

    @cached_property
    def held_by(self) -> str:
        """Which job holds the node, in words; empty where none is known to."""
        return held_by(self.sources)

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
        found = {device.bus_id for device in devices}
        note = note or self._missing_from(found)
        return Known(len(devices) - len(dead), note=note, recordings=(name,), defect=self._beside_slots(found))

    def _sysfs_gpus(self) -> Reading[int]:
        links = self.sources.sysfs
        if isinstance(links, Unknown):
            return links
        found = {bus_id for bus_id, link in links.items() if is_gpu(link)}
        dead = sorted(bus_id for bus_id in found if not links[bus_id].answers)
        note = f"{', '.join(dead)} there but unreadable (all ones)" if dead else self._missing_from(found)
        defect = self._beside_slots(found)
        return Known(len(found) - len(dead), note=note, recordings=(pci_sysfs.PCI_LINKS.name,), defect=defect)

    @property
    def gpu_count(self) -> Reading[int]:
        """GPUs that the driver lists."""
        by_smi = first_of(*(self._listed_by(name, document) for name, document in self.sources.smi))
        by_nvml = self._listed_by_nvml()
        if isinstance(by_smi, Known) and isinstance(by_nvml, Known) and by_nvml.defect:
            return replace(by_smi, defect=by_nvml.defect, recordings=(*by_smi.recordings, *by_nvml.recordings))
        return first_of(by_smi, by_nvml)

    def _listed_by(self, name: str, document: Smi | Unknown) -> Reading[int]:
        if isinstance(document, Unknown):
            return explained_by(document, "driver.responds")
        reading = cite(document.attached, name)
        contradiction = self.sources.contradiction(name, document)
        if isinstance(reading, Unknown) or contradiction is not None:
            return reading if contradiction is None else contradiction
        found = set(document.gpus)
        note, defect = self._missing_from(found), self._beside_slots(found)
        return Known(reading.value, note=note, recordings=(name,), defect=defect)

    def _listed_by_nvml(self) -> Reading[int]:
        found = self.sources.nvml
        if isinstance(found, Unknown):
            return found
        usable = set(found.gpus) - set(found.lost)
        note, defect = self._missing_from(usable), self._beside_slots(set(found.gpus))
        if found.lost:
            defect = f"NVML cannot use {', '.join(f'{at} ({why})' for at, why in found.lost.items())}"
            return Known(len(usable), note=note, recordings=(NVML.name,), defect=defect)
        reading = cite(found.device_count, NVML.name)
        return reading if isinstance(reading, Unknown) else replace(reading, note=note, defect=defect)

    def _missing_from(self, listed: set[str]) -> str:
        missing = [f"{gpu.subject} ({self._place_of(gpu)})" for gpu in self.gpus if gpu.bus_id not in listed]
        return f"missing: {', '.join(missing)}" if missing else ""

    def _place_of(self, gpu: Gpu) -> str:
        """Bus id and physical slot, as far as they are known."""
        slot = self.pci_tree.slot(gpu.bus_id) if gpu.bus_id else ""
        return f"{gpu.bus_id or 'slot unknown'}{f', slot {slot}' if slot else ''}"

    def _beside_slots(self, listed: set[str]) -> str:
        """What is wrong where the site lists its slots and a GPU answers in another one."""
        strays = sorted(listed - set(self.sources.terms.slots)) if self.sources.terms.slots else []
        return f"{', '.join(strays)} stands in no slot of the baseline's gpu.slots" if strays else ""

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
            slot = self.pci_tree.slot(gpu.bus_id) if gpu.bus_id else ""
            parts = [gpu.bus_id or "slot unknown", *([f"serial {serial.value}"] if isinstance(serial, Known) else [])]
            labels[gpu.subject] = f"{gpu.subject} ({', '.join([*parts, *([f'slot {slot}'] if slot else [])])})"
        return labels

    def identity(self) -> dict[str, Any]:
        """Who this node is, for reports; what is unknown is None."""

        def text(reading: Reading[Any]) -> str | None:
            return str(reading.value) if isinstance(reading, Known) else None

        rows = [
            {
                "subject": gpu.subject,
                "bus_id": gpu.bus_id,
                "uuid": text(gpu.smi("uuid")),
                "serial": text(gpu.smi("serial")),
                "product": text(gpu.smi("product_name")),
                "slot": (self.pci_tree.slot(gpu.bus_id) if gpu.bus_id else "") or None,
            }
            for gpu in self.gpus
        ]
        products = [row["product"] for row in rows if row["product"]]
        return {
            "product": ", ".join(f"{products.count(p)} x {p}" for p in dict.fromkeys(products)) or None,
            "driver": text(self.driver.version),
            "cuda": text(self.driver.cuda_version),
            "os": text(self.operating_system),
            "memory": text(self.memory_installed),
            "gpus": rows,
        }
