"""Recordings become parsed documents, each once; one that is no answer is unknown, with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from nodeready.evidence.recording import Ended, Recording
from nodeready.reading import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.evidence.capture import Evidence
    from nodeready.evidence.probe import Probe

D = TypeVar("D")

MOST_LINES = 600_000  # no tool prints as many; what parsers take of time and memory goes by lines
_NOT_THERE = (Ended.NOT_INSTALLED, Ended.DENIED, Ended.NOT_RUN)


class Documents:
    """The evidence of one node, parsed on demand and kept."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._parsed: dict[str, Any] = {}

    def read(self, probe: Probe, parse: Callable[[bytes], D | Unknown]) -> D | Unknown:
        """The document of a probe, or why there is none; an unknown cites the recording."""
        if probe.name not in self._parsed:
            self._parsed[probe.name] = self._read(probe, parse)
        found: D | Unknown = self._parsed[probe.name]
        return found

    def _read(self, probe: Probe, parse: Callable[[bytes], D | Unknown]) -> D | Unknown:
        recording = self.evidence.get(probe.name)
        refusal = no_answer(probe, recording)
        if refusal is not None:
            return refusal
        document = parse(recording.stdout) if recording is not None else None
        if isinstance(document, Unknown):
            return replace(document, reason=f"{probe.name}: {document.reason}", recordings=(probe.name,))
        if document is None or recording is None:
            raise AssertionError(probe.name)  # no_answer() has dealt with it
        if recording.rc in probe.refusals:
            reason = f"{probe.name} exited {recording.rc}, with which it can only say why it has no answer"
            return Unknown(reason, recordings=(probe.name,))
        return document


def no_answer(probe: Probe, recording: Recording | None) -> Unknown | None:
    """Why a recording cannot be parsed, None where it can.

    One that is not there or exited with a status that is no answer lets another form of the same datum
    be asked; one that overran its deadline, was cut or is empty does not.
    """
    if recording is None:
        return Unknown(f"{probe.name} was not recorded", missing=True)
    cited = (recording.name,)
    if recording.ended in _NOT_THERE:
        return Unknown(f"{probe.name}: {recording.reason or recording.ended.value}", missing=True, recordings=cited)
    if recording.ended is not Ended.EXITED or recording.truncated:
        lost = recording.ended is Ended.TRANSPORT_LOST  # one cause for all of them: named once
        reason = recording.reason or recording.ended.value
        return Unknown(reason if lost else f"{probe.name}: {reason}", recordings=cited)
    if recording.rc not in probe.answers:
        ending = (
            f"exited {recording.rc}"
            if recording.rc is None or recording.rc >= 0
            else f"was killed by signal {-recording.rc}"
        )
        said = f": {recording.complaint}" if recording.complaint else ""
        return Unknown(f"{probe.name} {ending}{said}", missing=True, recordings=cited)
    flooded = recording.stdout.count(b"\n") > MOST_LINES
    if flooded or not recording.stdout.strip():
        what = f"more than {MOST_LINES} lines" if flooded else "nothing"
        return Unknown(f"{probe.name} printed {what}", recordings=cited)
    return None
