"""Overlays on the root's declarations become demands; what is not declared or explained is refused."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodeready.expectation import Bound, BoundError, Demand
from nodeready.quantity import Quantity, UnitError, dimension_of

if TYPE_CHECKING:
    from pathlib import Path

HEAD = {"status", "extends", "title", "settings", "virtual"}
PER = ("node", "gpu", "port", "nvme")
TIERS = ("quick", "acceptance", "burn-in")
MEASURES = ("must", "if-possible")
_DECLARED = {"title", "per", "tier", "unit", "bare-metal"}
_OVERLAID = {
    "required",
    "recommended",
    "source",
    "why",
    "absent",
    "measure",
    "plausible",
    "peak",
    "loosened_because",
    "in-service",
    "idle-only",
    "when-recorded",
    "several-gpus",
}
_IN_SERVICE = "in-service"
_BOUNDS = ("required", "recommended")


class BaselineError(ValueError):
    """A baseline, or a setting on top of it, that cannot be used; the text names file and remedy."""


def demands_of(chain: list[tuple[Path, dict[str, Any]]], sources: dict[str, dict[str, str]]) -> dict[str, Demand]:
    """The demands of a chain of files, root first; raises `BaselineError`."""
    tables: dict[str, dict[str, Any]] = {}
    for number, (path, table) in enumerate(chain):
        if _is_virtual(table, path):
            tables = {key: _unseen_by_a_guest(entry) for key, entry in tables.items()}
        for key, entry in table.items():
            if key in HEAD:
                continue
            where = f"{path}: [{key!r}]"
            if not isinstance(entry, dict):
                raise BaselineError(f"{where} is no table of a demand; known at the top: {', '.join(sorted(HEAD))}")
            if number == 0:
                tables[key] = _declared(entry, where)
            elif key not in tables:
                raise BaselineError(f"{where} is not a key that hopper declares: {near(key, tables)}")
            else:
                tables[key] = _overlaid(tables[key], entry, where)
    leaf = chain[-1][0]
    demands = {key: _demand(key, entry, sources, f"{leaf}: [{key!r}]") for key, entry in tables.items()}
    return {key: _following(demand, tables[key], demands) for key, demand in demands.items()}


def _is_virtual(table: dict[str, Any], path: Path) -> bool:
    """Whether a file says that its nodes are virtual machines."""
    if table.get("virtual", True) is not True:
        raise BaselineError(f"{path}: virtual = {table['virtual']!r}: write true, or leave it out")
    return "virtual" in table


def _unseen_by_a_guest(entry: dict[str, Any]) -> dict[str, Any]:
    """What only the host's owner can see is absent in a virtual machine, with the reason of `bare-metal`."""
    if not entry.get("bare-metal"):
        return entry
    return {**entry, "absent": entry["bare-metal"], "required": None, "recommended": None, _IN_SERVICE: None}


def near(key: str, known: dict[str, Any]) -> str:
    """The known names that look like one, in words."""
    close = difflib.get_close_matches(key, known, n=3)
    return f"did you mean {', '.join(close)}?" if close else "`nodeready explain checks` lists them"


def _declared(entry: dict[str, Any], where: str) -> dict[str, Any]:
    unknown = set(entry) - _DECLARED - _OVERLAID
    if unknown:
        raise BaselineError(
            f"{where} holds {', '.join(sorted(unknown))}; known: {', '.join(sorted(_DECLARED | _OVERLAID))}"
        )
    for field, allowed in (("per", PER), ("tier", TIERS), ("measure", MEASURES)):
        if entry.get(field) not in allowed:
            raise BaselineError(f"{where} has {field} = {entry.get(field)!r}; write one of {', '.join(allowed)}")
    if not entry.get("title"):
        raise BaselineError(f"{where} has no title: say what is measured")
    if "bare-metal" in entry and not str(entry["bare-metal"]).strip():
        raise BaselineError(f"{where} has an empty bare-metal: write why a virtual machine cannot show it")
    unit = entry.get("unit", "")
    if unit not in ("", "version"):
        try:
            dimension_of(unit)
        except UnitError as error:
            raise BaselineError(f"{where}: {error}") from None
    return dict(entry)


