"""The way from one GPU to the processor: the links above its own, errors on it, its memory window and NUMA node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.facts import lscpu, pci_files, pci_sysfs, uptime
from nodeready.node.pci_tree import bandwidth
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, cite, first_of, first_unknown

if TYPE_CHECKING:
    from nodeready.facts.pci_files import Errors, PciFiles
    from nodeready.node.gpus import Gpu
    from nodeready.node.pci_tree import LinkUp, PciTree
    from nodeready.node.sources import Sources

LOST = ("gpu.count", "pcie.gpu-present")
_FILES, _LATER = pci_files.PCI_FILES.name, pci_files.PCI_FILES_LATER.name
_NAMED = 4
# without the service at a root port the kernel's counters stay at 0 whatever happens
_DEAF = "the firmware keeps PCIe error reports to itself, so the kernel counts none: look into the BMC's log"


class PciePath:
    """What lies between one GPU and the processor."""

    def __init__(self, sources: Sources, gpu: Gpu, tree: PciTree) -> None:
        self._sources, self._gpu, self._tree = sources, gpu, tree

    def _place(self) -> Reading[str]:
        """The GPU's bus id, where a device answers there."""
        gpu = self._gpu
        device = gpu.device
        if gpu.bus_id is None or (isinstance(device, Unknown) and not device.missing):
            return device if isinstance(device, Unknown) else Unknown("this GPU's slot is unknown", causes=LOST)
        links = self._sources.sysfs
        if isinstance(device, Unknown) and not isinstance(links, Unknown) and gpu.bus_id not in links:
            name = pci_sysfs.PCI_LINKS.name
            return Unknown(f"{name} lists no device at {gpu.bus_id}", recordings=(name,), causes=LOST)
        return Known(gpu.bus_id)

    # ---- links ----------------------------------------------------------------------------------
    @property
    def bottlenecks(self) -> Reading[int]:
        """Links above the GPU's own that give less than its own could.

        A link that is slower than both its ends can train proves nothing while the GPU sleeps; one on fewer
        lanes does, and so does one whose ends can do no more.
        """
        place = self._place()
        if isinstance(place, Unknown):
            return place
        above, own = self._tree.links_above(place.value), self._own(place.value)
        if isinstance(above, Unknown):
            return above
        if isinstance(own, Unknown):
            return own
        if not above.value:
            return Known(0, note="no link above its own", recordings=above.recordings)
        emulated = [link.device for link in above.value if link.is_emulated]
        low = [link for link in above.value if link.is_below(own.value)]
        asleep = self._asleep() if not any(link.is_narrow or link.could < own.value for link in low) else ""
        notes = [f"{self._words(link)}" for link in low]
        if emulated:
            notes.append(f"{', '.join(emulated)} emulates its link and was left out")
        recordings = tuple(dict.fromkeys((*above.recordings, *own.recordings)))
        return Known(len(low), note="; ".join(notes), recordings=recordings, doubt=asleep if low else "")

    @property
    def slow_links(self) -> frozenset[str]:
        """The ports whose links up are found at fault here, by their bus ids: nobody else has to tell of them."""
        place = self._place()
        if isinstance(place, Unknown):
            return frozenset()
        above, own = self._tree.links_above(place.value), self._own(place.value)
        if isinstance(above, Unknown) or isinstance(own, Unknown):
            return frozenset()
        return frozenset(link.device for link in above.value if link.is_below(own.value))

    def _own(self, bus_id: str) -> Reading[float]:
        """What the GPU's own link could give, by what both its ends can do."""
        link = self._tree.own_link(bus_id)
        if isinstance(link, Unknown):
            return link
        generation, width = link.value.generation_max, link.value.width_max
        if not generation or not width:
            return Unknown(f"what the link of {bus_id} could do is unknown", recordings=link.recordings)
        return Known(bandwidth(generation, width), recordings=link.recordings)

    def _asleep(self) -> str:
        """Why a slow link would prove nothing; empty where the GPU is at full power."""
        state = self._gpu.smi("performance_state", volatile=True)
        if isinstance(state, Known) and state.value == "P0":
            return ""
        read = f"in {state.value}" if isinstance(state, Known) else "in an unknown performance state"
        return f"it was read {read}, where links may slow down to save power; read it under load"

    def _words(self, link: LinkUp) -> str:
        slot = self._tree.slot(link.device)
        return f"{link}{f', slot {slot}' if slot else ''}"

    # ---- errors ---------------------------------------------------------------------------------
    @property
    def uncorrected(self) -> Reading[int]:
        """Errors that were not corrected, reported between two looks by the GPU and the ports above it."""
        grown = self._grown()
        if isinstance(grown, Unknown):
            return grown
        seconds, errors = grown.value
        by_device = {at: each.nonfatal + each.fatal for at, each in errors.items()}
        note = _listed({at: count for at, count in by_device.items() if count}, self._tree)
        return Known(sum(by_device.values()), note=f"in {seconds:.1f} s{note}", recordings=grown.recordings)

    @property
    def corrected(self) -> Reading[float]:
        """Corrected errors a minute between two looks, of the device that reported most; one error may be chance."""
        grown = self._grown()
        if isinstance(grown, Unknown):
            return grown
        seconds, errors = grown.value
        by_device = {at: each.correctable for at, each in errors.items()}
        most = max(by_device.values())
        kinds = {kind: n for each in errors.values() for kind, n in each.kinds.items() if n}
        note = _listed({at: count for at, count in by_device.items() if count}, self._tree)
        note += f", {', '.join(sorted(kinds))}" if kinds and note else ""
        rate = round(max(0, most - 1) / seconds * 60, 1)
        return Known(rate, note=f"in {seconds:.1f} s{note}", recordings=grown.recordings)

    def _grown(self) -> Reading[tuple[float, dict[str, Errors]]]:
        """The seconds between the looks, and what each device on the way reported in between."""
        place, looks = self._place(), self._looks()
        path = place if isinstance(place, Unknown) else self._tree.path(place.value)
        if isinstance(place, Unknown) or isinstance(path, Unknown) or isinstance(looks, Unknown):
            unknown = first_unknown(place, path, looks)
            return unknown if unknown is not None else Unknown("nothing is known of it")
        seconds, first, second = looks.value
        if not any(port in first.reporting for port in path.value):
            return Unknown(_DEAF, recordings=(_FILES,))
        grown = {}
        for at in (place.value, *path.value):
            before, after = first.errors.get(at), second.errors.get(at)
            if before is None and at != place.value:
                continue  # a port without error reporting
            if before is None or after is None:
                look = _FILES if before is None else _LATER
                return Unknown(f"{look} has no error counters of {at}", recordings=looks.recordings)
            grown[at] = _difference(before, after)
        if any(min(each.correctable, each.nonfatal, each.fatal) < 0 for each in grown.values()):
            return Unknown("the counters were reset between the two looks", recordings=looks.recordings)
        return Known((seconds, grown), recordings=looks.recordings)

    def _looks(self) -> Reading[tuple[float, PciFiles, PciFiles]]:
        """Both samples, and the seconds between them."""
        first = self._tree.files
        if isinstance(first, Unknown):
            return first
        second = self._sources.documents.read(pci_files.PCI_FILES_LATER, pci_files.parse)
        if isinstance(second, Unknown):
            return Unknown(f"how fast errors grow is unknown: {second.reason}", second.missing, (_FILES, _LATER))
        seconds = uptime.between(first.uptime, second.uptime)
        if isinstance(seconds, Unknown):
            return Unknown(f"how fast errors grow is unknown: {seconds.reason}", recordings=(_FILES, _LATER))
        return Known((seconds.value, first, second), recordings=(_FILES, _LATER))

    @property
    def replays(self) -> Reading[float]:
        """Replays of the GPU an hour since boot, over an hour at least: the counter starts with the driver."""
        count = self._gpu.smi("replay_counter", volatile=True)
        files = self._tree.files
        if isinstance(count, Unknown):
            return count
        if isinstance(files, Unknown):
            return files
        if isinstance(files.uptime, Unknown):
            return cite(files.uptime, _FILES)
        hours = max(1.0, files.uptime.value / 3600)
        note = f"{count.value} in {hours:.1f} h at most"
        return Known(round(count.value / hours, 1), note=note, recordings=(*count.recordings, _FILES))

    # ---- memory window and NUMA node ------------------------------------------------------------
    @property
    def bar1(self) -> Reading[Quantity]:
        """How much of the GPU's memory its peers and the host can reach at once."""
        window, memory = self._gpu.smi("bar1_total"), self._gpu.memory
        if isinstance(window, Unknown) or isinstance(memory, Unknown):
            return window if isinstance(window, Unknown) else memory
        share = Quantity(round(100 * window.value.base / memory.value.base), "%")
        note = f"{window.value} for {memory.value}"
        return Known(share, note=note, recordings=tuple(dict.fromkeys((*window.recordings, *memory.recordings))))

    @property
    def numa_node(self) -> Reading[int]:
        """The NUMA node that the firmware names for the GPU; -1 where it names none though there are several."""
        place = self._place()
        if isinstance(place, Unknown):
            return place
        links, name = self._sources.sysfs, pci_sysfs.PCI_LINKS.name
        by_sysfs: Reading[int] = links if isinstance(links, Unknown) else Unknown(f"{name} lists it not", missing=True)
        if not isinstance(links, Unknown) and place.value in links:
            link = links[place.value]
            by_sysfs = self._unnamed() if link.numa_unnamed else cite(link.numa_node, name)
        device = self._gpu.device
        by_lspci: Reading[int] = (
            device if isinstance(device, Unknown) else cite(device.value.numa_node, *device.recordings)
        )
        return first_of(by_sysfs, by_lspci, agree=False)

    def _unnamed(self) -> Reading[int]:
        """What no name is worth: on a host with one NUMA node there is none to choose from."""
        name = pci_sysfs.PCI_LINKS.name
        forms: list[Reading[int]] = []
        for probe in (lscpu.LSCPU, lscpu.LSCPU_TEXT):
            cpu = self._sources.documents.read(probe, lscpu.parse)
            forms.append(cpu if isinstance(cpu, Unknown) else cite(cpu.numa_nodes, probe.name))
        nodes = first_of(*forms)
        if isinstance(nodes, Unknown):
            return Unknown(f"the firmware names no NUMA node, and how many there are is unknown: {nodes.reason}")
        if nodes.value == 1:
            return Known(0, note="the host has one NUMA node", recordings=(name, *nodes.recordings))
        note = f"the firmware names none of {nodes.value}"
        return Known(-1, note=note, recordings=(name, *nodes.recordings))


def _difference(before: Errors, after: Errors) -> Errors:
    kinds = {kind: count - before.kinds.get(kind, 0) for kind, count in after.kinds.items()}
    return pci_files.Errors(
        after.correctable - before.correctable, after.nonfatal - before.nonfatal, after.fatal - before.fatal, kinds
    )


def _listed(counts: dict[str, int], tree: PciTree) -> str:
    worst = sorted(counts, key=lambda at: -counts[at])[:_NAMED]
    return "".join(f"; {tree.named(at)} {counts[at]}" for at in worst)
