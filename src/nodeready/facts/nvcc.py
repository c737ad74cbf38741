"""Which CUDA toolkit is installed, from `nvcc --version`."""

from __future__ import annotations

import re

from nodeready.evidence.probe import command
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

NVCC = command("nvcc", "--version", serves=("cuda.toolkit-version",))

_RELEASE = re.compile(r"Cuda compilation tools, release ([0-9]{1,3}\.[0-9]{1,3}), V[0-9.]{1,20}\s*")


def parse(data: bytes) -> Reading[str]:
    r"""The toolkit's release, such as 12.4.

    >>> parse(b"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131\n").value
    '12.4'
    """
    if not data.strip():
        return Unknown("nvcc --version printed nothing")
    if is_cut(data):
        return Unknown("the output of nvcc --version stops in the middle of a line: it was cut")
    releases = {match[1] for match in map(_RELEASE.fullmatch, lines(data)) if match}
    if not releases:
        return Unknown("nvcc --version names no release")
    if len(releases) > 1:
        return Unknown(f"nvcc --version names several releases: {', '.join(sorted(releases))}")
    return Known(releases.pop())
