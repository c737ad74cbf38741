"""Evidence that somebody hands in: a capture, a folder or archive of raw outputs, a report of others, one document."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from nodeready.evidence.archive import BLOCK, Contents, is_tar, read_archive
from nodeready.evidence.bounds import MAX_FILE, Tally, as_utf8, printable, read_file, too_large
from nodeready.evidence.capture import CONTENTS, Evidence, EvidenceError, evidence_of_contents
from nodeready.evidence.importers import bug_report, document, query_gpu, sosreport
from nodeready.evidence.names import ENDINGS, Names, gathered, recordings_of
from nodeready.evidence.recording import Recording
from nodeready.evidence.unpack import CutError, unpacked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_LISTS = "`nodeready explain evidence` lists them"
_NO_DOCUMENT = (
    "no document of nvidia-smi (-q, -q -x, --query-gpu, its table) or `dcgmi diag -j`, no report and no capture: "
    f"put other outputs into a folder under their names; {_LISTS}"
)


def read_evidence(path: Path, known: Collection[str], trees: Mapping[str, str] | None = None) -> Evidence:
    """The evidence at a path; `known` are the names that mean something.

    `trees` are folders of small files, as in sysfs, that stand for one recording: the files below such a
    folder become lines of `PATH:VALUE` under the name that it maps to. Raises `EvidenceError` where the
    path does not exist, cannot be read, or holds no known name.
    """
    names = Names(known, trees or {})
    if path.is_dir():
        return _of_folder(path, names)
    if not path.exists():
        raise EvidenceError(
            f"there is no evidence at {printable(str(path))}: name a folder, a capture.tar.gz, a report "
            "(nvidia-bug-report.log.gz, sosreport) or a document of nvidia-smi or dcgmi"
        )
    if not path.is_file():
        raise EvidenceError(f"{printable(str(path))} is neither a file nor a folder")
    start, pieces = _started(unpacked(path), 2 * BLOCK)
    if is_tar(start):
        return _of_archive(chain((start,), pieces), path, names)
    return _of_file(chain((start,), pieces), path, names)


def _of_folder(path: Path, names: Names) -> Evidence:
    """The outputs in a folder; of a bug report that lies beside them what they do not hold."""
    contents = _read_folder(path, names)
    reports = [name for name in contents.others if bug_report.is_named(name)]
    if not reports:
        return _of_contents(contents, path, names)
    if len(reports) > 1:
        raise EvidenceError(f"{printable(str(path))} holds {' and '.join(map(printable, reports[:2]))}: keep one")
    report = _of_file(unpacked(path / reports[0]), path / reports[0], names)
    contents.others.remove(reports[0])
    if not any(names.name_of(name) for name in contents.files):
        return replace(report, path=str(path), unread=_shown(contents.names))
    own = _of_contents(contents, path, names)
    return replace(own, recordings={**report.recordings, **own.recordings})


def _started(pieces: Iterator[bytes], least: int) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, at least so many where there are as many, and what follows; a cut counts where it stands."""
    start = b""
    try:
        while len(start) < least and (piece := next(pieces, None)) is not None:
            start += piece
    except CutError as error:
        return start, _broken(error)
    return start, pieces


def _broken(error: CutError) -> Iterator[bytes]:
    yield b""
    raise error


def _of_file(pieces: Iterator[bytes], path: Path, names: Names) -> Evidence:
    where = printable(str(path))
    start, text = _started(as_utf8(pieces, where), document.LOOKED_AT)
    if not start.strip():
        _rest(start, text, where)  # says so where it is cut
        raise EvidenceError(f"{where} is empty")
    if bug_report.is_bug_report(start):
        report = bug_report.read(chain((start,), text), names.known)
        if not report.recordings:
            raise EvidenceError(report.cut or f"{where} is an NVIDIA bug report without any section that is read")
        return Evidence("bug-report", report.host or _host_of(path), report.recordings, str(path))
    name = document.name_of(start, _bare(path.name))
    if name is None:
        raise EvidenceError(f"{where} is {document.nearly(start) or _NO_DOCUMENT}")
    stdout = query_gpu.with_header(path.name, _rest(start, text, where))
    recording = Recording(name, stdout=stdout)
    return Evidence("file", _host_of(path), {name: recording}, str(path))


def _rest(start: bytes, text: Iterator[bytes], where: str) -> bytes:
    """The whole document."""
    parts, size = [start], len(start)
    for piece in text:
        parts.append(piece)
        size += len(piece)
        if size > MAX_FILE:
            raise too_large(where)
    return b"".join(parts)


