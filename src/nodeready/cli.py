"""The command line: the same engine without pytest, and all that goes with it; one module a command."""

from __future__ import annotations

import argparse
import io
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

from nodeready import __version__
from nodeready.commands import baseline, collect, explain, judge, simulate
from nodeready.commands.say import fall_silent, flush
from nodeready.render.escape import visible_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED, INTERNAL, USAGE = 2, 3, 4  # as pytest has them
_MOST = 4000  # characters of an error's line: it may echo a path or a value of any length
COMMANDS = (judge, collect, baseline, simulate, explain)


class _Parser(argparse.ArgumentParser):
    """argparse, with the exit status that pytest gives usage errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {visible_lines(message, _MOST)}\n`{self.prog} --help` shows what there is.\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is that of the gate, 4 for a usage error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale that lacks a letter costs the letter only
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit:
        flush()  # of --help and --version, whose reader may have gone
        raise
    try:
        status: int = arguments.run(arguments)
        flush()
    except BrokenPipeError:
        fall_silent()
        print("nodeready: whoever read the output has gone; nothing was judged", file=sys.stderr)
        return USAGE
    except (ValueError, OSError) as error:
        print(f"nodeready: {visible_lines(str(error), _MOST)}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("nodeready: interrupted; nothing was judged", file=sys.stderr)
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - 1 would mean that the node was rejected
        traceback.print_exc()
        print("nodeready: an internal error; the node was not judged", file=sys.stderr)
        return INTERNAL
    return status


def _parser() -> _Parser:
    parser = _Parser(
        prog="nodeready", description="Node readiness for GPU servers: what was not measured is never a pass."
    )
    parser.add_argument("--version", action="version", version=f"nodeready {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
