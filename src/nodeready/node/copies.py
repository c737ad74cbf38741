"""What a GPU copies within itself, to and from the host, and to its peers, and how its link runs meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nodeready.facts import copies, topology
from nodeready.facts.copies import TO_DEVICE, TO_HOST, TO_PEER, WITHIN
from nodeready.node.catalogue import COPIES
from nodeready.node.causes import FABRIC, STARTS_CUDA, waits_for_fabric
from nodeready.node.peers import LOST, driver_index
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_unknown

if TYPE_CHECKING:
    from nodeready.facts.copies import Copies, Copy
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

_NOTHING = Quantity(0, "GB/s")


@dataclass(frozen=True)
class Pair:
    """The copy from this GPU to another; `joined` tells whether NVLink joins them, by the matrix or the baseline."""

    other: Gpu
    copy: Copy
    joined: Reading[bool]


class GpuCopies:
    """The copies of one GPU; `gpus` are all of the node's."""

    def __init__(self, sources: Sources, gpu: Gpu, gpus: tuple[Gpu, ...]) -> None:
        self._sources, self._gpu, self._gpus = sources, gpu, gpus

    @property
    def memory_rate(self) -> Reading[Quantity]:
        """How fast it copies within its own memory; each byte is read and written."""
        rate = self._of(WITHIN, "rate")
        return rate if isinstance(rate, Unknown) else replace(rate, value=rate.value.to("TB/s"))

    @property
    def memory_correct(self) -> Reading[bool]:
        """Whether what was copied within its memory is what was there."""
        return self._correct(WITHIN)

    @property
    def to_device(self) -> Reading[Quantity]:
        """How fast it reads from the host's memory."""
        return self._host_rate(TO_DEVICE)

    @property
    def to_host(self) -> Reading[Quantity]:
        """How fast it writes to the host's memory."""
        return self._host_rate(TO_HOST)

    @property
    def host_correct(self) -> Reading[bool]:
        """Whether what was copied to and from the host arrived as it was."""
        return self._correct(TO_DEVICE, TO_HOST)

    @property
    def generation(self) -> Reading[int]:
        """The least generation that its link was seen at while it copied to and from the host."""
        return self._least("generation")

    @property
    def width(self) -> Reading[int]:
        """The least number of lanes that its link was seen with meanwhile."""
        return self._least("width")

    def _least(self, field: str) -> Reading[int]:
        """The lower of the two directions, or the one in which it was seen: it is the same link."""
        both: list[Reading[int]] = [self._of(what, field) for what in (TO_DEVICE, TO_HOST)]
        known = [reading for reading in both if isinstance(reading, Known)]
        if not known:
            return both[0]
        return replace(min(known, key=lambda reading: reading.value), note="under load")

    def _host_rate(self, what: str) -> Reading[Quantity]:
        """The rate; a low one proves nothing where the memory may be that of another NUMA node."""
        rate, cpus = self._of(what, "rate"), self._of(what, "cpus")
        if isinstance(rate, Known) and isinstance(cpus, Unknown):
            doubt = "the probe could not run on the processors beside the GPU, so that its memory may be far away"
            return replace(rate, doubt=f"{doubt}: let it use all processors of the node")
        return rate

    # ---- peers ------------------------------------------------------------------------------------

    @property
    def slowest_peer(self) -> Reading[Quantity]:
        """The slowest copy over NVLink to another GPU, with the name of the pair.

        A pair that is not joined by NVLink is another check's matter where it should be, and none where a node
        type has cards that need not be. So is a pair whose other GPU could not be measured at all, or has links
        at fault; that one is told by its own.
        """
        pairs = self._pairs()
        if isinstance(pairs, Unknown):
            return pairs
        if len(self._gpus) == 1:
            return Known(_NOTHING, recordings=(COPIES.name,), share=0.0, share_reason="there is no other GPU")
        gap = first_unknown(*(pair.joined for pair in pairs))
        if gap is not None:
            return gap
        joined = [pair for pair in pairs if isinstance(pair.joined, Known) and pair.joined.value]
        if pairs and not joined and 0 not in self._gpu.terms.links_per_pair:
            causes = ("nvlink.links-active", "nvlink.peers")
            return Unknown("NVLink joins it with no other GPU", recordings=(topology.TOPO.name,), causes=causes)
        sound = [pair for pair in joined if not _links_at_fault(pair.other)]
        return self._slowest(sound or joined or pairs, over_nvlink=bool(joined))

    def _slowest(self, pairs: list[Pair], *, over_nvlink: bool) -> Reading[Quantity]:
        """The slowest of these; of a card that NVLink joins with none nothing is demanded, and it is told."""
        rates = {pair.other: cite(pair.copy.rate, COPIES.name) for pair in pairs}
        gap = first_unknown(*rates.values())
        if gap is not None:
            return gap
        known = {gpu: rate for gpu, rate in rates.items() if isinstance(rate, Known)}
        if not known:
            return self._no_pair()
        other = min(known, key=lambda gpu: known[gpu].value)
        found = replace(known[other], note=f"from {_named(self._gpu)} to {_named(other)}")
        access = next(pair.copy.peer_access for pair in pairs if pair.other is other)
        if isinstance(access, Known) and not access.value:
            found = replace(found, note=f"{found.note}, through the host's memory: it has no access to that peer")
        if not over_nvlink:
            return replace(found, note=f"{found.note}, not over NVLink", share=0.0, share_reason="no NVLink joins it")
        return found

    @property
    def peers_correct(self) -> Reading[bool]:
        """Whether what was copied to each other GPU arrived as it was: one wrong copy is enough."""
        pairs = self._pairs()
        if isinstance(pairs, Unknown):
            return pairs
        if len(self._gpus) == 1:
            return Known(value=True, note="there is no other GPU", recordings=(COPIES.name,))
        wrong = [p.other for p in pairs if isinstance(p.copy.verified, Known) and not p.copy.verified.value]
        if wrong:
            note = f"wrong from {_named(self._gpu)} to {', '.join(map(_named, wrong))}"
            return Known(value=False, note=note, recordings=(COPIES.name,))
        gaps = (first_unknown(*(pair.copy.verified for pair in pairs)), self._strays())
        for gap in gaps:
            if gap is not None:
                return cite(gap, COPIES.name)
        return Known(value=True, recordings=(COPIES.name,)) if pairs else self._no_pair()

    def _no_pair(self) -> Unknown:
        reason = "no other GPU of the node could be measured, so there is no pair"
        return Unknown(reason, recordings=(COPIES.name,), causes=(*LOST, "frameworks.torch", "gpu.mig"))

    def _pairs(self) -> list[Pair] | Unknown:
        """The copies to all other GPUs that were measured themselves; unknown where this one was not."""
        mine = self._copy(WITHIN)
        if isinstance(mine, Unknown):
            return mine
        if mine.error:
            return Unknown(mine.error, recordings=(COPIES.name,), causes=("frameworks.torch",))
        document = self._document()
        if isinstance(document, Unknown) or self._gpu.bus_id is None:
            raise AssertionError(self._gpu.subject)  # _copy() has dealt with it
        return [
            Pair(other, document.copy(self._gpu.bus_id, TO_PEER, other.bus_id), self._joined(other))
            for other in self._gpus
            if other is not self._gpu and other.bus_id is not None and not _failed(document, other.bus_id)
        ]

    def _joined(self, other: Gpu) -> Reading[bool]:
        """Whether NVLink joins the two: by the matrix, else where the baseline lets no pair go without."""
        probe = topology.TOPO
        matrix = self._sources.documents.read(probe, topology.parse)
        link: Reading[str]
        if isinstance(matrix, Unknown):
            link = matrix
        else:
            indices = [driver_index(self._sources, gpu.bus_id, len(matrix.gpus)) for gpu in (self._gpu, other)]
            gap = first_unknown(*indices)
            numbers = (f"GPU{index.value}" for index in indices if isinstance(index, Known))
            link = cite(matrix.link(*numbers) if gap is None else gap, probe.name)
        if isinstance(link, Unknown):
            wanted = self._gpu.terms.links_per_pair
            return Known(value=True) if wanted and 0 not in wanted else link
        return Known(link.value.startswith("NV"), recordings=link.recordings)

    # ---- the document -----------------------------------------------------------------------------

    def _document(self) -> Copies | Unknown:
        found = self._sources.documents.read(COPIES, copies.parse)
        if isinstance(found, Unknown):
            fabric = FABRIC if waits_for_fabric(found.reason) else ()
            return explained_by(found, *STARTS_CUDA, "frameworks.torch", *fabric)
        return found

    def _copy(self, what: str) -> Copy | Unknown:
        """One copy of this GPU, if it is of the GPU that the driver lists at its bus id."""
        found, bus_id = self._document(), self._gpu.bus_id
        if isinstance(found, Unknown):
            return found
        if bus_id is None:
            return Unknown("fewer GPUs are known than planned, so this one's slot is unknown", causes=LOST)
        copy, listed = found.copy(bus_id, what), self._gpu.smi("uuid")
        if isinstance(copy.uuid, Known) and isinstance(listed, Known) and copy.uuid.value != listed.value:
            reason = f"{COPIES.name} measured {copy.uuid.value}, the driver lists {listed.value} at {bus_id}"
            return Unknown(reason, recordings=(COPIES.name, *listed.recordings))
        if (bus_id, what, "") not in found.results and isinstance(copy.rate, Unknown):
            return Unknown(copy.rate.reason, recordings=(COPIES.name,), causes=LOST)
        return copy

    def _of(self, what: str, field: str) -> Reading[Any]:
        copy = self._copy(what)
        return copy if isinstance(copy, Unknown) else cite(getattr(copy, field), COPIES.name)

    def _correct(self, *which: str) -> Reading[bool]:
        """Whether all of these copies arrived as they were; a wrong one decides."""
        readings: list[Reading[bool]] = [self._of(what, "verified") for what in which]
        wrong = [reading for reading in readings if isinstance(reading, Known) and not reading.value]
        if wrong:
            return wrong[0]
        gaps = [gap for gap in (first_unknown(*readings), self._strays()) if gap is not None]
        return gaps[0] if gaps else readings[0]

    def _strays(self) -> Unknown | None:
        """Why no GPU's copies can be called right: some are wrong, and of a GPU whose place is not known."""
        found = self._document()
        if isinstance(found, Unknown) or not found.unplaced_wrong:
            return None
        reason = f"{found.unplaced_wrong} wrong copies are of a GPU whose bus id is unknown"
        return Unknown(reason, recordings=(COPIES.name,))


def _failed(document: Copies, bus_id: str) -> bool:
    """Whether a GPU was not shown, or failed by itself, so that no copy to it says anything of its peers."""
    own = [copy for (name, _, _), copy in document.results.items() if name == bus_id]
    within = document.results.get((bus_id, WITHIN, ""))
    return within is None or any(copy.error and not copy.skipped for copy in own)


def _links_at_fault(gpu: Gpu) -> bool:
    """Whether a GPU has another number of links than the baseline demands, so that its pairs are slow for that."""
    links, wanted = gpu.nvlink.links_active, gpu.terms.links
    return isinstance(links, Known) and bool(wanted) and links.value not in wanted


def _named(gpu: Gpu) -> str:
    return f"{gpu.subject} ({gpu.bus_id})"
