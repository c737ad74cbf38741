"""The all-reduce over all GPUs of the node: as fast as its slowest rank, right only if every sum was."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from nodeready.facts import allreduce, topology
from nodeready.node.catalogue import ALLREDUCE
from nodeready.node.causes import FABRIC, waits_for_fabric
from nodeready.node.peers import LOST
from nodeready.node.sources import SLOT_UNKNOWN
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of, first_unknown

if TYPE_CHECKING:
    from nodeready.facts.allreduce import Rank
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources
    from nodeready.quantity import Quantity

T = TypeVar("T")

SIZE = 8 << 30  # bytes: the rate still grows with the message up to there
UNJOINED = 0  # the number of GPUs under which the share of cards without NVLink stands
RING_AS_FAST = 4  # GPUs up to which a ring over NVLink is measured to be as fast as the switches' own sums
_CONSEQUENCE = "which took no part"  # the probe's words of a rank that was let go for the sake of another
_GIB = 1 << 30


class AllReduce:
    """What the all-reduce probe measured on one node."""

    def __init__(self, sources: Sources, gpus: tuple[Gpu, ...]) -> None:
        self._sources, self._gpus = sources, gpus

    @cached_property
    def _ranks(self) -> dict[str, Rank] | Unknown:
        """Each planned GPU's part in the large all-reduce, all of one run; unknown where one is missing."""
        found = self._document
        if isinstance(found, Unknown):
            return found
        ranks: dict[str, Rank] = {}
        for gpu in self._gpus:
            rank = found.of(gpu.bus_id).get(SIZE) if gpu.bus_id else None
            if rank is None:
                lost = "the allreduce probe has no rank on it" if gpu.bus_id else SLOT_UNKNOWN
                return self._gap(f"{gpu.subject}: {lost}", *LOST)
            ranks[gpu.subject] = rank
        failed = [f"{subject}: {rank.error}" for subject, rank in ranks.items() if rank.error]
        if failed:  # the rank that failed by itself says most
            return self._gap(next((error for error in failed if _CONSEQUENCE not in error), failed[0]))
        gap = first_unknown(*(rank.ranks for rank in ranks.values()), *map(self._same_gpu, self._gpus))
        if gap is not None:
            return cite(gap, ALLREDUCE.name)  # type: ignore[return-value]
        counts = sorted({rank.ranks.value for rank in ranks.values()})
        if counts != [len(self._gpus)]:
            took = " or ".join(map(str, counts))
            return self._gap(f"{took} GPUs took part, {len(self._gpus)} are planned", *LOST)
        return ranks

    @cached_property
    def _document(self) -> allreduce.Allreduce | Unknown:
        found = self._sources.documents.read(ALLREDUCE, allreduce.parse)
        if isinstance(found, Unknown):
            fabric = FABRIC if waits_for_fabric(found.reason) else ()
            return explained_by(found, "driver.responds", "frameworks.torch", *LOST, *fabric)
        return found

    def _gap(self, reason: str, *causes: str) -> Unknown:
        fabric = FABRIC if waits_for_fabric(reason) else ()
        return Unknown(reason, recordings=(ALLREDUCE.name,), causes=(*causes, "gpu.mig", "frameworks.torch", *fabric))

    def _same_gpu(self, gpu: Gpu) -> Reading[str]:
        """The GPU's UUID; unknown where the probe measured another GPU at its bus id than the driver lists."""
        found = self._document
        uuid = found.of(gpu.bus_id or "")[SIZE].uuid if isinstance(found, allreduce.Allreduce) else Known("")
        listed = first_of(*self._sources.smi_fields(gpu.bus_id, "uuid"))
        if isinstance(uuid, Known) and isinstance(listed, Known) and uuid.value != listed.value:
            reason = f"{ALLREDUCE.name} measured {uuid.value}, the driver lists {listed.value} at {gpu.bus_id}"
            return Unknown(reason, recordings=(ALLREDUCE.name, *listed.recordings))
        return Known("")

    @property
    def rate(self) -> Reading[Quantity]:
        """The bus bandwidth of the slowest rank with the large message.

        Fewer GPUs than the floor is of reach less, and so do cards that NVLink does not join. A low rate proves
        nothing where memory was short for the whole message, or where no floor is known for so many GPUs.
        """
        ranks = self._ranks
        if isinstance(ranks, Unknown):
            return ranks
        gap = first_unknown(*(part for rank in ranks.values() for part in (rank.busbw, rank.message)))
        if gap is not None:
            return cite(gap, ALLREDUCE.name)
        slowest = min(ranks, key=lambda subject: ranks[subject].busbw.value.base)
        rank = ranks[slowest]
        note = ", ".join([f"slowest {slowest}", f"{len(ranks)} GPUs", *self._manner(ranks)])
        reading = Known(rank.busbw.value, note=note, recordings=(ALLREDUCE.name,))
        if rank.message.value < SIZE:
            size = rank.message.value / _GIB
            doubt = f"memory was short for a message of 8 GiB, and one of {size:.3g} GiB is slower"
            return replace(reading, doubt=doubt)
        return self._by_count(reading)

    def _by_count(self, reading: Known[Quantity]) -> Known[Quantity]:
        shares, count = self._sources.terms.reduce_shares, len(self._gpus)
        apart = self._apart() if UNJOINED in shares else ""
        if apart:
            return replace(reading, share=shares[UNJOINED], share_reason=apart, note=f"{reading.note}; {apart}")
        if not shares or count in shares:
            share = shares.get(count, 1.0)
            reason = f"{count} GPUs reach no more than that part" if share != 1.0 else ""
            return replace(reading, share=share, share_reason=reason)
        known = ", ".join(str(number) for number in sorted(shares) if number != UNJOINED)
        return replace(reading, doubt=f"no floor is known for {count} GPUs, only for {known}")

    def _apart(self) -> str:
        """Which cards NVLink does not join, where the baseline lets that be; empty where all are joined."""
        matrix = self._sources.documents.read(topology.TOPO, topology.parse)
        if isinstance(matrix, Unknown):
            links = [gpu.nvlink.links_active for gpu in self._gpus]
            none = all(isinstance(each, Known) and each.value == 0 for each in links)
            return "no card has an NVLink that is up" if none else ""
        for number, one in enumerate(matrix.gpus):
            for other in matrix.gpus[number + 1 :]:
                link = matrix.link(one, other)
                if isinstance(link, Known) and not link.value.startswith("NV"):
                    return f"NVLink does not join {one} and {other}, so sums go over PCIe"
        return ""

    @property
    def correct(self) -> Reading[bool]:
        """Whether every sum of every size was right on every GPU: one wrong one is enough."""
        found = self._document
        if isinstance(found, Unknown):
            return found
        wrong = [
            f"{name} at {size / _GIB:.3g} GiB"
            for (name, size), rank in found.ranks.items()
            if isinstance(rank.verified, Known) and not rank.verified.value
        ]
        if wrong or found.unplaced_wrong:
            note = f"wrong on {', '.join(wrong[:4])}" if wrong else "wrong on a GPU whose bus id is unknown"
            return Known(False, note=note, recordings=(ALLREDUCE.name,))
        ranks = self._ranks
        if isinstance(ranks, Unknown):
            return ranks
        gap = first_unknown(*(rank.verified for rank in found.ranks.values()))
        return Known(True, recordings=(ALLREDUCE.name,)) if gap is None else cite(gap, ALLREDUCE.name)

    @property
    def algorithm(self) -> Reading[str]:
        """By what the large message was reduced, in NCCL's word: `NVLS` where the NVSwitches add up.

        NCCL names it since 2.20; without NVLS channels it is known before that what it was not.
        """
        ranks = self._ranks
        if isinstance(ranks, Unknown):
            return ranks
        named = sorted({rank.algorithm.value for rank in ranks.values() if isinstance(rank.algorithm, Known)})
        channels = [rank.nvls_channels for rank in ranks.values()]
        note = ", ".join(self._manner(ranks)[1:])
        if named:
            few = len(ranks) <= RING_AS_FAST
            doubt = f"with {len(ranks)} GPUs a ring is as fast, and NCCL may choose it" if few else ""
            return Known(" and ".join(named), note=note, recordings=(ALLREDUCE.name,), doubt=doubt)
        if all(isinstance(each, Known) and each.value == 0 for each in channels):
            return Known("not NVLS", note=note, recordings=(ALLREDUCE.name,))
        version = self._first(rank.version for rank in ranks.values())
        said = f"NCCL {version} names no algorithm in its log" if version else "no NCCL named its algorithm"
        return Unknown(f"{said}; 2.20 and newer do", recordings=(ALLREDUCE.name,), causes=("frameworks.torch",))

    def _manner(self, ranks: dict[str, Rank]) -> list[str]:
        """How it was reduced, by which NCCL, and what that was told, in words."""
        algorithm = self._first(rank.algorithm for rank in ranks.values()) or "algorithm not told"
        version = self._first(rank.version for rank in ranks.values())
        settings: dict[str, Any] = {}
        for rank in ranks.values():
            settings.update(rank.settings)
        told = [f"{name}={value}" for name, value in sorted(settings.items())][:6]
        return [algorithm, *([f"NCCL {version}"] if version else []), *told]

    @staticmethod
    def _first(readings: Any) -> str:
        return next((reading.value for reading in readings if isinstance(reading, Known)), "")