def _overlaid(parent: dict[str, Any], entry: dict[str, Any], where: str) -> dict[str, Any]:
    unknown = set(entry) - _OVERLAID
    if unknown:
        raise BaselineError(
            f"{where} sets {', '.join(sorted(unknown))}; an overlay sets only {', '.join(sorted(_OVERLAID))}"
        )
    reason = entry.get("loosened_because")
    if reason is not None and (not isinstance(reason, str) or not reason.strip()):
        raise BaselineError(f"{where}: loosened_because = {reason!r} says nothing")
    if reason is None:
        _refuse_loosening(parent, entry, where)
    child = {**parent, **entry}
    if "absent" in entry:
        child["required"] = child["recommended"] = child[_IN_SERVICE] = None
    elif "required" in entry or "recommended" in entry:
        child.pop("absent", None)
        if "when-recorded" not in entry:  # who demands it himself wants it there
            child.pop("when-recorded", None)
    return child


def _refuse_loosening(parent: dict[str, Any], entry: dict[str, Any], where: str) -> None:
    unit = parent.get("unit", "")
    if entry.get("measure") == "if-possible" and parent.get("measure") == "must":
        raise BaselineError(f"{where} need no longer be measured: say why in loosened_because")
    if _reference(parent.get("required")) and "required" in entry:
        raise BaselineError(
            f"{where} follows {_reference(parent['required'])}: say in loosened_because why it no longer does"
        )
    for field in _BOUNDS:
        if field in entry:
            _refuse_looser(field, parent.get(field), entry[field], unit, where)
        if isinstance(entry.get(_IN_SERVICE), dict) and parent.get(_IN_SERVICE):
            before, after = parent[_IN_SERVICE].get(field), entry[_IN_SERVICE].get(field)
            _refuse_looser(field, before, after, unit, f"{where} in service")
    _refuse_exemption(parent, entry, where)
    for field in ("plausible", "peak"):
        if parent.get(field) and entry.get(field) not in (None, parent[field]):
            raise BaselineError(f"{where} moves {field} from {parent[field]}: say why in loosened_because")
    if (
        str(entry.get("absent", "")).strip()
        and "absent" not in parent
        and (parent.get("required") or parent.get("recommended"))
    ):
        raise BaselineError(f"{where} drops a demand that its parent makes: say why in loosened_because too")


def _refuse_exemption(parent: dict[str, Any], entry: dict[str, Any], where: str) -> None:
    exemptions = {
        "idle-only": "hold while a job runs",
        "when-recorded": "be recorded",
        "several-gpus": "hold for one GPU",
    }
    for field, less in exemptions.items():
        if entry.get(field) and not parent.get(field):
            raise BaselineError(f"{where} need no longer {less}: say why in loosened_because")


def _refuse_looser(field: str, parent: Any, child: Any, unit: str, where: str) -> None:
    before, after = _bound(parent, unit, where), _bound(child, unit, where)
    if before and not (after and after.at_least_as_strict_as(before)):
        raise BaselineError(f"{where} loosens {field} from {before} to {after}: say why in loosened_because")


def _bound(table: Any, unit: str, where: str) -> Bound | None:
    if table is None or _reference(table):
        return None
    try:
        return Bound.parse(table, unit)
    except (BoundError, UnitError) as error:
        raise BaselineError(f"{where}: {error}") from None


def _reference(table: Any) -> str:
    """The key that a bound follows: `{ equals = "@gpu.count" }`."""
    operand = next(iter(table.values()), None) if isinstance(table, dict) and len(table) == 1 else None
    return operand[1:] if isinstance(operand, str) and operand.startswith("@") else ""


