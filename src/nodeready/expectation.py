"""A demand: what a reading has to be, in which unit, by which source, and the verdict on it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

from nodeready.quantity import Quantity, UnitError, dimension_of
from nodeready.reading import Known, Reading, Unknown
from nodeready.verdict import Verdict

OPERATORS = ("min", "max", "equals", "one_of", "between", "matches")
_WORDS = {
    "min": ">= {}",
    "max": "<= {}",
    "equals": "{}",
    "one_of": "one of {}",
    "between": "between {}",
    "matches": "/{}/",
}


class BoundError(ValueError):
    """A bound that no value could be held against."""


@dataclass(frozen=True)
class Bound:
    """One comparison: an operator of the closed set and what it compares with.

    `unit` is the demand's: a unit of measure, `version`, or empty for plain numbers and words.
    """

    operator: str
    operand: Any
    unit: str = ""

    @classmethod
    def parse(cls, table: Any, unit: str) -> Bound:
        """From a baseline's table such as `{ min = "512 GiB" }`; raises `BoundError`."""
        if not isinstance(table, dict) or len(table) != 1:
            raise BoundError(f"expected one of {', '.join(OPERATORS)}, such as {{ min = 5 }}, got {table!r}")
        ((operator, raw),) = table.items()
        if operator not in OPERATORS:
            raise BoundError(f"unknown comparison {operator!r}; known: {', '.join(OPERATORS)}")
        if operator in ("one_of", "between"):
            if not isinstance(raw, list) or not raw or (operator == "between" and len(raw) != 2):
                raise BoundError(
                    f"{operator} takes a list of {'two' if operator == 'between' else 'some'} values, got {raw!r}"
                )
            operand: Any = tuple(_operand(item, unit, operator) for item in raw)
            if operator == "between" and not _order(operand[0], unit) <= _order(operand[1], unit):
                raise BoundError(f"between {raw!r}: the first is above the second")
        else:
            operand = _operand(raw, unit, operator)
        return cls(operator, operand, unit)

    def holds(self, value: Any, share: float = 1.0) -> bool:
        """Whether a value meets the bound; `share` of the operand is enough for a `min`."""
        if self.operator == "matches":
            return re.fullmatch(self.operand, value) is not None
        mine = _order(value, self.unit)
        if self.operator == "min":
            return bool(mine >= (self.operand * share if share != 1.0 else _order(self.operand, self.unit)))
        if self.operator == "max":
            return bool(mine <= _order(self.operand, self.unit))
        if self.operator == "between":
            low, high = self.operand
            return bool(_order(low, self.unit) <= mine <= _order(high, self.unit))
        operands = self.operand if self.operator == "one_of" else (self.operand,)
        return any(mine == _order(operand, self.unit) for operand in operands)

    def as_json(self) -> dict[str, Any]:
        """The bound in the form of results.json: `{"min": {"value": 512, "unit": "GiB"}}`."""
        several = isinstance(self.operand, tuple)
        value = [_plain(o) for o in self.operand] if several else _plain(self.operand)
        first = self.operand[0] if several else self.operand
        return {self.operator: {"value": value, "unit": first.unit if isinstance(first, Quantity) else self.unit}}

    def __str__(self) -> str:
        joiner = " and " if self.operator == "between" else ", "
        text = joiner.join(map(str, self.operand)) if isinstance(self.operand, tuple) else str(self.operand)
        return _WORDS[self.operator].format(text)

    def at_least_as_strict_as(self, other: Bound) -> bool:
        """Whether every value that meets this bound meets the other too."""
        if self.operator == "equals":
            return other.holds(self.operand)
        if self.operator == "one_of":
            return all(other.holds(operand) for operand in self.operand)
        if self.operator != other.operator:
            return False
        if self.operator == "min":
            return bool(_order(self.operand, self.unit) >= _order(other.operand, self.unit))
        if self.operator == "max":
            return bool(_order(self.operand, self.unit) <= _order(other.operand, self.unit))
        both_ends = self.operator == "between" and other.holds(self.operand[0]) and other.holds(self.operand[1])
        return bool(both_ends or self.operand == other.operand)


def _operand(raw: Any, unit: str, operator: str) -> Any:
    """What a bound compares with, in the demand's unit; raises `BoundError`."""
    if isinstance(raw, str) and not raw.strip():
        raise BoundError("an empty bound demands nothing")
    if operator == "matches":
        return _pattern(raw, unit)
    if unit == "version":
        if not isinstance(raw, str):
            raise BoundError(f"a version is written as text, such as '525' or '12.4', got {raw!r}")
        version_of(raw)
        return raw
    if unit:
        return _quantity(raw, unit)
    if isinstance(raw, float) and not math.isfinite(raw):
        raise BoundError(f"{raw!r} is no bound that a value could be held against")
    if operator in ("min", "max", "between") and (isinstance(raw, bool) or not isinstance(raw, int | float)):
        raise BoundError(f"{operator} takes a number here, got {raw!r}")
    if not isinstance(raw, int | float | str):
        raise BoundError(f"{raw!r} is no number, word or truth value")
    return raw


def _pattern(raw: Any, unit: str) -> str:
    if not isinstance(raw, str) or unit:
        raise BoundError(f"matches takes a pattern of a plain word, got {raw!r}")
    try:
        re.compile(raw)
    except re.error as error:
        raise BoundError(f"{raw!r} is not a pattern: {error}") from None
    return raw


def _quantity(raw: Any, unit: str) -> Quantity:
    if not isinstance(raw, str):
        raise BoundError(f"{raw!r} has no unit: a {dimension_of(unit)} is written as text, such as '{raw} {unit}'")
    quantity = Quantity.parse(raw)
    if quantity.dimension != dimension_of(unit):
        raise BoundError(f"{raw!r} is a {quantity.dimension}, the demand is a {dimension_of(unit)} in {unit}")
    return quantity


