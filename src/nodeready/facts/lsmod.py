"""Which kernel modules are loaded, from /proc/modules or `lsmod`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command, file
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

LSMOD = file("/proc/modules")
LSMOD_TEXT = command("lsmod", instead_of=LSMOD.name)

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_SIZE = re.compile(r"[0-9]{1,12}")
_USES = re.compile(r"[0-9]{1,10}|-[0-9]{0,9}")
_LIVE = "Live"


class Modules(NamedTuple):
    """The modules of one listing; `gaps` says why one that is not in it may be loaded all the same, else ''."""

    names: frozenset[str]
    gaps: str = ""

    def loaded(self, name: str) -> Reading[bool]:
        """Whether a module is loaded, such as `nvidia`, `nvidia_uvm`, `nvidia-peermem`, `nouveau`."""
        if name.replace("-", "_") in self.names:
            return Known(True)
        if self.gaps:
            return Unknown(f"{name} is not listed, but {self.gaps}")
        return Known(False)


def parse(data: bytes) -> Modules | Unknown:
    r"""The loaded modules; unknown where no line is one of a module.

    A module that is still loading, or going, is not loaded. A listing that was cut or filtered says so
    where it shows: in its last line, or in a user of a module that is not listed itself. One that was
    cut between two lines can't be told from a whole one.

    >>> modules = parse(b'''nvidia_uvm 4919296 0 - Live 0xffffffffc1a00000 (OE)
    ... nvidia 11534336 1 nvidia_uvm, Live 0xffffffffc0a00000 (OE)
    ... ''')
    >>> modules.loaded("nvidia").value, modules.loaded("nvidia-peermem").value, modules.loaded("nouveau").value
    (True, False, False)
    """
    if not data.strip():
        return Unknown("the list of kernel modules is empty")
    names: set[str] = set()
    users: set[str] = set()
    passing: set[str] = set()
    strange = 0
    for line in lines(data):
        parts = line.split()
        if not parts or parts[:2] == ["Module", "Size"]:
            continue
        if len(parts) < 3 or not (
            _NAME.fullmatch(parts[0]) and _SIZE.fullmatch(parts[1]) and _USES.fullmatch(parts[2])
        ):
            strange += 1
            continue
        users |= {user for user in (parts[3] if len(parts) > 3 else "").split(",") if _NAME.fullmatch(user)}
        # /proc/modules has a state after the users, lsmod ends with them
        (names if len(parts) < 5 or parts[4] == _LIVE else passing).add(parts[0])
    if not names and not passing:
        return Unknown("no line of it is one of a kernel module")
    return Modules(frozenset(names), _gaps(users - names - passing, strange, cut=is_cut(data)))


def _gaps(unlisted: set[str], strange: int, *, cut: bool) -> str:
    if cut:
        return "the list stops in the middle of a line: it was cut"
    if unlisted:
        return f"the list is not whole: it names {min(unlisted)} as a user and does not list it"
    return f"{strange} lines of the list can't be read" if strange else ""
