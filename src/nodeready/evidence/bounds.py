"""What is read of evidence that others send: so much, never more, and named so that it can be shown."""

from __future__ import annotations

import codecs
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from nodeready.evidence.capture import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PIECE = 2**20
MAX_FILE = 32 * 2**20  # of one output: as much as a run keeps of a probe; a parser takes up to ten times that
MAX_TOTAL = 128 * 2**20  # of all outputs that are kept in memory
MAX_FILES = 200_000  # names in a folder or archive: a sosreport holds some ten thousand
MAX_NAMES = 16 * 2**20  # bytes of all names together

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LOOKED_AT = 4096


def printable(name: str) -> str:
    r"""A name as it may stand in a sentence: line ends, escapes and marks of direction are spelt out.

    >>> print(printable("dm\u202eesg\n"))
    dm\u202eesg\x0a
    """
    return "".join(c if c.isprintable() else _spelt(ord(c)) for c in name)


def _spelt(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading; raises `EvidenceError` where it cannot be read, or changes meanwhile."""
    where = printable(str(path))
    try:
        # a pipe put in the file's place would otherwise be waited for
        handle = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        with handle:
            before = os.fstat(handle.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise EvidenceError(f"{where} is neither a file nor a folder")
            yield handle
            after = os.fstat(handle.fileno())
    except OSError as error:
        raise EvidenceError(f"{where} cannot be read: {error.strerror or error}") from None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise EvidenceError(f"{where} changed while it was read: stop what writes it, or hand in a copy")


def read_file(path: Path) -> bytes:
    """A whole file of at most `MAX_FILE` bytes."""
    with opened(path) as handle:
        data = handle.read(MAX_FILE + 1)
    return whole(data, printable(str(path)))


def whole(data: bytes, where: str) -> bytes:
    """The same bytes; raises `EvidenceError` for more than an output can have."""
    if len(data) > MAX_FILE:
        raise too_large(where)
    return data


def too_large(where: str) -> EvidenceError:
    """The error for an output of that size."""
    return EvidenceError(
        f"{where} has more than {MAX_FILE >> 20} MiB, which no output of a node has: leave it out, or cut it"
    )


class Tally:
    """Counts what is found and kept; raises `EvidenceError` above the bounds."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._files = self._names = self._kept = 0

    def found(self, name: str) -> None:
        """One more file, folder or link."""
        self._files += 1
        self._names += len(name)
        if self._files > MAX_FILES or self._names > MAX_NAMES:
            raise EvidenceError(
                f"{self._where} holds more than {MAX_FILES} files, or names of more than {MAX_NAMES >> 20} MiB: "
                "hand in the node's outputs only"
            )

    def keep(self, data: bytes) -> bytes:
        """The same bytes, which stay in memory."""
        self._kept += len(data)
        if self._kept > MAX_TOTAL:
            raise EvidenceError(
                f"{self._where} holds outputs of more than {MAX_TOTAL >> 20} MiB: hand in those of one node only"
            )
        return data


def as_utf8(pieces: Iterator[bytes], where: str) -> Iterator[bytes]:
    """The same text in UTF-8, whatever mark of another encoding it begins with.

    Windows writes UTF-16 where a command's output is redirected. Raises `EvidenceError` for text of that
    kind that bears no mark.
    """
    first = next(pieces, b"")
    encoding = next((name for mark, name in _BOMS if first.startswith(mark)), "")
    if not encoding:
        _refuse_wide(first[:_LOOKED_AT], where)
        yield first
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def utf8(data: bytes, where: str) -> bytes:
    """As `as_utf8`, of a whole output."""
    return b"".join(as_utf8(iter((data,)), where))


def _refuse_wide(start: bytes, where: str) -> None:
    if len(start) >= 16 and 0.4 < start.count(0) / len(start) < 0.8:
        raise EvidenceError(f"{where} is text in UTF-16 without its mark: convert it to UTF-8")
