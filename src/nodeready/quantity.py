"""A number with its unit; quantities of one dimension compare, others raise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

_BASE: dict[str, tuple[str, float]] = {
    "B": ("data", 1),
    "kB": ("data", 1e3),
    "KiB": ("data", 2**10),
    "MB": ("data", 1e6),
    "MiB": ("data", 2**20),
    "GB": ("data", 1e9),
    "GiB": ("data", 2**30),
    "TB": ("data", 1e12),
    "TiB": ("data", 2**40),
    "W": ("power", 1),
    "kW": ("power", 1e3),
    "degC": ("temperature", 1),
    "MHz": ("frequency", 1e6),
    "GHz": ("frequency", 1e9),
    "GFLOPS": ("compute rate", 1e9),
    "TFLOPS": ("compute rate", 1e12),
    "MB/s": ("data rate", 1e6),
    "GB/s": ("data rate", 1e9),
    "TB/s": ("data rate", 1e12),
    "Gb/s": ("data rate", 1e9 / 8),
    "GT/s": ("transfer rate", 1e9),
    "s": ("time", 1),
    "ms": ("time", 1e-3),
    "%": ("share", 0.01),
}

_TEXT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z%][A-Za-z/%]*)\s*")


class UnitError(ValueError):
    """A unit that is not known, or two quantities of different dimensions."""


@total_ordering
@dataclass(frozen=True, eq=False)
class Quantity:
    """A value in a unit.

    >>> Quantity.parse("512 GiB") == Quantity.parse("0.5 TiB")
    True
    >>> Quantity.parse("350 W") < Quantity(0.7, "kW")
    True
    """

    value: float
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in _BASE:
            raise UnitError(f"unknown unit {self.unit!r}; known: {', '.join(_BASE)}")

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """From text such as `512 GiB`; raises `UnitError` for anything else."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise UnitError(f"{text!r} is not a number with a unit, such as '512 GiB'")
        number = float(match[1])
        return cls(int(number) if number.is_integer() else number, match[2])

    @property
    def dimension(self) -> str:
        """What is measured: data, power, temperature, ..."""
        return _BASE[self.unit][0]

    @property
    def base(self) -> float:
        """The value in the base unit of its dimension."""
        return self.value * _BASE[self.unit][1]

    def _same(self, other: object) -> float:
        if not isinstance(other, Quantity):
            raise UnitError(f"{self} cannot be compared with {other!r}, which has no unit")
        if other.dimension != self.dimension:
            raise UnitError(f"{self} is a {self.dimension}, {other} a {other.dimension}")
        return other.base

    def __eq__(self, other: object) -> bool:
        return self.base == self._same(other)

    def __lt__(self, other: object) -> bool:
        return self.base < self._same(other)

    def __hash__(self) -> int:
        return hash((self.dimension, self.base))

    def __mul__(self, factor: float) -> Quantity:
        return Quantity(self.value * factor, self.unit)

    def to(self, unit: str) -> Quantity:
        """The same quantity in another unit of its dimension."""
        target = Quantity(1, unit)
        self._same(target)
        return Quantity(self.base / target.base, unit)

    def __str__(self) -> str:
        number = f"{self.value:.6g}" if isinstance(self.value, float) else str(self.value)
        return f"{number} {self.unit}"


def dimension_of(unit: str) -> str:
    """The dimension of a unit; raises `UnitError` where the unit is not known."""
    return Quantity(1, unit).dimension
