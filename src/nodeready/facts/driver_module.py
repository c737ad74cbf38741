"""Which driver the kernel has loaded, from /proc/driver/nvidia/version."""

from __future__ import annotations

import re

from nodeready.evidence.probe import file
from nodeready.facts.text import lines
from nodeready.reading import Known, Reading, Unknown

MODULE_VERSION = file("/proc/driver/nvidia/version", serves=("driver.version", "driver.matches-library"))

_NVRM = re.compile(r"NVRM version: NVIDIA UNIX .*?Kernel Module(?: for \S+)?\s+([0-9]{1,5}(?:\.[0-9]{1,5}){1,3})\s.*")


def parse(data: bytes) -> Reading[str]:
    r"""The version of the loaded module, closed or open.

    >>> parse(b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.07  Sat Feb 17 22:55:48 UTC 2024\n").value
    '535.161.07'
    >>> parse(b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build\n").value
    '580.105.08'
    """
    if not data.strip():
        return Unknown("/proc/driver/nvidia/version is empty")
    said = [line for line in lines(data) if line.startswith("NVRM version:")]
    if not said:
        return Unknown("/proc/driver/nvidia/version has no whole NVRM line")
    if len(said) > 1:
        return Unknown("/proc/driver/nvidia/version has two NVRM lines")
    match = _NVRM.fullmatch(said[0])
    return Known(match[1]) if match else Unknown(f"no driver version in {said[0][:120]!r}")


def parse_flavour(data: bytes) -> Reading[str]:
    r"""Whether the loaded module is the `open` or the `proprietary` one.

    >>> parse_flavour(b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build\n").value
    'open'
    """
    version = parse(data)
    if isinstance(version, Unknown):
        return version
    return Known("open" if b"NVIDIA UNIX Open Kernel Module" in data else "proprietary")
