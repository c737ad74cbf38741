"""A capture is the evidence of one node, written as a folder and packed as capture.tar.gz."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from nodeready.evidence.recording import EXIT_STATUSES, Ended, Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CONTENTS = "capture.json"
SCHEMA = 1
_MOST_SECONDS = 253402300800  # the year 10000: no clock shows it
_MOST_BYTES = 2**53


class EvidenceError(ValueError):
    """Evidence that cannot be read; the text names the path and what was expected."""


@dataclass(frozen=True)
class Evidence:
    """The recordings of one node by name.

    `kind` is `live`, `capture`, `folder` or `file`. `taken` is the time of a capture in ISO 8601. `unread`
    lists the files of a raw folder that have no known name.
    """

    kind: str
    host: str
    recordings: dict[str, Recording]
    path: str = ""
    taken: str = ""
    unread: tuple[str, ...] = ()

    def get(self, name: str) -> Recording | None:
        """The recording of that name, None where there is none."""
        return self.recordings.get(name)


def utc(moment: float) -> str:
    """A Unix time in ISO 8601, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def write_beside(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(data)
    beside.replace(path)


def contents(host: str, taken: str, recordings: Iterable[Recording]) -> bytes:
    """A capture's list of contents: how each probe ended, and the size and hash of its output."""
    return _contents(host, taken, {recording.name: recording.metadata() for recording in recordings})


def _contents(host: str, taken: str, metadata: dict[str, dict[str, Any]]) -> bytes:
    rows = [row for _, row in sorted(metadata.items())]
    listed = ",\n  ".join(json.dumps(row) for row in rows)
    head = json.dumps({"schema": SCHEMA, "host": host, "taken": taken})
    return f'{head[:-1]},\n "recordings": [\n  {listed}\n ]}}\n'.encode()


class CaptureWriter:
    """Keeps each recording in a folder as it comes, so that a run that is killed has kept them."""

    def __init__(self, folder: Path, host: str, taken: str) -> None:
        self.folder, self.host, self.taken = folder, host, taken
        self._rows: dict[str, dict[str, Any]] = {}  # made once each: they hold a hash of the whole output

    def add(self, recording: Recording) -> None:
        """Write the recording's output, error output and exit status."""
        for name, data in files_of(recording).items():
            write_beside(self.folder / name, data)
        self._rows[recording.name] = recording.metadata()
        write_beside(self.folder / CONTENTS, _contents(self.host, self.taken, self._rows))


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
    """A capture of ours: its list of contents says how each probe ended and what its output hashes to.

    `files` are the files beside it. Raises `EvidenceError`, which names the recording and the field,
    where a field is absent or holds what no capture holds. The host is kept as it is written: whoever
    makes a path of it makes it safe.
    """
    where = f"{path}: {CONTENTS}"
    try:
        head = json.loads(contents)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{where} cannot be read: {error}") from None
    if not isinstance(head, dict):
        raise EvidenceError(f"{where} is no object")
    schema = head.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise EvidenceError(f"{path}: capture schema {_shown(schema)}, this version reads {SCHEMA}")
    _check(head, _HEAD, where)
    present: dict[str, Recording] = {}
    listed: set[str] = set()
    for number, row in enumerate(head["recordings"]):
        if not isinstance(row, dict):
            raise EvidenceError(f"{where}: recording number {number} is no object")
        _check(row, _ROW, f"{where}: recording {_shown(row.get('name', number))}")
        if row["name"] in listed:
            raise EvidenceError(f"{where}: recording {_shown(row['name'])}: name is there twice")
        listed.add(row["name"])
        recording = _recorded(row, files)
        if recording is not None:
            present[recording.name] = recording
    return Evidence("capture", head["host"], present, str(path), head["taken"])


def _recorded(row: dict[str, Any], files: dict[str, bytes]) -> Recording | None:
    ended = Ended(row["ended"])
    stdout = files.get(row["name"])
    if stdout is None and ended is Ended.EXITED:
        return None
    stdout = stdout or b""
    reason = row["reason"]
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
        truncated=row["truncated"],
        reason=reason,
    )


def _is_text(value: Any) -> bool:
    """A text that can be written as UTF-8: JSON can also spell half a character."""
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def _is_path(value: Any) -> bool:
    if not isinstance(value, str) or not value.isprintable() or value == CONTENTS:
        return False
    path = PurePosixPath(value)
    return str(path) == value and bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < _MOST_SECONDS  # never so for NaN


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_BYTES


_Rules = dict[str, tuple["Callable[[Any], bool]", str]]
_HEAD: _Rules = {
    "host": (_is_text, "a text"),
    "taken": (_is_text, "a text"),
    "recordings": (lambda value: isinstance(value, list), "a list"),
}
_ROW: _Rules = {
    "name": (_is_path, "a relative path without '..'"),
    "argv": (lambda value: isinstance(value, list) and all(map(_is_text, value)), "a list of texts"),
    "ended": (
        lambda value: isinstance(value, str) and value in [ended.value for ended in Ended],
        f"one of {', '.join(ended.value for ended in Ended)}",
    ),
    "rc": (lambda value: value is None or (type(value) is int and value in EXIT_STATUSES), "an exit status or null"),
    "started": (_is_seconds, "a Unix time in seconds"),
    "duration": (_is_seconds, "a number of seconds"),
    "truncated": (lambda value: isinstance(value, bool), "true or false"),
    "reason": (_is_text, "a text"),
    "bytes": (_is_size, "a number of bytes"),
    "sha256": (lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None, "a sha256"),
    "stderr_bytes": (_is_size, "a number of bytes"),
}


def _check(found: dict[str, Any], rules: _Rules, where: str) -> None:
    for key, (fits, what) in rules.items():
        if key not in found:
            raise EvidenceError(f"{where} has no {key}")
        if not fits(found[key]):
            raise EvidenceError(f"{where}: {key} is {_shown(found[key])}, not {what}")


def _shown(value: Any) -> str:
    return f"a {type(value).__name__}" if isinstance(value, (dict, list)) else f"{value!r:.80}"
