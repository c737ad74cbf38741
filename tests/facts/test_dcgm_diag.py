"""Every result of every entity counts, by both root keys; a skip is no pass, and no test is no answer."""

import json

import pytest

from nodeready.facts import dcgm_diag
from nodeready.reading import Unknown

NAME = "dcgmi_diag_-j"


def test_real_outputs(captures):
    healthy = dcgm_diag.parse((captures / "dcgmi/01-diag-r1-json-pass-dcgm2-schema.txt").read_bytes())
    assert [len(healthy.of(status)) for status in ("pass", "fail", "warn", "skip")] == [9, 0, 0, 0]
    warned = dcgm_diag.parse((captures / "dcgmi/03-diag-r1-json-persistence-warn.txt").read_bytes())
    assert [(r.name, r.entity) for r in warned.of("warn")] == [("Persistence Mode", "")]
    for other in ("04-nvlink-e-json-clean", "05-nvlink-e-json-crc12", "07-diag-r3-table-deployment-pass-partial"):
        assert isinstance(dcgm_diag.parse((captures / f"dcgmi/{other}.txt").read_bytes()), Unknown)


def four(*tests, **more):
    """A document of DCGM 4: name, {entity: status} and the summary of each test."""
    made = []
    for name, results, summary in tests:
        rows = [
            {"entity_group": who.split()[0], "entity_group_id": 1, "entity_id": int(who.split()[1]), **result}
            for who, result in results.items()
        ]
        made.append({"name": name, "results": rows, "test_summary": {"status": summary}})
    return {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": made}]}, **more}


def three(*tests, **more):
    """A document of DCGM 3."""
    made = [{"name": name, "results": results} for name, results in tests]
    root = {"version": "3.3.5", "test_categories": [{"category": "Hardware", "tests": made}], **more}
    return {"DCGM GPU Diagnostic": root}


def parse(document):
    return dcgm_diag.parse(json.dumps(document).encode())


PASS, FAIL, SKIP = {"status": "Pass"}, {"status": "Fail"}, {"status": "Skip"}
SERIALS = {"entity_groups": [{"entity_group": "GPU", "entities": [{"entity_id": 3, "serial_num": "16500"}]}]}


def test_the_last_gpu_of_the_last_test_counts():
    everyone = {f"GPU {n}": PASS for n in range(7)} | {"GPU 7": {**FAIL, "warnings": [{"warning": "slow"}]}}
    found = parse(four(("software", {"GPU 0": PASS}, "Pass"), ("memory", everyone, "Fail")))
    assert [(r.name, r.entity, r.said) for r in found.of("fail")] == [("memory", "GPU 7", "slow")]
    assert len(found.of("pass")) == 8


def test_a_test_that_only_its_summary_calls_failed():
    found = parse(four(("nccl", {}, "Fail"), ("memory", {"GPU 0": PASS}, "Fail"), ("pcie", {"GPU 0": PASS}, "Pass")))
    assert [(r.name, r.entity) for r in found.of("fail")] == [("nccl", ""), ("memory", "")]


def test_other_entities_are_named():
    found = parse(four(("cpu_eud", {"CPU 1": FAIL}, "Fail"), ("link", {"Switch 2": FAIL}, "Fail")))
    assert [r.entity for r in found.of("fail")] == ["CPU 1", "Switch 2"]


@pytest.mark.parametrize(
    "warnings",
    [
        "too hot",
        ["too hot"],
        [{"warning": "too hot", "error_id": 1}],
        [{"warning": "too"}, {"warning": "", "x": 1}, "hot"],
    ],
)
@pytest.mark.parametrize("gpu", [{"gpu_id": 3}, {"gpu_id": "3"}, {"gpu_ids": "3"}, {"gpu_ids": [3]}])
def test_dcgm_3_and_2_in_all_their_spellings(warnings, gpu):
    found = parse(three(("Memory", [{"status": "PASS", "gpu_id": 0}, {"status": "FAIL", "warnings": warnings, **gpu}])))
    (failed,) = found.of("fail")
    assert failed.entity == "GPU 3"
    assert failed.said.replace(";", "") == "too hot"


def test_iterations_are_all_read():
    runs = [four(("memory", {"GPU 0": PASS}, "Pass")), four(("memory", {"GPU 0": FAIL}, "Fail"))]
    found = parse({"iterations": runs, "Overall Result": "Fail", "Warning": "stopped"})
    assert [r.name for r in found.of("fail")] == ["memory", "overall result"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({}, "neither"),
        ([], "neither"),
        ({"DCGM Diagnostic": {}}, "its list of tests is empty"),
        ({"DCGM Diagnostic": {"test_categories": []}}, "its list of tests is empty"),
        ({"DCGM Diagnostic": {"runtime_error": "Unable to run on unsupported GPU 0"}}, "unsupported GPU 0"),
        ({"DCGM Diagnostic": []}, "reads"),
        ({"DCGM Diagnostic": {"test_categories": {"a": 1}}}, "no list"),
        ({"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory", "results": []}]}]}}, "has no result"),
        (three(("Memory", [{"status": "Fine"}])), "Fine"),
        (three(("Memory", [{}])), "null"),
        (three(("Memory", ["Pass"])), "null"),
    ],
)
def test_no_test_is_no_answer(document, says):
    found = parse(document)
    assert isinstance(found, Unknown)
    assert says in found.reason


