"""`--evidence PATH` becomes `--evidence=PATH` before pytest looks at its command line.

pytest searches for its configuration in every folder named on its command line, and does so before
any plugin is loaded: at that moment it does not know that PATH is the value of an option of ours,
and would obey a pytest.ini inside it - which can import code. With an equals sign the value is no
argument of its own. The package's nodeready.pth calls `join` at the start of the interpreter, since
there is no later moment that comes before that search.
"""

from __future__ import annotations

import sys

PATH_OPTIONS = ("--evidence", "--report-dir", "--baseline", "--python", "--waivers")


def joined(arguments: list[str]) -> list[str]:
    """The arguments, each of our path options joined with its value.

    >>> joined(["--evidence", "node", "checks/", "-k", "x"])
    ['--evidence=node', 'checks/', '-k', 'x']
    """
    result: list[str] = []
    waiting = ""
    for argument in arguments:
        if waiting:
            result.append(f"{waiting}={argument}")
            waiting = ""
        elif argument in PATH_OPTIONS:
            waiting = argument
        else:
            result.append(argument)
    return [*result, waiting] if waiting else result


def join() -> None:
    """Join this process's own arguments, where it is pytest that runs."""
    program, arguments = sys.argv[0], sys.argv[1:]
    module = getattr(sys, "orig_argv", [])
    runs_pytest = program.rsplit("/", 1)[-1] in ("pytest", "py.test") or "pytest" in module[1:4]
    if runs_pytest:
        sys.argv[1:] = joined(arguments)
