"""What the kernel log tells of the host itself: memory, drives, file systems, hangs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nodeready.facts.kernel_host import DRIVE, DRIVE_RESET, HANG, MEMORY_LOST, MEMORY_MENDED, READ_ONLY
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from nodeready.facts.kernel_host import HostEvent
    from nodeready.facts.kernel_log import KernelLog
    from nodeready.node.sources import Sources

NAMED = 4


class HostLog:
    """The host's own faults since boot; an event counts that any log holds, silence only of a log that is whole."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def memory_lost(self) -> Reading[int]:
        """Memory and machine check errors that were not corrected."""
        return self._count(MEMORY_LOST)

    @property
    def memory_mended(self) -> Reading[int]:
        """Memory and machine check errors that were."""
        return self._count(MEMORY_MENDED)

    @property
    def drive_errors(self) -> Reading[int]:
        """Errors of drives and file systems."""
        return self._count(DRIVE)

    @property
    def drive_resets(self) -> Reading[int]:
        """Timeouts and resets of drives that went on working."""
        return self._count(DRIVE_RESET)

    @property
    def read_only(self) -> Reading[int]:
        """File systems that the kernel made read-only after an error."""
        return self._count(READ_ONLY)

    @property
    def hangs(self) -> Reading[int]:
        """Lockups of processors, and tasks that waited for minutes."""
        return self._count(HANG)

    @cached_property
    def _logs(self) -> list[tuple[str, KernelLog]]:
        return [(name, log) for name, log in self._sources.kernel_logs if not isinstance(log, Unknown)]

    @cached_property
    def _events(self) -> list[HostEvent]:
        """Of several logs each event once; in one log a repetition counts."""
        if len(self._logs) == 1:
            return list(self._logs[0][1].host)
        return list(dict.fromkeys(event for _, log in self._logs for event in log.host))

    def _count(self, *kinds: str) -> Reading[int]:
        found = [event.text for event in self._events if event.kind in kinds]
        names = tuple(name for name, _ in self._logs)
        if not found:
            doubt = self._doubt()
            return Known(0, recordings=names) if doubt is None else doubt
        unique = list(dict.fromkeys(found))
        more = f"; and {len(unique) - NAMED} more" if len(unique) > NAMED else ""
        return Known(len(found), note="; ".join(unique[:NAMED]) + more, recordings=names)

    def _doubt(self) -> Unknown | None:
        """Why no event does not prove that there was none."""
        refused = [log for _, log in self._sources.kernel_logs if isinstance(log, Unknown)]
        spoilt = [log for log in refused if not log.missing]
        if spoilt or not self._logs:
            several = spoilt or refused
            return Unknown(
                "; ".join(log.reason for log in several),
                missing=not spoilt,
                recordings=tuple(name for log in several for name in log.recordings),
            )
        cut = [name for name, log in self._logs if log.cut]
        if len(cut) == len(self._logs):
            reason = f"{cut[0]} stops in the middle of a line, what came after is unknown"
            return Unknown(reason, recordings=tuple(cut))
        return None
