"""The collector as one file: a zip that python3 >= 3.9 runs by itself, for nodes where nothing may be installed."""

from __future__ import annotations

import io
import pkgutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodeready.evidence.agent import in_memory
from nodeready.evidence.capture import write_beside
from nodeready.evidence.script import runnable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nodeready.evidence.probe import Probe
    from nodeready.evidence.recording import Recording

# what reads a node and packs what it said; nothing that judges, renders or needs more than the standard library
_ROOMS = ("evidence", "facts", "node", "probes")
_MODULES = ("__init__", "acquire", "collector", "interrupt", "load", "occupancy", "quantity", "reading")
_COMMANDS = ("__init__", "collect", "say")
_SAME_DAY = (2026, 1, 1, 0, 0, 0)  # so that the same version is the same file to the last byte
_SHEBANG = b"#!/usr/bin/env python3\n"
_MAIN = """\
import sys

if sys.version_info < (3, 9):
    sys.exit("this collector needs python3 of 3.9 or newer; this one is " + sys.version.split()[0])
from nodeready.commands.collect import main

sys.exit(main())
"""


def write_collector(target: Path) -> int:
    """Write the collector, whole or not at all; its size in bytes. Raises `FileExistsError`."""
    if target.exists():
        raise FileExistsError(f"{target} is there already; name another file")
    buffer = io.BytesIO()
    buffer.write(_SHEBANG)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted({"__main__.py": _MAIN.encode(), **dict(_sources())}.items()):
            archive.writestr(zipfile.ZipInfo(name, _SAME_DAY), data, zipfile.ZIP_DEFLATED)
    write_beside(target, buffer.getvalue())
    target.chmod(0o755)
    return len(buffer.getvalue())


def _sources() -> Iterator[tuple[str, bytes]]:
    package = Path(__file__).parent
    wanted = [package / f"{name}.py" for name in _MODULES]
    wanted += [package / "commands" / f"{name}.py" for name in _COMMANDS]
    wanted += [path for room in _ROOMS for path in (package / room).rglob("*") if path.is_file()]
    for path in wanted:
        if "__pycache__" not in path.parts:
            yield path.relative_to(package.parent).as_posix(), path.read_bytes()


class ProbesOfZip:
    """The probes of a run out of the zip: a script is run from memory, and recorded under its name.

    Out of a zip no script has a path of its own that another process could open.
    """

    def __init__(self, probes: Iterable[Probe]) -> None:
        self._held: list[int] = []
        self._asked: dict[str, tuple[str, ...]] = {}
        self.probes = [self._runnable(probe) for probe in probes]

    def as_asked(self, recording: Recording) -> Recording:
        """The recording with the command line as it is known."""
        return replace(recording, argv=self._asked.get(recording.name, recording.argv))

    def _runnable(self, probe: Probe) -> Probe:
        argv = tuple(self._argument(text) for text in probe.argv)
        if argv == probe.argv:
            return probe
        self._asked[probe.name] = tuple(Path(text).name if text.endswith(".py") else text for text in probe.argv)
        return replace(probe, argv=argv)

    def _argument(self, text: str) -> str:
        if not text.endswith(".py") or Path(text).is_file():
            return text
        name = Path(text).name
        return text if _script(name) is None else in_memory(runnable(name, _script), self._held)


def _script(name: str) -> str | None:
    """The text of a probe script in the package, on disk or in a zip."""
    try:
        data = pkgutil.get_data("nodeready.probes", name)
    except OSError:
        return None
    return None if data is None else data.decode()
