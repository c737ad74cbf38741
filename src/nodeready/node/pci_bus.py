"""The PCI bus of the node beside its GPUs' own links: adapters, drives, access control, IOMMU, errors in the log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nodeready.facts import pci_files, pci_sysfs, rdma_files
from nodeready.facts.kernel_host import HostEvent
from nodeready.facts.kernel_pcie import CORRECTED, UNCORRECTED
from nodeready.node.host_log import HostLog
from nodeready.node.pci_tree import bandwidth
from nodeready.reading import Known, Reading, Unknown, cite, first_of, first_unknown

if TYPE_CHECKING:
    from nodeready.facts.rdma_files import RdmaFiles
    from nodeready.node.gpus import Gpu
    from nodeready.node.pci_tree import LinkUp, PciTree
    from nodeready.node.sources import Sources

_NAMED = 4
_ADAPTERS = ("02", "Ethernet controller", "Infiniband controller", "Network controller")
_DRIVES = ("0108", "Non-Volatile memory controller")
# GB/s of a link that an adapter of 100 Gb/s needs; what can do less is there to manage the node
_FAST = 12.0
OFF, PASSED, TRANSLATED = "off", "pass-through", "translating"
_IOMMU = {"none": OFF, "identity": PASSED, "DMA": TRANSLATED, "DMA-FQ": TRANSLATED}
_SWITCHED_OFF = ("intel_iommu=off", "amd_iommu=off", "iommu=off")
_VANISH = "the IOMMU translates too: what a peer writes can vanish without an error"


class PciBus:
    """What the bus tells of the node as a whole."""

    def __init__(self, sources: Sources, gpus: tuple[Gpu, ...], tree: PciTree) -> None:
        self._sources, self._gpus, self._tree = sources, gpus, tree
        self.log = BusLog(sources, gpus, tree)

    # ---- links of adapters and drives -------------------------------------------------------------
    @property
    def slow_adapters(self) -> Reading[int]:
        """Fast adapters on a link that trained low, or with less on the way to the processor than their port's rate.

        A link that is at fault for a GPU below it is not told again.
        """
        fast = self.fast_adapters
        if isinstance(fast, Unknown):
            return fast
        told = frozenset().union(*(gpu.path.slow_links for gpu in self._gpus))
        rates, slow, short = self._rates(), [], []
        for bus_id in fast.value:
            own, above = self._tree.own_link(bus_id), self._tree.links_above(bus_id)
            if isinstance(own, Unknown):
                return own
            if isinstance(above, Unknown):
                return above
            name, rate = ("", 0.0) if isinstance(rates, Unknown) else rates.get(bus_id, ("", 0.0))
            links = [own.value, *(link for link in above.value if link.device not in told)]
            limit = _limiting(links, rate)
            if limit:
                slow.append(f"{name}: {limit}" if name else limit)
            short += [link for link in links if link.is_below(self._could(bus_id))]
        if isinstance(rates, Unknown) and short and not slow:
            reason = "less than the adapter could use, and the rate of its ports is unknown"
            return Unknown(f"{short[0]}, {reason}: {rates.reason}", recordings=(*fast.recordings, *rates.recordings))
        note = "; ".join(slow[:_NAMED]) or ("" if fast.value else "no adapter of 100 Gb/s or more")
        return Known(len(slow), note=note, recordings=fast.recordings)

    @cached_property
    def fast_adapters(self) -> Reading[tuple[str, ...]]:
        """The network adapters that could do 100 Gb/s, by their own link."""
        found = self._tree.of_class(*_ADAPTERS)
        if isinstance(found, Unknown):
            return found
        fast = []
        for bus_id in found.value:
            path = self._tree.path(bus_id)
            if isinstance(path, Unknown):
                return path
            if not path.value:
                continue  # beside the processor, without a link
            generation, width = (self._tree.field(bus_id, name) for name in ("generation_max", "width_max"))
            unknown = first_unknown(generation, width)
            if unknown is not None:
                reason = f"what the link of adapter {bus_id} could do is unknown: {unknown.reason}"
                return Unknown(reason, recordings=unknown.recordings)
            if bandwidth(generation.value, width.value) >= _FAST:
                fast.append(bus_id)
        return Known(tuple(fast), recordings=found.recordings)

    def _could(self, bus_id: str) -> float:
        """GB/s of an adapter's own link at its best, 0 where that is unknown."""
        generation, width = (self._tree.field(bus_id, name) for name in ("generation_max", "width_max"))
        if isinstance(generation, Unknown) or isinstance(width, Unknown):
            return 0.0
        return bandwidth(generation.value, width.value)

    def _rates(self) -> dict[str, tuple[str, float]] | Unknown:
        """The name of each RDMA adapter by its bus id, with the rate in Gb/s of its fastest port that is up."""
        files = self._sources.documents.read(rdma_files.RDMA_FILES, rdma_files.parse)
        return files if isinstance(files, Unknown) else _by_bus_id(files)

    @property
    def slow_drives(self) -> Reading[int]:
        """NVMe drives whose link trained below what both its ends can do."""
        found = self._tree.of_class(*_DRIVES)
        if isinstance(found, Unknown):
            return found
        slow = []
        for bus_id in found.value:
            own = self._tree.own_link(bus_id)
            if isinstance(own, Unknown):
                return own
            if own.value.trained_low:
                slow.append(self._words(own.value))
        note = "; ".join(slow[:_NAMED]) or ("" if found.value else "no NVMe drive")
        return Known(len(slow), note=note, recordings=found.recordings)

    def _words(self, link: LinkUp) -> str:
        slot = self._tree.slot(link.device)
        return f"{link}{f', slot {slot}' if slot else ''}"

    # ---- access control and IOMMU -----------------------------------------------------------------
    @property
    def redirecting(self) -> Reading[int]:
        """Ports above a GPU, or above an adapter beside one, that send requests between peers up to the processor."""
        ports = self._ports()
        if isinstance(ports, Unknown):
            return ports
        listing = self._tree.listing
        if isinstance(listing, Unknown):
            return listing
        seen, redirecting = 0, []
        for port in ports.value:
            device = self._tree.device(port)
            if device is None:
                return Unknown(f"lspci lists no port at {port}", recordings=listing.recordings)
            if isinstance(device.redirects, Unknown):
                return cite(device.redirects, *listing.recordings)
            seen += device.redirects.value is not None
            redirecting += [self._tree.named(port)] if device.redirects.value else []
        if not seen:
            return Unknown("lspci shows the access control of none of these ports", recordings=listing.recordings)
        more = f" and {len(redirecting) - _NAMED} more" if len(redirecting) > _NAMED else ""
        note = f"{', '.join(redirecting[:_NAMED])}{more}" if redirecting else f"{seen} ports tell"
        mode = self.iommu
        defect = _VANISH if redirecting and isinstance(mode, Known) and mode.value == TRANSLATED else ""
        return Known(len(redirecting), note=note, recordings=listing.recordings, defect=defect)

    def _ports(self) -> Reading[tuple[str, ...]]:
        """The ports above the GPUs, and above the adapters that share a switch with one."""
        found: dict[str, None] = {}
        fast = self.fast_adapters
        for gpu in self._gpus:
            path = self._tree.path(gpu.bus_id) if gpu.bus_id is not None else None
            if isinstance(path, Unknown) and (isinstance(gpu.device, Known) or gpu.device.missing):
                return path
            found |= dict.fromkeys(path.value if isinstance(path, Known) else ())  # what is above a lost one stays
        for adapter in fast.value if isinstance(fast, Known) else ():
            path = self._tree.path(adapter)
            if isinstance(path, Known) and set(path.value) & set(found):
                found |= dict.fromkeys(path.value)
        if not found:
            return Unknown("no port is known to be above a GPU", causes=("pcie.gpu-present",))
        return Known(tuple(found))

    @property
    def iommu(self) -> Reading[str]:
        """How the IOMMU treats the GPUs: off, pass-through or translating; of GPUs that differ the last of these."""
        return first_of(self._iommu_by_group(), self._iommu_by_options(), agree=False)

    def _iommu_by_group(self) -> Reading[str]:
        links, name = self._sources.sysfs, pci_sysfs.PCI_LINKS.name
        if isinstance(links, Unknown):
            return links
        modes = {}
        for gpu in self._gpus:
            link = links.get(gpu.bus_id or "")
            if link is None:
                continue
            if isinstance(link.iommu, Unknown):
                # kernels before 5.11 do not tell
                return Unknown(f"{name}: {link.iommu.reason}", missing=True, recordings=(name,))
            if link.iommu.value not in _IOMMU:
                return Unknown(f"{name}: iommu_group/type reads {link.iommu.value!r:.40}", recordings=(name,))
            modes[gpu.subject] = _IOMMU[link.iommu.value]
        if not modes:
            return Unknown(f"{name} lists no GPU", missing=True, recordings=(name,), causes=("pcie.gpu-present",))
        worst = max(modes.values(), key=list(_IOMMU.values()).index)
        odd = [subject for subject, mode in modes.items() if mode == worst]
        return Known(worst, note="" if len(odd) == len(modes) else ", ".join(odd), recordings=(name,))

    def _iommu_by_options(self) -> Reading[str]:
        options = self._options()
        if isinstance(options, Unknown):
            return options
        if "iommu=pt" in options.value:
            return Known(PASSED, note="iommu=pt", recordings=options.recordings)
        off = [option for option in _SWITCHED_OFF if option in options.value]
        if off:
            return Known(OFF, note=off[0], recordings=options.recordings)
        return Unknown("the kernel's options name no mode of the IOMMU", missing=True, recordings=options.recordings)

    @property
    def reallocation(self) -> Reading[str]:
        """Whether the kernel was told to lay out the windows of PCI devices anew: on, off, or default."""
        options = self._options()
        if isinstance(options, Unknown):
            return options
        said = [
            word
            for option in options.value
            if option.startswith("pci=")
            for word in option.removeprefix("pci=").split(",")
            if word.partition("=")[0] == "realloc"
        ]
        if not said:
            return Known("default", recordings=options.recordings)
        return Known("off" if said[-1] == "realloc=off" else "on", note=said[-1], recordings=options.recordings)

    def _options(self) -> Reading[tuple[str, ...]]:
        files = self._tree.files
        return files if isinstance(files, Unknown) else cite(files.options, pci_files.PCI_FILES.name)


