"""node.prom: a run as Prometheus metrics, for the node exporter's textfile folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeready.render import clock, groups, words
from nodeready.render.escape import Seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Sample = tuple["Mapping[str, str]", float]


def render(results: Mapping[str, Any], now: float | None = None) -> str:
    """The text format, version 0.0.4, in gauges.

    All samples carry host and tier, so that the files of several hosts and tiers can lie in one folder.
    The age of a run is `time() - nodeready_run_timestamp_seconds`. Given `now` (Unix time), the file
    also says when it was written, which is later than the run where a run is rendered again.
    """
    seen = Seen.of(results)
    base = {"host": seen["host"], "tier": seen["tier"]}
    return "".join([*_of_run(seen, base, now), *_of_findings(seen, base)])


def _of_run(seen: Seen, base: Mapping[str, str], now: float | None) -> Iterable[str]:
    baseline = seen["baseline"]
    release = f"{baseline['name']}@{baseline['version']}"
    about = {**base, "node_type": seen["node_type"], "baseline": release}
    yield _family(
        "acceptance",
        "The acceptance of the node: 1 for the state it is in, 0 for the others.",
        [({**about, "state": state}, float(state == seen["acceptance"])) for state in words.ACCEPTANCES],
    )
    yield _family("exit_status", "The exit status of the run.", [(base, seen["exit_status"])])
    yield _family("subset", "1 where only a part of the checks ran.", [(base, float(seen["subset"]))])
    yield _family("busy", "1 where the node was at work.", [(base, float(bool(seen["busy"])))])
    finished = clock.moment(seen["finished"]).timestamp()
    took = clock.seconds(seen)
    yield _family("run_timestamp_seconds", "When the run finished, Unix time.", [(base, finished)])
    yield _family("run_duration_seconds", "How long the run took.", [(base, took)])
    if now is not None:
        yield _family("rendered_timestamp_seconds", "When this file was written, Unix time.", [(base, now)])
    info = {**about, "suite_version": seen["suite_version"], "baseline_sha256": baseline["sha256"]}
    info["baseline_status"] = baseline["status"]
    yield _family("info", "What judged the node.", [(info, 1.0)])


def _of_findings(seen: Seen, base: Mapping[str, str]) -> Iterable[str]:
    coverage = seen["coverage"]
    yield _family("coverage_planned", "Demands that the baseline plans.", [(base, coverage["planned"])])
    yield _family("coverage_judged", "Planned demands that were judged.", [(base, coverage["judged"])])
    yield _family("unjudged", "Planned demands that no check judged.", [(base, len(seen["unjudged"]))])
    by_verdict = [({**base, "verdict": verdict}, float(number)) for verdict, number in groups.counts(seen).items()]
    yield _family("findings", "Findings by verdict.", by_verdict)
    told = [
        ({**base, **{name: finding[name] for name in ("check", "subject", "key", "verdict")}}, 1.0)
        for finding in seen["findings"]
        if finding["verdict"] in ("fail", "unverified", "advisory", "waived")
    ]
    if told:
        yield _family("finding", "A finding that is neither a pass nor not applicable.", told)


def _family(name: str, claim: str, samples: Iterable[Sample]) -> str:
    """One metric with its samples; two samples with the same labels would be refused, so the last one stands."""
    series = {_labels(labels): value for labels, value in samples}
    lines = [f"# HELP nodeready_{name} {claim}", f"# TYPE nodeready_{name} gauge"]
    lines += [f"nodeready_{name}{labels} {_number(value)}" for labels, value in series.items()]
    return "\n".join([*lines, ""])


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items()) + "}"


def _quoted(value: str) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
