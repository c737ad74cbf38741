"""Writes docs/coverage.md from docs/coverage.toml and the baselines: `make docs`.

    python docs/make_coverage.py [--check]

With --check it writes nothing and ends with 1 where the page is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from nodeready.baseline import Baseline, load, node_types

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCS = Path(__file__).parent
ROWS, PAGE = DOCS / "coverage.toml", DOCS / "coverage.md"
_PEERS = (
    "the node health checks of Azure (AZ), imbue (IM), Meta's GCM, Google's cluster health scanner (CHS), gpud (GD), "
    "Oracle (OCI, OKE), AWS, AMD's CVS, NVIDIA's GPU operator (GO), NICo, NVSentinel (NVS), NVRx, AICR and DCGM (DC), "
    "Nebius (NB), IBM's autopilot (AP), SuperBench (SB), GPU-fryer (GF), the ml-engineering notes (ST), mock NVML "
    "libraries (MK), LBNL's NHC"
)
_HEAD = f"""# Coverage

What the suite judges, row by row: the rows of a survey of nineteen other systems (P PCIe, H host, D driver, C CUDA and
containers, N NVLink, I network, E errors, M micro-benchmarks), then the demands of the mission (R). Made by `make docs`
from `docs/coverage.toml` and the baselines; a test keeps it current.

Peers: {_PEERS}.

"""


def rows() -> dict[str, dict[str, Any]]:
    """The rows as they are written down."""
    return tomllib.loads(ROWS.read_text(encoding="utf-8"))


def page() -> str:
    """The page as it should be."""
    baselines = {name: load(name) for name in node_types()}
    peer_rows = {name: row for name, row in rows().items() if not name.startswith("R")}
    own_rows = {name: row for name, row in rows().items() if name.startswith("R")}
    taken = sum("checks" in row for row in peer_rows.values())
    counted = f"Of the {len(peer_rows)} rows {taken} are judged, of the {len(own_rows)} demands of the mission "
    counted += f"{sum('checks' in row for row in own_rows.values())}.\n\n"
    return _HEAD + counted + _table(peer_rows, baselines, "peers that have it") + "\n" + _table(own_rows, baselines, "")


def _table(of: dict[str, dict[str, Any]], baselines: dict[str, Baseline], peers: str) -> str:
    head = ["row", "what", "checks", "node types", "sources", *([peers] if peers else []), "left"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name, row in of.items():
        checks = row.get("checks", [])
        left = row.get("but", "")
        if not checks:
            left = f"planned: {row['planned']}" if "planned" in row else f"not taken: {row['not-taken']}"
        cells = [name, row["title"], ", ".join(f"`{check}`" for check in checks), _types(checks, baselines)]
        cells += [_sources(checks, baselines), *([", ".join(row["peers"]) or "none"] if peers else []), left]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _types(checks: list[str], baselines: dict[str, Baseline]) -> str:
    """The node types on which at least one key of one of the checks is demanded."""
    found = [
        name
        for name, baseline in baselines.items()
        if any(demand.check in checks and not demand.absent for demand in baseline.demands.values())
    ]
    return "all" if len(found) == len(baselines) else ", ".join(found)


def _sources(checks: list[str], baselines: dict[str, Baseline]) -> str:
    named = {
        demand.source
        for baseline in baselines.values()
        for demand in baseline.demands.values()
        if demand.check in checks and not demand.absent
    }
    return ", ".join(sorted(named))


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv[1:]:
        sys.exit(
            0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text else f"{PAGE} is not current: make docs"
        )
    PAGE.write_text(text, encoding="utf-8")
