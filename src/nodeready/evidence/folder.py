"""Evidence that somebody hands in: a capture, a folder of raw outputs, one nvidia-smi document."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from nodeready.evidence.capture import CONTENTS, Evidence, EvidenceError, evidence_of_contents
from nodeready.evidence.recording import EXIT_STATUSES, Recording

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_FILES = 20_000
MAX_FILE = 64 * 2**20
MAX_TOTAL = 512 * 2**20
_ENDINGS = (".txt", ".xml", ".json")


def read_evidence(path: Path, known: Collection[str], trees: Mapping[str, str] | None = None) -> Evidence:
    """The evidence at a path; `known` are the names that mean something.

    `trees` are folders of small files, as in sysfs, that stand for one recording: the files below such a
    folder become lines of `PATH:VALUE` under the name that it maps to. Raises `EvidenceError` where the
    path does not exist, cannot be read, or holds no known name.
    """
    if path.is_dir():
        return _of_files(_gathered(_folder_files(path), trees or {}), path, known)
    if not path.exists():
        raise EvidenceError(
            f"there is no evidence at {path}: name a folder, a capture.tar.gz or an nvidia-smi document"
        )
    if not path.is_file():
        raise EvidenceError(f"{path} is neither a file nor a folder")
    start = _read(path, 65536)
    if start.startswith(b"\x1f\x8b") or tarfile.is_tarfile(path):
        return _of_files(_gathered(_archive_files(path, known), trees or {}), path, known)
    return _single_document(path, start)


def _single_document(path: Path, start: bytes) -> Evidence:
    if b"<nvidia_smi_log" in start:
        name = "nvidia-smi_-q_-x"
    elif b"NVSMI LOG" in start or b"\nAttached GPUs" in start:
        name = "nvidia-smi_-q"
    else:
        raise EvidenceError(
            f"{path} is no document of `nvidia-smi -q` or `nvidia-smi -q -x`, and no capture: "
            "put other outputs into a folder under the names that `nodeready explain evidence` lists"
        )
    return Evidence("file", _host_of(path), {name: Recording(name, stdout=_read_file(path))}, str(path))


def _of_files(files: dict[str, bytes], path: Path, known: Collection[str]) -> Evidence:
    if CONTENTS in files:
        evidence = evidence_of_contents(files[CONTENTS], files, path)
        if not any(name in known for name in evidence.recordings):
            raise EvidenceError(f"{path} is a capture without any known name; `nodeready explain evidence` lists them")
        return evidence
    outputs: dict[str, str] = {}
    for file_name in sorted(files):
        name = _known_name(file_name, known)
        if name in outputs:
            raise EvidenceError(f"{path} holds {outputs[name]} and {file_name}, both the output {name}: keep one")
        if name is not None:
            outputs[name] = file_name
    recordings: dict[str, Recording] = {}
    read = set(outputs.values())
    for name in sorted(known):
        status, errors = (_beside(files, name, ending, path) for ending in (".rc", ".err"))
        if name not in outputs and status is None:
            continue
        rc = 0 if status is None else _exit_status(files[status], path / status)
        stdout = files[outputs[name]] if name in outputs else b""
        recordings[name] = Recording(name, rc=rc, stdout=stdout, stderr=b"" if errors is None else files[errors])
        read |= {side for side in (status, errors) if side is not None}
    if not recordings:
        raise EvidenceError(_nothing_known(files, path))
    return Evidence("folder", _host_of(path), recordings, str(path), unread=tuple(sorted(set(files) - read)))


def _nothing_known(files: dict[str, bytes], path: Path) -> str:
    deeper = next((name for name in sorted(files) if name.endswith(f"/{CONTENTS}")), None)
    if deeper is not None:
        return f"{path} holds no file of a known name, but a capture deeper inside, {deeper}: hand in that folder alone"
    return f"{path} holds no file of a known name; `nodeready explain evidence` lists them"


def _gathered(files: dict[str, bytes], trees: Mapping[str, str]) -> dict[str, bytes]:
    """The files with each tree as one recording; a recording of that name that is there already stays."""
    for folder, name in trees.items():
        below = {path: data for path, data in sorted(files.items()) if path.startswith(folder) and path != name}
        if not below or name in files:
            continue
        lines = [
            path.removeprefix(folder).encode() + b":" + data.split(b"\n", 1)[0] + b"\n" for path, data in below.items()
        ]
        files = {path: data for path, data in files.items() if path not in below} | {name: b"".join(lines)}
    return files


def _known_name(file_name: str, known: Collection[str]) -> str | None:
    if file_name in known:
        return file_name
    for ending in _ENDINGS:
        if file_name.endswith(ending) and file_name[: -len(ending)] in known:
            return file_name[: -len(ending)]
    return None


def _beside(files: dict[str, bytes], name: str, ending: str, path: Path) -> str | None:
    """The file beside an output, with the output's own ending or without: `dmesg.rc`, `dmesg.txt.rc`."""
    found = [side for side in (f"{name}{own}{ending}" for own in ("", *_ENDINGS)) if side in files]
    if len(found) > 1:
        raise EvidenceError(f"{path} holds {found[0]} and {found[1]}, both beside the output {name}: keep one")
    return found[0] if found else None


