"""Two judgements of one node: what differs, why, in which order, and what is refused."""

import json

import pytest

from nodeready.difference import difference, unlike
from nodeready.earlier import EarlierError, locate, read_results, results_at
from nodeready.render.difference import lines

SHA = "0123456789abcdef" * 4


def finding(key, subject="node", verdict="pass", observed=8, required=8, recommended=None):
    def bound(value):
        return None if value is None else {"min": {"value": value, "unit": ""}}

    return {
        "key": key,
        "subject": subject,
        "title": f"the {key}",
        "verdict": verdict,
        "observed": None if observed is None else {"value": observed, "unit": ""},
        "required": bound(required),
        "recommended": bound(recommended),
        "message": f"{subject}: the {key} is {observed}",
    }


def run(*findings, unjudged=(), acceptance="accepted", gpus=(), **more):
    return {
        "schema_version": 1,
        "host": "h100-01",
        "node_type": "sxm",
        "tier": "quick",
        "acceptance": acceptance,
        "overrides": {},
        "suite_version": "1",
        "started": "2026-12-01T00:00:00Z",
        "baseline": {"name": "sxm", "version": "2026.12", "sha256": SHA, "status": "draft"},
        "node": {"gpus": [{"subject": subject, "bus_id": bus_id} for subject, bus_id in gpus]},
        "findings": list(findings),
        "unjudged": [{"key": key, "subject": subject} for key, subject in unjudged],
        **more,
    }


def changes(before, after):
    return [(r["key"], r["subject"], r["from"], r["to"], r["why"]) for r in difference(before, after)["changed"]]


def test_the_same_verdicts_are_no_difference_whatever_was_read():
    before, after = run(finding("a.b", observed=8)), run(finding("a.b", observed=9, required=7))
    assert changes(before, after) == []
    (line,) = lines(difference(before, after))
    assert line.startswith("no verdict differs from sxm@2026.12 (draft, sha256 0123456789ab)")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (finding("a.b"), finding("a.b", verdict="fail", required=9), ["other bound"]),
        (finding("a.b"), finding("a.b", verdict="advisory", recommended=9), ["other bound"]),
        (finding("a.b"), finding("a.b", verdict="fail", observed=7), ["other reading"]),
        (finding("a.b"), finding("a.b", verdict="unverified", observed=None), ["other reading"]),
        (finding("a.b"), finding("a.b", verdict="fail", observed=8.5, required=9), ["other bound", "other reading"]),
        (finding("a.b"), finding("a.b", verdict="waived"), ["other rule: bound and reading are the same"]),
    ],
)
def test_why_a_verdict_differs(old, new, why):
    assert changes(run(old), run(new)) == [("a.b", "node", "pass", new["verdict"], why)]


def test_what_is_not_planned_or_not_judged_is_named_so():
    old = run(finding("a.gone"), finding("a.left"), unjudged=[("a.was", "node")])
    new = run(finding("a.new"), finding("a.was", verdict="fail"), unjudged=[("a.left", "node")])
    assert changes(old, new) == [
        ("a.was", "node", "unjudged", "fail", ["not judged before"]),
        ("a.left", "node", "pass", "unjudged", ["not judged now"]),
        ("a.new", "node", None, "pass", ["not planned before"]),
        ("a.gone", "node", "pass", None, ["not planned now"]),
    ]
    assert difference(old, new)["demands"] == {"new": ["a.new"], "gone": ["a.gone"]}


def test_what_got_worse_comes_first_and_the_worst_of_it_before_the_rest():
    keys = ["advisory", "unverified", "fail", "pass"]
    old = run(*(finding(f"a.{v}", verdict="fail" if v == "pass" else "pass") for v in keys))
    new = run(*(finding(f"a.{v}", verdict=v, observed=1) for v in keys), acceptance="rejected")
    told = difference(old, new)
    assert [(r["turn"], r["to"]) for r in told["changed"]] == [
        ("worse", "fail"),
        ("worse", "unverified"),
        ("worse", "advisory"),
        ("better", "pass"),
    ]
    printed = "\n".join(lines(told))
    assert printed.index("worse: a.fail on node: pass -> fail (other reading: 8 -> 1)") < printed.index("better:")
    assert "accepted at tier quick by sxm@2026.12" in printed
    assert "rejected at tier quick by sxm@2026.12" in printed


def test_gpus_are_the_same_by_bus_id_and_not_by_index():
    # the first judgement did not know which slot was empty, so the last index was; the second one knew
    old = run(
        *(finding("gpu.memory", f"gpu{i}", v) for i, v in enumerate(["pass", "advisory", "unverified"])),
        gpus=[("gpu0", "0000:19:00.0"), ("gpu1", "0000:5d:00.0"), ("gpu2", None)],
    )
    new = run(
        *(finding("gpu.memory", f"gpu{i}", v) for i, v in enumerate(["pass", "unverified", "advisory"])),
        gpus=[("gpu0", "0000:19:00.0"), ("gpu1", "0000:3b:00.0"), ("gpu2", "0000:5d:00.0")],
    )
    assert changes(old, new) == []


