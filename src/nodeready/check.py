"""A check is a plain function of a subject and `expect`, with an id and a remedy."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from nodeready import shipped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nodeready.reading import Reading

SUBJECTS = ("node", "gpu", "port", "nvme")
_ID = re.compile(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*")


class Expect(Protocol):
    """Hold a reading against the demand of that key, and record the finding; never stops the check."""

    def __call__(self, key: str, reading: Reading[Any]) -> None:
        """Record what the reading is worth."""


@dataclass(frozen=True)
class Check:
    """A check as the engine calls it: `per` is the subject that its first argument names."""

    id: str
    remedy: str
    claim: str
    per: str
    function: Callable[..., None]

    @property
    def layer(self) -> str:
        """The id's part before the dot."""
        return self.id.partition(".")[0]


def check(check_id: str, *, remedy: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a function as the check of that id; `remedy` is what a technician does when it fails."""
    if not _ID.fullmatch(check_id):
        raise ValueError(f"{check_id!r} is no check id: write LAYER.WORDS-WITH-DASHES")
    if not remedy.strip():
        raise ValueError(f"{check_id} has no remedy: say what a technician does next")

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        names = list(inspect.signature(function).parameters)
        claim = (function.__doc__ or "").strip()
        if len(names) != 2 or names[0] not in SUBJECTS or names[1] != "expect":
            raise TypeError(
                f"{check_id} takes (SUBJECT, expect) with SUBJECT one of {', '.join(SUBJECTS)}, not {names}"
            )
        if not claim:
            raise TypeError(f"{check_id} has no docstring: say what it claims")
        function.check = Check(check_id, remedy, claim, names[0], function)  # type: ignore[attr-defined]
        return function

    return mark


def check_of(function: object) -> Check | None:
    """The check that a function was marked as, None for any other object."""
    found = getattr(function, "check", None)
    return found if isinstance(found, Check) else None


def load_checks(folder: Path | None = None) -> dict[str, Check]:
    """The checks of a folder (default: the shipped ones) by id; an id that occurs twice is refused."""
    checks: dict[str, Check] = {}
    for path in sorted((folder or shipped.folder("checks")).glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"nodeready_checks.{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        for value in vars(module).values():
            found = check_of(value)
            if found is None:
                continue
            if found.id in checks:
                raise ValueError(f"{path}: {found.id} is a check already; ids are unique")
            checks[found.id] = found
    return checks
