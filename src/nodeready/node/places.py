"""Which adapter sits beside which GPU, and on which NUMA node; held against the others and against a site's matrix."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from nodeready.facts import topology
from nodeready.node.peers import driver_index
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of, first_unknown

if TYPE_CHECKING:
    from nodeready.facts.topology import Topology
    from nodeready.node.gpus import Gpu
    from nodeready.node.pci_bus import PciBus
    from nodeready.node.pci_tree import PciTree
    from nodeready.node.sources import Sources

BESIDE = ("PIX", "PXB")
FEWEST = 3  # of fewer GPUs none is the odd one
_NAMED = 6
_NAME = topology.TOPO.name
_ROW = re.compile(r"gpu([0-9]{1,3})((?: [A-Za-z0-9_.-]{1,32}=[A-Z]{2,4}| numa=[0-9]{1,3}){1,80})")


class Places:
    """How GPUs, adapters and NUMA nodes lie to each other."""

    def __init__(self, sources: Sources, gpus: tuple[Gpu, ...], tree: PciTree, bus: PciBus) -> None:
        self._sources, self._gpus, self._tree, self._bus = sources, gpus, tree, bus

    @property
    def _matrix(self) -> Topology | Unknown:
        found = self._sources.documents.read(topology.TOPO, topology.parse)
        return explained_by(found, "driver.responds") if isinstance(found, Unknown) else found

    # ---- twins ----------------------------------------------------------------------------------
    @property
    def without_adapter(self) -> Reading[int]:
        """GPUs that share a switch with fewer adapters than most others do."""
        beside = first_of(self._beside_by_driver(), self._beside_by_bus(), agree=False)
        if isinstance(beside, Unknown):
            return beside
        counts = beside.value
        if len(counts) < FEWEST:
            return Known(0, note="too few GPUs for one to be the odd one", recordings=beside.recordings)
        usual, often = Counter(counts.values()).most_common(1)[0]
        usual = usual if 2 * often > len(counts) else 0
        short = [f"{gpu} has {count}" for gpu, count in counts.items() if count < usual]
        note = f"{', '.join(short[:_NAMED])} of {usual}" if short else f"{usual} beside most"
        return Known(len(short), note=note, recordings=beside.recordings)

    def _beside_by_driver(self) -> Reading[dict[str, int]]:
        """How many adapters are beside each GPU that the driver lists."""
        matrix = self._matrix
        if isinstance(matrix, Unknown):
            return matrix
        adapters = [device for device in matrix.devices if device not in matrix.gpus]
        names = self._names(matrix)
        found = {}
        for row in matrix.gpus:
            links = [matrix.link(row, adapter) for adapter in adapters]
            unknown = first_unknown(*links)
            if unknown is not None:
                return Unknown(unknown.reason, recordings=(_NAME,))
            found[names.get(row, row)] = sum(isinstance(link, Known) and link.value in BESIDE for link in links)
        return Known(found, recordings=(_NAME,))

    def _names(self, matrix: Topology) -> dict[str, str]:
        """What the matrix calls our GPUs: it numbers those that the driver lists, in bus order."""
        subjects = {gpu.bus_id: gpu.subject for gpu in self._gpus}
        listed = self._sources.listed_bus_ids()
        if len(listed) != len(matrix.gpus):
            return {}
        return {f"GPU{n}": subjects[bus_id] for n, bus_id in enumerate(listed) if bus_id in subjects}

    def _beside_by_bus(self) -> Reading[dict[str, int]]:
        """How many fast adapters share a switch with each GPU, by the ports above both."""
        adapters = self._bus.fast_adapters
        if isinstance(adapters, Unknown):
            return adapters
        above: dict[str, frozenset[str]] = {}
        gpus = {gpu.bus_id: gpu.subject for gpu in self._gpus if gpu.bus_id is not None and self._answers(gpu)}
        for bus_id in (*adapters.value, *gpus):
            path = self._tree.path(bus_id)
            if isinstance(path, Unknown):
                return path
            # the last one is the processor's own port
            above[bus_id] = frozenset(path.value[:-1])
        found = {
            subject: sum(bool(above[bus_id] & above[adapter]) for adapter in adapters.value)
            for bus_id, subject in gpus.items()
        }
        return Known(found, recordings=adapters.recordings)

    def _listed(self) -> list[Gpu]:
        return [gpu for gpu in self._gpus if gpu.is_listed]

    @staticmethod
    def _answers(gpu: Gpu) -> bool:
        return not isinstance(gpu.device, Unknown) or gpu.device.missing

    # ---- the site's own -------------------------------------------------------------------------
    @property
    def differing(self) -> Reading[int]:
        """Places in which the driver's matrix and the one that the site gives differ, in either direction."""
        wanted = self._sources.terms.matrix
        if not wanted:
            return Unknown("no matrix was given", missing=True)
        found = self._found()
        if isinstance(found, Unknown):
            return found
        places = dict.fromkeys((*wanted, *found.value))
        differing = [
            f"{gpu} {other} {found.value.get((gpu, other), 'is missing')} instead of {wanted.get((gpu, other), 'none')}"
            for gpu, other in places
            if found.value.get((gpu, other)) != wanted.get((gpu, other))
        ]
        more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
        return Known(len(differing), note=", ".join(differing[:_NAMED]) + more, recordings=found.recordings)

    def _found(self) -> Reading[dict[tuple[str, str], str]]:
        """What the driver says of each GPU that it lists: its NUMA node, and the way to each adapter by its name."""
        matrix = self._matrix
        if isinstance(matrix, Unknown):
            return matrix
        adapters = [device for device in matrix.devices if device not in matrix.gpus]
        nameless = [adapter for adapter in adapters if adapter not in matrix.nics]
        if nameless:
            return Unknown(f"{_NAME} does not name {nameless[0]}", recordings=(_NAME,))
        found: dict[tuple[str, str], str] = {}
        for gpu in self._listed():
            index = driver_index(self._sources, gpu.bus_id, len(matrix.gpus))
            if isinstance(index, Unknown):
                return cite(index, _NAME)
            row = f"GPU{index.value}"
            node = matrix.numa_node.get(row, Unknown(f"no whole row of {_NAME} is {row}"))
            said = {"numa": node.map(str), **{matrix.nics[each]: matrix.link(row, each) for each in adapters}}
            for other, reading in said.items():
                if isinstance(reading, Unknown):
                    return cite(reading, _NAME)
                found[gpu.subject, other] = reading.value
        return Known(found, recordings=(_NAME,))

    @property
    def as_setting(self) -> Reading[str]:
        """The node's own matrix, in the form that the setting takes."""
        found = self._found()
        if isinstance(found, Unknown):
            return found
        rows: dict[str, list[str]] = {}
        for (gpu, other), word in found.value.items():
            rows.setdefault(gpu, [gpu]).append(f"{other}={word}")
        return Known(",".join(" ".join(row) for row in rows.values()), recordings=found.recordings)


def matrix_of(text: str) -> dict[tuple[str, str], str] | None:
    """A site's matrix by GPU and adapter; empty where none was given, None where it is not understood.

    >>> matrix_of("gpu0 numa=0 mlx5_0=PIX,gpu1 numa=1 mlx5_0=SYS")[("gpu1", "mlx5_0")]
    'SYS'
    >>> matrix_of(""), matrix_of("gpu0: PIX")
    ({}, None)
    """
    found: dict[tuple[str, str], str] = {}
    for row in filter(None, (part.strip() for part in text.split(","))):
        match = _ROW.fullmatch(row)
        if match is None:
            return None
        for word in match[2].split():
            other, _, way = word.partition("=")
            found[f"gpu{match[1]}", other] = way
    return found