def version_of(text: str) -> Any:
    """A version that compares by its numbers; raises `BoundError` for other text."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        raise BoundError(f"{text!r} is not a version") from None


def _order(value: Any, unit: str) -> Any:
    if unit == "version":
        return version_of(value)
    if unit and not isinstance(value, Quantity):
        raise UnitError(f"{value!r} has no unit, the demand is in {unit}")
    return value


def _plain(operand: Any) -> Any:
    return operand.value if isinstance(operand, Quantity) else operand


@dataclass(frozen=True)
class Demand:
    """One key of a baseline for one node type.

    `required` missed is a fail, `recommended` missed an advisory. A reading above `plausible` is a
    failed measurement. `absent` is the reason why the key does not apply to this node type. `follows` is
    the key whose required bound it takes over. `in_service` holds the two bounds, required and
    recommended, that stand in their place on a node in service. `idle_only` is the reason why the key
    does not apply while a job holds the node, `when_recorded` the reason why it does not where its evidence was
    not handed in, `several_gpus` the reason why it does not where one GPU is planned.
    """

    key: str
    title: str
    per: str
    tier: str
    measure: str
    unit: str
    required: Bound | None
    recommended: Bound | None
    source: str
    why: str
    plausible: Quantity | None = None
    absent: str = ""
    follows: str = ""
    in_service: tuple[Bound | None, Bound | None] | None = None
    idle_only: str = ""
    when_recorded: str = ""
    several_gpus: str = ""

    def on_one_gpu(self) -> Demand:
        """The demand on a node with a single GPU: absent where it takes several."""
        if self.absent or not self.several_gpus:
            return self
        return replace(self, absent=self.several_gpus, required=None, recommended=None, in_service=None)

    def serving(self) -> Demand:
        """The demand on a node in service: by its own bounds, where it has any."""
        if self.in_service is None:
            return self
        required, recommended = self.in_service
        return replace(self, required=required, recommended=recommended, in_service=None)

    @property
    def check(self) -> str:
        """The check that judges it: the key up to the slash."""
        return self.key.partition("/")[0]

    @property
    def must(self) -> bool:
        """Whether an unverified finding leaves the node incomplete."""
        return self.measure == "must"

    def demanded(self) -> str:
        """The bounds in words."""
        parts = [str(self.required)] if self.required else []
        parts += [f"recommended {self.recommended}"] if self.recommended else []
        serving = f"; in service {self.serving().demanded() or 'nothing'}" if self.in_service else ""
        return ", ".join(parts) + serving


@dataclass(frozen=True)
class Judgement:
    """A verdict with the sentence that explains it, and the bare reason of an unverified one."""

    verdict: Verdict
    sentence: str
    reason: str = ""


def judge(demand: Demand, reading: Reading[Any], held: str = "") -> Judgement:
    """Hold a reading against a demand. An unknown reading is never better than unverified.

    `held` says which job holds the node, and is empty where none is known to.
    """
    inapplicable = _inapplicable(demand, reading, held)
    if inapplicable:
        return Judgement(Verdict.NOT_APPLICABLE, inapplicable)
    if isinstance(reading, Unknown):
        return Judgement(Verdict.UNVERIFIED, f"{demand.title} is unknown: {reading.reason}", reading.reason)
    seen = f"{demand.title} is {reading.value}" + (f" ({reading.note})" if reading.note else "")
    if reading.defect:
        return Judgement(Verdict.FAIL, f"{seen}: {reading.defect}")
    if demand.plausible is not None and reading.value > demand.plausible:
        reason = f"above the plausible {demand.plausible}, so the measurement itself failed"
        return Judgement(Verdict.UNVERIFIED, f"{seen}: {reason}", reason)
    return _against_bounds(demand, reading, seen)


def _inapplicable(demand: Demand, reading: Reading[Any], held: str) -> str:
    """Why the baseline says that the demand does not apply here; empty where it does."""
    if demand.absent:
        return demand.absent
    if demand.idle_only and held:
        return f"{demand.idle_only}; the node is held by {held}"
    recorded = isinstance(reading, Known) or not reading.missing or bool(reading.recordings)
    return "" if recorded else demand.when_recorded


def _against_bounds(demand: Demand, reading: Known[Any], seen: str) -> Judgement:
    allowance = f" ({reading.share:.0%} of it: {reading.share_reason})" if reading.share != 1.0 else ""
    if demand.required and not demand.required.holds(reading.value, reading.share):
        hopeless = reading.ceiling is not None and not demand.required.holds(reading.ceiling, reading.share)
        if reading.doubt and not hopeless:
            sentence = f"{seen}, demanded {demand.required}: {reading.doubt}"
            return Judgement(Verdict.UNVERIFIED, sentence, reading.doubt)
        at_best = f" and can be {reading.ceiling} at best" if hopeless else ""
        return Judgement(Verdict.FAIL, f"{seen}{at_best}, demanded {demand.required}{allowance}")
    if demand.recommended and not demand.recommended.holds(reading.value, reading.share):
        return Judgement(Verdict.ADVISORY, f"{seen}, recommended {demand.recommended}{allowance}")
    return Judgement(Verdict.PASS, seen)


def observed_json(demand: Demand, reading: Reading[Any]) -> dict[str, Any] | None:
    """The reading in the form of results.json: `{"value": 4, "unit": ""}`, None where unknown."""
    if isinstance(reading, Unknown):
        return None
    value = reading.value
    if isinstance(value, Quantity):
        return {"value": value.value, "unit": value.unit}
    return {"value": list(value) if isinstance(value, tuple) else value, "unit": demand.unit}
