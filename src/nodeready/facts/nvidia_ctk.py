"""Which NVIDIA Container Toolkit is installed, from `nvidia-ctk --version`."""

from __future__ import annotations

import re

from nodeready.evidence.probe import command
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

NVIDIA_CTK = command("nvidia-ctk", "--version", family="container", serves=("container.gpu-toolkit",))

_VERSION = re.compile(
    r"NVIDIA Container Toolkit CLI version v?([0-9]{1,5}(?:\.[0-9]{1,5}){1,3}(?:[-~+][0-9A-Za-z.~+-]{1,40})?)\s*"
)


def parse(data: bytes) -> Reading[str]:
    r"""The toolkit's version, such as 1.17.4 or 1.18.0-rc.2.

    >>> parse(b"NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 9b69590c7428\n").value
    '1.17.4'
    """
    if not data.strip():
        return Unknown("nvidia-ctk --version printed nothing")
    if is_cut(data):
        return Unknown("the output of nvidia-ctk --version stops in the middle of a line: it was cut")
    versions = {match[1] for match in map(_VERSION.fullmatch, lines(data)) if match}
    if not versions:
        return Unknown("nvidia-ctk --version names no version")
    if len(versions) > 1:
        return Unknown(f"nvidia-ctk --version names several versions: {', '.join(sorted(versions))}")
    return Known(versions.pop())
