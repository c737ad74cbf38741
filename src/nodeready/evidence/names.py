"""How a file's name tells which output it holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from nodeready.evidence.bounds import printable, utf8
from nodeready.evidence.capture import CONTENTS, EvidenceError
from nodeready.evidence.importers import query_gpu, sosreport
from nodeready.evidence.recording import EXIT_STATUSES, Recording

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ENDINGS = (".txt", ".xml", ".json", ".csv")
_BESIDE = (".rc", ".err")


@dataclass(frozen=True)
class Names:
    """The evidence names that mean something, and the folders that stand for one recording.

    The files below such a folder become lines of `PATH:VALUE` under the name that it maps to.
    """

    known: Collection[str]
    trees: Mapping[str, str]

    def wanted(self, file_name: str) -> bool:
        """Whether a file is read: below the top, or below the one folder that an archive usually holds."""
        inner = file_name.partition("/")[2]
        return PurePosixPath(file_name).name == CONTENTS or self._means(file_name) or self._means(inner)

    def _means(self, name: str) -> bool:
        output = name
        for ending in _BESIDE:
            output = output.removesuffix(ending)
        return (
            self.name_of(output) is not None
            or sosreport.wanted(name)
            or any(name.startswith(tree) for tree in self.trees)
        )

    def name_of(self, file_name: str) -> str | None:
        """The evidence name that a file's name says, None where it says none."""
        bare = _without_ending(file_name)
        if bare.endswith(_BESIDE):
            return None
        for name in (file_name, bare, query_gpu.alias(bare), _dcgm_alias(bare)):
            if name in self.known:
                return name
        return None


def _without_ending(name: str) -> str:
    return next((name[: -len(ending)] for ending in ENDINGS if name.endswith(ending)), name)


def _dcgm_alias(name: str) -> str:
    """`dcgmi_diag_-r_3_-j`, with whatever options, is the one name for its document."""
    words = name.split("_")
    asked_for_json = {"-j", "--json"} & set(words)
    return "dcgmi_diag_-j" if words[:2] == ["dcgmi", "diag"] and asked_for_json else ""


def recordings_of(files: dict[str, bytes], names: Names, where: str) -> tuple[dict[str, Recording], set[str]]:
    """The recordings of a folder of raw outputs, and the files that were read for them."""
    outputs: dict[str, str] = {}
    for file_name in sorted(files):
        name = names.name_of(file_name)
        if name is None:
            continue
        if name in outputs:
            raise EvidenceError(
                f"{where} holds {printable(outputs[name])} and {printable(file_name)}, both the output {name}: keep one"
            )
        outputs[name] = file_name
    recordings: dict[str, Recording] = {}
    read = set(outputs.values())
    for name in sorted(names.known):
        own = _without_ending(outputs.get(name, name))
        status, errors = (_beside(files, own, ending, where) for ending in _BESIDE)
        if name not in outputs and status is None:
            continue
        rc = 0 if status is None else _exit_status(files[status], f"{where}/{status}")
        stdout = utf8(files[outputs[name]], f"{where}/{printable(outputs[name])}") if name in outputs else b""
        stdout = query_gpu.with_header(outputs.get(name, ""), stdout)
        recordings[name] = Recording(name, rc=rc, stdout=stdout, stderr=b"" if errors is None else files[errors])
        read |= {side for side in (status, errors) if side is not None}
    return recordings, read


def _beside(files: dict[str, bytes], name: str, ending: str, where: str) -> str | None:
    """The file beside an output, with the output's own ending or without: `dmesg.rc`, `dmesg.txt.rc`."""
    found = [side for side in (f"{name}{own}{ending}" for own in ("", *ENDINGS)) if side in files]
    if len(found) > 1:
        raise EvidenceError(
            f"{where} holds {found[0]} and {found[1]}, both beside the output {printable(name)}: keep one"
        )
    return found[0] if found else None


def _exit_status(raw: bytes, where: str) -> int:
    try:
        return EXIT_STATUSES[EXIT_STATUSES.index(int(raw.decode("ascii").strip()))]
    except ValueError:
        raise EvidenceError(f"{where} holds {raw[:20]!r}, not an exit status") from None


def gathered(files: dict[str, bytes], trees: Mapping[str, str]) -> dict[str, bytes]:
    """The files with each tree as one recording; a recording of that name that is there already stays."""
    for folder, name in trees.items():
        below = {path: data for path, data in sorted(files.items()) if path.startswith(folder) and path != name}
        if not below or name in files:
            continue
        lines = [
            path.removeprefix(folder).encode("utf-8", "backslashreplace") + b":" + data.split(b"\n", 1)[0] + b"\n"
            for path, data in below.items()
        ]
        files = {path: data for path, data in files.items() if path not in below} | {name: b"".join(lines)}
    return files
