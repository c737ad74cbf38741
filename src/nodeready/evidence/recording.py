"""A recording is the raw result of one probe, kept before anything is parsed."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from typing import Any

EXIT_STATUSES = range(-64, 256)  # what a child can end with; negative: the signal that killed it


class Ended(str, enum.Enum):
    """How the probe came to its end."""

    EXITED = "exited"
    TIMED_OUT = "timed-out"
    ABANDONED = "abandoned"
    NOT_INSTALLED = "not-installed"
    DENIED = "denied"
    NOT_RUN = "not-run"
    DAMAGED = "damaged"
    TRANSPORT_LOST = "transport-lost"


@dataclass(frozen=True)
class Recording:
    """What a probe gave, byte for byte.

    `rc` is the exit status (negative: the signal that killed it), None where it never exited or the
    kernel did not tell. `truncated` is true where the output may go on after what is here: it passed the
    cap, or a process left behind still held it. `reason` says which, or why a probe was not run.
    `started` is a Unix time and `duration` is in seconds.
    """

    name: str
    argv: tuple[str, ...] = ()
    ended: Ended = Ended.EXITED
    rc: int | None = 0
    stdout: bytes = b""
    stderr: bytes = b""
    started: float = 0.0
    duration: float = 0.0
    truncated: bool = False
    reason: str = ""

    def metadata(self) -> dict[str, Any]:
        """Everything but the output itself, for the capture's list of contents."""
        return {
            "name": self.name,
            "argv": [_plain(argument) for argument in self.argv],
            "ended": self.ended.value,
            "rc": self.rc,
            "started": self.started,
            "duration": round(self.duration, 6),
            "truncated": self.truncated,
            "reason": _plain(self.reason),
            "bytes": len(self.stdout),
            "sha256": hashlib.sha256(self.stdout).hexdigest(),
            "stderr_bytes": len(self.stderr),
        }

    @property
    def complaint(self) -> str:
        """The first line of what it said on standard error, else on standard output."""
        for stream in (self.stderr, self.stdout):
            text = stream.lstrip()[:4096].decode("utf-8", "replace").strip()  # not all of what may be a flood
            if text:
                return text.splitlines()[0][:200]
        return ""


def _plain(text: str) -> str:
    """The text with bytes that are no UTF-8 (a path of the node may hold some) written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
