"""How values, bounds, parts and verdicts are put into words, the same in every report.

All functions take parts of a document that is `escape.Seen`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nodeready.render.escape import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nodeready.render.escape import Seen

VERDICTS = ("fail", "unverified", "waived", "advisory", "pass", "not-applicable")
ACCEPTANCES = ("accepted", "accepted-with-advisories", "rejected", "incomplete")
NOTHING = "-"
NOT_JUDGED = "the check was deselected, was skipped or judged nothing"

_SIGNS = {"min": ">= ", "max": "<= ", "equals": "", "matches": "matches "}
_NUMBERED = re.compile(r"(gpu|nvme)(\d+)")


def worst(verdicts: Iterable[str]) -> str:
    """The join of verdicts: the first of fail, unverified, waived, advisory, pass, not-applicable."""
    return min(verdicts, key=VERDICTS.index)


def value_text(value: Any) -> str:
    """A bare value: `yes`, `81559`, `26.562`, `0, 18`; a quantity with its unit."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return visible(", ".join(value_text(item) for item in value)) or "none"
    if isinstance(value, dict):
        return quantity(value)
    return str(value) or "(empty)"


def quantity(observed: Mapping[str, Any]) -> str:
    """A value with its unit.

    >>> quantity({"value": 81559, "unit": "MiB"})
    '81559 MiB'
    """
    unit = _unit(observed)
    return f"{value_text(observed.get('value'))} {unit}".rstrip()


def observed_of_all(findings: Sequence[Mapping[str, Any]]) -> str:
    """What was observed on several parts: once where it is the same, else in the order of the parts."""
    texts = [observed_text(finding) for finding in findings]
    if len(set(texts)) == 1:
        return texts[0]
    units = {_unit(finding["observed"] or {}) for finding in findings}
    unit = units.pop() if len(units) == 1 else ""
    return f"{', '.join(text.removesuffix(f' {unit}') for text in texts)} {unit}".rstrip()


def _unit(quantity: Mapping[str, Any]) -> str:
    """The unit as it is printed: a version is no unit."""
    unit = quantity.get("unit") or ""
    return "" if unit == "version" else unit


def observed_text(finding: Mapping[str, Any]) -> str:
    """What was observed, or that nothing was."""
    observed = finding["observed"]
    if observed is not None:
        return quantity(observed)
    return "not measured" if finding["verdict"] in ("unverified", "waived") else NOTHING


def _one_bound(kind: str, bound: Mapping[str, Any]) -> str:
    value, unit = bound.get("value"), _unit(bound)
    items = value if isinstance(value, list) else [value]
    if kind == "one_of":
        words = ", ".join(value_text(item) for item in items)
        return f"{'one of ' if len(items) > 1 else ''}{words} {unit}".rstrip()
    if kind == "between" and len(items) == 2:
        return f"{value_text(items[0])} to {value_text(items[1])} {unit}".rstrip()
    return f"{_SIGNS.get(kind, f'{kind} ')}{quantity(bound)}"


def bound_text(bound: Mapping[str, Any] | None) -> str:
    """A demand's bound in words, `-` where there is none.

    >>> bound_text({"min": {"value": 512, "unit": "GiB"}})
    '>= 512 GiB'
    >>> bound_text({"one_of": {"value": [0, 18], "unit": ""}})
    'one of 0, 18'
    """
    if not bound:
        return NOTHING
    return visible(" and ".join(_one_bound(kind, each) for kind, each in bound.items()))


def demanded_text(finding: Mapping[str, Any]) -> str:
    """The bound that the verdict turns on: the required one, else the recommended one, marked as such."""
    if finding["required"] is None and finding["recommended"] is not None:
        return f"{bound_text(finding['recommended'])} (recommended)"
    if finding["verdict"] == "advisory" and finding["recommended"] is not None:
        return f"{bound_text(finding['required'])}; recommended {bound_text(finding['recommended'])}"
    return bound_text(finding["required"])


def said(finding: Mapping[str, Any]) -> str:
    """The finding's message without the part that it begins with, which stands beside it in a report.

    >>> said({"subject": "gpu4", "message": "gpu4 (0000:9b:00.0, serial 16): PCIe link width is 8"})
    'PCIe link width is 8'
    """
    message: str = finding["message"]
    named = re.match(rf"{re.escape(finding['subject'])}(?: \([^)]*\))?: ", message)
    return message[named.end() :] if named else message


def reason(finding: Mapping[str, Any]) -> str:
    """Why there is no value: the bare reason, the same for all parts that share it."""
    told: str = finding.get("reason") or said(finding).removeprefix(f"{finding['title']} is unknown: ")
    return told or "no reason is recorded"


def tells_more(finding: Mapping[str, Any]) -> bool:
    """Whether the message says more than what was observed and what is demanded."""
    text = said(finding)
    return bool(text) and (
        finding["observed"] is None or not text.startswith(finding["title"]) or "(" in text or ":" in text
    )


def gpus(results: Seen) -> dict[str, dict[str, Any]]:
    """The identity of every GPU that the run knows, by its subject."""
    return {gpu["subject"]: gpu for gpu in (results["node"].get("gpus") or ()) if gpu.get("subject")}


def part(subject: str, known: Mapping[str, Mapping[str, Any]], *fields: str) -> str:
    """A subject with what a technician finds it by: bus id, serial, slot, as far as they are known.

    >>> part("gpu3", {"gpu3": {"bus_id": "0000:9b:00.0", "serial": "1653"}}, "bus_id", "serial")
    'gpu3 (0000:9b:00.0, serial 1653)'
    """
    gpu = known.get(subject, {})
    named = {"bus_id": "{}", "serial": "serial {}", "slot": "slot {}"}
    found = [named[name].format(gpu[name]) for name in fields or tuple(named) if gpu.get(name)]
    return f"{subject} ({', '.join(found)})" if found else subject


def subjects_text(subjects: Sequence[str], limit: int = 0) -> str:
    """Subjects in their order, runs of numbered ones as a range; beyond `limit` entries (0: none) they are counted.

    >>> subjects_text(["gpu0", "gpu1", "gpu2", "gpu5", "node"])
    'gpu0-gpu2, gpu5, node'
    """
    runs: list[list[str]] = []
    for subject in dict.fromkeys(subjects):
        if runs and _follows(runs[-1][-1], subject):
            runs[-1].append(subject)
        else:
            runs.append([subject])
    words = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs]
    if limit and len(words) > limit:
        words[limit:] = [f"and {sum(map(len, runs[limit:]))} more"]
    return ", ".join(words)


def _follows(before: str, subject: str) -> bool:
    one, two = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(subject)
    return bool(one and two and one[1] == two[1] and int(two[2]) == int(one[2]) + 1)


def counted(number: int, noun: str) -> str:
    """`1 failure`, `2 failures`, `2 advisories`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"


def sentence_end(text: str) -> str:
    """The text as a sentence: with a full stop unless it ends in one."""
    text = text.strip()
    return text if not text or text[-1] in ".!?…" else f"{text}."
