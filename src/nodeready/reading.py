"""A reading is a value that came from the node, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, Union

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
U = TypeVar("U")


class Unverified(Exception):  # noqa: N818 - the contract's word
    """An unknown reading was used as if it held a value."""


@dataclass(frozen=True)
class Known(Generic[T]):
    """The node said so.

    `doubt` says why a value that misses its bound would prove nothing (a link that idles, an old
    library): the finding is then unverified, not failed, unless `ceiling`, the most that the value
    could be in any state, misses the bound too. `share` is the part of the demanded quantity that
    is enough for this reading, and `share_reason` why (MemTotal shows 0.97 of the installed memory). `defect` is a
    contradiction inside the reading that fails whatever the bound.
    """

    value: T
    note: str = ""
    recordings: tuple[str, ...] = ()
    doubt: str = ""
    ceiling: T | None = None
    share: float = 1.0
    share_reason: str = ""
    defect: str = ""

    def map(self, function: Callable[[T], U]) -> Known[U]:
        """The same reading with another value; `ceiling` is dropped."""
        return Known(
            function(self.value),
            note=self.note,
            recordings=self.recordings,
            doubt=self.doubt,
            share=self.share,
            share_reason=self.share_reason,
            defect=self.defect,
        )

    def cited(self, recordings: tuple[str, ...]) -> Known[T]:
        """The same reading, which came from these recordings; written out, since a judgement does it 3000 times."""
        return Known(
            self.value,
            self.note,
            recordings,
            self.doubt,
            self.ceiling,
            self.share,
            self.share_reason,
            self.defect,
        )


@dataclass(frozen=True, eq=False)
class Unknown:
    """The node did not say, and why.

    `missing` is true where this form of the datum is not there at all (not recorded, command not
    found, exit status other than 0), so that another form may be asked; it is false where the form
    is there and says nothing usable (empty, cut, `[N/A]`, an error text). `causes` are the checks
    whose failure would explain it. Comparing, counting or testing an unknown raises `Unverified`.
    """

    reason: str
    missing: bool = False
    recordings: tuple[str, ...] = ()
    causes: tuple[str, ...] = field(default=())

    def _raise(self, *_: Any) -> NoReturn:
        raise Unverified(self.reason)

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _raise
    __int__ = __float__ = __index__ = __len__ = __iter__ = __contains__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _raise
    __hash__ = None  # type: ignore[assignment]

    def map(self, function: Callable[[Any], Any]) -> Unknown:  # noqa: ARG002 - same shape as Known.map
        """Still unknown."""
        return self

    def cited(self, recordings: tuple[str, ...]) -> Unknown:
        """The same unknown, which came from these recordings."""
        return Unknown(self.reason, self.missing, recordings, self.causes)

    @property
    def value(self) -> NoReturn:
        """There is none: raises `Unverified`."""
        raise Unverified(self.reason)


Reading = Union[Known[T], Unknown]  # noqa: UP007 - a generic alias on Python 3.10


def cite(reading: Reading[T], *recordings: str) -> Reading[T]:
    """The reading with the names of the recordings that it came from."""
    return reading if reading.recordings else reading.cited(recordings)


def explained_by(unknown: Unknown, *checks: str) -> Unknown:
    """The same unknown, which the failure of one of `checks` would explain."""
    return replace(unknown, causes=(*unknown.causes, *checks))


def first_unknown(*readings: Reading[Any]) -> Unknown | None:
    """The first that is unknown, None where all are known: what is joined of several needs them all."""
    return next((reading for reading in readings if isinstance(reading, Unknown)), None)


def first_of(*forms: Reading[T], agree: bool = True) -> Reading[T]:
    """The first form that is there decides; a later one that says otherwise makes it unknown.

    A form that is `missing` falls through to the next, and the reading's note says so. With
    `agree` false the forms were taken at different times and are not compared.
    """
    absent = []
    for position, chosen in enumerate(forms):
        if isinstance(chosen, Unknown) and chosen.missing:
            absent.append(chosen)
            continue
        if isinstance(chosen, Unknown):
            reasons = dict.fromkeys([*(a.reason for a in absent), chosen.reason])
            return replace(chosen, reason="; ".join(dict.fromkeys(reasons)))
        for other in forms[position + 1 :] if agree else ():
            if isinstance(other, Known) and other.value != chosen.value:
                return _disagreement(chosen, other)
        if not absent:
            return chosen
        note = "; ".join([*([chosen.note] if chosen.note else []), *(a.reason for a in absent)])
        return replace(chosen, note=f"{note}; read from {', '.join(chosen.recordings)}")
    return Unknown(
        "; ".join(dict.fromkeys(a.reason for a in absent)) or "no form of it is known",
        missing=True,
        recordings=tuple(r for a in absent for r in a.recordings),
        causes=tuple(dict.fromkeys(c for a in absent for c in a.causes)),
    )


def _disagreement(one: Known[Any], other: Known[Any]) -> Unknown:
    def says(reading: Known[Any]) -> str:
        return f"{', '.join(reading.recordings) or 'one form'} says {reading.value}"

    return Unknown(f"{says(one)}, {says(other)}", recordings=(*one.recordings, *other.recordings))
