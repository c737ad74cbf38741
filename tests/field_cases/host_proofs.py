"""Claims of section H that no evidence can show."""

import re
import tarfile
from pathlib import Path

import pytest


def probes_have_budgets():
    """Each probe has a deadline of its own, and what is small is read many files at a time."""
    from nodeready.node.catalogue import PROBES, quick_probes

    assert all(0 < probe.deadline <= 30 for probe in quick_probes())
    assert all(probe.deadline > 0 for probe in PROBES)
    governors = [probe for probe in quick_probes() if "scaling_governor" in " ".join(probe.argv)]
    assert len(governors) == 1


def the_one_that_hangs_is_named():
    """A probe that overruns is told by its own name, and what comes after it is asked all the same."""
    from nodeready.evidence.probe import command
    from nodeready.evidence.recording import Ended
    from nodeready.evidence.runner import run

    hung = run(command("sh", "-c", "sleep 30", name="hangs"), deadline=0.3)
    after = run(command("sh", "-c", "echo fine", name="after"))
    assert (hung.name, hung.ended) == ("hangs", Ended.TIMED_OUT)
    assert "0.3 s" in hung.reason
    assert (after.ended, after.stdout) == (Ended.EXITED, b"fine\n")


def a_busy_node_is_left_alone(gate_run, machine_of):
    """On a node that runs a job the tier that loads measures nothing and ends with the status for busy."""
    process, results = gate_run("--node-type", "sxm", env=machine_of("job-is-running"))
    assert process.returncode == 11, process.stdout[-2000:]
    assert "python" in results["busy"]
    assert (results["acceptance"], results["findings"]) == ("incomplete", [])
    folder = Path(re.search(r"^report: (.+)/certificate.html$", process.stdout, re.MULTILINE)[1])
    with tarfile.open(folder / "capture.tar.gz") as capture:
        recorded = {Path(name).name for name in capture.getnames()}
    assert "nvidia-smi_-q_-x" in recorded
    assert not {"matmul", "torch", "container-gpus"} & recorded


def results_name_their_baseline(judge, healthy):
    """Every number has one source: results name the baseline by version and hash, findings name theirs."""
    from nodeready.baseline import load

    results, _ = judge(healthy)
    assert results["baseline"]["version"] == "2026.12"
    assert results["baseline"]["sha256"] == load("sxm").sha256
    judged = [finding for finding in results["findings"] if finding["verdict"] != "not-applicable"]
    assert [finding["key"] for finding in judged if not finding["source"]] == []


def the_same_evidence_gives_the_same_verdicts(judge, healthy, tmp_path):
    """A verdict is a function of the evidence: ten judgements of one node do not differ."""
    from nodeready.simulate.write import simulate

    simulate("sxm", tmp_path / "sick", ["nvlink-link-down", "leftover-memory"], {}, 3)
    for evidence in (healthy, tmp_path / "sick"):
        runs = [judge(evidence)[0]["findings"] for _ in range(5)]
        assert all(run == runs[0] for run in runs)


def a_misspelt_key_is_refused(tmp_path):
    """A key that no baseline declares is an error that names it, and so is an unknown field."""
    from nodeready.baseline import BaselineError, load

    for text, word in (
        ('["memory.instaled"]\nrequired = { min = "2 TiB" }', "memory.instaled"),
        ('["memory.installed"]\nrequierd = { min = "2 TiB" }', "requierd"),
    ):
        (tmp_path / "site.toml").write_text(f'extends = "sxm@2026.12"\n{text}\n')
        with pytest.raises(BaselineError, match=word):
            load("sxm", str(tmp_path / "site.toml"))


def children_speak_plainly(monkeypatch):
    """What the node is asked, it is asked in the plain locale, whatever the operator's own."""
    from nodeready.evidence.probe import command
    from nodeready.evidence.runner import run

    monkeypatch.setenv("LANG", "fr_FR.UTF-8")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setenv("LC_NUMERIC", "fr_FR.UTF-8")
    monkeypatch.setenv("LANGUAGE", "fr")
    said = run(command("sh", "-c", 'echo "$LC_ALL"; printf "%s" "$LANGUAGE"', name="locale")).stdout.split()
    assert said[0] in (b"C", b"C.UTF-8")
