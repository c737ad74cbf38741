import re

import pytest

from nodeready.render import prometheus

LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"([a-z_]+)(\{{{LABEL}(?:,{LABEL})*\}})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parsed(text):
    """The samples of a text file, each as (name, labels) -> value; fails where the grammar is broken."""
    assert text.endswith("\n")
    samples, helped, typed = {}, set(), {}
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            helped.add(line.split(" ", 3)[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in typed
            typed[name] = kind
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            pairs = re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', labels or "")
            made = {k: re.sub(r'\\[\\"n]', lambda m: UNESCAPED[m[0]], v) for k, v in pairs}
            at = (name, frozenset(made.items()))
            assert at not in samples, f"{line} is there twice"
            assert name == list(typed)[-1], "the samples of a metric stand together"
            samples[at] = float(value)
    assert helped == set(typed)
    assert set(typed.values()) == {"gauge"}
    return samples


def metric(results, name, **options):
    found = parsed(prometheus.render(results, **options))
    return [(dict(labels), value) for (at, labels), value in found.items() if at == f"nodeready_{name}"]


@pytest.mark.parametrize("state", ["accepted", "accepted-with-advisories", "rejected", "incomplete"])
def test_exactly_one_state_is_one(sample, state):
    found = metric(sample.results(acceptance=state), "acceptance")
    assert {labels["state"]: value for labels, value in found if value} == {state: 1}
    assert len(found) == 4
    assert found[0][0] | {"state": ""} == {
        "host": "gpu-node-a12",
        "tier": "quick",
        "node_type": "sxm",
        "baseline": "sxm@2026.12",
        "state": "",
    }


def test_times_are_of_the_run_not_of_the_file(sample):
    assert metric(sample.results(), "run_timestamp_seconds")[0][1] == 1796116512
    assert metric(sample.results(), "run_duration_seconds")[0][1] == 12
    assert metric(sample.results(duration=11.75), "run_duration_seconds")[0][1] == 11.75
    assert metric(sample.results(), "rendered_timestamp_seconds") == []
    assert metric(sample.results(), "rendered_timestamp_seconds", now=1796200000.5)[0][1] == 1796200000.5


def test_findings_are_counted_by_verdict(sample):
    found = {labels["verdict"]: value for labels, value in metric(sample.rejected(), "findings")}
    assert found == {"fail": 3, "unverified": 9, "waived": 1, "advisory": 1, "pass": 64, "not-applicable": 1}


def test_only_what_is_not_right_has_a_series_of_its_own(sample):
    results = sample.rejected()
    found = metric(results, "finding")
    assert {value for _, value in found} == {1}
    assert len(found) == 14
    assert {labels["verdict"] for labels, _ in found} == {"fail", "unverified", "waived", "advisory"}
    assert {(labels["check"], labels["subject"]) for labels, _ in found if labels["verdict"] == "fail"} == {
        ("pcie.gpu-link-width", "gpu2"),
        ("pcie.gpu-link-width", "gpu3"),
        ("health.row-remap-pending", "gpu6"),
    }


def test_coverage_status_and_provenance(sample):
    left = [{"check": "gpu.mig", "key": "gpu.mig", "subject": "gpu0"}]
    results = sample.rejected(unjudged=left, exit_status=10, subset=True, busy="gpu2 runs pid 1")
    for name, value in {
        "coverage_planned": results["coverage"]["planned"],
        "coverage_judged": results["coverage"]["judged"],
        "exit_status": 10,
        "unjudged": 1,
        "subset": 1,
        "busy": 1,
    }.items():
        assert metric(results, name)[0][1] == value
    info = metric(results, "info")[0][0]
    assert (info["suite_version"], info["baseline_sha256"]) == ("2026.12", sample.SHA256)


def test_the_files_of_two_hosts_share_no_series(sample):
    one = parsed(prometheus.render(sample.rejected()))
    other = parsed(prometheus.render(sample.rejected(host="gpu-node-a13")))
    third = parsed(prometheus.render(sample.rejected(tier="acceptance")))
    assert not set(one) & set(other)
    assert not set(one) & set(third)


def test_labels_are_quoted(sample):
    found = metric(sample.results(host='a"b\\c\nd'), "exit_status")
    assert found[0][0]["host"] == 'a"b\\c\\nd'


def test_two_findings_of_one_name_are_one_series(sample):
    twice = sample.finding("health.xid", "node", "fail")
    assert len(metric(sample.results([twice, twice]), "finding")) == 1
