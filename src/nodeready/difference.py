"""What one judgement says other than an earlier one, and why: another bound, another reading, another plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1
UNJUDGED = "unjudged"
WORSE, EQUAL, BETTER = "worse", "same", "better"
# how bad a verdict is; what is not planned is as good as a pass
_WEIGHT = {"fail": 5, UNJUDGED: 4, "unverified": 4, "waived": 2, "advisory": 1}
_TURNS = (WORSE, EQUAL, BETTER)
# the fields of a run that a reader wants beside each other
_RUN = ("acceptance", "tier", "overrides", "suite_version", "started")
_BASELINE = ("name", "version", "sha256", "status")

Results = dict[str, Any]


def unlike(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Why two results cannot be compared, `` where they can.

    >>> unlike({"host": "a", "node_type": "sxm"}, {"host": "b", "node_type": "sxm"})
    'the first is of host a, this one of host b'
    """
    for field, noun in (("host", "host"), ("node_type", "node type")):
        if before[field] != after[field]:
            return f"the first is of {noun} {before[field]}, this one of {noun} {after[field]}"
    return ""


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Results:
    """The difference between two results of one node, in the form of difference.json.

    `changed` holds every (key, subject) whose verdict differs, what got worse first, then what is new or
    gone, then what got better; a verdict is None where the pair was not planned. GPUs are the same where
    their bus ids are; `subject` is the name of now, `subject_before` the one of then.
    """
    then, now = _verdicts(before), _verdicts(after)
    names = _names_before(before, after)
    old_names = {old: new for new, old in names.items()}
    changed = []
    for key, subject in now:
        old = then.get((key, names.get(subject, subject)))
        changed += _row(key, subject, names.get(subject, subject), old, now[key, subject])
    for key, old_subject in then:
        subject = old_names.get(old_subject, "" if old_subject in names else old_subject)
        if (key, subject) not in now:
            changed += _row(key, subject or old_subject, old_subject, then[key, old_subject], None)
    changed.sort(key=lambda row: (_TURNS.index(row["turn"]), -_WEIGHT.get(row["to"], 0), -_WEIGHT.get(row["from"], 0)))
    keys_then, keys_now = {key for key, _ in then}, {key for key, _ in now}
    return {
        "schema_version": SCHEMA_VERSION,
        "host": after["host"],
        "node_type": after["node_type"],
        **{field: {"before": before[field], "after": after[field]} for field in _RUN},
        "in_service": {"before": bool(before.get("in_service")), "after": bool(after.get("in_service"))},
        "baseline": {
            "before": {field: before["baseline"][field] for field in _BASELINE},
            "after": {field: after["baseline"][field] for field in _BASELINE},
        },
        "demands": {"new": sorted(keys_now - keys_then), "gone": sorted(keys_then - keys_now)},
        "changed": changed,
    }


@dataclass(frozen=True)
class _Judged:
    """What one judgement says of one demand on one subject; `row` is None where nothing was found."""

    verdict: str
    row: Mapping[str, Any] | None = None

    def get(self, field: str) -> Any:
        return None if self.row is None else self.row[field]


def _verdicts(results: Mapping[str, Any]) -> dict[tuple[str, str], _Judged]:
    """Everything that was planned, by (key, subject): the findings, and what no finding answers."""
    found = {(row["key"], row["subject"]): _Judged(row["verdict"], row) for row in results["findings"]}
    for row in results["unjudged"]:
        found.setdefault((row["key"], row["subject"]), _Judged(UNJUDGED))
    return found


def _names_before(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """The earlier name of each GPU: the one with its bus id; those that are left over pair up in order."""
    then, now = _bus_ids(before), _bus_ids(after)
    by_bus_id = {bus_id: subject for subject, bus_id in then.items() if bus_id}
    names = {subject: by_bus_id[bus_id] for subject, bus_id in now.items() if bus_id in by_bus_id}
    left = [subject for subject in then if subject not in names.values()]
    alone = [subject for subject in now if subject not in names]
    names |= dict(zip(alone, left, strict=False))
    # a GPU that only one of them plans must not meet another one of its name
    taken = set(names.values())
    return names | {subject: f"no earlier {subject}" for subject in alone[len(left) :] if subject in taken}


def _bus_ids(results: Mapping[str, Any]) -> dict[str, str | None]:
    return {gpu["subject"]: gpu["bus_id"] for gpu in results["node"].get("gpus") or ()}


def _row(key: str, subject: str, subject_before: str, old: _Judged | None, new: _Judged | None) -> list[Results]:
    """The row of a verdict that differs; none where it does not."""
    was, became = old.verdict if old else None, new.verdict if new else None
    if was == became:
        return []
    fields = ("observed", "required", "recommended")
    return [
        {
            "key": key,
            "subject": subject,
            "subject_before": subject_before if old else None,
            "title": (new and new.get("title")) or (old and old.get("title")) or "",
            "from": was,
            "to": became,
            "turn": _turn(was, became),
            "why": _why(old, new),
            **{name: {"before": old and old.get(name), "after": new and new.get(name)} for name in fields},
            "message": (new and new.get("message")) or "",
        }
    ]


def _turn(was: str | None, became: str | None) -> str:
    before, after = _WEIGHT.get(was or "", 0), _WEIGHT.get(became or "", 0)
    return EQUAL if before == after else WORSE if after > before else BETTER


def _why(old: _Judged | None, new: _Judged | None) -> list[str]:
    """Why a verdict differs, in words; several may hold."""
    if old is None or new is None:
        return ["not planned before" if old is None else "not planned now"]
    if old.row is None or new.row is None:
        return ["not judged before" if old.row is None else "not judged now"]
    why = []
    if any(old.get(bound) != new.get(bound) for bound in ("required", "recommended")):
        why.append("other bound")
    if old.get("observed") != new.get("observed"):
        why.append("other reading")
    return why or ["other rule: bound and reading are the same"]
