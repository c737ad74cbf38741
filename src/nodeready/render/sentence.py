"""One sentence says what the run found, at which tier, on which host, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.render import groups, words

if TYPE_CHECKING:
    from nodeready.render.escape import Seen

SUBSET = "subset: not an acceptance"
_TOLD = 300  # characters of a remedy or a reason; the whole of it is on the certificate
_ENDED = {2: " The run was interrupted.", 3: " The run ended in an internal error."}
HEADLINES = {
    "accepted": "ACCEPTED",
    "accepted-with-advisories": "ACCEPTED WITH ADVISORIES",
    "rejected": "REJECTED",
    "incomplete": "INCOMPLETE",
    "busy": "BUSY",
}


def is_busy(results: Seen) -> bool:
    """Whether the run judged nothing because the node was at work."""
    return bool(results["busy"]) and (results["exit_status"] == 11 or results["coverage"]["judged"] == 0)


def headline(results: Seen) -> str:
    """The verdict in capitals; a busy node is BUSY."""
    return HEADLINES["busy" if is_busy(results) else results["acceptance"]]


def scope(results: Seen) -> str:
    """What the tier leaves open, `` where it leaves nothing open that an operator could mistake."""
    return "nothing is said of throughput" if results["tier"] == "quick" else ""


def sentence(results: Seen) -> str:
    """The last line of a run.

    It starts with the verdict, names tier and host, and ends with `subset: not an acceptance` where
    only a part of the checks ran.
    """
    says = {"accepted": _accepted, "accepted-with-advisories": _advisories, "rejected": _rejected}
    rest = _busy(results) if is_busy(results) else says.get(results["acceptance"], _incomplete)(results)
    ended = _ENDED.get(results["exit_status"], "")
    if results.get("foreign_failure"):
        ended += f" Yet {results['foreign_failure']}, a test that is no check, failed."
    where = f"{headline(results)} at tier {results['tier']} on {results['host']}"
    return f"{where}{rest}{ended}{f' {SUBSET}' if results['subset'] else ''}"


def _cut(text: str) -> str:
    return text if len(text) <= _TOLD else f"{text[:_TOLD]}…"


def _rejected(results: Seen) -> str:
    failures = groups.with_verdict(results, "fail")
    if not failures:
        return ": see the findings."
    first, known = failures[0], words.gpus(results)
    part = words.part(first["subject"], known, "bus_id")
    # of a whole node only the message says which of its parts it is about
    about = "" if first["subject"] in known or not words.tells_more(first) else f": {_cut(words.said(first))}"
    also = f", and {words.counted(len(failures) - 1, 'more failure')}" if len(failures) > 1 else ""
    todo = words.sentence_end(_cut(first["remedy"] or words.said(first)))
    return f": {part} {first['key']}{about}{also}. {todo}".rstrip()


def _incomplete(results: Seen) -> str:
    coverage = results["coverage"]
    missing = f": {coverage['planned'] - coverage['judged']} of {coverage['planned']} demands could not be judged"
    open_ones = [*groups.with_verdict(results, "unverified"), *groups.unjudged(results)]
    musts = [finding for finding in open_ones if finding["measure"] == "must"]
    if not musts:
        return f"{missing}."
    first = min(musts, key=lambda finding: bool(finding["blocked_by"]))
    reason = words.sentence_end(_cut(words.reason(first)))
    return f"{missing}; first: {first['key']} on {first['subject']} because {reason}"


def _advisories(results: Seen) -> str:
    advisories = groups.with_verdict(results, "advisory")
    unmeasured = len(groups.with_verdict(results, "unverified"))
    said = [words.counted(len(advisories), "advisory")] if advisories else []
    said += [f"{words.counted(unmeasured, 'demand')} not measured"] if unmeasured else []
    said += [f"first: {advisories[0]['key']} on {advisories[0]['subject']}"] if advisories else []
    said += [scope(results)] if scope(results) else []
    return f" ({'; '.join(said)})." if said else "."


def _accepted(results: Seen) -> str:
    return f" ({scope(results)})." if scope(results) else f": all {results['coverage']['planned']} demands judged."


def _busy(results: Seen) -> str:
    return f": {words.sentence_end(_cut(results['busy']))} Nothing was run; run the gate again when the node is free."