def _of_archive(pieces: Iterator[bytes], path: Path, names: Names) -> Evidence:
    where = printable(str(path))
    contents = read_archive(pieces, where, names.wanted)
    contents = _below_common_folder(contents, names.known)
    if CONTENTS in contents.files:
        # a capture lists its own files, whatever they are called: take them all
        contents = read_archive(unpacked(path), where, lambda _: True)
        contents = _below_common_folder(contents, names.known)
    return _of_contents(contents, path, names)


def _of_contents(contents: Contents, path: Path, names: Names) -> Evidence:
    where = printable(str(path))
    files = contents.files
    if CONTENTS in files:
        files = gathered(files, names.trees)
        evidence = evidence_of_contents(files[CONTENTS], files, path)
        if not any(name in names.known for name in evidence.recordings):
            raise EvidenceError(f"{where} is a capture without any known name; {_LISTS}")
        return evidence
    if sosreport.is_sosreport(contents.names):
        return _of_sosreport(files, path, names)
    files = gathered(files, names.trees)
    recordings, read = recordings_of(files, names, where)
    if not recordings:
        raise EvidenceError(_nothing_known(contents.names, where))
    unread = {*files, *contents.others} - read
    return Evidence("folder", _host_of(path), recordings, str(path), unread=_shown(unread))


def _shown(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(map(printable, names)))


def _of_sosreport(files: dict[str, bytes], path: Path, names: Names) -> Evidence:
    """What sos recorded; an output that somebody put beside it under its own name comes first."""
    own, _ = recordings_of(gathered(files, names.trees), names, printable(str(path)))
    recordings = {**sosreport.recordings_of(files, names.known), **own}
    if not recordings:
        raise EvidenceError(
            f"{printable(str(path))} is a sosreport without any output that is read: make it on the node as root, "
            "with the plugins nvidia, pci, kernel, memory and hardware"
        )
    return Evidence("sosreport", sosreport.host_of(files) or _host_of(path), recordings, str(path))


def _nothing_known(names: list[str], where: str) -> str:
    deeper = next((name for name in sorted(names) if name.endswith(f"/{CONTENTS}")), None)
    if deeper is not None:
        place = printable(deeper)
        return f"{where} holds no file of a known name, but a capture deeper inside, {place}: hand in that folder alone"
    report = next((name for name in sorted(names) if "nvidia-bug-report.log" in name), None)
    if report is not None:
        return f"{where} holds no file of a known name, but {printable(report)}: hand in that file itself"
    return f"{where} holds no file of a known name; {_LISTS}"


def _bare(name: str) -> str:
    for ending in (".gz", ".xz", ".bz2", *ENDINGS):
        name = name.removesuffix(ending)
    return name


def _host_of(path: Path) -> str:
    name = path.resolve().name
    for ending in (".tar.gz", ".tar.xz", ".tar.bz2", ".tar", ".tgz", ".log.gz", ".log", ".gz", *ENDINGS):
        name = name.removesuffix(ending)
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip(".-") or "node"


def _read_folder(path: Path, names: Names) -> Contents:
    """The wanted files below a folder; links that lead out of it, devices and pipes are not read."""
    root = path.resolve()
    where = printable(str(path))
    contents, tally = Contents(), Tally(where)
    found = list(_files_below(root, tally))
    everything = CONTENTS in found
    for name in found:
        if everything or names.wanted(name):
            contents.files[name] = tally.keep(read_file(root / name))
        else:
            contents.others.append(name)
    return contents


def _files_below(root: Path, tally: Tally) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise EvidenceError(
            f"{printable(str(error.filename))} cannot be read: {error.strerror}. Give this user the right to, or a copy"
        ) from None

    for folder, folders, names in os.walk(root, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            entry = Path(folder, name)
            tally.found(name)
            if _is_file_below(entry, root):
                yield entry.relative_to(root).as_posix()


def _is_file_below(entry: Path, root: Path) -> bool:
    """Whether it is a regular file inside root; a link that leads out, or round in a loop, is not."""
    try:
        return entry.resolve().is_relative_to(root) and stat.S_ISREG(entry.stat().st_mode)
    except RuntimeError:  # a loop, as Python says it before 3.13
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise EvidenceError(f"{printable(str(entry))} cannot be read: {error.strerror}") from None


def _below_common_folder(contents: Contents, known: Collection[str]) -> Contents:
    """Archives usually hold one folder; names count from there, as they do in a folder.

    A folder that known names begin with (`proc`) is no such folder.
    """
    names = contents.names
    tops = {name.partition("/")[0] for name in names}
    if len(tops) != 1 or not all("/" in name for name in names):
        return contents
    top = f"{tops.pop()}/"
    if any(name.startswith(top) for name in known):
        return contents
    return contents.below(top)
