"""`nodeready baseline from`: a site's own overlay, drafted from the run of a good node."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeready.commands.say import say
from nodeready.render.escape import visible

if TYPE_CHECKING:
    import argparse

    from nodeready.earlier import Earlier
    from nodeready.engine import Judging
    from nodeready.site_overlay import Draft, Run

_SHOWN = 5


def add_parser(commands: Any) -> None:
    """Add the command, what it does and its options."""
    baseline = commands.add_parser("baseline", help="draft a site's own baseline from a good node")
    actions = baseline.add_subparsers(required=True, metavar="ACTION", parser_class=type(baseline))
    draft = actions.add_parser("from", help="what this node has becomes what its siblings must have")
    draft.add_argument("run_folder", metavar="RUN", help="a run folder, its results.json, or a capture")
    draft.add_argument("--out", default="", metavar="FILE", help="the file to write (default: site-NODE-TYPE.toml)")
    draft.add_argument("--node-type", default="", help="of a capture alone (default: by the PCI ids of its GPUs)")
    draft.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Draft the overlay of a run that was not rejected, try it on that node, write it; 0 once it is written."""
    from nodeready import baseline, earlier, site_overlay

    where = earlier.locate(Path(arguments.run_folder))
    first = earlier.read_results(where.results) if where.results else None
    wanted = _Wanted.of(first, arguments.node_type)
    if first is not None:
        _refuse_rejected(first, f"{where.results} is of a node that was rejected")
    judging, found = wanted.judged(where.evidence)
    _refuse_rejected(found, f"{where.evidence} is of a node that is rejected now")
    parent = baseline.load(found["node_type"], wanted.baseline)
    target = Path(arguments.out or f"site-{found['node_type']}.toml")
    draft = site_overlay.draft(_named(where, found), found, judging, parent)
    _write(draft, target, wanted, where.evidence, found["node_type"])
    for line in _told(draft, target, found, first):
        say(line)
    return 0


@dataclass(frozen=True)
class _Wanted:
    """What the run is judged by again: a shipped baseline, and what was set on top of it."""

    node_type: str
    baseline: str
    tier: str
    settings: tuple[str, ...]
    in_service: bool = False

    @classmethod
    def of(cls, first: dict[str, Any] | None, node_type: str) -> _Wanted:
        """As the first judgement was; of a capture alone the newest baseline at tier acceptance."""
        from nodeready import baseline

        if first is None:
            return cls(node_type or "auto", "", "acceptance", ())
        if node_type not in ("", first["node_type"]):
            raise ValueError(f"the run is of node type {first['node_type']}, not {node_type}")
        by = first["baseline"]
        which = f"{by['name']}@{by['version']}" if by["name"] == first["node_type"] else ""
        try:
            baseline.load(first["node_type"], which)
        except baseline.BaselineError:
            which = ""  # of another version of the suite
        settings = tuple(f"{key}={raw}" for key, raw in first["overrides"].items())
        return cls(first["node_type"], which, first["tier"], settings, bool(first.get("in_service")))

    def judged(self, evidence: Path) -> tuple[Judging, dict[str, Any]]:
        """The evidence, judged without a run folder."""
        from nodeready import results
        from nodeready.check import load_checks
        from nodeready.engine import Judging
        from nodeready.gate import Gate, Request
        from nodeready.node import Node

        gate = Gate.open(
            Request(
                node_type=self.node_type,
                tier=self.tier,
                evidence=str(evidence),
                baseline=self.baseline,
                settings=self.settings,
                in_service=self.in_service,
            )
        )
        if gate.handed_in is None:
            raise ValueError("no evidence is named")
        judging = Judging(gate.plan, Node(gate.handed_in, gate.terms))
        judging.run_all(load_checks())
        return judging, results.build(gate, judging)


def _named(where: Earlier, found: dict[str, Any]) -> Run:
    """How the run is called in the overlay: by its folder, or by its capture."""
    from nodeready.site_overlay import Run

    path = where.evidence.resolve()
    taken = str(found["evidence"]["taken"] or found["started"])
    return Run(path.parent.name if where.results else path.name, found["host"], taken[:10])


def _refuse_rejected(found: dict[str, Any], what: str) -> None:
    if found["acceptance"] != "rejected":
        return
    failed = [f"{row['key']} on {row['subject']}" for row in found["findings"] if row["verdict"] == "fail"]
    raise ValueError(visible(f"{what}: {_listed(failed)}; a baseline is drafted from a good node"))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _write(draft: Draft, target: Path, wanted: _Wanted, evidence: Path, node_type: str) -> None:
    """Write the draft beside its place, judge the node by it, then give it its name if nobody has it."""
    taken = FileExistsError(f"{target} is there already; name another with --out")
    if target.exists() or target.is_symlink():
        raise taken
    beside = target.with_name(f".{target.stem}.{os.getpid()}.toml")
    try:
        beside.write_text(draft.text, encoding="utf-8")
        as_drafted = replace(wanted, node_type=node_type, baseline=str(beside.absolute()), settings=())
        _, found = as_drafted.judged(evidence)
        _refuse_rejected(found, "the draft would reject the very node that it was taken from")
        os.link(beside, target)  # unlike a rename it never replaces what is there
    except FileExistsError:
        raise taken from None
    finally:
        beside.unlink(missing_ok=True)


def _told(draft: Draft, target: Path, found: dict[str, Any], first: dict[str, Any] | None) -> list[str]:
    """What was taken and what was not, in lines; the last one says what to do with the file."""
    lines = [f"  {line}" for line in draft.taken]
    lines += [f"  not taken: {line}" for line in draft.left]
    for judged, when in ((first, "was"), (found, "is")):
        if judged is not None and judged["acceptance"] == "incomplete":
            rows = [*(row for row in judged["findings"] if row["verdict"] == "unverified"), *judged["unjudged"]]
            keys = list(dict.fromkeys(row["key"] for row in rows))
            lines.append(f"warning: the node {when} incomplete, nobody knows whether it is good: {_listed(keys)}")
            break
    if first is not None and first["baseline"]["version"] == "file":
        lines.append(
            f"warning: the run was judged by the file {first['baseline']['name']}, which is no part of this one"
        )
    if found["in_service"]:
        lines.append("warning: the run was judged by the bounds for nodes in service, and so is this draft's trial")
    node_type = found["node_type"]
    lines.append(f"{target}: a draft; read it, then `nodeready judge ... --node-type {node_type} --baseline {target}`")
    return [visible(line) for line in lines]