def _demand(key: str, entry: dict[str, Any], sources: dict[str, dict[str, str]], where: str) -> Demand:
    unit = entry.get("unit", "")
    required, recommended = _bound(entry.get("required"), unit, where), _bound(entry.get("recommended"), unit, where)
    absent = entry.get("absent", "")
    if "absent" in entry and not str(absent).strip():
        raise BaselineError(f"{where} is absent without a reason")
    if not absent:
        if not required and not recommended and not _reference(entry.get("required")):
            raise BaselineError(f'{where} demands nothing: give required or recommended, or absent = "reason"')
        if entry.get("source") not in sources:
            raise BaselineError(f"{where} has source = {entry.get('source')!r}, which sources.toml does not hold")
        if not str(entry.get("why", "")).strip():
            raise BaselineError(f"{where} has no why: say what a miss costs")
    serving = _in_service(entry, unit, where) if not absent else None
    plausible = _plausible(entry, unit, (required, recommended, *(serving or ())), where) if not absent else None
    idle_only = entry.get("idle-only", "")
    if "idle-only" in entry and (not isinstance(idle_only, str) or not idle_only.strip()):
        raise BaselineError(f"{where} has idle-only = {idle_only!r}: write why it does not apply while a job runs")
    when_recorded = entry.get("when-recorded", "")
    if "when-recorded" in entry and (not isinstance(when_recorded, str) or not when_recorded.strip()):
        raise BaselineError(f"{where} has when-recorded = {when_recorded!r}: write what was not handed in")
    several_gpus = entry.get("several-gpus", "")
    if "several-gpus" in entry and (not isinstance(several_gpus, str) or not several_gpus.strip()):
        raise BaselineError(f"{where} has several-gpus = {several_gpus!r}: write why it does not apply to one GPU")
    return Demand(
        key=key,
        title=entry["title"],
        per=entry["per"],
        tier=entry["tier"],
        measure=entry["measure"],
        unit=unit,
        required=required,
        recommended=recommended,
        source=entry.get("source", ""),
        why=entry.get("why", ""),
        plausible=plausible,
        absent=absent,
        in_service=serving,
        idle_only=idle_only,
        when_recorded=when_recorded,
        several_gpus=several_gpus,
    )


def _in_service(entry: dict[str, Any], unit: str, where: str) -> tuple[Bound | None, Bound | None] | None:
    """The two bounds that hold on a node in service, in the place of the other two."""
    table = entry.get(_IN_SERVICE)
    if table is None:
        return None
    if not isinstance(table, dict) or not table or set(table) - set(_BOUNDS):
        raise BaselineError(f"{where} has in-service = {table!r}; write a table of required, recommended or both")
    if _reference(entry.get("required")) or any(_reference(table.get(field)) for field in _BOUNDS):
        raise BaselineError(f"{where} follows another key: it can have no bounds of its own for nodes in service")
    required, recommended = (_bound(table.get(field), unit, f"{where} in service") for field in _BOUNDS)
    return required, recommended


def _plausible(entry: dict[str, Any], unit: str, bounds: tuple[Bound | None, ...], where: str) -> Quantity | None:
    """The most that a measurement may give; a rate's floors must lie below its physical peak."""
    try:
        peak = Quantity.parse(entry["peak"]) if "peak" in entry else None
        plausible = Quantity.parse(entry["plausible"]) if "plausible" in entry else None
        if unit == "TFLOPS" and (peak is None or plausible is None):
            raise BaselineError(f"{where} is a rate: name its physical peak and the highest plausible result")
        for bound in bounds:
            if peak is not None and bound and bound.operator == "min" and bound.operand > peak:
                raise BaselineError(f"{where} demands {bound}, above the physical peak of {peak}")
    except (UnitError, TypeError, AttributeError) as error:
        raise BaselineError(f"{where}: {error}") from None
    return plausible


def _following(demand: Demand, entry: dict[str, Any], demands: dict[str, Demand]) -> Demand:
    key = _reference(entry.get("required"))
    if not key or demand.absent:
        return demand
    if key not in demands:
        raise BaselineError(f"[{demand.key!r}] follows {key}, which is no key")
    return replace(demand, required=demands[key].required, follows=key)
