"""What each Xid of the GPU driver, and SXid of an NVSwitch, means at the gate, and what a technician does about it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from nodeready.facts.xid_catalogue import CATALOGUE, OBSERVE, RESET, UNLISTED, UNREADABLE, WATCH, XidKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodeready.facts.kernel_log import SXid, Xid


_NVLINK5 = range(144, 151)
_RECOVERY_CHANGED = 154
_POWER_SMOOTHING_OFF, _POWER_SMOOTHING_ON = 163, 162
_REPEATS = 3
_NOT_FATAL = re.compile(r"\bnon-?fatal\b", re.IGNORECASE)
_IS_FATAL = re.compile(r"\bfatal\b", re.IGNORECASE)
# the Fabric Manager user guide's; 12028 is among the second by some lists, and non-fatal in the logs of fleets
_SXID_ALWAYS_FATAL = frozenset({12020, 22003, 22011, *range(23001, 23018)})
_SXID_PERHAPS_FATAL = frozenset(
    {11001, 11004, 11009, 11013, *range(11018, 11021), 12001, 12002, 12022, *range(12024, 12028), *range(12030, 12033)}
    | {14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060, 19061, 19063, 19064}
    | {19066, 19067, 19069, 19070, 19084, 20034, 22012, *range(24004, 24008)}
)
_SXID_DETAIL = re.compile(r"Severity [0-9]|Data \{", re.IGNORECASE)
_SUB_CODE = re.compile(
    r"(?:pid=[^,]{0,40}, name=[^,]{0,80}, )?([A-Z][A-Z0-9_]{1,40}) (Non-?fatal|Fatal)(?:[^(]{0,40}?Link ([0-9]{1,3}))?",
    re.IGNORECASE,
)
_NEW_ACTION = re.compile(r"changed from .{0,80}? to 0x[0-9A-Fa-f]{1,8} \(([^)]{1,80})\)")


def kind_of(code: int) -> XidKind:
    """The catalogue's entry; a code that it does not list is a warning, "not in the catalogue".

    >>> kind_of(79).meaning, kind_of(51).meaning, kind_of(0).severity
    ('the GPU fell off the PCIe bus', 'not in the catalogue', 'unreadable')
    """
    return CATALOGUE.get(code, UNLISTED) if code else UNREADABLE


def classify(xid: Xid) -> str:
    """How one line weighs: fatal, warning, application, info, remap, or unreadable (see `XidKind`).

    NVLink errors of the newer kind (144 to 150) say in their text whether they are fatal, and are
    taken as fatal where they do not. A change of the recovery action is info where the new action is
    None, else fatal.
    """
    if xid.code in _NVLINK5:
        milder = _NOT_FATAL.search(xid.text) and not _IS_FATAL.search(_NOT_FATAL.sub("", xid.text))
        return "warning" if milder else "fatal"
    if xid.code == _RECOVERY_CHANGED:
        return "info" if _new_action(xid) == "None" else "fatal"
    return kind_of(xid.code).severity


def classify_all(xids: Iterable[Xid]) -> tuple[str, ...]:
    """How each line of a log weighs beside the others, in the order of the log.

    An application's error that stands on one GPU three times or more is a warning: it points at the
    GPU. Power smoothing that switched off is info once the same GPU reports that it works again.
    """
    log = tuple(xids)
    times = Counter((xid.code, xid.bus_id) for xid in log)
    works_again = {xid.bus_id: at for at, xid in enumerate(log) if xid.code == _POWER_SMOOTHING_ON}
    weighs = []
    for at, xid in enumerate(log):
        weight = classify(xid)
        if weight == "application" and times[xid.code, xid.bus_id] >= _REPEATS:
            weight = "warning"
        elif xid.code == _POWER_SMOOTHING_OFF and works_again.get(xid.bus_id, -1) > at:
            weight = "info"
        weighs.append(weight)
    return tuple(weighs)


def sxid_class(sxid: SXid) -> str:
    """How one error of an NVSwitch weighs: fatal, warning, or unreadable (its code can't be read).

    Some codes are fatal whatever the line says. The others go by the line's own word; without one, those
    that can be fatal are taken as fatal.
    """
    if sxid.code == 0:
        return "unreadable"
    if sxid.code in _SXID_ALWAYS_FATAL or sxid.fatal:
        return "fatal"
    return "fatal" if sxid.fatal is None and sxid.code in _SXID_PERHAPS_FATAL else "warning"


def sxid_classes(sxids: Iterable[SXid]) -> tuple[str, ...]:
    """How each error of a log weighs, in the order of the log.

    The switch driver prints details (`Severity 1 ...`, `Data {...}`) as lines of their own without the
    word: those that directly follow an error of the same code on the same switch weigh as it does.
    """
    weighs = []
    last: dict[str, tuple[int, str]] = {}
    for sxid in sxids:
        weight = sxid_class(sxid)
        code, before = last.get(sxid.bus_id or "", (0, ""))
        if code and code == sxid.code and sxid.bus_id and _SXID_DETAIL.match(sxid.text):
            weight = before
        last[sxid.bus_id or ""] = sxid.code, weight
        weighs.append(weight)
    return tuple(weighs)


def remedy(xid: Xid) -> str:
    """The next step for whoever stands before the node."""
    if xid.code != _RECOVERY_CHANGED:
        return OBSERVE if xid.code in _NVLINK5 and classify(xid) == "warning" else kind_of(xid.code).next_step
    action = _new_action(xid)
    if action == "None":
        return WATCH
    if "reboot" in action.lower():
        return "Drain the node and reboot it: the driver asks for that."
    if "drain" in action.lower():
        return "Drain the GPUs of this node, then reset them: the driver asks for that."
    return RESET


def told(xid: Xid) -> str:
    """What a line says besides its code: the unit and severity of a newer NVLink error, the action asked for.

    >>> from nodeready.facts.kernel_log import Xid
    >>> told(Xid(145, None, "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)", ""))
    'RLW_RXPIPE Nonfatal, link 13'
    >>> told(Xid(154, None, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", ""))
    'Node Reboot Required'
    """
    if xid.code == _RECOVERY_CHANGED:
        return _new_action(xid)
    match = _SUB_CODE.match(xid.text) if xid.code in _NVLINK5 else None
    if match is None:
        return ""
    return f"{match[1]} {match[2]}" + (f", link {int(match[3])}" if match[3] else "")


def _new_action(xid: Xid) -> str:
    match = _NEW_ACTION.search(xid.text)
    return match[1] if match else ""
