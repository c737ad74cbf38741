"""What is demanded of a node type, and under which names evidence is looked for."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from nodeready.baseline import load
from nodeready.check import load_checks
from nodeready.node.catalogue import evidence_names

if TYPE_CHECKING:
    from nodeready.expectation import Demand


def lines(topic: str, node_type: str) -> list[str]:
    """The explanation of `checks`, `evidence` or one check; raises ValueError for anything else."""
    if topic == "evidence":
        return _evidence()
    if topic == "checks":
        return _checks(node_type)
    return _one_check(topic, node_type)


def _evidence() -> list[str]:
    rows = ["evidence name (one ending .txt, .xml or .json is ignored)          what it is"]
    for name, probe in evidence_names().items():
        how = "a file, at its own path" if probe.is_file else f"`{' '.join(probe.argv)}`"
        if name in ("matmul", "copies", "allreduce", "torch", "nvml", "patterns", "rdma-write", "drive-read"):
            how = f"what the probe script {name} prints"
        if probe.argv[:2] == ("sh", "-c"):
            how = "small files of sysfs as lines PATH:VALUE, or the folder itself"
        if not probe.argv:
            how = "`nvidia-smi -L` inside a container" if name == "container-gpus" else f"what `{name}` prints"
        if probe.tier == "handed-in":
            how += ", of which no run asks"
        needs = "; root sees more" if probe.root_for else ""
        rows.append(f"  {name:66} {how}{needs}")
    return [
        *rows,
        "  NAME.rc holds an exit status other than 0, NAME.err the standard error.",
        "  Forms of one datum: the first that is there decides (nvidia-smi_-q_-x before nvidia-smi_-q; lspci_-nnvvv,",
        "  lspci_-vvv, lspci_-nn); one that is missing or exited non-zero falls through to the next.",
        "  nvidia-smi_--query-gpu=FIELDS_--format=csv[,noheader][,nounits] is read under nvidia-smi_--query-gpu,",
        "  dcgmi_diag_-r_3_-j and the like under dcgmi_diag_-j.",
        "Reports of others are read as they are: nvidia-bug-report.log or .log.gz; a sosreport, unpacked or tar; and",
        "one document of nvidia-smi (-q, -q -x, --query-gpu, its table) or `dcgmi diag -j` under any name.",
    ]


def _checks(node_type: str) -> list[str]:
    rows = [f"{'key':40} {'per':5} {'tier':11} {'measure':12} demanded of {node_type}"]
    rows += [
        f"{key:40} {d.per:5} {d.tier:11} {d.measure:12} {_demanded(d)}" for key, d in load(node_type).demands.items()
    ]
    return rows


def _demanded(demand: Demand) -> str:
    if demand.absent:
        return f"absent: {demand.absent}"
    return demand.demanded() + (f"; not applicable: {demand.when_recorded}" if demand.when_recorded else "")


def _one_check(check_id: str, node_type: str) -> list[str]:
    checks, baseline = load_checks(), load(node_type)
    check = checks.get(check_id.partition("/")[0])
    if check is None:
        near = ", ".join(difflib.get_close_matches(check_id, checks, n=3)) or "checks, evidence"
        raise ValueError(f"there is no check {check_id!r}; did you mean {near}?")
    rows = [check.id, f"  {check.claim}", f"  when it fails: {check.remedy}"]
    for key, demand in baseline.demands.items():
        if demand.check != check.id:
            continue
        source = baseline.sources.get(demand.source, {})
        rows += [
            f"  {key}: {demand.title}, per {demand.per}, tier {demand.tier}, measure {demand.measure}",
            f"    demanded of {node_type}: {_demanded(demand)}",
            f"    why: {demand.why}",
            f"    source: {demand.source} - {source.get('title', '')}",
            f"      {source.get('where', '')}, {source.get('date', '')}",
        ]
    return rows
