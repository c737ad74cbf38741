"""Whether confidential computing is on, from `nvidia-smi conf-compute -f`."""

from __future__ import annotations

import re

from nodeready.evidence.probe import command
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

CONF_COMPUTE = command(
    "nvidia-smi", "conf-compute", "-f", family="nvidia", deadline=10.0, serves=("gpu.confidential-computing",)
)

_STATE = re.compile(r"\s*CC status\s*:\s*(ON|OFF)\s*", re.IGNORECASE)


def parse(data: bytes) -> Reading[str]:
    r"""ON or OFF; unknown where several lines disagree or none says so.

    >>> parse(b"CC status: OFF\n").value
    'OFF'
    >>> parse(b"CC status: OFF").reason
    'the answer of nvidia-smi conf-compute stops in the middle of a line: it was cut'
    """
    if not data.strip():
        return Unknown("nvidia-smi conf-compute printed nothing")
    if is_cut(data):
        return Unknown("the answer of nvidia-smi conf-compute stops in the middle of a line: it was cut")
    text = lines(data)
    states = {match[1].upper() for match in map(_STATE.fullmatch, text) if match}
    if len(states) == 1:
        return Known(states.pop())
    return Unknown(f"nvidia-smi conf-compute says {' / '.join(text)[:120]!r}")
