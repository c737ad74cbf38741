"""One GPU of the node: its readings from the driver, the bus and the load probes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodeready.facts.nvml import RESET_REQUIRED
from nodeready.node.clocks import application_clocks
from nodeready.node.compute import Compute
from nodeready.node.health import Health
from nodeready.node.memory_patterns import MemoryPatterns
from nodeready.reading import Known, Reading, Unknown, cite, first_of

if TYPE_CHECKING:
    from nodeready.facts.lspci import Device
    from nodeready.node.copies import GpuCopies
    from nodeready.node.fabric import GpuFabric
    from nodeready.node.firmware import Firmware
    from nodeready.node.pci_tree import PciTree
    from nodeready.node.pcie_paths import PciePath
    from nodeready.node.sources import Sources
    from nodeready.node.terms import Terms
    from nodeready.quantity import Quantity

NOT_APPLICABLE = "'N/A'"  # as the parsers quote it


class Gpu:
    """The GPU in one slot; `bus_id` is None where fewer GPUs are known than planned."""

    firmware: Firmware  # the node hangs it on: it is held against the node's driver
    tree: PciTree  # and these: the ports above it are not its own
    path: PciePath
    fabric: GpuFabric  # the node hangs these on: pairs need the other GPUs
    copies: GpuCopies

    def __init__(self, sources: Sources, subject: str, bus_id: str | None) -> None:
        self._sources, self.subject, self.bus_id = sources, subject, bus_id
        self.pcie = Pcie(self)
        self.health = Health(self)
        self.nvlink = NvLinks(self)

    @property
    def terms(self) -> Terms:
        """What the readings are taken by."""
        return self._sources.terms

    @property
    def is_listed(self) -> bool:
        """Whether the driver lists it."""
        return self.bus_id is not None and self._sources.is_listed(self.bus_id)

    def smi(self, field: str, *, volatile: bool = False) -> Reading[Any]:
        """A field of nvidia-smi's documents; `volatile` ones are not compared between the two."""
        return first_of(*self._sources.smi_fields(self.bus_id, field), agree=not volatile)

    @property
    def waits_for_reset(self) -> str:
        """NVML's word that it lets nobody use the GPU until a reset; empty where it does not say so."""
        found = self._sources.nvml
        why = "" if isinstance(found, Unknown) else found.refused.get(self.bus_id or "", "")
        return why if why.endswith(RESET_REQUIRED) else ""

    @property
    def device(self) -> Reading[Device]:
        """The GPU on the PCI bus."""
        return self._sources.pci_device(self.bus_id)

    def pci_link(self, field: str) -> Reading[int]:
        """A field of the link as the bus shows it."""
        return self._sources.pci_link(self.bus_id, field)

    @property
    def port(self) -> str:
        """The bus id of the port right above it; empty where none is known."""
        path = self.tree.path(self.bus_id) if self.bus_id else None
        return path.value[0] if isinstance(path, Known) and path.value else ""

    @property
    def product(self) -> Reading[str]:
        """Vendor and device id, `10de:2330`; the product's name is its note."""
        bus = _of(self.device, "vendor_device")
        reading = first_of(self.smi("device_id"), bus)
        name = self.smi("product_name")
        if isinstance(reading, Known) and isinstance(name, Known):
            return replace(reading, note="; ".join(filter(None, [name.value, reading.note])))
        return reading

    @property
    def memory(self) -> Reading[Quantity]:
        """The frame buffer that the driver counts."""
        return self.smi("memory_total")

    @property
    def compute_capability(self) -> Reading[str]:
        """By the driver, and by CUDA where the torch probe ran."""
        sources, bus_id = self._sources, self.bus_id
        by_driver = (sources.smi_capability(bus_id), sources.nvml_capability(bus_id))
        return first_of(*by_driver, sources.torch_capability(bus_id))

    @property
    def cuda_works(self) -> Reading[str]:
        """Known where CUDA made a context on this GPU and told its compute capability."""
        return self._sources.torch_capability(self.bus_id)

    @property
    def mig_mode(self) -> Reading[str]:
        """Enabled or Disabled."""
        return self.smi("mig_current")

    @property
    def mig_mode_pending(self) -> Reading[str]:
        """What MIG mode will be after the next reset."""
        return self.smi("mig_pending")

    @property
    def compute_mode(self) -> Reading[str]:
        """How many processes the GPU lets in: Default, Exclusive_Process or Prohibited."""
        return self.smi("compute_mode")

    @property
    def persistence_mode(self) -> Reading[str]:
        """Enabled where the driver keeps the GPU initialised while nobody uses it."""
        return self.smi("persistence")

    @property
    def application_clocks(self) -> Reading[str]:
        """`default`, or which clocks somebody set; drivers without them say only whether they hold the GPU down."""
        return application_clocks(self)

    @property
    def power_limit(self) -> Reading[Quantity]:
        """The limit that is enforced now."""
        return self.smi("power_limit")

    @property
    def thermal_margin(self) -> Reading[Quantity]:
        """Degrees left to the temperature limit (T.Limit)."""
        return self.smi("margin", volatile=True)

    @property
    def memory_temperature(self) -> Reading[Quantity]:
        """The temperature of the GPU's memory."""
        return self.smi("memory_temperature", volatile=True)

    @property
    def compute(self) -> Compute:
        """What the matmul probe measured on this GPU."""
        return Compute(self, self._sources)

    @property
    def memory_patterns(self) -> MemoryPatterns:
        """What came back of the patterns that were written to its memory."""
        return MemoryPatterns(self, self._sources)


