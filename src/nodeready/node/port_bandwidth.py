"""What the RDMA ports write under load: the slowest by its share of its rate, and whether GPUs' memory took part."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.facts import rdma_files, rdma_write
from nodeready.node.catalogue import RDMA_WRITE
from nodeready.reading import Known, Reading, Unknown, explained_by

if TYPE_CHECKING:
    from nodeready.facts.rdma_write import RdmaWrite, WrittenPort
    from nodeready.node.sources import Sources

_NAMED = 6
_NAME = RDMA_WRITE.name
# the adapter's driver would not take the GPU's memory; other errors are of CUDA, or of the port itself
_REFUSED = re.compile(r"(allocate|create) MR|cuMemGetHandleForAddressRange|DMA-BUF is not supported", re.IGNORECASE)
# a port of an adapter that bonds two may have the rate of both
_BONDED = re.compile(r".*bond.*")


class PortBandwidth:
    """The rdma-write probe's word on the ports that count for jobs; slower ones are left out."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def share(self) -> Reading[float]:
        """What the slowest port wrote, as a part of its rate; ports that gave no figure are the other readings' matter.

        In doubt where several ports shared host memory, or two links may make up one port; where others were
        slow beyond doubt, the slowest of them is the ceiling.
        """
        ports = self._ports()
        if isinstance(ports, Unknown):
            return ports
        shares = {
            port.name: round(port.written.value / port.rate.value, 3)
            for port in ports.value
            if isinstance(port.written, Known) and isinstance(port.rate, Known)
        }
        if not shares:
            return self._silent(ports.value)
        measured = {port.name: port for port in ports.value if port.name in shares}
        worst = min(shares, key=lambda name: shares[name])
        sure = [shares[name] for name, port in measured.items() if not _doubt(port)]
        doubt = _doubt(measured[worst])
        others = f", the slowest of {len(shares)}" if len(shares) > 1 else ""
        return Known(
            shares[worst],
            note=f"{_told(measured[worst])}{others}",
            recordings=(_NAME,),
            doubt=doubt,
            ceiling=min(sure) if doubt and sure else None,
        )

    @property
    def every_port(self) -> Reading[bool]:
        """Whether each active port has a figure; one that has none says nothing good or bad of itself."""
        ports = self._ports()
        if isinstance(ports, Unknown):
            return ports
        if any(isinstance(port.written, Unknown) or isinstance(port.rate, Unknown) for port in ports.value):
            return self._silent(ports.value)
        files = self._sources.documents.read(rdma_files.RDMA_FILES, rdma_files.parse)
        listed = () if isinstance(files, Unknown) else files.ports
        least = self._sources.terms.port_rate.to("Gb/s").value
        up = {port.name for port in listed if port.active and (port.rate or 0) >= least}
        left_out = sorted(up - {port.name for port in ports.value})
        if left_out:
            reason = f"{_some(left_out)} {'are' if len(left_out) > 1 else 'is'} active and did not write"
            return Unknown(reason, recordings=(_NAME, rdma_files.RDMA_FILES.name))
        return Known(True, note=f"{len(ports.value)} of {len(ports.value)}", recordings=(_NAME,))

    @property
    def through_gpu_memory(self) -> Reading[bool]:
        """Whether each port beside a GPU wrote from its memory and to it; false where an adapter refused that memory.

        A refusal counts where the same port wrote through host memory: then nothing else was in the way.
        """
        ports, found = self._ports(), self._document
        if isinstance(found, Unknown):
            return found
        if isinstance(ports, Unknown):
            return ports
        beside = [port for port in ports.value if port.gpu]
        if not beside:
            return Unknown("no active port has a GPU below its PCIe switch", recordings=(_NAME,))
        if isinstance(found.cuda, Unknown) or not found.cuda.value:
            reason = found.cuda.reason if isinstance(found.cuda, Unknown) else "ib_write_bw was built without CUDA"
            return Unknown(f"{reason}: all data went through host memory", recordings=(_NAME,))
        return self._taken(beside)

    @staticmethod
    def _taken(beside: list[WrittenPort]) -> Reading[bool]:
        """Whether the ports, each with a GPU, took its memory."""
        refused = {port.name: error for port in beside if (error := _refusal(port))}
        if refused:
            note = f"{_some(list(refused))} by host memory alone: {next(iter(refused.values()))}"
            return Known(False, note=note, recordings=(_NAME,))
        failed = [port for port in beside if port.memory not in rdma_write.OF_GPUS or isinstance(port.written, Unknown)]
        if failed:
            error = (failed[0].tried[-1][1] if failed[0].tried else "") or failed[0].error
            unknown = Unknown(f"{_some([port.name for port in failed])} did not write through it: {error}")
            causes = ("driver.responds", "gpu.count", "gpu.mig", "frameworks.torch")
            return explained_by(replace(unknown, recordings=(_NAME,)), *causes)
        kinds = sorted({"DMA-BUF" if port.memory == "cuda-dmabuf" else "peermem" for port in beside})
        return Known(True, note=f"{len(beside)} by {' and '.join(kinds)}", recordings=(_NAME,))

    @property
    def _document(self) -> RdmaWrite | Unknown:
        found = self._sources.documents.read(RDMA_WRITE, rdma_write.parse)
        return explained_by(found, "driver.responds") if isinstance(found, Unknown) else found

    def _ports(self) -> Reading[list[WrittenPort]]:
        """The ports at the rate from which one counts; one of unknown rate may be among them."""
        found, least = self._document, self._sources.terms.port_rate
        if isinstance(found, Unknown):
            return found
        if found.unplaced:
            return Unknown(f"{found.unplaced} entries of {_NAME} do not say of which port", recordings=(_NAME,))
        slowest = least.to("Gb/s").value
        ports = [p for p in found.ports.values() if isinstance(p.rate, Unknown) or p.rate.value >= slowest]
        if not ports:
            reason = f"no active RDMA port of {least} or more was there to write through"
            return Unknown(reason, recordings=(_NAME,), causes=("network.ports-active",))
        return Known(ports)

    @staticmethod
    def _silent(ports: list[WrittenPort]) -> Unknown:
        """Why ports have no figure."""
        reasons = [
            f"{port.name}: {gap.reason}"
            for port in ports
            if (gap := next((r for r in (port.written, port.rate) if isinstance(r, Unknown)), None)) is not None
        ]
        more = f"; and {len(reasons) - 2} more" if len(reasons) > 2 else ""
        return Unknown("; ".join(reasons[:2]) + more, recordings=(_NAME,))


def _doubt(port: WrittenPort) -> str:
    if port.memory == rdma_write.HOST and port.at_once > 1:
        return f"{port.at_once} ports shared the host's memory channels"
    return "two links may make up this port's rate, of which one was used" if _BONDED.fullmatch(port.name) else ""


def _refusal(port: WrittenPort) -> str:
    """What an adapter said of the GPU's memory where it then took the host's; empty where it refused none."""
    if port.memory != rdma_write.HOST or isinstance(port.written, Unknown):
        return ""
    return next((error for _, error in reversed(port.tried) if _REFUSED.search(error)), "")


def _told(port: WrittenPort) -> str:
    through = "host memory" if port.memory == rdma_write.HOST else f"the memory of {port.gpu or 'a GPU'}"
    written, rate = (f"{r.value:.5g}" if isinstance(r, Known) else "?" for r in (port.written, port.rate))
    return f"{port.name} wrote {written} of {rate} Gb/s through {through}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
