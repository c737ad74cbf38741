"""certificate.html: what a technician repairs by and an auditor files, on screen and on paper."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nodeready.render import clock, groups, words
from nodeready.render.escape import Seen
from nodeready.render.pages import environment
from nodeready.render.sentence import headline, is_busy, sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jinja2 import Template

_MARKS = {"accepted": "✓", "accepted-with-advisories": "✓", "rejected": "✕", "incomplete": "?", "busy": "…"}
_TIERS = {
    "quick": "Read-only checks; nothing was put under load.",
    "acceptance": "Read-only checks, then minutes of load.",
    "burn-in": "Read-only checks, then hours of load.",
}
_EVIDENCE = {
    "live": "the live node",
    "capture": "a capture",
    "folder": "a folder of recorded outputs",
    "file": "a single recorded output",
}
_UNKNOWN = "not known"
_LONG = 60  # characters of a bound that still fit its column
_SOFTER = "Measured if possible: does not leave the node incomplete."

Cell = list[tuple[str, str]]  # lines of a cell: style, text
Row = list[Cell]


class Table(NamedTuple):
    """One table of the page: head cells with their widths, and rows under a title or none."""

    columns: Sequence[tuple[str, str]]
    bodies: Sequence[tuple[str, Sequence[Row]]]


def render(results: Mapping[str, Any]) -> str:
    """One self-contained HTML page: no script, nothing loaded, readable in grey and on A4.

    Order: verdict, failures, what was not measured by cause, advisories and waivers, what was judged
    by what, GPUs, signatures, then every finding by layer and the sources.
    """
    return _page().render(_view(Seen.of(results)))


@functools.cache
def _page() -> Template:
    from jinja2 import StrictUndefined

    pages = environment(
        Path(__file__).parent / "templates",
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return pages.get_template("certificate.html.j2")


def _view(seen: Seen) -> dict[str, Any]:
    state = "busy" if is_busy(seen) else seen["acceptance"]
    fails, advisories, waived = (groups.with_verdict(seen, verdict) for verdict in ("fail", "advisory", "waived"))
    known = words.gpus(seen)
    return {
        "host": seen["host"],
        "state": state,
        "mark": _MARKS[state],
        "headline": headline(seen),
        "tier": _tier(seen, state),
        "scope": _scope(seen),
        "sentence": sentence(seen),
        "counts": groups.counts(seen),
        "notes": _notes(seen),
        "facts": _facts(seen),
        "sha256": seen["baseline"]["sha256"],
        "failures": [_failure(demand, known) for demand in groups.by_demand(fails)],
        "causes": _causes(groups.causes(groups.with_verdict(seen, "unverified"), known)),
        "unjudged": _causes(groups.causes(groups.unjudged(seen), known)),
        "advisories": _findings({"": advisories}) if advisories else None,
        "waived": _findings({"": waived}) if waived else None,
        "gpus": _gpus(seen["node"].get("gpus") or ()),
        "record": _findings(_by_layer(seen)),
        "sources": _sources(seen),
        "page_mark": re.sub(r"[^A-Za-z0-9 .:_-]", "-", f"{seen['host']}  {seen['started'][:30]}"),
    }


def _tier(seen: Seen, state: str) -> str:
    quick = seen["tier"] == "quick" and state.startswith("accepted")
    return f"at tier {seen['tier']}{': says nothing of throughput' if quick else ''}"


def _scope(seen: Seen) -> str:
    baseline = seen["baseline"]
    judged = f"Judged by {baseline['name']}@{baseline['version']}, {clock.moment(seen['finished']):%Y-%m-%d %H:%M UTC}."
    return f"{_TIERS.get(seen['tier'], '')} {judged}".strip()


def _notes(seen: Seen) -> list[tuple[str, str]]:
    notes = []
    if seen["subset"]:
        notes.append(("Subset", "Only a part of the checks ran. This is not an acceptance."))
    if seen["busy"]:
        notes.append(("Busy", words.sentence_end(seen["busy"])))
    if seen["baseline"]["status"] != "released":
        notes.append(("Draft baseline", "This baseline is not released: its demands may still change."))
    if seen.get("in_service"):
        notes.append(("In service", "Judged by the bounds for nodes in service, where a demand has any."))
    if seen["overrides"]:
        changed = "; ".join(f"{key} = {words.value_text(value)}" for key, value in seen["overrides"].items())
        notes.append(("Overridden demands", f"{changed}. These replace the baseline's own bounds."))
    if seen["evidence"]["kind"] != "live":
        kind = _EVIDENCE.get(seen["evidence"]["kind"], seen["evidence"]["kind"])
        notes.append(("Recorded evidence", f"Judged from {kind}, not from the live node."))
    if seen["report_only"]:
        notes.append(("Report only", "The exit status was set to 0 whatever was found."))
    return notes


def _facts(seen: Seen) -> list[tuple[str, str]]:
    baseline, node, evidence, coverage = seen["baseline"], seen["node"], seen["evidence"], seen["coverage"]
    took = clock.duration_text(clock.seconds(seen))
    facts = [
        ("Host", seen["host"]),
        ("Node type", seen["node_type"]),
        ("Tier", seen["tier"]),
        ("Baseline", f"{baseline['name']}@{baseline['version']} ({baseline['status']})"),
        ("Started", _time(seen["started"])),
        ("Finished", f"{_time(seen['finished'])} ({took})"),
        ("Suite", f"nodeready {seen['suite_version']}"),
        ("Evidence", " · ".join(filter(None, (_EVIDENCE.get(evidence["kind"], ""), evidence["path"])))),
        ("Coverage", f"{coverage['judged']} of {coverage['planned']} demands judged"),
        ("Overrides", words.counted(len(seen["overrides"]), "demand") if seen["overrides"] else "none"),
    ]
    named = {"Product": "product", "Memory": "memory", "Driver": "driver", "CUDA": "cuda", "System": "os"}
    return facts + [(name, str(node.get(field) or _UNKNOWN)) for name, field in named.items()]


def _time(text: str) -> str:
    return clock.moment(text).strftime("%Y-%m-%d %H:%M:%S UTC")


def _cell(text: Any, style: str = "", *more: tuple[str, str]) -> Cell:
    """The lines of one cell; an empty line is left out."""
    return [line for line in ((style, str(text)), *more) if line[1]]


def _gpus(gpus: Iterable[Mapping[str, Any]]) -> Table | None:
    widths = {"GPU": "6.5%", "Bus id": "13%", "Serial": "14.5%", "UUID": "38.5%", "Product": "22%", "Slot": "5.5%"}
    rows = [
        [
            _cell(gpu.get("subject") or _UNKNOWN),
            *(_cell(gpu.get(field) or _UNKNOWN, "id") for field in ("bus_id", "serial", "uuid")),
            _cell(gpu.get("product") or _UNKNOWN),
            _cell(gpu.get("slot") or words.NOTHING),
        ]
        for gpu in gpus
    ]
    return Table(list(widths.items()), [("", rows)]) if rows else None


def _failure(demand: groups.Demand, known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    first = demand.first
    told = {"Next step": first["remedy"], "Why it matters": first["why"], "Source": _source_text(first)}
    return {
        "key": first["key"],
        "title": first["title"],
        "table": _parts(demand.findings, known),
        "told": [(name, text) for name, text in told.items() if text],
    }


def _parts(findings: Sequence[Mapping[str, Any]], known: Mapping[str, Mapping[str, Any]]) -> Table:
    """The parts that fail one demand; where none is a GPU, the columns to find one by are left out."""
    widths = {"Part": "10%", "Bus id": "17%", "Serial": "20%", "Slot": "7%", "Observed": "28%", "Demanded": "18%"}
    if not any(finding["subject"] in known for finding in findings):
        widths = {"Part": "20%", "Observed": "50%", "Demanded": "30%"}
    rows = []
    for finding in findings:
        gpu = known.get(finding["subject"], {})
        cells = {
            "Part": _cell(finding["subject"], "strong"),
            "Bus id": _cell(gpu.get("bus_id") or _UNKNOWN, "id"),
            "Serial": _cell(gpu.get("serial") or _UNKNOWN, "id"),
            "Slot": _cell(gpu.get("slot") or words.NOTHING),
            "Observed": _cell(words.observed_text(finding), "strong", ("note", _remark(finding))),
            "Demanded": _cell(words.demanded_text(finding)),
        }
        rows.append([cells[name] for name in widths])
    return Table(list(widths.items()), [("", rows)])


def _source_text(finding: Mapping[str, Any]) -> str:
    return "; ".join(filter(None, (finding["source_title"] or finding["source"], finding["source_url"])))


def _causes(causes: Iterable[groups.Cause]) -> Table | None:
    rows = []
    for cause in causes:
        remedies = () if cause.blockers else dict.fromkeys(finding["remedy"] for finding in cause.findings)
        softer = "" if cause.must else _SOFTER
        notes = [("note", text) for text in (softer, *remedies)]
        title = _cell(cause.title, "strong" if cause.blockers else "", *notes)
        rows.append([title, _listed(cause.checks()), _cell(len(cause.findings))])
    columns = [("Cause", "36%"), ("Demands and parts that it leaves open", "56%"), ("Count", "8%")]
    return Table(columns, [("", rows)]) if rows else None


def _listed(keys: Mapping[str, list[str]]) -> Cell:
    pairs = [(("id", key), ("aside", f"{words.subjects_text(subjects)};")) for key, subjects in keys.items()]
    return [line for pair in pairs for line in pair]


def _by_layer(seen: Seen) -> dict[str, list[dict[str, Any]]]:
    layers: dict[str, list[dict[str, Any]]] = {}
    for finding in seen["findings"]:
        layers.setdefault(finding["layer"], []).append(finding)
    return layers


def _findings(layers: Mapping[str, list[dict[str, Any]]]) -> Table:
    """The findings of each layer, those that say the very same of several parts in one row."""
    widths = {"Verdict": "12%", "Demand": "27.5%", "Part": "10.5%", "Observed": "14.5%", "Demanded": "11.5%"}
    widths |= {"Recommended": "12%", "Source": "12%"}
    return Table(
        list(widths.items()),
        [(layer, [_line(demand) for demand in groups.alike(findings)]) for layer, findings in layers.items()],
    )


def _line(demand: groups.Demand) -> Row:
    first = demand.first
    bounds = {"Demanded": words.bound_text(first["required"]), "Recommended": words.bound_text(first["recommended"])}
    long = [("note", f"{name}: {text}") for name, text in bounds.items() if len(text) > _LONG]
    soft = first["verdict"] == "unverified" and first["measure"] == "if-possible"
    softer = ("note", "Measured if possible." if soft else "")
    return [
        _cell(first["verdict"], f"v v-{first['verdict']}"),
        _cell(first["key"], "id", ("note", first["title"]), ("said", _remark(first)), softer, *long),
        _cell(words.subjects_text([finding["subject"] for finding in demand.findings])),
        _cell(words.observed_of_all(demand.findings)),
        *(_cell(text if len(text) <= _LONG else "see at left") for text in bounds.values()),
        _cell(first["source"], "note"),
    ]


def _remark(finding: Mapping[str, Any]) -> str:
    """What the row's other cells do not say."""
    if finding["blocked_by"]:
        return f"blocked by {', '.join(finding['blocked_by'])}"
    if finding["verdict"] == "unverified":
        return words.reason(finding)
    return words.said(finding) if finding["verdict"] != "pass" and words.tells_more(finding) else ""


def _sources(seen: Seen) -> Table:
    rows: dict[str, Row] = {}
    for finding in seen["findings"]:
        source = finding["source"]
        if source and source not in rows:
            where = _where(finding["source_url"])
            rows[source] = [_cell(source, "id"), _cell(finding["source_title"], "", *where)]
    return Table([("Source", "28%"), ("Title and address", "72%")], [("", list(rows.values()))])


def _where(place: str) -> Cell:
    """Where a source is: only a web address becomes a link, and what follows it stays text."""
    address = re.match(r"https?://\S+", place)
    if address is None:
        return [("note", place)]
    return [("link", address[0]), ("aside", place[address.end() :].strip())]