class BusLog(HostLog):
    """Errors of PCI Express in the kernel log, of GPUs and the ports above them."""

    def __init__(self, sources: Sources, gpus: tuple[Gpu, ...], tree: PciTree) -> None:
        super().__init__(sources)
        self._gpus, self._tree = gpus, tree

    @property
    def uncorrected(self) -> Reading[int]:
        """Errors that were not corrected, and links that went away."""
        return self._told(UNCORRECTED)

    @property
    def corrected(self) -> Reading[int]:
        """Errors that were corrected."""
        return self._told(CORRECTED)

    def _told(self, weight: str) -> Reading[int]:
        placed = self._concerned
        if isinstance(placed, Unknown) and any(log.pcie for _, log in self._logs):
            return placed
        return self._count(weight)

    @cached_property
    def _events(self) -> list[HostEvent]:
        placed = self._concerned
        devices = placed.value if isinstance(placed, Known) else frozenset()
        told = [event for _, log in self._logs for event in log.pcie if event.bus_id in devices]
        found = [HostEvent(event.weight, event.text) for event in told]
        return list(dict.fromkeys(found)) if len(self._logs) > 1 else found

    @cached_property
    def _concerned(self) -> Reading[frozenset[str]]:
        """The GPUs that answer and the ports above them: what went with a lost GPU is told by its own failure."""
        found: set[str] = set()
        for gpu in self._gpus:
            if gpu.bus_id is None or (isinstance(gpu.device, Unknown) and not gpu.device.missing):
                continue
            path = self._tree.path(gpu.bus_id)
            if isinstance(path, Unknown):
                return path
            found |= {gpu.bus_id, *path.value}
        return Known(frozenset(found))


def _by_bus_id(files: RdmaFiles) -> dict[str, tuple[str, float]]:
    return {
        adapter.bus_id: (
            f"{adapter.name} ({adapter.bus_id})",
            max((port.rate or 0.0 for port in adapter.ports if port.active), default=0.0),
        )
        for adapter in files.adapters
        if adapter.bus_id
    }


def _limiting(links: list[LinkUp], rate: float) -> str:
    """What limits an adapter on its way, in words: its own link that trained low, or the first that is too slow."""
    own = links[0]
    if own.trained_low:
        return str(own)
    real = [link for link in links if not link.is_emulated]
    short = min(real, key=lambda link: link.gives, default=None)
    if short is None or short.gives * 8 >= rate:
        return ""
    return f"its port of {rate:g} Gb/s is limited to {short.gives * 8:.0f} Gb/s, {short}"
