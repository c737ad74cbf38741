"""Verdicts join as a lattice, and a node's acceptance follows from its findings."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class Verdict(str, enum.Enum):
    """What a finding says, worst first."""

    FAIL = "fail"
    UNVERIFIED = "unverified"
    WAIVED = "waived"
    ADVISORY = "advisory"
    PASS = "pass"  # noqa: S105 - a verdict
    NOT_APPLICABLE = "not-applicable"


_ORDER = {verdict: rank for rank, verdict in enumerate(Verdict)}


def join(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; the verdict of nothing is `unverified`, never a pass.

    >>> join([Verdict.PASS, Verdict.UNVERIFIED, Verdict.ADVISORY]).value
    'unverified'
    """
    return min(verdicts, key=_ORDER.__getitem__, default=Verdict.UNVERIFIED)


class Acceptance(str, enum.Enum):
    """What a whole run says of a node."""

    ACCEPTED = "accepted"
    WITH_ADVISORIES = "accepted-with-advisories"
    REJECTED = "rejected"
    INCOMPLETE = "incomplete"

    @property
    def exit_status(self) -> int:
        """The exit status of a run that ended with it."""
        return {Acceptance.REJECTED: 1, Acceptance.INCOMPLETE: 10}.get(self, 0)


@dataclass(frozen=True)
class Finding:
    """One demand on one subject, judged.

    `reason` says why an unverified one could not be judged, without naming the subject, so that equal
    ones can be told together. `causes` are check ids whose failure would explain it; `blocked_by`
    names those of them that did fail, as `check@subject`.
    """

    check: str
    subject: str
    key: str
    verdict: Verdict
    observed: dict[str, Any] | None
    message: str
    remedy: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = field(default=())

    @property
    def layer(self) -> str:
        """The id's part before the dot."""
        return self.check.partition(".")[0]
