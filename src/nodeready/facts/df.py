"""How full the file systems are that a node lives on, in bytes and in inodes, from `df`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import lines
from nodeready.reading import Known, Reading, Unknown

PLACES = ("/", "/var", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/var/lib/kubelet")

# named places only: a list of all mounts would ask every network share, and one that hangs hangs df
_SCRIPT = (
    f"set --; for p in {' '.join(PLACES)}; do "
    '[ ! -d "$p" ] || set -- "$@" "$p"; done; df -P -B1 "$@" && echo inodes: && df -P -i "$@" && echo end:'
)

DF = command("sh", "-c", _SCRIPT, name="df", family="files", serves=("storage.space",))

# of a line whose runs of blanks are one blank each: with runs of any length it would take quadratic time
_ROW = re.compile(r"(\S.*?) ([0-9]{1,20}|-) ([0-9]{1,20}|-) (-?[0-9]{1,20}|-) ([0-9]{1,3}%|-) (/.*)")


class Space(NamedTuple):
    """One file system: the shares of bytes and of inodes that are free, in percent.

    `inodes_free` is unknown with `unlimited` true where the file system makes them as it needs them.
    """

    mount: str
    free: Reading[float]
    inodes_free: Reading[float]
    unlimited: bool


def parse(data: bytes) -> tuple[Space, ...] | Unknown:
    r"""The file systems, each once; unknown where the output was cut or is not that of df.

    >>> root, = parse(b'''Filesystem     1-blocks         Used    Available Capacity Mounted on
    ... /dev/nvme0n1p2 1000000000000 250000000000 700000000000      27% /
    ... inodes:
    ... Filesystem       Inodes   IUsed    IFree IUse% Mounted on
    ... /dev/nvme0n1p2 60000000 1200000 58800000    2% /
    ... end:
    ... ''')
    >>> root.mount, round(root.free.value, 1), root.inodes_free.value
    ('/', 73.7, 98.0)
    """
    text = lines(data)
    if not text or text[-1] != "end:" or "inodes:" not in text:
        return Unknown("the output of df was cut before its end")
    at = text.index("inodes:")
    sizes, counts = _rows(text[:at]), _rows(text[at + 1 : -1])
    if not sizes or sizes.keys() != counts.keys():
        return Unknown("the output holds no table of df, or two that differ")
    return tuple(_space(mount, sizes[mount], counts[mount]) for mount in sizes)


def _rows(text: list[str]) -> dict[str, tuple[str, str, str]]:
    """Total, used and available of each mount; a place on the same file system stands there again."""
    found = {}
    for line in text:
        match = _ROW.fullmatch(" ".join(line.split()))
        if match:
            found[match[6]] = (match[2], match[3], match[4])
    return found


def _space(mount: str, sizes: tuple[str, str, str], counts: tuple[str, str, str]) -> Space:
    unlimited = counts[0] in ("0", "-")
    return Space(
        mount=mount,
        free=_share(mount, "space", sizes),
        inodes_free=Unknown("it has no fixed number") if unlimited else _share(mount, "inodes", counts),
        unlimited=unlimited,
    )


def _share(mount: str, what: str, numbers: tuple[str, str, str]) -> Reading[float]:
    """The free part of what users may have: what is kept for root counts as neither used nor free."""
    if "-" in numbers:
        return Unknown(f"df gives no {what} of {mount}")
    used, available = int(numbers[1]), max(0, int(numbers[2]))
    if used + available == 0:
        return Unknown(f"df gives {mount} no {what} at all")
    return Known(round(100 * available / (used + available), 2))
