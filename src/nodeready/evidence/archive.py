"""A tar archive, read entry by entry in memory: nothing is unpacked to disk, no link is followed."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from nodeready.evidence.bounds import MAX_FILE, Tally, printable, too_large
from nodeready.evidence.capture import CONTENTS, EvidenceError
from nodeready.evidence.unpack import CutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK = tarfile.BLOCKSIZE
MAX_HEADER = 2**20  # of one extended header: it holds names
MAX_NAME = 4096
_MAX_SPARSE_BLOCKS = 10_000
_END = bytes(BLOCK)
_EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)


@dataclass
class Contents:
    """What a folder or archive holds: the files that were read, and the names of the others."""

    files: dict[str, bytes] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """All names of files, read or not."""
        return [*self.files, *self.others]

    def below(self, top: str) -> Contents:
        """The same without that folder in front of every name."""
        stripped = {name.removeprefix(top): data for name, data in self.files.items()}
        return Contents(stripped, [name.removeprefix(top) for name in self.others])


def is_tar(start: bytes) -> bool:
    """Whether content that begins so is a tar archive."""
    if len(start) < BLOCK:
        return False
    if start[:BLOCK] == _END:
        return start[: 2 * BLOCK] == bytes(2 * BLOCK)  # an empty archive
    try:
        tarfile.TarInfo.frombuf(start[:BLOCK], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def read_archive(pieces: Iterator[bytes], where: str, wanted: Callable[[str], bool]) -> Contents:
    """The wanted regular files of an archive, and the names of all others.

    Raises `EvidenceError` for a path that leads out of the archive, a wanted file that is there twice or
    is sparse, two captures, and where there is too much of anything.
    """
    contents, tally = Contents(), Tally(where)
    for name, size, content, sparse in _entries(_Source(pieces, where), where, tally):
        if not wanted(name):
            contents.others.append(name)
            continue
        if name in contents.files:
            raise EvidenceError(f"{where} holds {printable(name)} twice: keep one")
        if sparse:
            raise EvidenceError(f"{where} holds {printable(name)} as a sparse file: pack it again without --sparse")
        if size > MAX_FILE:
            raise too_large(f"{where}: {printable(name)}")
        contents.files[name] = tally.keep(content.take())
    captures = [name for name in contents.names if PurePosixPath(name).name == CONTENTS]
    if len(captures) > 1:
        raise EvidenceError(f"{where} holds two captures, {' and '.join(map(printable, captures[:2]))}: hand in one")
    return contents


class _Source:
    """Takes an exact number of bytes from pieces of any size."""

    def __init__(self, pieces: Iterator[bytes], where: str) -> None:
        self._pieces, self._where = pieces, where
        self._held, self._at = b"", 0

    def take(self, count: int, *, may_end: bool = False) -> bytes:
        """So many bytes; fewer only at the very end, and only where that is allowed."""
        parts, missing = [], count
        while missing:
            part = self._held[self._at : self._at + missing]
            if not part:
                self._held, self._at = next(self._pieces, b""), 0
                if not self._held and not self._more():
                    break
                continue
            self._at += len(part)
            missing -= len(part)
            parts.append(part)
        if missing and not (may_end and missing == count):
            raise CutError(f"{self._where} is cut: it stops inside an entry. Copy it again, or pack a new one")
        return b"".join(parts)

    def _more(self) -> bool:
        """Whether another piece comes: one of them may be empty."""
        for piece in self._pieces:
            if piece:
                self._held = piece
                return True
        return False

    def skip(self, count: int) -> None:
        """Pass over so many bytes without keeping them."""
        while count > 0:
            count -= len(self.take(min(count, 2**20)))

    def drain(self) -> None:
        """Read to the end, so that the packing's own check sum is looked at."""
        for _ in self._pieces:
            pass


class _Content:
    """What one entry holds: taken as a whole, or passed over."""

    def __init__(self, source: _Source, size: int) -> None:
        self._source, self._left = source, size

    def take(self) -> bytes:
        """All of it."""
        size, self._left = self._left, 0
        return self._source.take(size)

    def leave(self) -> None:
        """Pass over it where it was not taken."""
        self._source.skip(self._left)