def _exit_status(raw: bytes, path: Path) -> int:
    try:
        return EXIT_STATUSES[EXIT_STATUSES.index(int(raw.decode("ascii").strip()))]
    except ValueError:
        raise EvidenceError(f"{path} holds {raw[:20]!r}, not an exit status") from None


def _host_of(path: Path) -> str:
    name = path.resolve().name
    for ending in (".tar.gz", ".tgz", *_ENDINGS):
        name = name.removesuffix(ending)
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip(".-") or "node"


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as handle:
            return handle.read(most)
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}") from None


def _read_file(path: Path) -> bytes:
    data = _read(path, MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise EvidenceError(f"{path} has more than {MAX_FILE >> 20} MiB, which no output of a node has")
    return data


def _folder_files(path: Path) -> dict[str, bytes]:
    """Every regular file below a folder; links that lead out of it, devices and pipes are not read."""
    root = path.resolve()
    files: dict[str, bytes] = {}
    total = 0
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            entry = Path(folder, name)
            if not _is_file_below(entry, root):
                continue
            data = _read_file(entry)
            files[entry.relative_to(root).as_posix()] = data
            total += len(data)
            _refuse_excess(path, len(files), total)
    return files


def _is_file_below(entry: Path, root: Path) -> bool:
    """Whether it is a regular file inside root; a link that leads out, or round in a loop, is not."""
    try:
        return entry.resolve().is_relative_to(root) and stat.S_ISREG(entry.stat().st_mode)
    except RuntimeError:  # a loop, as Python says it before 3.13
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise EvidenceError(f"{entry} cannot be read: {error.strerror}") from None


def _archive_files(path: Path, known: Collection[str]) -> dict[str, bytes]:
    """The regular files of an archive, read into memory: nothing is unpacked to disk."""
    files: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(path, "r:*") as archive:
            for count, entry in enumerate(archive, 1):
                name = PurePosixPath(entry.name)
                total += max(entry.size, 0)
                _refuse_excess(path, count, total)
                if name.is_absolute() or ".." in name.parts:
                    raise EvidenceError(f"{path} holds {entry.name!r}, a path that leads out of the archive")
                if entry.size > MAX_FILE:
                    raise EvidenceError(
                        f"{path}: {entry.name} has more than {MAX_FILE >> 20} MiB, which no output of a node has"
                    )
                handle = archive.extractfile(entry) if entry.isreg() and name.parts else None
                if handle is None:
                    continue
                if name.as_posix() in files:
                    raise EvidenceError(f"{path} holds {name} twice: keep one")
                files[name.as_posix()] = handle.read()
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, OSError) as error:
        raise EvidenceError(f"{path} is no whole tar archive: {error}") from None
    captures = [name for name in files if PurePosixPath(name).name == CONTENTS]
    if len(captures) > 1:
        raise EvidenceError(f"{path} holds two captures, {captures[0]} and {captures[1]}: hand in one")
    return _below_common_folder(files, known)


def _below_common_folder(files: dict[str, bytes], known: Collection[str]) -> dict[str, bytes]:
    """Archives usually hold one folder; names count from there, as they do in a folder.

    A folder that known names begin with (`proc`) is no such folder.
    """
    tops = {PurePosixPath(name).parts[0] for name in files}
    if len(tops) != 1 or not all("/" in name for name in files):
        return files
    top = f"{tops.pop()}/"
    if any(name.startswith(top) for name in known):
        return files
    return {name.removeprefix(top): data for name, data in files.items()}


def _refuse_excess(path: Path, count: int, total: int) -> None:
    if count > MAX_FILES or total > MAX_TOTAL:
        raise EvidenceError(
            f"{path} holds more than {MAX_FILES} files or {MAX_TOTAL >> 20} MiB: hand in the node's outputs only"
        )
