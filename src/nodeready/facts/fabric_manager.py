"""Whether the fabric manager runs and which one it is, from systemd and `nv-fabricmanager --version`."""

from __future__ import annotations

import re

from nodeready.evidence.probe import command
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

# systemctl exits 3 where the unit does not run and 4 where it does not exist: both are answers
FM_ACTIVE = command(
    "systemctl", "is-active", "nvidia-fabricmanager", answers=(0, 3, 4), serves=("nvlink.fabric-manager",)
)
FM_VERSION = command("nv-fabricmanager", "--version", serves=("nvlink.fabric-manager",))

_STATES = frozenset(
    ("active", "reloading", "inactive", "failed", "activating", "deactivating", "maintenance", "refreshing")
)
_VERSION = re.compile(r"\s*Fabric Manager version is\s*:\s*([0-9]{1,5}(?:\.[0-9]{1,5}){1,3})\s*")


def parse_state(data: bytes) -> Reading[str]:
    r"""The unit's state in systemd's word.

    >>> parse_state(b"inactive\n").value
    'inactive'
    >>> parse_state(b"active").reason
    'the answer of systemctl is-active stops in the middle of a line: it was cut'
    """
    if not data.strip():
        return Unknown("systemctl is-active printed nothing")
    if is_cut(data):
        return Unknown("the answer of systemctl is-active stops in the middle of a line: it was cut")
    said = lines(data)
    if len(said) == 1 and said[0] in _STATES:
        return Known(said[0])
    return Unknown(f"systemctl is-active says {' / '.join(said)[:120]!r}, which is no state of a unit")


def parse_version(data: bytes) -> Reading[str]:
    r"""The version of the installed fabric manager, which must be the driver's.

    >>> parse_version(b"Fabric Manager version is : 580.105.08\n").value
    '580.105.08'
    """
    if not data.strip():
        return Unknown("nv-fabricmanager --version printed nothing")
    if is_cut(data):
        return Unknown("the output of nv-fabricmanager --version stops in the middle of a line: it was cut")
    versions = {match[1] for match in map(_VERSION.fullmatch, lines(data)) if match}
    if not versions:
        return Unknown("nv-fabricmanager --version names no version")
    if len(versions) > 1:
        return Unknown(f"nv-fabricmanager --version names several versions: {', '.join(sorted(versions))}")
    return Known(versions.pop())
