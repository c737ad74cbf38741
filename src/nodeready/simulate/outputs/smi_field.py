"""A field of `nvidia-smi -q`: one tag, one label, one value, for both of its documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import is_

LATEST = 999
NOT_AVAILABLE = "N/A"
DEPRECATED = "Requested functionality has been deprecated"


@dataclass(frozen=True)
class Field:
    """A value, or a group of fields where `value` is None.

    Without a `tag` it is not in the XML, without a `label` not in the text, where its children then
    take its place. `text` is the value where the text prints another; `deeper` indents the text. Only
    drivers from `since` to `until` print it: a branch such as 580, or a build in it such as 580_173.
    """

    tag: str
    label: str
    value: str | None = None
    children: tuple[Field, ...] = ()
    text: str = ""
    deeper: int = 0
    since: int = 0
    until: int = LATEST

    @property
    def in_text(self) -> str:
        """The value as the text prints it."""
        return self.text or self.value or ""


def leaf(
    tag: str, label: str, value: object, *, text: str = "", deeper: int = 0, since: int = 0, until: int = LATEST
) -> Field:
    """A field with a value."""
    return Field(tag, label, str(value), text=text, deeper=deeper, since=since, until=until)


def late_leaf(tag: str, value: object) -> tuple[Field, ...]:
    """A field of the XML that builds of the summer of 2026 print, and branch 590, which ended before, does not."""
    return (leaf(tag, "", value, since=580_173, until=589), leaf(tag, "", value, since=595))


def group(tag: str, label: str, *children: Field, since: int = 0, until: int = LATEST) -> Field:
    """A field with fields below it."""
    return Field(tag, label, children=children, since=since, until=until)


def of_release(fields: tuple[Field, ...], release: int) -> tuple[Field, ...]:
    """The fields that a driver prints; 580178 is the release of 580.178.04."""
    kept = []
    for field in fields:
        if (field.since or field.until != LATEST) and not _first(field.since) <= release <= _last(field.until):
            continue
        below = of_release(field.children, release) if field.children else ()
        same = len(below) == len(field.children) and all(map(is_, below, field.children))
        kept.append(field if same else replace(field, children=below))
    return tuple(kept)


def _first(since: int) -> int:
    return since if since > LATEST else since * 1000


def _last(until: int) -> int:
    return until if until > LATEST else until * 1000 + 999


def paths(fields: tuple[Field, ...], above: str = "") -> set[str]:
    """The paths of all fields in the XML, such as `ecc_mode/current_ecc`."""
    found = {f"{above}{field.tag}" for field in fields}
    return found.union(*(paths(field.children, f"{above}{field.tag}/") for field in fields))


def with_values(fields: tuple[Field, ...], printed: dict[str, str], above: str = "") -> tuple[Field, ...]:
    """The fields with some values replaced, by their path in the XML; a group may become a value."""
    result = []
    for field in fields:
        path = f"{above}{field.tag}"
        if path in printed:
            result.append(replace(field, value=printed[path], children=(), text=""))
        else:
            result.append(replace(field, children=with_values(field.children, printed, f"{path}/")))
    return tuple(result)


def with_every_value(fields: tuple[Field, ...], value: str, kept: frozenset[str]) -> tuple[Field, ...]:
    """The fields with every value replaced but those of the kept tags."""
    return tuple(
        replace(field, value=value, text="")
        if field.value is not None and field.tag not in kept
        else replace(field, children=with_every_value(field.children, value, kept))
        for field in fields
    )
