"""Decompression piece by piece, with an end to it: a bomb is refused before it goes off."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

from nodeready.evidence.bounds import PIECE, opened, printable
from nodeready.evidence.capture import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_UNPACKED = 4 * 2**30  # a large sosreport has two
MAX_RATIO = 500  # logs reach 50 with gzip and some hundred with xz; zeros 1000 and 7000
RATIO_COUNTS_FROM = 64 * 2**20
XZ_MEMORY = 128 * 2**20
_TAKEN = 2**16

_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"
_OTHERS = {
    b"PK\x03\x04": "a zip archive",
    b"PK\x05\x06": "an empty zip archive",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"7z\xbc\xaf\x27\x1c": "a 7-zip archive",
    b"Rar!\x1a\x07": "a rar archive",
    b"\x04\x22\x4d\x18": "compressed with lz4",
}


class CutError(EvidenceError):
    """Compressed data that stops or breaks before its end; what came before was given."""


def unpacked(path: Path) -> Iterator[bytes]:
    """The content of a file in pieces, decompressed where it is gzip, bzip2 or xz, whatever its name says.

    Raises `EvidenceError` for a packing that is not read, and for content that grows beyond all measure;
    `CutError` after the last piece where the data stop short or are damaged.
    """
    where = printable(str(path))
    with opened(path) as handle:
        start = handle.read(8)
        handle.seek(0)
        other = next((words for magic, words in _OTHERS.items() if start.startswith(magic)), "")
        if other:
            raise EvidenceError(f"{where} is {other}, whatever its name says: unpack it and hand in the folder or file")
        given = 0
        for piece in _pieces(handle, start, where):
            given += len(piece)
            _refuse_bomb(where, handle.tell(), given)
            yield piece


def _pieces(handle: BinaryIO, start: bytes, where: str) -> Iterator[bytes]:
    if start.startswith(_GZIP):
        return _gunzipped(handle, where)
    if start.startswith(_BZIP2):
        import bz2

        return _stepwise(handle, bz2.BZ2Decompressor, OSError, where)
    if start.startswith(_XZ):
        import lzma

        def xz() -> lzma.LZMADecompressor:
            return lzma.LZMADecompressor(memlimit=XZ_MEMORY)

        return _stepwise(handle, xz, lzma.LZMAError, where)
    return iter(lambda: handle.read(PIECE), b"")


def _refuse_bomb(where: str, taken: int, given: int) -> None:
    if given > MAX_UNPACKED or (given > RATIO_COUNTS_FROM and given > MAX_RATIO * max(taken, 1)):
        raise EvidenceError(
            f"{where} unpacks to more than {given >> 20} MiB from {max(taken >> 10, 1)} KiB, "
            "which no evidence does: unpack it yourself, and hand in the node's outputs only"
        )


def _gunzipped(handle: BinaryIO, where: str) -> Iterator[bytes]:
    """All members of a gzip file, one after the other: a bug report is written section by section."""
    decoder, fed = zlib.decompressobj(31), False
    while data := handle.read(_TAKEN):
        while data:
            if not fed and not data.lstrip(b"\0"):  # padding between members and at the end
                break
            piece = _decompressed(decoder, data, where)
            fed = True
            yield piece
            data = decoder.unconsumed_tail
            if decoder.eof:
                data, decoder, fed = decoder.unused_data, zlib.decompressobj(31), False
    while fed and (piece := _decompressed(decoder, b"", where)):
        yield piece
    if fed and not decoder.eof:
        raise CutError(f"{where} is cut: its compressed data stop before their end. Copy it again, or make a new one")


def _decompressed(decoder: Any, data: bytes, where: str) -> bytes:
    try:
        piece: bytes = decoder.decompress(data, PIECE)
    except zlib.error as error:
        raise CutError(f"{where} is damaged: {error}. Copy it again, or make a new one") from None
    return piece


def _stepwise(handle: BinaryIO, make: Callable[[], Any], damage: type[Exception], where: str) -> Iterator[bytes]:
    """All streams of a bzip2 or xz file."""
    decoder, fed = make(), False
    while data := handle.read(_TAKEN):
        while data or not (decoder.needs_input or decoder.eof):
            if not fed and not data.lstrip(b"\0"):
                break
            try:
                piece = decoder.decompress(data, PIECE)
            except damage as error:
                raise CutError(f"{where} is damaged: {error}. Copy it again, or make a new one") from None
            data, fed = b"", True
            yield piece
            if decoder.eof:
                data, decoder, fed = decoder.unused_data, make(), False
    if fed:
        raise CutError(f"{where} is cut: its compressed data stop before their end. Copy it again, or make a new one")
