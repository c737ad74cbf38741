"""Frames: how recordings travel from a target, so that nothing that a shell prints beside them is taken for one.

A frame is a line `NONCE KIND SIZE CRC`, then so many characters of base64 (of compressed bytes), then a line
end. The nonce is new for each batch. What is cut, or was written into by something else, is no frame.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from typing import TYPE_CHECKING, Any

from nodeready.evidence.recording import EXIT_STATUSES, Ended, Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 256 * 2**20  # bytes that one frame may unpack to: twice the cap of both streams of a probe, with room


def frame(nonce: str, kind: str, payload: bytes) -> bytes:
    r"""One frame, to be written in one piece.

    >>> list(frames("abc", b"Welcome!\n" + frame("abc", "end", b"{}") + b"abc end 9"))
    [('end', b'{}')]
    """
    text = base64.b64encode(zlib.compress(payload, 6))
    return f"\n{nonce} {kind} {len(text)} {zlib.crc32(text)}\n".encode() + text + b"\n"


def frames(nonce: str, stream: bytes) -> Iterator[tuple[str, bytes]]:
    """The whole frames of a stream, in order: kind and payload."""
    pattern = re.compile(
        rb"^" + re.escape(nonce.encode()) + rb" ([a-z]{1,20}) (\d{1,10}) (\d{1,10})\r?\n", re.MULTILINE
    )
    for found in pattern.finditer(stream):
        kind, size, crc = found.group(1).decode(), int(found.group(2)), int(found.group(3))
        text = stream[found.end() : found.end() + size]
        if len(text) != size or zlib.crc32(text) != crc:
            continue
        payload = _unpacked(text)
        if payload is not None:
            yield kind, payload


def _unpacked(text: bytes) -> bytes | None:
    try:
        packed = zlib.decompressobj()
        payload = packed.decompress(base64.b64decode(text, validate=True), MOST)
    except (binascii.Error, zlib.error):
        return None
    return payload if packed.eof else None


def pack_recording(recording: Recording) -> bytes:
    """A recording as the payload of a frame: a line of JSON, then both streams."""
    return json.dumps(recording.metadata()).encode() + b"\n" + recording.stdout + recording.stderr


def unpack_recording(payload: bytes) -> Recording | None:
    """The recording in a payload, None where it is none: a target is not trusted to keep the form."""
    head, _, streams = payload.partition(b"\n")
    try:
        row = json.loads(head)
        size, error_size = int(row["bytes"]), int(row["stderr_bytes"])
        if size < 0 or size + error_size != len(streams) or not _fits(row):
            return None
        return Recording(
            name=row["name"],
            argv=tuple(row["argv"]),
            ended=Ended(row["ended"]),
            rc=row["rc"],
            stdout=streams[:size],
            stderr=streams[size:],
            started=float(row["started"]),
            duration=float(row["duration"]),
            truncated=bool(row["truncated"]),
            reason=row["reason"],
        )
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _fits(row: dict[str, Any]) -> bool:
    texts = [row["name"], row["reason"], *row["argv"]]
    rc = row["rc"]
    return all(isinstance(text, str) for text in texts) and (rc is None or (type(rc) is int and rc in EXIT_STATUSES))
