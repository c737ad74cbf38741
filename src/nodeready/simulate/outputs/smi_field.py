"""A field of `nvidia-smi -q`: one tag, one label, one value, for both of its documents."""

from __future__ import annotations

from dataclasses import dataclass, replace

LATEST = 9999
NOT_AVAILABLE = "N/A"
DEPRECATED = "Requested functionality has been deprecated"


@dataclass(frozen=True)
class Field:
    """A value, or a group of fields where `value` is None.

    Without a `tag` it is not in the XML, without a `label` not in the text, where its children then
    take its place. `text` is the value where the text prints another; `deeper` indents the text. Only
    driver branches from `since` to `until` print it.
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


def group(tag: str, label: str, *children: Field, since: int = 0, until: int = LATEST) -> Field:
    """A field with fields below it."""
    return Field(tag, label, children=children, since=since, until=until)


def of_branch(fields: tuple[Field, ...], major: int) -> tuple[Field, ...]:
    """The fields that this driver branch prints."""
    return tuple(
        replace(field, children=of_branch(field.children, major)) if field.children else field
        for field in fields
        if field.since <= major <= field.until
    )


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
