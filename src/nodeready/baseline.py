"""A baseline is the versioned set of demands on one node type; what it does not declare is refused."""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeready import shipped
from nodeready.overlay import TIERS, BaselineError, demands_of
from nodeready.setting import SLOTS, declared_settings, slots_of, with_setting

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from nodeready.expectation import Demand

__all__ = ["TIERS", "Baseline", "BaselineError", "known", "load", "node_types"]

ROOT = "hopper"
_VERSION = re.compile(r"\d{4}\.\d{2}(\.\d+)?")


@dataclass(frozen=True)
class Baseline:
    """The resolved demands of one node type.

    `sha256` is over the files of the whole chain, root first. `overrides` are the `--set` values. `tables`
    are what readings are looked up in: the dated tables, and under `gpu.slots` the site's slot list.
    """

    name: str
    version: str
    status: str
    sha256: str
    node_type: str
    demands: dict[str, Demand]
    sources: dict[str, dict[str, str]]
    settings: dict[str, str]
    overrides: dict[str, str]
    tables: dict[str, Any]

    @property
    def gpu_count(self) -> int:
        """How many GPUs the plan holds."""
        bound = self.demands["gpu.count"].required
        if bound is None or bound.operator != "equals":
            raise BaselineError(f"{self.name}@{self.version}: gpu.count needs required = {{ equals = N }}")
        return int(bound.operand)


def baselines_dir() -> Path:
    """The shipped baselines."""
    return shipped.folder("baselines")


def node_types() -> list[str]:
    """The node types that have a baseline."""
    return sorted(p.name for p in baselines_dir().iterdir() if p.is_dir() and p.name != ROOT and any(p.glob("*.toml")))


def products() -> dict[str, tuple[frozenset[str], int]]:
    """The PCI ids of the products, and the number of GPUs, of each node type."""
    found = {}
    for name in node_types():
        baseline = load(name)
        bound = baseline.demands["gpu.product"].required
        ids = bound.operand if bound and bound.operator == "one_of" else ()
        found[name] = (frozenset(ids), baseline.gpu_count)
    return found


def known(node_type: str) -> None:
    """Nothing, where there is such a node type; else raises `BaselineError`."""
    if node_type not in node_types():
        raise BaselineError(f"there is no node type {node_type!r}; known: {', '.join(node_types())}")


def load(node_type: str, which: str = "", settings: list[str] | None = None, *, in_service: bool = False) -> Baseline:
    """The baseline of a node type: the newest, or `NAME@VERSION`, or a file that extends it.

    With `in_service` the demands have the bounds for nodes in service, where they have any.
    """
    known(node_type)
    path = _path_of(which, node_type)
    chain = _chain(path)
    names = {link.parent.name for link, _ in chain if link.parent.parent == baselines_dir()}
    if node_type not in names:
        raise BaselineError(
            f"{path} extends {', '.join(sorted(names))}, not {node_type}: name a baseline of {node_type}"
        )
    base = _resolve(chain, node_type)
    if in_service:
        base = replace(base, demands={key: demand.serving() for key, demand in base.demands.items()})
    for text in settings or []:
        base = with_setting(base, text)
    if base.gpu_count == 1:
        base = replace(base, demands={key: demand.on_one_gpu() for key, demand in base.demands.items()})
    return replace(base, tables={**base.tables, SLOTS: slots_of(base)})


def _path_of(which: str, node_type: str) -> Path:
    if which and ("/" in which or which.endswith(".toml")):
        path = Path(which)
        if not path.is_file():
            raise BaselineError(f"there is no baseline file {path}")
        return path.resolve()
    name, _, version = (which or node_type).partition("@")
    return _find(name, version, "" if which else " for this node type")


def _find(name: str, version: str, why: str = "") -> Path:
    folder = baselines_dir() / name
    versions = sorted((p for p in folder.glob("*.toml")), key=lambda p: [int(n) for n in p.stem.split(".")])
    if not versions or "/" in name:
        raise BaselineError(f"there is no baseline {name!r}{why}; known: {', '.join([*node_types(), ROOT])}")
    if not version:
        return versions[-1]
    path = folder / f"{version}.toml"
    if path not in versions:
        raise BaselineError(f"there is no {name}@{version}; known: {', '.join(f'{name}@{p.stem}' for p in versions)}")
    return path


def _name_of(path: Path) -> str:
    return path.parent.name if path.parent.parent == baselines_dir() else path.stem


def _chain(path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The files from the root to `path`; raises on a cycle."""
    chain: list[tuple[Path, dict[str, Any]]] = []
    seen: list[Path] = []
    while True:
        if path in seen:
            raise BaselineError(f"{path} extends itself: {' -> '.join(p.stem for p in [*seen, path])}")
        seen.append(path)
        table = _toml(path)
        chain.insert(0, (path, table))
        parent = table.get("extends")
        if parent is None:
            break
        if not isinstance(parent, str) or "@" not in parent:
            raise BaselineError(f"{path}: extends = {parent!r}; write NAME@VERSION")
        path = _find(*parent.split("@", 1))
    if _name_of(chain[0][0]) != ROOT:
        raise BaselineError(f"{chain[0][0]} has no extends, and is not the root {ROOT}: only the root declares keys")
    return chain


def _resolve(chain: list[tuple[Path, dict[str, Any]]], node_type: str) -> Baseline:
    sources = _sources()
    path = chain[-1][0]
    return Baseline(
        name=_name_of(path),
        version=path.stem if _VERSION.fullmatch(path.stem) else "file",
        status=_status(chain),
        sha256=hashlib.sha256(b"".join(p.read_bytes() for p, _ in chain)).hexdigest(),
        node_type=node_type,
        demands=demands_of(chain, sources),
        sources=sources,
        settings=declared_settings(chain),
        overrides={},
        tables=_toml(baselines_dir() / "tables.toml"),
    )


def _status(chain: list[tuple[Path, dict[str, Any]]]) -> str:
    """`released` when every file of the chain is locked, and unchanged since; else `draft`."""
    locked = _lock()
    status = "released"
    for path, table in chain:
        inside = path.is_relative_to(baselines_dir())
        name = str(path.relative_to(baselines_dir())) if inside else ""
        if name in locked:
            if hashlib.sha256(path.read_bytes()).hexdigest() != locked[name]:
                raise BaselineError(f"{path} was released and has changed since: put it back, and make a new version")
        else:
            if inside and table.get("status") != "draft":
                raise BaselineError(f'{path} is not in LOCK: write status = "draft" until it is released')
            status = "draft"
    return status


def _lock() -> dict[str, str]:
    path = baselines_dir() / "LOCK"
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: digest for digest, name in rows}


def _toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        table: dict[str, Any] = pickle.loads(_parsed(text))  # noqa: S301 - made a line below, of our own data
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BaselineError(f"{path} cannot be read: {error}") from None
    return table


@lru_cache(maxsize=32)
def _parsed(text: str) -> bytes:
    """A document that any reader may change: parsing the root once more costs more than all else of a judgement."""
    return pickle.dumps(tomllib.loads(text))


def _sources() -> dict[str, dict[str, str]]:
    path = baselines_dir() / "sources.toml"
    table = _toml(path)
    for name, entry in table.items():
        missing = {"title", "where", "date", "kind"} - set(entry)
        if missing:
            raise BaselineError(f"{path}: [{name}] lacks {', '.join(sorted(missing))}")
    return {str(name): dict(entry) for name, entry in table.items()}
