"""Which file systems are mounted, and which of them read-only, from /proc/mounts."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import file
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Unknown

MOUNTS = file("/proc/mounts", serves=("storage.read-only",))

_ROW = re.compile(r"(\S+) (/\S*) (\S+) (\S+) [0-9]+ [0-9]+")


class Mount(NamedTuple):
    """One mount: what is mounted, where, the file system's type, and whether it is read-only."""

    device: str
    place: str
    kind: str
    read_only: bool


def parse(data: bytes) -> tuple[Mount, ...] | Unknown:
    r"""The mounts in the kernel's order; unknown where the file was cut, or names no root.

    >>> (root,) = parse(b"/dev/sda2 / ext4 ro,relatime,errors=remount-ro 0 0\n")
    >>> root.place, root.kind, root.read_only
    ('/', 'ext4', True)
    """
    if is_cut(data):
        return Unknown("the list of mounts stops in the middle of a line: it was cut")
    found = []
    for line in lines(data):
        match = _ROW.fullmatch(line)
        if match is None:
            return Unknown(f"{line[:80]!r} is no line of a mount")
        found.append(Mount(match[1], match[2], match[3], "ro" in match[4].split(",")))
    if not any(mount.place == "/" for mount in found):
        return Unknown("the list of mounts names no root")
    return tuple(found)