@pytest.mark.parametrize(
    "data", [b"", b"  \n", b"{", b"[" * 100_000, b"Error: unable to connect\n", b"\xff\xfe", b'"x"']
)
def test_what_is_no_document_is_unknown(data):
    assert isinstance(dcgm_diag.parse(data), Unknown)


def test_a_cut_document_is_unknown_at_every_place(captures):
    whole = (captures / "dcgmi/01-diag-r1-json-pass-dcgm2-schema.txt").read_bytes().strip()
    assert all(isinstance(dcgm_diag.parse(whole[:cut]), Unknown) for cut in range(0, len(whole), 5))


def test_words_before_the_document_do_no_harm():
    document = json.dumps(four(("memory", {"GPU 0": PASS}, "Pass"))).encode()
    assert len(dcgm_diag.parse(b"Successfully ran diagnostic for group.\n" + document).results) == 1


@pytest.mark.parametrize(
    ("document", "verdicts", "acceptance"),
    [
        (None, ("not-applicable", "not-applicable", "not-applicable"), "accepted"),
        (four(("memory", {"GPU 0": PASS}, "Pass")), ("pass", "pass", "pass"), "accepted"),
        (four(("memory", {"GPU 0": PASS, "GPU 3": FAIL}, "Fail")), ("fail", "pass", "pass"), "rejected"),
        (four(("a", {"GPU 0": PASS}, "Pass"), ("b", {"GPU 0": SKIP}, "Skip")), ("pass", "pass", "advisory"), None),
        (four(("a", {"GPU 0": SKIP}, "Skip")), ("unverified", "unverified", "advisory"), "incomplete"),
        (three(("a", [{"status": "Warn"}, PASS])), ("pass", "advisory", "pass"), "accepted-with-advisories"),
        (three(("a", [PASS, {"status": "?"}])), ("unverified",) * 3, "incomplete"),
        (three(("a", [PASS, {"status": "?"}, FAIL])), ("fail", "unverified", "unverified"), "rejected"),
        (three(("a", [PASS]), runtime_error="timed out"), ("unverified",) * 3, "incomplete"),
        ({"DCGM Diagnostic": {}}, ("unverified",) * 3, "incomplete"),
        (b"", ("unverified",) * 3, "incomplete"),
    ],
)
def test_it_is_judged_where_it_was_handed_in(healthy_files, folder_of, judge, document, verdicts, acceptance):
    data = document if isinstance(document, bytes) or document is None else json.dumps(document).encode()
    files = {**healthy_files, **({} if data is None else {f"{NAME}.json": data})}
    results, found = judge(folder_of(files))
    keys = ("health.dcgm-diag", "health.dcgm-diag/warning", "health.dcgm-diag/skipped")
    assert tuple(found[key, "node"]["verdict"] for key in keys) == verdicts
    assert results["acceptance"] == (acceptance or "accepted-with-advisories")
    assert results["coverage"]["planned"] - results["coverage"]["judged"] == verdicts.count("unverified")


def test_a_failure_names_the_gpu_and_the_tests_own_words(healthy, healthy_files, folder_of, judge):
    from nodeready.facts import nvidia_smi_xml

    gpus = nvidia_smi_xml.parse(healthy_files["nvidia-smi_-q_-x"]).gpus
    bus_id, fields = list(gpus.items())[5]
    entities = [{"entity_id": 3, "serial_num": fields["serial"].value, "device_id": "2330"}]
    failed = {**FAIL, "warnings": [{"warning": "GPU 3's memory is broken"}]}
    document = four(
        ("memory", {"GPU 3": failed}, "Fail"), entity_groups=[{"entity_group": "GPU", "entities": entities}]
    )
    status = {f"{NAME}.rc": b"226\n"}  # dcgmi's own, where a test failed
    results, found = judge(folder_of({**healthy_files, f"{NAME}.json": json.dumps(document).encode(), **status}))
    message = found["health.dcgm-diag", "node"]["message"]
    assert (
        f"memory on DCGM's GPU 3 (gpu5, {bus_id}, serial {fields['serial'].value}): GPU 3's memory is broken" in message
    )
    assert results["acceptance"] == "rejected"
    assert found["health.dcgm-diag", "node"]["evidence"] == [NAME]


def test_a_site_that_demands_it_wants_it_there(healthy, judge, tmp_path):
    results, found = judge(healthy, settings=("health.dcgm-diag=0",))
    assert found["health.dcgm-diag", "node"]["verdict"] == "unverified"
    assert results["acceptance"] == "incomplete"
    site = tmp_path / "site.toml"
    site.write_text('extends = "sxm@2026.12"\n["health.dcgm-diag"]\nrequired = { max = 0 }\n')
    results, _ = judge(healthy, baseline=str(site))
    assert results["acceptance"] == "incomplete"


def test_a_site_cannot_excuse_what_must_be_recorded_in_silence(tmp_path):
    from nodeready.baseline import BaselineError, load

    site = tmp_path / "site.toml"
    for text in ('when-recorded = "no log"', 'when-recorded = " "\nloosened_because = "x"'):
        site.write_text(f'extends = "sxm@2026.12"\n["health.xid"]\n{text}\n')
        with pytest.raises(BaselineError, match=r"site\.toml"):
            load("sxm", str(site))
