"""Many small files of the kernel, read by one shell: lines `PATH:VALUE`, and a last one that says it is whole."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from nodeready.facts.text import lines, word
from nodeready.reading import Reading, Unknown

END = "end:"
_MOST = 20_000  # lines: no list of ours is longer, and what floods is not read to its end


def script(*patterns: str, more: str = "") -> str:
    """The text of `sh -c` that prints each file of the patterns line by line; `more` runs before the closing line.

    The shell reads the files itself: hundreds of files, and no process for each. One that cannot be
    read leaves no line.
    """
    return (
        f"for f in {' '.join(patterns)}; do "
        '[ -f "$f" ] || continue; while IFS= read -r v || [ -n "$v" ]; do printf \'%s:%s\\n\' "$f" "$v"; '
        f'done 2>/dev/null <"$f"; done; {more}echo {END}'
    )


def closing(command: str) -> str:
    """The text of `sh -c` for a command whose output does not tell where it ends: a last line says that it is whole."""
    return f"{command} && echo {END}"


def is_whole(data: bytes) -> bool:
    """Whether that last line is there."""
    return data.endswith(f"{END}\n".encode())


class SmallFiles(NamedTuple):
    """The lines of each file by its path, in the output's order; `whole` where the closing line is there."""

    values: dict[str, tuple[str, ...]]
    whole: bool

    def matching(self, pattern: str) -> dict[str, tuple[str, ...]]:
        """The files whose path fits a pattern of the shell."""
        return {path: said for path, said in self.values.items() if fnmatchcase(path, pattern)}

    def one(self, path: str) -> Reading[str]:
        """The first line of a file; unknown where it is not there or holds no value."""
        said = self.values.get(path)
        if said is None:
            return Unknown(f"there is no {path}" if self.whole else f"the list stops before {path}: it was cut")
        return word(said[0], path)


def parse(data: bytes) -> SmallFiles | Unknown:
    r"""The files of one list; unknown where no whole line is of that form. A last line without its newline is dropped.

    >>> found = parse(b"/proc/sys/kernel/numa_balancing:0\nend:\n")
    >>> found.one("/proc/sys/kernel/numa_balancing").value, found.whole
    ('0', True)
    >>> parse(b"/proc/sys/kernel/numa_balancing:0\n").one("/proc/uptime").reason
    'the list stops before /proc/uptime: it was cut'
    """
    values: dict[str, list[str]] = {}
    whole = False
    for line in lines(data)[:_MOST]:
        path, colon, value = line.partition(":")
        if line == END:
            whole = True
        elif colon and path and not whole:
            values.setdefault(path, []).append(value)
    if not values and not whole:
        return Unknown("no whole line of it names a file")
    return SmallFiles({path: tuple(said) for path, said in values.items()}, whole)
