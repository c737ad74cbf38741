"""A capture is the evidence of one node, written as a folder and packed as capture.tar.gz."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from nodeready.evidence.recording import Ended, Recording

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTENTS = "capture.json"
SCHEMA = 1


class EvidenceError(ValueError):
    """Evidence that cannot be read; the text names the path and what was expected."""


@dataclass(frozen=True)
class Evidence:
    """The recordings of one node by name.

    `kind` is `live`, `capture`, `folder` or `file`. `taken` is the time of a capture in ISO 8601.
    """

    kind: str
    host: str
    recordings: dict[str, Recording]
    path: str = ""
    taken: str = ""
    unread: tuple[str, ...] = field(default=())

    def get(self, name: str) -> Recording | None:
        """The recording of that name, None where there is none."""
        return self.recordings.get(name)


def write_beside(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(data)
    beside.replace(path)


def contents(host: str, taken: str, recordings: Iterable[Recording]) -> bytes:
    """A capture's list of contents: how each probe ended, and the size and hash of its output."""
    rows = [recording.metadata() for recording in sorted(recordings, key=lambda r: r.name)]
    listed = ",\n  ".join(json.dumps(row) for row in rows)
    head = json.dumps({"schema": SCHEMA, "host": host, "taken": taken})
    return f'{head[:-1]},\n "recordings": [\n  {listed}\n ]}}\n'.encode()


class CaptureWriter:
    """Keeps each recording in a folder as it comes, so that a run that is killed has kept them."""

    def __init__(self, folder: Path, host: str, taken: str) -> None:
        self.folder, self.host, self.taken = folder, host, taken
        self._recordings: dict[str, Recording] = {}

    def add(self, recording: Recording) -> None:
        """Write the recording's output, error output and exit status."""
        for name, data in files_of(recording).items():
            write_beside(self.folder / name, data)
        self._recordings[recording.name] = recording
        write_beside(self.folder / CONTENTS, contents(self.host, self.taken, self._recordings.values()))


def pack_evidence(evidence: Evidence, taken: str, target: Path) -> None:
    """Pack evidence as a capture.tar.gz, whole or not at all."""
    files = {CONTENTS: contents(evidence.host, evidence.taken or taken, evidence.recordings.values())}
    for recording in evidence.recordings.values():
        files |= files_of(recording)
    pack(files, target)


def files_of(recording: Recording) -> dict[str, bytes]:
    """The files that hold a recording in an evidence folder."""
    files = {}
    if recording.ended is Ended.EXITED or recording.stdout:
        files[recording.name] = recording.stdout
    if recording.stderr:
        files[f"{recording.name}.err"] = recording.stderr
    if recording.rc:
        files[f"{recording.name}.rc"] = f"{recording.rc}\n".encode()
    return files


def pack(files: dict[str, bytes], target: Path) -> None:
    """A .tar.gz of some files under one folder named `capture`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=5) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(str(PurePosixPath("capture", name)))
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    write_beside(target, buffer.getvalue())


def evidence_of_contents(contents: bytes, files: dict[str, bytes], path: Path) -> Evidence:
    """A capture of ours: its list of contents says how each probe ended and what its output hashes to."""
    try:
        head = json.loads(contents)
        if head["schema"] != SCHEMA:
            raise EvidenceError(f"{path}: capture schema {head['schema']!r}, this version reads {SCHEMA}")
        recordings = {row["name"]: _recorded(row, files) for row in head["recordings"]}
        host, taken = str(head["host"]), str(head["taken"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, EvidenceError):
            raise
        raise EvidenceError(f"{path}: {CONTENTS} cannot be read: {error}") from None
    present = {name: r for name, r in recordings.items() if r is not None}
    return Evidence("capture", host, present, str(path), taken)


def _recorded(row: dict[str, Any], files: dict[str, bytes]) -> Recording | None:
    ended = Ended(row["ended"])
    stdout = files.get(row["name"])
    if stdout is None and ended is Ended.EXITED:
        return None
    stdout = stdout or b""
    reason = str(row["reason"])
    if hashlib.sha256(stdout).hexdigest() != row["sha256"]:
        ended, reason = Ended.DAMAGED, f"its file holds {len(stdout)} bytes that are not the {row['bytes']} recorded"
    return Recording(
        name=row["name"],
        argv=tuple(row["argv"]),
        ended=ended,
        rc=row["rc"],
        stdout=stdout,
        stderr=files.get(f"{row['name']}.err", b""),
        started=float(row["started"]),
        duration=float(row["duration"]),
        truncated=bool(row["truncated"]),
        reason=reason,
    )
