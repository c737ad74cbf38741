"""What came back of the patterns that were written to a GPU's memory, how much of it was tried, and ECC meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeready.facts import patterns
from nodeready.node.catalogue import PATTERNS
from nodeready.node.causes import FABRIC, STARTS_CUDA, waits_for_fabric
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, cite, explained_by

if TYPE_CHECKING:
    from nodeready.facts.patterns import Patterns, Sizes
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

_LOST = ("gpu.count", "pcie.gpu-present")
# the probe leaves two parts in a hundred alone; a GPU that calls more than this free and gives none of it is at fault
_REFUSED = 0.1


class MemoryPatterns:
    """The patterns probe's result on one GPU."""

    def __init__(self, gpu: Gpu, sources: Sources) -> None:
        self._gpu, self._sources = gpu, sources

    @property
    def wrong_words(self) -> Reading[int]:
        """64-bit words that came back other than they were written."""
        found = self._document
        words: Reading[int] = self._of("wrong_words")
        if isinstance(found, Unknown) or not found.unplaced_wrong or (isinstance(words, Known) and words.value):
            return words
        reason = f"{found.unplaced_wrong} results with wrong words are of a GPU whose bus id is unknown"
        return Unknown(reason, recordings=(PATTERNS.name,))

    @property
    def share(self) -> Reading[float]:
        """The part of the GPU's memory that was gone over.

        A small one proves nothing of the GPU where something else held the memory, or where the probe was told to take
        less. Where the GPU called it free and did not give it, it is the GPU's.
        """
        sizes: Reading[Sizes] = self._of("sizes")
        if isinstance(sizes, Unknown):
            return sizes
        found = sizes.value
        note = f"{_gib(found.covered)} of {_gib(found.total)}"
        doubt = ""
        if found.cap is not None:
            doubt = f"the probe was told to take no more than {_gib(found.cap)}"
        elif found.left <= _REFUSED * found.total:
            doubt = (
                f"of {_gib(found.total)} only {_gib(found.free)} were free when it began: something else held the rest"
            )
            if found.covered + found.left < 0.9 * found.free:
                doubt = f"of {_gib(found.free)} that were free something else took a part meanwhile"
        else:
            note += f"; {_gib(found.left)} were free and could not be allocated"
        return Known(round(found.covered / found.total, 3), note=note, doubt=doubt, recordings=sizes.recordings)

    @property
    def uncorrected(self) -> Reading[int]:
        """Uncorrected ECC errors that came meanwhile."""
        return self._counted("uncorrected")

    @property
    def corrected(self) -> Reading[int]:
        """Corrected ECC errors that came meanwhile."""
        return self._counted("corrected")

    def _counted(self, kind: str) -> Reading[int]:
        """Errors of one kind, of which none are counted while ECC is off."""
        reading: Reading[int] = self._of(kind)
        return explained_by(reading, "health.ecc-mode") if isinstance(reading, Unknown) else reading

    @property
    def _document(self) -> Patterns | Unknown:
        found = self._sources.documents.read(PATTERNS, patterns.parse)
        if isinstance(found, Unknown):
            fabric = FABRIC if waits_for_fabric(found.reason) else ()
            return explained_by(found, *STARTS_CUDA, "frameworks.torch", *fabric)
        return found

    def _of(self, field: str) -> Reading[Any]:
        found, bus_id = self._document, self._gpu.bus_id
        if isinstance(found, Unknown):
            return found
        if bus_id is None:
            return Unknown("fewer GPUs are known than planned, so this one's slot is unknown", causes=_LOST)
        result = found.result(bus_id)
        listed = self._gpu.smi("uuid")
        if isinstance(result.uuid, Known) and isinstance(listed, Known) and result.uuid.value != listed.value:
            reason = f"{PATTERNS.name} went over {result.uuid.value}, the driver lists {listed.value} at {bus_id}"
            return Unknown(reason, recordings=(PATTERNS.name, *listed.recordings))
        reading: Reading[Any] = cite(getattr(result, field), PATTERNS.name)
        if isinstance(reading, Unknown) and bus_id not in found.results:
            return explained_by(reading, *_LOST)
        return reading


def _gib(size: int) -> str:
    return str(Quantity(round(size / 2**30, 1), "GiB"))
