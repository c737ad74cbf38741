"""What one GPU computed under load: rates, correctness, and what the load did to its clocks, power and heat."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodeready.node.catalogue import MATMUL
from nodeready.reading import Known, Reading, Unknown, cite

if TYPE_CHECKING:
    from nodeready.facts.matmul import Result
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources
    from nodeready.quantity import Quantity

OLD_CUBLAS = (12, 4)
HOTTEST = ("float16", 16384)  # the product that draws most for longest
# NVML's bits of clock event reasons, and the share of samples that is no fault
_UNDER_LOAD = {
    0x08: ("HW slowdown", 0.0),
    0x20: ("SW thermal slowdown", 0.01),
    0x40: ("HW thermal slowdown", 0.0),
    0x80: ("HW power brake", 0.0),
}


class Compute:
    """The matmul probe's results on one GPU."""

    def __init__(self, gpu: Gpu, sources: Sources) -> None:
        self._gpu, self._sources = gpu, sources

    def rate(self, dtype: str, size: int) -> Reading[Quantity]:
        """The median rate of one product.

        A low one proves nothing where the library is older than the GPU needs, and a card that the
        baseline lets run below its rated power is held against as much less.
        """
        rate = self._of((dtype, size), "tflops")
        if isinstance(rate, Unknown):
            return rate
        limit, terms = self._gpu.smi("power_limit"), self._gpu.terms
        rated, least = terms.power_rated, terms.power_least
        if isinstance(limit, Known) and rated and least and least <= limit.value < rated:
            reason = f"the GPU is limited to {limit.value} of {rated}"
            rate = replace(rate, share=limit.value.base / rated.base, share_reason=reason)
        cublas = self._sources.cublas
        if isinstance(cublas, Known):
            version = tuple(int(part) for part in cublas.value.split(".")[:2])
            if version < OLD_CUBLAS:
                doubt = f"cuBLAS {cublas.value} is older than 12.4 and slow on Hopper, measure with a newer one"
                return replace(rate, doubt=doubt)
        return rate

    def correct(self, dtype: str) -> Reading[bool]:
        """Whether every product of that type was verified: one wrong one is enough."""
        results = self._sources.matmul_results(self._gpu.bus_id, dtype)
        return results if isinstance(results, Unknown) else _all([result.verified for result in results])

    @property
    def repeatable(self) -> Reading[bool]:
        """Whether every product came out the same to the last bit each time it was made again."""
        results = self._measured
        return results if isinstance(results, Unknown) else _all([result.repeatable for result in results])

    def digest(self, dtype: str, size: int) -> Reading[str]:
        """A number of the product's bits."""
        return self._of((dtype, size), "digest")

    def is_sound(self, dtype: str, size: int) -> bool:
        """Whether nothing speaks against the product itself; one that was not checked is no worse for that."""
        checks = (self._of((dtype, size), "verified"), self._of((dtype, size), "repeatable"))
        return not any(isinstance(check, Known) and not check.value for check in checks)

    @property
    def draw(self) -> Reading[float]:
        """The power drawn under the heaviest product, as a share of the enforced limit."""
        power, limit = self._of(HOTTEST, "power"), self._gpu.smi("power_limit")
        if isinstance(power, Unknown):
            return power
        return limit.map(lambda watts: round(power.value.base / watts.base, 3))

    @property
    def least_margin(self) -> Reading[Quantity]:
        """The least T.Limit of all products: degrees that were left to the limit."""
        results = self._measured
        if isinstance(results, Unknown):
            return results
        margins = [cite(result.margin, MATMUL.name) for result in results]
        unknown = [margin for margin in margins if isinstance(margin, Unknown)]
        return unknown[0] if unknown else min(margins, key=lambda margin: margin.value.base)

    @property
    def slowdowns(self) -> Reading[str]:
        """The slowdowns seen meanwhile; SW thermal slowdown counts above 1 % of the samples."""
        results = self._measured
        if isinstance(results, Unknown):
            return results
        seen: dict[str, float] = {}
        for result in results:
            if isinstance(result.events, Unknown):
                return cite(result.events, MATMUL.name)
            for bit, share in result.events.value.items():
                words, allowed = _UNDER_LOAD.get(bit, ("", 1.0))
                if share > allowed:
                    seen[words] = max(share, seen.get(words, 0.0))
        note = ", ".join(f"{words} in {share:.0%} of the samples" for words, share in seen.items())
        return Known(", ".join(seen) or "none", note=note, recordings=(MATMUL.name,))

    @property
    def _measured(self) -> list[Result] | Unknown:
        """The products that ran; one that did not is unverified in its own finding."""
        results = self._sources.matmul_results(self._gpu.bus_id)
        if isinstance(results, Unknown):
            return results
        return [result for result in results if not result.error] or results

    def _of(self, task: tuple[str, int], field: str) -> Reading[Any]:
        result = self._sources.matmul_result(self._gpu.bus_id, *task)
        if isinstance(result, Unknown):
            return result
        reading: Reading[Any] = getattr(result, field)
        return cite(reading, MATMUL.name)


def _all(readings: list[Reading[bool]]) -> Reading[bool]:
    """False as soon as one is; true only where all are known."""
    wrong = [reading for reading in readings if isinstance(reading, Known) and not reading.value]
    unknown = [reading for reading in readings if isinstance(reading, Unknown)]
    return cite(wrong[0] if wrong else unknown[0] if unknown else readings[0], MATMUL.name)
