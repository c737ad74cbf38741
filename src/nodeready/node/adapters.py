"""Network adapters beside their twins: links, firmware, MTU, counters that grow, and the way to the GPUs' memory."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from nodeready.facts import driver_module, host_files, lsmod, rdma_files, topology, uptime
from nodeready.node.link_log import LinkLog
from nodeready.reading import Known, Reading, Unknown, cite, first_of, first_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nodeready.facts.rdma_files import Adapter, RdmaFiles, RdmaPort
    from nodeready.node.sources import Sources

FEWEST = 3  # of fewer twins none is the odd one
_NAMED = 6
_NAME = rdma_files.RDMA_FILES.name
_LATER = rdma_files.RDMA_FILES_LATER.name
_BESIDE = ("PIX", "PXB")
_UNUSED = "Disabled"  # somebody switched the port off; Polling waits for a link
_DMA_BUF_SINCE = (5, 12)
_VERSION = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,5}){1,3}")
_DAY = 86_400.0
NO_ADAPTER = "no RDMA adapter"


class Adapters:
    """The RDMA adapters of the node; where it has none there is nothing to find fault with."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.log = LinkLog(sources)

    @property
    def _files(self) -> RdmaFiles | Unknown:
        return self._sources.documents.read(rdma_files.RDMA_FILES, rdma_files.parse)

    # ---- roles and twins ------------------------------------------------------------------------
    @property
    def rails(self) -> Reading[int]:
        """Active ports of the adapters that share a PCIe switch with a GPU."""
        files, beside = self._files, self._beside_gpus()
        if isinstance(files, Unknown):
            return files
        if isinstance(beside, Unknown):
            return beside
        up = [port for a in files.adapters if a.name in beside.value for port in a.ports if port.active]
        note = ", ".join(f"{port.name} {port.rate:g} Gb/s" for port in up if port.rate)
        return Known(len(up), note=note, recordings=(_NAME, *beside.recordings))

    def _beside_gpus(self) -> Reading[frozenset[str]]:
        matrix = self._sources.documents.read(topology.TOPO, topology.parse)
        if isinstance(matrix, Unknown):
            return matrix
        beside = {
            matrix.nics[one]
            for (one, other), link in matrix.links.items()
            if one in matrix.nics and other in matrix.gpus and link in _BESIDE
        } | {
            matrix.nics[other]
            for (one, other), link in matrix.links.items()
            if other in matrix.nics and one in matrix.gpus and link in _BESIDE
        }
        return Known(frozenset(beside), recordings=(topology.TOPO.name,))

    def _twins(self, files: RdmaFiles) -> list[list[Adapter]]:
        """Adapters of one part and board in one place: beside a GPU or not, as far as that is known."""
        beside = self._beside_gpus()
        rails = beside.value if isinstance(beside, Known) else frozenset()
        groups: dict[tuple[str, str, bool], list[Adapter]] = {}
        for adapter in files.adapters:
            groups.setdefault((adapter.part, adapter.board, adapter.name in rails), []).append(adapter)
        return list(groups.values())

    @property
    def behind_twins(self) -> Reading[int]:
        """Cards with fewer links than most of their twins, or slower ones; ports that are switched off do not count."""
        files = self._files
        if isinstance(files, Unknown):
            return files
        behind = [words for group in self._twins(files) for words in _behind(_cards(group))]
        return Known(len(behind), note=", ".join(behind[:_NAMED]), recordings=(_NAME,))

    @property
    def firmware_kinds(self) -> Reading[int]:
        """How many firmware versions the adapters of one part and board run, where they differ most."""
        return self._kinds(lambda adapter: [adapter.firmware], "firmware")

    @property
    def mtu_kinds(self) -> Reading[int]:
        """How many MTUs the interfaces of twins that are up have, where they differ most."""
        return self._kinds(lambda adapter: adapter.mtus.values() if adapter.is_up else [], "MTU")

    def _kinds(self, read: Callable[[Adapter], Iterable[str | int]], what: str) -> Reading[int]:
        files = self._files
        if isinstance(files, Unknown):
            return files
        most, note = 0, ""
        for group in self._twins(files):
            values = {adapter.name: value for adapter in group for value in read(adapter)}
            if "" in values.values():
                nameless = next(name for name, value in values.items() if value == "")
                return Unknown(f"the {what} of {nameless} is unknown", recordings=(_NAME,))
            kinds = Counter(values.values()).most_common()
            if len(kinds) > most:
                most = len(kinds)
                odd = [f"{name} has {value}" for name, value in values.items() if value != kinds[0][0]]
                note = f"{', '.join(odd[:_NAMED])}, the others {kinds[0][0]}" if odd else str(kinds[0][0])
        return Known(most, note=note or NO_ADAPTER, recordings=(_NAME,))

    @property
    def firmware_is_new_enough(self) -> Reading[bool]:
        """Whether no adapter runs a firmware below the floor of its part, by the table; other parts have none."""
        files, table = self._files, self._sources.terms.tables.get("adapter-firmware", {})
        if isinstance(files, Unknown):
            return files
        low = []
        for adapter in files.adapters:
            floor = table.get(adapter.part, {}).get("minimum")
            if floor is None:
                continue
            if not _VERSION.fullmatch(adapter.firmware):
                return Unknown(f"the firmware of {adapter.name} reads {adapter.firmware!r}", recordings=(_NAME,))
            if _numbers(adapter.firmware) < _numbers(floor):
                low.append(f"{adapter.name} has {adapter.firmware}, below {floor}")
        return Known(not low, note=", ".join(low[:_NAMED]), recordings=(_NAME,))

    # ---- counters -------------------------------------------------------------------------------
    @property
    def growing_faults(self) -> Reading[int]:
        """Error counters that grew between the samples though they must not, or faster than a sound link's."""
        return self._counted(rdma_files.FATAL, "fatal")

    @property
    def growing_warnings(self) -> Reading[int]:
        """Error counters that grew faster than they do on a sound and well-set network."""
        return self._counted((), "warning")

    def _counted(self, any_growth: tuple[str, ...], weight: str) -> Reading[int]:
        grown = self._grown()
        if isinstance(grown, Unknown):
            return grown
        limits: dict[str, float] = self._sources.terms.tables.get("port-counters", {}).get(weight, {})
        seconds, growth = grown.value
        found = []
        for (port, counter), count in growth.items():
            limit = limits.get(counter)
            # one error in a window of seconds may be chance: the rate is that of the others
            fast = limit is not None and (count - 1) / seconds * 3600 > limit
            if fast or (counter in any_growth and count > 0):
                found.append(f"{port} {counter} +{count}")
        note = "; ".join(filter(None, [f"in {seconds:.1f} s" if growth else NO_ADAPTER, ", ".join(found[:_NAMED])]))
        return Known(len(found), note=note, recordings=grown.recordings)

    def _grown(self) -> Reading[tuple[float, dict[tuple[str, str], int]]]:
        """The seconds between the samples, and how far each counter of each port that is up grew."""
        files = self._files
        if isinstance(files, Unknown):
            return files
        up = [port for port in files.ports if port.active]
        if not up:
            return Known((1.0, {}), recordings=(_NAME,))
        later = self._sources.documents.read(rdma_files.RDMA_FILES_LATER, rdma_files.parse_later)
        if isinstance(later, Unknown):
            reason = f"how fast errors grow is unknown: {later.reason}"
            return Unknown(reason, later.missing, (_NAME, *later.recordings))
        seconds = uptime.between(files.uptime, later[0])
        reason = seconds.reason if isinstance(seconds, Unknown) else _lacking(up, later[1])
        if isinstance(seconds, Unknown) or reason:
            return Unknown(f"how fast errors grow is unknown: {reason}", recordings=(_NAME, _LATER))
        growth = {
            (port.name, counter): later[1][port.name][counter] - before
            for port in up
            for counter, before in port.counters.items()
        }
        if any(count < 0 for count in growth.values()):
            return Unknown("the counters were reset between the two samples", recordings=(_NAME, _LATER))
        return Known((seconds.value, growth), recordings=(_NAME, _LATER))

    @property
    def flaps(self) -> Reading[float]:
        """Lost links a day since boot of the port that lost most, over a day at least."""
        files = self._files
        if isinstance(files, Unknown):
            return files
        lost = {port.name: port.counters["link_downed"] for port in files.ports if "link_downed" in port.counters}
        rdma = {interface for adapter in files.adapters for interface in adapter.mtus}
        lost |= {name: count for name, count in files.carrier_losses.items() if name not in rdma}
        if not lost:
            silent = [port.name for port in files.ports if port.active]
            if silent:
                return Unknown(f"{silent[0]} tells no link_downed", recordings=(_NAME,))
            return Known(0.0, note="no port that counts them", recordings=(_NAME,))
        if isinstance(files.uptime, Unknown):
            return Unknown(files.uptime.reason, recordings=(_NAME,))
        worst = max(lost, key=lambda name: lost[name])
        note = f"{worst} lost its link {lost[worst]} times" if lost[worst] else ""
        return Known(round(lost[worst] / max(1.0, files.uptime.value / _DAY), 1), note=note, recordings=(_NAME,))

    # ---- GPUDirect ------------------------------------------------------------------------------
    @property
    def gpudirect(self) -> Reading[str]:
        """How adapters reach the GPUs' memory: `peermem`, `dma-buf`, `none`, or that there is no adapter."""
        files = self._files
        if isinstance(files, Unknown):
            return files
        if not files.adapters:
            return Known(NO_ADAPTER, recordings=(_NAME,))
        modules, way = self._peermem_loaded(), self._by_dma_buf()
        if isinstance(modules, Known) and modules.value and files.registered:
            return Known("peermem", recordings=(*modules.recordings, _NAME))
        if isinstance(way, Known) and way.value:
            return Known("dma-buf", note=way.note, recordings=way.recordings)
        if isinstance(modules, Known) and isinstance(way, Known):
            why = "nvidia_peermem is loaded and not registered" if modules.value else "nvidia_peermem is not loaded"
            return Known("none", note=f"{why}; {way.note}", recordings=(*modules.recordings, *way.recordings))
        unknown = modules if isinstance(modules, Unknown) else way
        return unknown.map(str)

    def _peermem_loaded(self) -> Reading[bool]:
        read = self._sources.documents.read
        forms = [(probe.name, read(probe, lsmod.parse)) for probe in (lsmod.LSMOD, lsmod.LSMOD_TEXT)]
        return first_of(
            *(
                found if isinstance(found, Unknown) else cite(found.loaded("nvidia_peermem"), name)
                for name, found in forms
            )
        )

    def _by_dma_buf(self) -> Reading[bool]:
        """Whether driver and kernel can hand out the GPUs' memory as DMA-BUF."""
        module, host = driver_module.MODULE_VERSION, host_files.HOST_FILES
        found = self._sources.documents.read(module, driver_module.parse)
        recording = self._sources.documents.evidence.get(module.name)
        if isinstance(found, Unknown) or recording is None:
            reason = found.reason if isinstance(found, Unknown) else "no module was recorded"
            return Unknown(reason, recordings=(module.name,), causes=("driver.responds",))
        flavour = driver_module.parse_flavour(recording.stdout)
        files = self._sources.documents.read(host, host_files.parse)
        kernel: Reading[str] = files if isinstance(files, Unknown) else files.kernel
        unknown = first_unknown(flavour, kernel)
        if unknown is not None:
            return Unknown(unknown.reason, unknown.missing, unknown.recordings or (module.name, host.name))
        release = _numbers(kernel.value)[:2]
        note = f"the {flavour.value} kernel module, kernel {kernel.value}"
        return Known(flavour.value == "open" and release >= _DMA_BUF_SINCE, note, (module.name, host.name))


