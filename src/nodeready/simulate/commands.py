"""A simulated node as commands: what a live run asks this machine is answered with the node's own bytes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from nodeready.simulate.outputs.output import Output

RECORDED = "evidence"

# `command -p` finds the real cat: the folder that is first on PATH has one of its own
_HEAD = """\
#!/bin/sh
# {tool} of a node that does not exist: it says what the files of {recorded}/ hold, and nothing of this machine
recorded=${{0%/*}}/{recorded}
answer() {{
    [ ! -e "$recorded/$1.err" ] || command -p cat "$recorded/$1.err" >&2
    [ ! -e "$recorded/$1" ] || command -p cat "$recorded/$1"
    exit "$2"
}}
refuse() {{
    printf '%s\\n' "$2" >&2
    exit "$1"
}}
"""


class Asked(Protocol):
    """A probe as the catalogue has it: its evidence name and its command line."""

    @property
    def name(self) -> str:
        """The evidence name."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command and its arguments."""


def write_commands(folder: Path, answers: Mapping[str, Output], probes: Iterable[Asked]) -> None:
    """Write one script for each command that the probes ask for, next to the folder of recorded answers.

    A script answers exactly the command lines of the probes; any other it refuses as its tool refuses
    a wrong option, with exit status 2. What the node does not have is not found, whatever this machine
    has: `command not found` and 127, or for a file what cat says. Only `cat` and `sh` go on to the
    machine's own for what no probe asks. Probes that run by a path, such as scripts of a Python, cannot
    be answered so and are left out.
    """
    tools: dict[str, list[Asked]] = {}
    for probe in probes:
        if probe.argv and "/" not in probe.argv[0]:
            tools.setdefault(probe.argv[0], []).append(probe)
    for tool, asked in tools.items():
        special = {"cat": _cat, "sh": _sh}.get(tool)
        body = special(asked, answers) if special else _tool(tool, asked, answers)
        script = folder / tool
        script.write_text(_HEAD.format(tool=tool, recorded=RECORDED) + body, encoding="utf-8")
        script.chmod(0o755)


def _tool(tool: str, asked: list[Asked], answers: Mapping[str, Output]) -> str:
    missing = f"refuse 127 {shlex.quote(f'{tool}: command not found')}"
    if not any(_is_there(probe, answers) for probe in asked):
        return f"{missing}\n"
    lines = [f"    {_pattern(probe.argv[1:])}) {_answer(probe, answers) or missing} ;;" for probe in asked]
    return "\n".join(
        (
            'case "$#:$*" in',
            *lines,
            f'    *) refuse 2 "{tool}: this simulated node has no answer to: $*" ;;',
            "esac",
            "",
        )
    )


def _is_there(probe: Asked, answers: Mapping[str, Output]) -> bool:
    return probe.name in answers and answers[probe.name].rc != 127


def _cat(asked: list[Asked], answers: Mapping[str, Output]) -> str:
    lines = []
    for probe in asked:
        absent = f"refuse 1 {shlex.quote(f'cat: {probe.argv[1]}: No such file or directory')}"
        lines.append(f"    {_pattern(probe.argv[1:])}) {_answer(probe, answers) or absent} ;;")
    return "\n".join(('case "$#:$*" in', *lines, "esac", 'command -p cat "$@"', ""))


def _sh(asked: list[Asked], answers: Mapping[str, Output]) -> str:
    missing = "refuse 127 'sh: command not found'"
    lines = []
    for probe in asked:
        first, script = probe.argv[1:]
        same = f'[ "$#" = 2 ] && [ "$1" = {first} ] && [ "$2" = {shlex.quote(script)} ]'
        lines.append(f"if {same}; then {_answer(probe, answers) or missing}; fi")
    return "\n".join((*lines, 'exec /bin/sh "$@"', ""))


def _pattern(arguments: tuple[str, ...]) -> str:
    """The arguments as a word of `case`, with their number: one with a blank is not two."""
    return shlex.quote(f"{len(arguments)}:{' '.join(arguments)}")


def _answer(probe: Asked, answers: Mapping[str, Output]) -> str:
    output = answers.get(probe.name)
    return f"answer {shlex.quote(probe.name)} {output.rc}" if output else ""
