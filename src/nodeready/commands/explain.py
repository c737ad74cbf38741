"""`nodeready explain`: what is demanded, and which evidence names there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeready.commands.say import say

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    explain = commands.add_parser("explain", help="what is demanded, and which evidence names there are")
    explain.add_argument("topic", help="checks, evidence, or a check's id")
    explain.add_argument("--node-type", default="sxm", help="whose demands to show (default: sxm)")
    explain.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Say what is known of the topic; one that does not exist is a usage error."""
    from nodeready import explain

    for line in explain.lines(arguments.topic, arguments.node_type):
        say(line)
    return 0