def test_a_gpu_that_only_one_of_them_plans_meets_no_other():
    old = run(finding("gpu.memory", "gpu0", "fail"), gpus=[("gpu0", "0000:5d:00.0")])
    new = run(
        finding("gpu.memory", "gpu0"),
        finding("gpu.memory", "gpu1", "fail"),
        gpus=[("gpu0", "0000:19:00.0"), ("gpu1", "0000:5d:00.0")],
    )
    assert changes(old, new) == [("gpu.memory", "gpu0", None, "pass", ["not planned before"])]


def test_many_parts_are_one_line_and_many_demands_are_counted():
    old = run(*(finding(f"a.k{k}", f"gpu{i}") for k in range(40) for i in range(8)))
    new = run(*(finding(f"a.k{k}", f"gpu{i}", "fail", observed=1) for k in range(40) for i in range(8)))
    printed = lines(difference(old, new))
    assert "  worse: a.k0 on gpu0-gpu7: pass -> fail (other reading: 8 -> 1)" in printed
    assert "  and 160 more verdicts: in difference.json" in printed
    assert len(printed) < 50


def test_hostile_text_is_shown_and_not_obeyed():
    evil = "\x1b[31m\u202e\n" + "x" * 5000
    old = run(finding("a.b"), baseline={"name": evil, "version": evil, "sha256": evil, "status": evil})
    old["overrides"] = {evil: evil}
    new = run(finding("a.b", verdict="fail", observed=evil), finding(evil, evil, "fail"))
    for line in lines(difference(old, new)):
        assert line.isprintable()
        assert len(line) <= 100


def test_another_host_or_node_type_is_not_compared():
    assert "host other" in unlike(run(host="other"), run())
    assert "node type nvl" in unlike(run(node_type="nvl"), run())
    assert unlike(run(), run()) == ""


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (b"", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"[]", "no object"),
        (b"[" * 100_000, "is damaged"),
        (b'{"schema_version": 2}', "schema_version"),
        ({"findings": 5}, "findings is not a list"),
        ({"findings": [5]}, "findings is not a list"),
        ({"findings": [{}]}, "findings number 0 has no key"),
        ({"findings": [{**finding("a.b"), "verdict": ["pass"]}]}, "verdict is not one of"),
        ({"findings": [{**finding("a.b"), "required": {"min": 8}}]}, "required is not a bound"),
        (
            {"findings": [{**finding("a.b"), "observed": {"value": {"value": 8}, "unit": ""}}]},
            "observed is not a value",
        ),
        ({"findings": [{**finding("a.b"), "observed": {"value": [[8]], "unit": ""}}]}, "observed is not a value"),
        ({"acceptance": "fine"}, "acceptance is not one of"),
        ({"baseline": {}}, "baseline has no name"),
        ({"host": None}, "host is not a text"),
        ({"node": {"gpus": [{"subject": "gpu0", "bus_id": 1}]}}, "bus_id is not a text or null"),
        ({"duration": float("nan")}, "is damaged"),
        (b'{"schema_version": 1, "duration": 1e999}', "is damaged"),
    ],
)
def test_a_damaged_results_file_is_said(tmp_path, damage, says):
    path = tmp_path / "results.json"
    path.write_bytes(damage if isinstance(damage, bytes) else json.dumps(run() | damage).encode())
    with pytest.raises(EarlierError, match=says) as refusal:
        read_results(path)
    assert str(path) in str(refusal.value)


def test_every_prefix_of_a_results_file_is_damaged(tmp_path):
    path, whole = tmp_path / "results.json", json.dumps(run(finding("a.b"))).encode()
    path.write_bytes(whole)
    assert read_results(path)["host"] == "h100-01"
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(EarlierError):
            read_results(path)


def test_a_run_folder_its_results_and_its_capture_name_the_same_run(tmp_path):
    for name in ("results.json", "capture.tar.gz"):
        (tmp_path / name).write_text("{}")
    found = {locate(path) for path in (tmp_path, tmp_path / "results.json", tmp_path / "capture.tar.gz")}
    (run,) = found
    assert (run.evidence.name, run.results.name) == ("capture.tar.gz", "results.json")
    assert results_at(tmp_path) == tmp_path / "results.json"
    (tmp_path / "results.json").unlink()
    assert locate(tmp_path).results is None
    with pytest.raises(EarlierError, match="there is no results.json"):
        results_at(tmp_path)