class Pcie:
    """The link between GPU and host."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    @property
    def generation(self) -> Reading[int]:
        """The generation the link runs at: under load, else as read, where below full power a low one is in doubt."""
        gpu = self._gpu
        if isinstance(loaded := gpu.copies.generation, Known):
            return loaded
        smi = gpu.smi("link_gen_current", volatile=True)
        bus = gpu.pci_link("generation")
        reading = first_of(smi, bus, agree=False)
        if isinstance(reading, Unknown):
            return reading
        port = gpu.port
        maxima = [gpu.smi("link_gen_max"), gpu.pci_link("generation_max")]
        maxima += [gpu.tree.field(port, "generation_max")] if port else []
        ceiling = min((m.value for m in maxima if isinstance(m, Known)), default=None)
        state = gpu.smi("performance_state", volatile=True)
        if isinstance(smi, Known) and isinstance(state, Known) and state.value == "P0":
            return replace(reading, note=_joined(reading.note, "in P0"), ceiling=ceiling)
        idle = (
            f"in {state.value}"
            if isinstance(smi, Known) and isinstance(state, Known)
            else "in an unknown performance state"
        )
        doubt = f"it was read {idle}, where links may slow down to save power; read it under load"
        return replace(reading, doubt=doubt, ceiling=ceiling)

    @property
    def width(self) -> Reading[int]:
        """Lanes in use; of several forms the lowest."""
        smi = self._gpu.smi("link_width_current", volatile=True)
        bus = self._gpu.pci_link("width")
        reading = first_of(smi, bus, agree=False)
        forms = (smi, bus, self._gpu.copies.width)
        lower = [r for r in forms if isinstance(r, Known) and isinstance(reading, Known) and r.value < reading.value]
        return min(lower, key=lambda r: r.value) if lower else reading


class NvLinks:
    """NVLink and fabric of one GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    @property
    def links_active(self) -> Reading[int]:
        """How many links are up."""
        links = self._gpu._sources.nvlinks(self._gpu)  # noqa: SLF001 - one room
        return links.map(lambda found: sum(link.speed is not None for link in found))

    @property
    def slow_links(self) -> Reading[int]:
        """How many of the links that are up run below full speed."""
        links = self._gpu._sources.nvlinks(self._gpu)  # noqa: SLF001 - one room
        full = self._gpu.terms.link_speed
        if isinstance(links, Unknown):
            return links
        slow = [link for link in links.value if link.speed is not None and link.speed < full]
        note = ", ".join(f"link {link.index} {link.speed}" for link in slow)
        return Known(len(slow), note=note, recordings=links.recordings)

    @property
    def fabric_state(self) -> Reading[str]:
        """State and status, as in `Completed, Success`; `N/A` only where a CUDA context works all the same."""
        gpu = self._gpu
        state, status = gpu.smi("fabric_state", volatile=True), gpu.smi("fabric_status", volatile=True)
        if isinstance(state, Unknown):
            cuda = gpu.cuda_works
            if NOT_APPLICABLE in state.reason and isinstance(cuda, Known):
                return Known("N/A", note="a CUDA context works", recordings=(*state.recordings, *cuda.recordings))
            return state
        if state.value != "Completed" and isinstance(status, Unknown):
            return state
        return status.map(lambda word: f"{state.value}, {word}")


def _of(device: Reading[Device], field: str) -> Reading[Any]:
    """A reading of the device on the bus."""
    if isinstance(device, Unknown):
        return device
    reading: Reading[Any] = getattr(device.value, field)
    return cite(reading, *device.recordings)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
