"""`nodeready simulate`: the evidence, or the commands, of a node that does not exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeready.commands.say import say

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    simulate = commands.add_parser("simulate", help="write the evidence of a node that does not exist")
    simulate.add_argument("node_type", metavar="NODE-TYPE")
    simulate.add_argument("--out", default="", help="the folder to write")
    simulate.add_argument(
        "--fault", action="append", default=[], metavar="NAME", help="with this fault (may be repeated)"
    )
    simulate.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for the gate: gpu.count")
    simulate.add_argument(
        "--as",
        dest="form",
        choices=("evidence", "commands"),
        default="evidence",
        help="evidence to judge (default), or commands to put first on PATH for a live run",
    )
    simulate.add_argument("--seed", type=int, default=0, help="another node of the same kind")
    simulate.add_argument("--list-faults", action="store_true", help="list the faults and what each one must lead to")
    simulate.add_argument("--json", action="store_true", help="with --list-faults: as JSON")
    simulate.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the simulated node and say how to judge it, or list the faults."""
    if arguments.list_faults:
        return _list_faults(arguments.node_type, arguments.json)
    if not arguments.out:
        raise ValueError("--out is missing: name the folder to write")
    settings = _settings(arguments.set)
    node_type, out = arguments.node_type, arguments.out
    from nodeready.simulate import write

    if arguments.form == "commands":
        from nodeready.node.catalogue import PROBES

        write.simulate_commands(node_type, Path(out), PROBES, arguments.fault, settings, arguments.seed)
        first = Path(out).absolute()
        say(f"{out}: run `PATH={first}:$PATH pytest checks/ --node-type {node_type} --tier quick`")
        return 0
    write.simulate(node_type, Path(out), arguments.fault, settings, arguments.seed)
    say(f"{out}: judge it with `pytest checks/ --node-type {node_type} --evidence {out}`")
    return 0


def _list_faults(node_type: str, as_json: bool) -> int:
    from nodeready.simulate import write

    faults: list[dict[str, Any]] = write.list_faults(node_type)
    if as_json:
        say(json.dumps(faults, indent=1))
        return 0
    for fault in faults:
        say(f"{fault['name']:32} {fault['why']}")
    return 0


def _settings(texts: list[str]) -> dict[str, str]:
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text!r}: write KEY=VALUE, such as gpu.count=4")
        settings[key] = value
    return settings
