import html
import itertools
import json
import re
from importlib import metadata, resources

import pytest

from nodeready.render import html_report

COLUMNS = ["Result", "Layer", "Check", "Subject", "Observed", "Demanded", "Source", "Remedy"]


def blob(results):
    text = html_report.render(results)
    return json.loads(html.unescape(re.search(r'data-jsonblob="([^"]*)"', text).group(1)))


def rows(results):
    return [test for tests in blob(results)["tests"].values() for test in tests]


def texts(cells):
    return [html.unescape(re.fullmatch(r"<td[^>]*>(.*)</td>", cell).group(1)) for cell in cells]


def test_the_page_is_pytest_htmls_own(sample):
    page = html_report.render(sample.rejected())
    own = resources.files("pytest_html").joinpath("resources")
    assert own.joinpath("app.js").read_text("utf-8").strip() in page
    assert own.joinpath("style.css").read_text("utf-8").strip() in page
    assert f"v{metadata.version('pytest-html')}" in page
    assert not re.search(r'<(?:script|img|link)[^>]+(?:src|href)="(?!")', page)


def test_the_header_names_the_columns_and_every_row_has_as_many_cells(sample):
    assert [re.sub("<[^>]*>", "", cell) for cell in html_report.table_header()] == COLUMNS
    assert {len(row["resultsTableRow"]) for row in rows(sample.rejected())} == {len(COLUMNS)}


def test_one_row_per_check_and_subject_failures_first(sample):
    results = sample.rejected()
    found = rows(results)
    assert len(found) == len({(f["check"], f["subject"]) for f in results["findings"]})
    blocks = [outcome for outcome, _ in itertools.groupby(row["result"] for row in found)]
    assert blocks == ["Failed", "Error", "Skipped", "XFailed", "Passed", "Skipped"]
    assert blob(results)["initialSort"] == "original"


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        ("fail", "Failed"),
        ("unverified", "Error"),
        ("advisory", "XFailed"),
        ("pass", "Passed"),
        ("waived", "Skipped"),
        ("not-applicable", "Skipped"),
    ],
)
def test_each_verdict_has_an_outcome_that_the_page_can_filter(sample, verdict, outcome):
    (row,) = rows(sample.results([sample.finding("a.b", verdict=verdict)]))
    assert row["result"] == outcome == texts(row["resultsTableRow"])[0]
    page = html_report.render(sample.results([sample.finding("a.b", verdict=verdict)]))
    assert re.search(rf'data-test-result="{outcome.lower()}" >', page)


def test_the_cells_tell_what_where_observed_demanded_and_remedy(sample):
    found = {row["testId"]: row for row in rows(sample.rejected())}
    assert texts(found["pcie.gpu-link-width:gpu2"]["resultsTableRow"]) == [
        "Failed", "pcie", "pcie.gpu-link-width", "gpu2", "8", "16", "h100-setup-guide",
        "Reseat the GPU tray; look for bent pins in the connector.",
    ]  # fmt: skip
    assert "The link of gpu2 trained at x8" in found["pcie.gpu-link-width:gpu2"]["log"]


def test_the_demands_of_one_check_share_a_row_and_are_named(sample):
    found = [
        sample.finding("health.ecc-uncorrected/sram", "gpu0", value=0),
        sample.finding("health.ecc-uncorrected/dram", "gpu0", "fail", value=3),
    ]
    cells = texts(html_report.table_cells(found))
    assert cells[0] == "Failed"
    assert cells[4:6] == ["sram: 0; dram: 3", "sram: 1; dram: 1"]


def test_what_no_check_judged_has_a_row_of_its_own(sample):
    left = [{"check": "gpu.mig", "key": "gpu.mig", "subject": "gpu0", "error": "KeyError: 'mig'"}]
    found = {row["testId"]: row for row in rows(sample.results(unjudged=left, acceptance="incomplete"))}
    assert found["gpu.mig:gpu0"]["result"] == "Error"
    assert "the check crashed: KeyError: 'mig'" in html.unescape(found["gpu.mig:gpu0"]["log"])


def test_the_text_of_a_row_is_capped_with_head_and_tail(sample):
    long = "head " + "x" * 100_000 + " tail"
    many = [
        sample.finding(f"a.b/{i}", "node", "fail", value=long, message=long, why=long, remedy=f"{i} {long}")
        for i in range(40)
    ]
    (row,) = rows(sample.results(many))
    text = "".join(texts(row["resultsTableRow"])) + html.unescape(row["log"])
    assert len(text) <= 4300
    assert "bytes left out" in row["log"]
    assert row["log"].startswith("a.b/0: fail")
    assert "evidence: nvidia-smi_-q_-x" in row["log"][-300:]


def test_node_ids_are_plain_ascii(sample):
    found = sample.finding("network.port", "port:mlx5_0/é\u202e<b>")
    (row,) = rows(sample.results([found]))
    assert re.fullmatch(r"[A-Za-z0-9:._-]+", row["testId"])
    assert list(blob(sample.results([found]))["tests"]) == [row["testId"]]


def test_the_summary_says_the_runs_sentence_and_the_legend(sample):
    page = html_report.render(sample.rejected())
    assert "<p><strong>REJECTED at tier quick on gpu-node-a12: gpu2" in page
    assert "Error: not measured, so not a pass." in page
    assert "71 checks, 69 of 78 demands judged, took 12 s." in page


def test_pytest_html_reads_the_cells_that_its_hooks_are_given(sample):
    headers = html_report.table_header()
    cells = html_report.table_cells([sample.finding("pcie.gpu-link-width", "gpu2", "fail")])
    hydrated = {
        re.search(r"col-(\w+)", cell).group(1): re.search(r"<td.*?>(.*?)</td>", cell).group(1)
        for header, cell in zip(headers, cells, strict=True)
        if "sortable" in header
    }
    assert hydrated == {"result": "Failed", "layer": "pcie", "check": "pcie.gpu-link-width", "subject": "gpu2"}


def test_without_pytest_html_the_error_names_the_package(sample, monkeypatch):
    html_report._pytest_html.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install pytest-html"):
        html_report.render(sample.results())
