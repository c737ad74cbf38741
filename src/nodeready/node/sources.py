"""Where each datum of a GPU is to be found, in which order, and how the forms name the same GPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nodeready.evidence.recording import Ended
from nodeready.facts import (
    kernel_log,
    lspci,
    matmul,
    nvlink,
    nvml,
    pci_sysfs,
    query_gpu,
    torch_info,
)
from nodeready.node.catalogue import MATMUL, NVML, TORCH
from nodeready.node.causes import FABRIC, STARTS_CUDA, waits_for_fabric
from nodeready.node.documents import Documents
from nodeready.node.smi_forms import capability, forms
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.evidence.capture import Evidence
    from nodeready.evidence.probe import Probe
    from nodeready.facts.kernel_log import KernelLog
    from nodeready.facts.lspci import Device, Listing
    from nodeready.facts.matmul import Result
    from nodeready.facts.nvidia_smi import Smi
    from nodeready.facts.nvlink import Link
    from nodeready.facts.nvml import Nvml
    from nodeready.facts.pci_sysfs import PciLink
    from nodeready.node.gpus import Gpu
    from nodeready.node.terms import Terms

SLOT_UNKNOWN = "fewer GPUs are known than planned, so this one's slot is unknown"
_LOST = ("gpu.count", "pcie.gpu-present")
_LSPCI = {
    "generation": "link_generation",
    "generation_max": "link_generation_max",
    "width": "link_width",
    "width_max": "link_width_max",
}


class Sources:
    """The documents of one node, asked by bus id."""

    def __init__(self, evidence: Evidence, terms: Terms) -> None:
        self.documents, self.terms = Documents(evidence), terms
        self._fields: dict[tuple[str | None, str], list[Reading[Any]]] = {}
        self._nvlinks: dict[str, Reading[tuple[Link, ...]]] = {}

    @cached_property
    def smi(self) -> tuple[tuple[str, Smi | Unknown], ...]:
        """The two forms of nvidia-smi's full document, then its CSV, and its table where it stands alone.

        One that overran its deadline lets NVML be asked: `driver.responds` has then failed the node anyway.
        """
        asked = forms(self.documents.evidence.recordings)
        return tuple((probe.name, self._or_overrun(probe, parse)) for probe, parse in asked)

    def _or_overrun(self, probe: Probe, parse: Callable[[bytes], Smi | Unknown]) -> Smi | Unknown:
        document, recording = self.documents.read(probe, parse), self.documents.evidence.get(probe.name)
        overran = recording is not None and recording.ended in (Ended.TIMED_OUT, Ended.ABANDONED)
        return replace(document, missing=True) if overran and isinstance(document, Unknown) else document

    @cached_property
    def nvml(self) -> Nvml | Unknown:
        """What the driver's library says, asked for each GPU by a process of its own."""
        found = self.documents.read(NVML, nvml.parse)
        return explained_by(found, "driver.responds") if isinstance(found, Unknown) else found

    @cached_property
    def pci(self) -> tuple[tuple[str, Listing | Unknown], ...]:
        """The PCI listings, the fullest first."""
        probes = (lspci.LSPCI_NNVVV, lspci.LSPCI_VVV, lspci.LSPCI_NN)
        return tuple((probe.name, self.documents.read(probe, lspci.parse)) for probe in probes)

    @cached_property
    def sysfs(self) -> dict[str, PciLink] | Unknown:
        """The links of PCI devices as the kernel shows them to any user."""
        return self.documents.read(pci_sysfs.PCI_LINKS, pci_sysfs.parse)

    @cached_property
    def kernel_logs(self) -> tuple[tuple[str, KernelLog | Unknown], ...]:
        """The kernel's ring buffer, and the journal's copy of it."""
        probes = (kernel_log.DMESG, kernel_log.JOURNAL)
        return tuple((probe.name, self.documents.read(probe, kernel_log.parse)) for probe in probes)

    @cached_property
    def bus_ids(self) -> tuple[str | None, ...]:
        """One bus id for each planned slot, in order: the site's list, else what is known; None at its end."""
        return self.terms.slots or self._known_bus_ids()

    def _known_bus_ids(self) -> tuple[str | None, ...]:
        known: set[str] = set()
        for _, listing in self.pci:
            if not isinstance(listing, Unknown):
                known |= {bus_id for bus_id, device in listing.devices.items() if device.is_gpu}
        if not isinstance(self.sysfs, Unknown):
            known |= {bus_id for bus_id, link in self.sysfs.items() if pci_sysfs.is_gpu(link)}
        for _, document in self.smi:
            if not isinstance(document, Unknown):
                known |= set(document.gpus)
        named = set()
        for _, log in self.kernel_logs:
            if not isinstance(log, Unknown):
                named |= {*(xid.bus_id for xid in log.xids if xid.bus_id), *log.fallen_off}
        if not isinstance(self.nvml, Unknown):
            known |= set(self.nvml.gpus)
        for bus_id in sorted(named - known)[: max(0, self.terms.gpu_count - len(known))]:
            known.add(bus_id)
        found: list[str | None] = [*sorted(known)[: self.terms.gpu_count]]
        return tuple(found + [None] * (self.terms.gpu_count - len(found)))

    def listed_bus_ids(self) -> list[str]:
        """Every GPU that a driver document lists, planned or not."""
        documents = [document for _, document in self.smi if not isinstance(document, Unknown)]
        by_nvml = [] if isinstance(self.nvml, Unknown) else list(self.nvml.gpus)
        return sorted({*by_nvml, *(bus_id for document in documents for bus_id in document.gpus)})

    def is_listed(self, bus_id: str) -> bool:
        """Whether a driver document lists a GPU there."""
        return bus_id in self.listed_bus_ids()

    def contradiction(self, name: str, document: Smi) -> Unknown | None:
        """Why a driver document cannot be this node's, or tells two GPUs as one; None where nothing says so."""
        uuids = [fields["uuid"].value for fields in document.gpus.values() if isinstance(fields["uuid"], Known)]
        twice = sorted({uuid for uuid in uuids if uuids.count(uuid) > 1})
        if twice:
            return Unknown(f"{name} gives the UUID {twice[0]} to several GPUs", recordings=(name,))
        for listing_name, listing in self.pci:
            if isinstance(listing, Unknown) or listing.cut:
                continue
            strange = sorted(bus_id for bus_id in document.gpus if bus_id not in listing.devices)
            if strange:
                reason = f"{name} lists a GPU at {', '.join(strange)}, {listing_name} lists no device there"
                return Unknown(reason, recordings=(name, listing_name))
        return None

    def smi_fields(self, bus_id: str | None, field: str) -> list[Reading[Any]]:
        """A field of one GPU in each form of nvidia-smi's document, then by NVML."""
        if (at := (bus_id, field)) not in self._fields:
            by_smi = [cite(self._smi_field(document, bus_id, field), name) for name, document in self.smi]
            self._fields[at] = [*by_smi, cite(self._nvml_field(bus_id, field), NVML.name)]
        return list(self._fields[at])

    def _nvml_field(self, bus_id: str | None, field: str) -> Reading[Any]:
        found = self.nvml
        if isinstance(found, Unknown):
            return found
        if bus_id is None:
            return Unknown(SLOT_UNKNOWN, causes=_LOST)
        reading = found.gpu_field(bus_id, field)
        if isinstance(reading, Known) or (bus_id in found.gpus and bus_id not in found.refused):
            return reading
        waits = bus_id in found.gpus and bus_id not in found.lost
        return explained_by(reading, *(("health.recovery-action",) if waits else _LOST))

    def _smi_field(self, document: Smi | Unknown, bus_id: str | None, field: str) -> Reading[Any]:
        if isinstance(document, Unknown):
            return explained_by(document, "driver.responds")
        if bus_id is None:
            return Unknown(SLOT_UNKNOWN, causes=_LOST)
        fields = document.gpus.get(bus_id)
        if fields is None:
            return Unknown(f"the driver lists no GPU at {bus_id}", causes=_LOST)
        return fields[field]

    def pci_device(self, bus_id: str | None) -> Reading[Device]:
        """The device at a bus id, from the first listing that is there."""
        absent: list[Unknown] = []
        for name, listing in self.pci:
            if isinstance(listing, Unknown):
                if not listing.missing:
                    return listing
                absent.append(listing)
                continue
            device = listing.devices.get(bus_id) if bus_id else None
            if device is None:
                reason = f"{name} lists no device at {bus_id}" if bus_id else SLOT_UNKNOWN
                return Unknown(reason, recordings=(name,), causes=_LOST)
            if not device.readable:
                reason = f"the device at {bus_id} does not answer (rev {device.revision})"
                return Unknown(reason, recordings=(name,), causes=_LOST)
            return Known(device, recordings=(name,))
        return Unknown("; ".join(a.reason for a in absent), missing=True)

    def pci_link(self, bus_id: str | None, field: str) -> Reading[int]:
        """A field of the link by lspci, then by sysfs."""
        device = self.pci_device(bus_id)
        name = pci_sysfs.PCI_LINKS.name
        by_lspci: Reading[int]
        by_lspci = (
            device if isinstance(device, Unknown) else cite(getattr(device.value, _LSPCI[field]), *device.recordings)
        )
        if isinstance(self.sysfs, Unknown):
            return first_of(by_lspci, self.sysfs, agree=False)
        link = self.sysfs.get(bus_id or "")
        if link is None:
            reason = f"{name} lists no device at {bus_id}" if bus_id else SLOT_UNKNOWN
            return first_of(by_lspci, Unknown(reason, recordings=(name,), causes=_LOST), agree=False)
        return first_of(by_lspci, cite(getattr(link, field), name), agree=False)

    def smi_capability(self, bus_id: str | None) -> Reading[str]:
        """The compute capability by the driver."""
        probe = query_gpu.COMPUTE_CAPABILITY
        table = self.documents.read(probe, query_gpu.parse)
        asked: Reading[str]
        if isinstance(table, Unknown):
            asked = explained_by(table, "driver.responds")
        else:
            asked = cite(self._row(table, bus_id, probe.name), probe.name)
        return first_of(asked, *(cite(r, name) for name, form in self.smi for r in capability(name, form, bus_id)))

    def nvml_capability(self, bus_id: str | None) -> Reading[str]:
        """The compute capability by NVML."""
        return cite(self._nvml_field(bus_id, "compute_capability"), NVML.name)

    def torch_capability(self, bus_id: str | None) -> Reading[str]:
        """The compute capability by CUDA."""
        info = self.documents.read(TORCH, torch_info.parse)
        if isinstance(info, Unknown):
            return explained_by(info, "driver.responds", "frameworks.torch")
        row = self._row(info.devices, bus_id, TORCH.name)
        # a GPU that CUDA does not show may be one that no driver shows
        return cite(explained_by(row, "driver.responds") if isinstance(row, Unknown) else row, TORCH.name)

    @staticmethod
    def _row(table: dict[str, Reading[str]], bus_id: str | None, name: str) -> Reading[str]:
        if bus_id is None:
            return Unknown(SLOT_UNKNOWN, causes=_LOST)
        if bus_id not in table:
            return Unknown(f"{name} lists no GPU at {bus_id}", causes=_LOST)
        return table[bus_id]

    def nvlinks(self, gpu: Gpu) -> Reading[tuple[Link, ...]]:
        """The links of a GPU by nvidia-smi, then by NVML."""
        if gpu.subject not in self._nvlinks:  # each pair of GPUs asks for both
            by_nvml = cite(self._nvml_field(gpu.bus_id, "nvlinks"), NVML.name)
            self._nvlinks[gpu.subject] = first_of(self._smi_nvlinks(gpu), by_nvml, agree=False)
        return self._nvlinks[gpu.subject]

    def _smi_nvlinks(self, gpu: Gpu) -> Reading[tuple[Link, ...]]:
        """Found by the GPU's UUID, or where no document gives UUIDs by nvidia-smi's index, which is bus order."""
        name = nvlink.NVLINK_STATUS.name
        document = self.documents.read(nvlink.NVLINK_STATUS, nvlink.parse)
        if isinstance(document, Unknown):
            return explained_by(document, "driver.responds")
        uuid = gpu.smi("uuid")
        if isinstance(uuid, Known):
            if sum(self._has_uuid(bus_id, uuid.value) for bus_id in self.bus_ids) > 1:
                return Unknown(f"the driver gives {uuid.value} to several GPUs", recordings=(name,))
            for status in document.gpus.values():
                if isinstance(status.uuid, Known) and status.uuid.value == uuid.value:
                    links = cite(status.links, name)
                    return explained_by(links, "gpu.mig") if isinstance(links, Unknown) else links
            return Unknown(f"{name} lists no GPU {uuid.value}", recordings=(name,), causes=_LOST)
        index = int(gpu.subject.removeprefix("gpu"))
        if index in document.gpus and not any(self._listed()):
            return cite(document.gpus[index].links, name)
        return Unknown(f"{name} names GPUs by UUID, and this one's is unknown", recordings=(name,), causes=uuid.causes)

    def _has_uuid(self, bus_id: str | None, uuid: str) -> bool:
        return any(isinstance(r, Known) and r.value == uuid for r in self.smi_fields(bus_id, "uuid"))

    def _listed(self) -> list[bool]:
        """Whether a driver document lists GPUs, so that indices alone need not be trusted."""
        return [not isinstance(document, Unknown) and bool(document.gpus) for _, document in self.smi]

    def _stranger(self, bus_id: str, uuid: Reading[str]) -> Unknown | None:
        """Why a load result cannot be of the GPU that the driver lists at its bus id."""
        listed = first_of(*self.smi_fields(bus_id, "uuid"))
        if isinstance(uuid, Known) and isinstance(listed, Known) and uuid.value != listed.value:
            reason = f"{MATMUL.name} measured {uuid.value}, the driver lists {listed.value} at {bus_id}"
            return Unknown(reason, recordings=(MATMUL.name, *listed.recordings))
        return None

    @cached_property
    def _matmul(self) -> matmul.Matmul | Unknown:
        found = self.documents.read(MATMUL, matmul.parse)
        if isinstance(found, Unknown):
            fabric = FABRIC if waits_for_fabric(found.reason) else ()
            return explained_by(found, *STARTS_CUDA, "frameworks.torch", *fabric)
        return found

    @property
    def cublas(self) -> Reading[str]:
        """The version of the library that multiplied."""
        found = self._matmul
        return found if isinstance(found, Unknown) else found.cublas

    def matmul_result(self, bus_id: str | None, dtype: str, size: int) -> Result | Unknown:
        """One result of the matmul probe."""
        found = self._matmul
        if isinstance(found, Unknown):
            return found
        if bus_id is None:
            return Unknown(SLOT_UNKNOWN, causes=_LOST)
        result = found.result(bus_id, dtype, size)
        stranger = self._stranger(bus_id, result.uuid)
        if stranger is not None:
            return stranger
        if (bus_id, dtype, size) not in found.results and isinstance(result.tflops, Unknown):
            return Unknown(result.tflops.reason, recordings=(MATMUL.name,), causes=_LOST)
        return result

    def matmul_results(self, bus_id: str | None, dtype: str | None = None) -> list[Result] | Unknown:
        """All results on one GPU, or those of one type."""
        found = self._matmul
        if isinstance(found, Unknown):
            return found
        results = [r for (device, kind, _), r in found.results.items() if device == bus_id and dtype in (kind, None)]
        if found.unplaced_wrong:
            reason = f"{found.unplaced_wrong} wrong products are of a GPU whose bus id is unknown"
            return Unknown(reason, recordings=(MATMUL.name,))
        reason = f"the matmul probe has no {dtype or 'product'} result of {bus_id}" if bus_id else SLOT_UNKNOWN
        return results or Unknown(reason, recordings=(MATMUL.name,), causes=_LOST)