def _cards(group: list[Adapter]) -> dict[str, list[RdmaPort]]:
    """The ports of each card: two functions of one PCI device are one card."""
    cards: dict[str, list[RdmaPort]] = {}
    for adapter in group:
        place = adapter.bus_id.rpartition(".")[0] or adapter.name
        cards.setdefault(place, []).extend(port for port in adapter.ports if port.physical != _UNUSED)
    return {place: ports for place, ports in cards.items() if ports}


def _behind(cards: dict[str, list[RdmaPort]]) -> list[str]:
    """What is less on a card than on most of its twins."""
    if len(cards) < FEWEST:
        return []
    links = {place: sum(port.active for port in ports) for place, ports in cards.items()}
    rates = {
        place: min((port.rate or 0.0 for port in ports if port.active), default=0.0) for place, ports in cards.items()
    }
    usual_links, usual_rate = _usual(links.values()), _usual(rate for rate in rates.values() if rate)
    found = []
    for place, ports in cards.items():
        names = ", ".join(port.name for port in ports)
        if usual_links is not None and links[place] < usual_links:
            states = ", ".join(f"{port.state} and {port.physical or 'unknown'}" for port in ports if not port.active)
            found.append(f"{names} ({place}) is {states}")
        elif usual_rate is not None and 0 < rates[place] < usual_rate:
            found.append(f"{names} ({place}) runs at {rates[place]:g} Gb/s, its twins at {usual_rate:g}")
    return found


def _usual(values: Iterable[float]) -> float | None:
    """The value of more than half of them, None where there is none."""
    several = list(values)
    value, count = Counter(several).most_common(1)[0] if several else (0.0, 0)
    return value if 2 * count > len(several) else None


def _lacking(ports: list[RdmaPort], second: dict[str, dict[str, int]]) -> str:
    """Why the growth of the ports' counters is unknown; empty where it is known."""
    for port in ports:
        if not port.counters:
            return f"{port.name} is up and tells no counter"
        absent = [counter for counter in port.counters if counter not in second.get(port.name, {})]
        if absent:
            return f"the second sample has no {absent[0]} of {port.name}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