def _entries(source: _Source, where: str, tally: Tally) -> Iterator[tuple[str, int, _Content, bool]]:
    """Name, size and content of each regular file; what the caller does not take is passed over."""
    told: dict[str, str] = {}
    while True:
        block = source.take(BLOCK, may_end=True)
        if not block:
            raise CutError(f"{where} is cut: it has no end mark. Copy it again, or pack a new one")
        if block == _END:
            break
        entry = _header(block, where)
        if entry.type in (*_EXTENDED, *_LONG, tarfile.XGLTYPE):
            told.update(_extended(entry, _padded(source, entry.size, where), where))
            continue
        name, size = told.get("path", entry.name), _size(told, entry, where)
        sparse = entry.type == tarfile.GNUTYPE_SPARSE or any(key.startswith("GNU.sparse") for key in told)
        told = {}
        tally.found(name)
        place = _place(name, where)
        if entry.type == tarfile.GNUTYPE_SPARSE:
            _pass_sparse_map(source, block, where)
        regular = entry.isreg() or entry.type not in tarfile.SUPPORTED_TYPES
        if regular and place:
            content = _Content(source, size)
            yield place, size, content, sparse
            content.leave()
        elif regular:
            source.skip(size)
        if regular:
            source.skip(-size % BLOCK)
    source.drain()


def _header(block: bytes, where: str) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise CutError(f"{where} is no whole tar archive: {error}. Copy it again, or pack a new one") from None


def _padded(source: _Source, size: int, where: str) -> bytes:
    if not 0 <= size <= MAX_HEADER:
        raise EvidenceError(f"{where} has a header of {size} bytes, which no name needs: pack it again with plain tar")
    data = source.take(size)
    source.skip(-size % BLOCK)
    return data


def _extended(entry: tarfile.TarInfo, data: bytes, where: str) -> dict[str, str]:
    """What an extended header tells of the next entry; of links and of all entries nothing is needed."""
    if entry.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")}
    if entry.type not in _EXTENDED:
        return {}
    told, at = {}, 0
    while at < len(data):
        length, blank, _ = data[at : at + 20].partition(b" ")
        if not blank or not length.isdigit() or not len(length) + 1 < int(length) <= len(data) - at:
            raise EvidenceError(f"{where} has a damaged pax header: pack it again with plain tar")
        record = data[at + len(length) + 1 : at + int(length)].rstrip(b"\n").decode("utf-8", "surrogateescape")
        key, _, value = record.partition("=")
        if key in ("path", "size") or key.startswith("GNU.sparse"):
            told[key] = value
        at += int(length)
    return {**told, **({"path": told["GNU.sparse.name"]} if "GNU.sparse.name" in told else {})}


def _size(told: dict[str, str], entry: tarfile.TarInfo, where: str) -> int:
    text = told.get("size", str(entry.size))
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise EvidenceError(f"{where}: {printable(entry.name)[:80]} has the size {printable(text)[:40]}, which is none")
    return int(text)


def _place(name: str, where: str) -> str:
    """The name in its plain form, '' where it names nothing; raises for one that leads out."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise EvidenceError(f"{where} holds {printable(name)[:200]!r}, a path that leads out of the archive")
    if len(name) > MAX_NAME or "\0" in name:
        raise EvidenceError(f"{where} holds a name of {len(name)} characters, {printable(name)[:60]!r}: no file has it")
    return path.as_posix() if path.parts else ""


def _pass_sparse_map(source: _Source, block: bytes, where: str) -> None:
    """The blocks in which old GNU tar goes on about the holes of a file."""
    goes_on = block[482]
    for _ in range(_MAX_SPARSE_BLOCKS):
        if not goes_on:
            return
        goes_on = source.take(BLOCK)[504]
    raise EvidenceError(f"{where} holds a file of endless holes: pack it again without --sparse")
