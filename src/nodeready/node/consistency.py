"""Whether the GPUs of one node are alike, and which one is not."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

from nodeready.node.compared_products import FEWEST, differing_products, slowest_product
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.node.gpus import Gpu

_NAMED = 4


class Consistency:
    """What the GPUs of a node have to have in common.

    Only GPUs that the driver lists count, and of the product that most of them are: a lost one is
    `gpu.count`'s matter, and one of another product `gpu.product`'s.
    """

    def __init__(self, gpus: tuple[Gpu, ...]) -> None:
        self._all = gpus

    @property
    def gpu_part(self) -> Reading[int]:
        """How many part numbers the GPUs have; the board's own number may differ by its vendor."""
        return self._kinds("gpu_part")

    @property
    def vbios(self) -> Reading[int]:
        """How many VBIOS versions they run."""
        return self._kinds("vbios")

    @property
    def vbios_version(self) -> Reading[str]:
        """The VBIOS version that all of them run."""
        return self._common("vbios")

    @property
    def inforom(self) -> Reading[int]:
        """How many versions of the InfoROM image they hold."""
        return self._kinds("inforom_image")

    @property
    def inforom_version(self) -> Reading[str]:
        """The version of the InfoROM image that all of them hold."""
        return self._common("inforom_image")

    @property
    def sm_clock(self) -> Reading[int]:
        """How many highest SM clocks they have."""
        return self._kinds("sm_clock_max")

    @property
    def power_limit(self) -> Reading[int]:
        """How many highest power limits they have; what is set now is `power.limit`'s matter."""
        return self._kinds("power_limit_max")

    def _kinds(self, field: str) -> Reading[int]:
        """How many different values there are; known to be several as soon as two differ."""
        values = self._values(lambda gpu: gpu.smi(field))
        known = {gpu: reading.value for gpu, reading in values.items() if isinstance(reading, Known)}
        kinds = Counter(known.values())
        if len(kinds) < 2:
            unknown = [reading for reading in values.values() if isinstance(reading, Unknown)]
            if unknown:
                return unknown[0]
        recordings = tuple(dict.fromkeys(name for r in values.values() for name in r.recordings))
        if len(kinds) == 1:
            return Known(1, note=str(next(iter(kinds))), recordings=recordings)
        return Known(len(kinds), note=_odd_ones(known, kinds), recordings=recordings)

    def _common(self, field: str) -> Reading[str]:
        kinds = self._kinds(field)
        if isinstance(kinds, Unknown):
            return kinds
        if kinds.value > 1:
            return Unknown(f"there is none: {kinds.note}", recordings=kinds.recordings)
        return Known(kinds.note, recordings=kinds.recordings)

    @property
    def idle_power(self) -> Reading[Quantity]:
        """How far the GPU's draw is off that is furthest from the others'."""
        return self._spread("power_draw", "W")

    @property
    def idle_temperature(self) -> Reading[Quantity]:
        """How far the GPU's temperature is off that is furthest above the others'.

        One that has no margin left is `thermal.margin`'s matter.
        """
        return self._spread("temperature", "degC", lambda gpu: not _is_hot(gpu))

    def _spread(self, field: str, unit: str, counts: Callable[[Gpu], bool] = lambda _: True) -> Reading[Quantity]:
        """The largest excess over the median of all; a GPU below it is no fault."""
        values = self._values(lambda gpu: gpu.smi(field, volatile=True))
        for reading in values.values():
            if isinstance(reading, Unknown):
                return reading
        recordings = tuple(dict.fromkeys(name for r in values.values() for name in r.recordings))
        numbers = {
            gpu: reading.value.to(unit).value
            for gpu, reading in values.items()
            if isinstance(reading, Known) and counts(gpu)
        }
        if len(numbers) < FEWEST:
            note = f"of {len(numbers)} GPUs none can be told to be the odd one"
            return Known(Quantity(0, unit), note=note, recordings=recordings)
        middle = median(numbers.values())
        odd = max(numbers, key=lambda gpu: numbers[gpu])
        note = f"{_named(odd)} at {numbers[odd]:g} {unit}, the median is {middle:g} {unit}"
        return Known(Quantity(round(numbers[odd] - middle, 2), unit), note=note, recordings=recordings)

    @property
    def products(self) -> Reading[int]:
        """How many matrix products came out differently on one GPU than on the others.

        A GPU that made none is unverified in `compute`'s findings; GPUs of one kind are held against each other.
        """
        return differing_products(self._of_one_product())

    @property
    def slowest_product(self) -> Reading[float]:
        """The rate of the slowest GPU's FP16 product as a share of the median of all."""
        return slowest_product(self._of_one_product())

    def _values(self, read: Callable[[Gpu], Reading[Any]]) -> dict[Gpu, Reading[Any]]:
        return {gpu: read(gpu) for gpu in self._of_one_product()}

    def _of_one_product(self) -> list[Gpu]:
        """The GPUs of the most frequent product, and those of which none is known; all where none is listed."""
        listed = [gpu for gpu in self._all if gpu.is_listed] or list(self._all)
        products = {gpu: reading.value for gpu in listed if isinstance(reading := gpu.product, Known)}
        if not products:
            return listed
        common = Counter(products.values()).most_common(1)[0][0]
        return [gpu for gpu in listed if products.get(gpu, common) == common]


def _is_hot(gpu: Gpu) -> bool:
    margin = gpu.thermal_margin
    return isinstance(margin, Known) and margin.value <= Quantity(0, "degC")


def _odd_ones(known: dict[Gpu, Any], kinds: Counter[Any]) -> str:
    """Which GPUs differ from the most frequent value; where no value leads all values are told."""
    (common, most), (_, next_most) = kinds.most_common(2)
    if most == next_most:
        told = [f"{value} on {_some([g for g in known if known[g] == value])}" for value in kinds]
        return "; ".join(told[:_NAMED])
    odd = [f"{_named(gpu)} has {value}" for gpu, value in known.items() if value != common]
    return f"{', '.join(odd[:_NAMED])}, the others {common}"


def _some(gpus: list[Gpu]) -> str:
    return ", ".join(_named(gpu) for gpu in gpus[:_NAMED]) + (", ..." if len(gpus) > _NAMED else "")


def _named(gpu: Gpu) -> str:
    return f"{gpu.subject} ({gpu.bus_id or 'slot unknown'})"
