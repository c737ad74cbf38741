import html.parser
import re

import pytest

from nodeready.render import certificate

VOID = {"meta", "link", "br", "hr", "img", "input", "col"}


class Page(html.parser.HTMLParser):
    """The tags, the text and the ids of a page; fails where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.sections, self.rows = [], [], [], [], []
        self.feed(text)
        assert self.open == []
        self.rows = [[" ".join(cell.split()) for cell in row] for row in self.rows]

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag == "section":
            self.sections.append(dict(attributes)["id"])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def plain(text):
    return " ".join(re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<style>.*?</style>", "", text)).split())


def test_nothing_runs_and_nothing_is_loaded(sample):
    page = Page(certificate.render(sample.rejected()))
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not [a for a in page.attributes if a[1].startswith("on") or a[1] in ("src", "srcset", "style:url")]
    assert {value.partition(":")[0] for tag, name, value in page.attributes if name == "href"} == {"https"}
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert "url(" not in certificate.render(sample.rejected())
    assert "@import" not in certificate.render(sample.rejected())


def test_the_decision_comes_before_the_record(sample):
    left = [{"check": "compute.matmul-fp16", "key": "compute.matmul-fp16", "subject": "gpu0"}]
    page = Page(certificate.render(sample.rejected(unjudged=left)))
    assert page.sections == [
        "verdict", "failures", "unverified", "unjudged", "advisories", "waived", "run", "gpus", "signatures", "record",
        "sources",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("acceptance", "tier", "words"),
    [
        ("accepted", "quick", "ACCEPTED at tier quick: says nothing of throughput"),
        ("accepted", "acceptance", "ACCEPTED at tier acceptance"),
        ("accepted-with-advisories", "quick", "ACCEPTED WITH ADVISORIES at tier quick: says nothing of throughput"),
        ("rejected", "quick", "REJECTED at tier quick"),
        ("incomplete", "burn-in", "INCOMPLETE at tier burn-in"),
    ],
)
def test_the_verdict_stands_in_words_with_its_tier(sample, acceptance, tier, words):
    text = certificate.render(sample.results(acceptance=acceptance, tier=tier))
    headline, tier_line = re.search(r"<h1>(.*?)</h1>\s*<p class=\"tier\">(.*?)</p>", text).groups()
    assert f"{headline} {tier_line}" == words
    assert f'class="verdict is-{acceptance}"' in text


def test_a_busy_node_is_headed_busy(sample):
    text = certificate.render(
        sample.results([], acceptance="incomplete", exit_status=11, tier="acceptance", busy="gpu2 runs pid 4711")
    )
    assert "<h1>BUSY</h1>" in text
    assert "gpu2 runs pid 4711." in text


def test_a_failure_is_told_to_a_technician(sample):
    page = Page(certificate.render(sample.rejected()))
    assert [
        "gpu3", "0000:4e:00.0", "165322304E317", "4",
        "8 The link of gpu3 trained at x8; the port above it can do x16.", "16",
    ] in page.rows  # fmt: skip
    text = plain(certificate.render(sample.rejected()))
    assert "Next step Reset the GPU, then run the gate again." in text
    assert "Why it matters Until the reset the GPU runs jobs on rows that are known to be bad." in text
    assert "Source NVIDIA GPU Memory Error Management; https://docs.nvidia.com/deploy/" in text


def test_a_failure_of_the_node_has_no_columns_of_gpus(sample):
    fabric = sample.finding("nvlink.fabric-manager", "node", "fail", value="inactive", message="")
    page = Page(certificate.render(sample.results(sample.with_findings(fabric), acceptance="rejected", exit_status=1)))
    assert ["node", "inactive", "1"] in page.rows


def test_what_one_cause_hides_is_one_row(sample):
    page = Page(certificate.render(sample.rejected()))
    causes = [row for row in page.rows if row and row[0].startswith("blocked by driver.responds@node")]
    assert causes == [["blocked by driver.responds@node", "nvlink.links-active gpu0-gpu7;", "8"]]


def test_reasons_that_differ_only_in_the_part_are_one_row(sample):
    said = "gpu{} (0000:0{}:00.0, serial 16): ECC is unknown: [N/A]"
    reasons = [
        sample.finding("health.ecc-mode", f"gpu{i}", "unverified", title="ECC", message=said.format(i, i))
        for i in range(3)
    ]
    page = Page(certificate.render(sample.results(sample.with_findings(*reasons), acceptance="incomplete")))
    assert ["[N/A] Look at the part, then run the gate again.", "health.ecc-mode gpu0-gpu2;", "3"] in page.rows


def test_reasons_that_differ_only_in_the_bus_id_are_one_row(sample):
    reasons = [
        sample.finding("gpu.mig", gpu["subject"], "unverified", message=f"torch lists no GPU at {gpu['bus_id']}")
        for gpu in sample.GPUS
    ]
    page = Page(certificate.render(sample.results(reasons, acceptance="incomplete")))
    remedy = "Look at the part, then run the gate again."
    assert [f"torch lists no GPU at its bus id {remedy}", "gpu.mig gpu0-gpu7;", "8"] in page.rows
    page = Page(certificate.render(sample.results(reasons[:1], acceptance="incomplete")))
    assert [f"torch lists no GPU at 0000:1b:00.0 {remedy}", "gpu.mig gpu0;", "1"] in page.rows


def test_a_crashed_check_is_not_judged_and_says_why(sample):
    left = [{"check": "gpu.mig", "key": "gpu.mig", "subject": f"gpu{i}", "error": "KeyError: 'mig'"} for i in range(8)]
    page = Page(certificate.render(sample.results(unjudged=left, acceptance="incomplete", exit_status=10)))
    assert ["the check crashed: KeyError: 'mig'", "gpu.mig gpu0-gpu7;", "8"] in page.rows


def test_every_gpu_is_identified(sample):
    page = Page(certificate.render(sample.results()))
    for gpu in sample.GPUS:
        row = [gpu[name] for name in ("subject", "bus_id", "serial", "uuid", "product", "slot")]
        assert row in page.rows


def test_a_node_of_which_nothing_is_known(sample):
    blank = dict.fromkeys(("product", "driver", "cuda", "os", "memory", "gpus"))
    text = plain(certificate.render(sample.results([], node=blank, acceptance="incomplete")))
    assert "No GPU could be identified." in text
    assert "Driver not known" in text
    unknown = dict.fromkeys(("subject", "bus_id", "uuid", "serial", "product", "slot")) | {"subject": "gpu0"}
    page = Page(certificate.render(sample.rejected(node=blank | {"gpus": [unknown]})))
    assert ["gpu0", "not known", "not known", "not known", "not known", "-"] in page.rows


def test_the_auditor_finds_baseline_hash_coverage_and_overrides(sample):
    results = sample.rejected(overrides={"gpu.count": 4, "memory.installed": "256 GiB"})
    results["baseline"]["status"] = "draft"
    text = plain(certificate.render(results))
    assert "sxm@2026.12 (draft)" in text
    assert "may still change" in text
    assert f"{sample.SHA256[:12]} {sample.SHA256[12:]}" in text
    assert "69 of 78 demands judged" in text
    assert "gpu.count = 4; memory.installed = 256 GiB" in text
    assert "2026-12-01 09:15:12 UTC (12 s)" in text
    assert "nodeready 2026.12" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"subset": True}, "This is not an acceptance."),
        ({"report_only": True}, "The exit status was set to 0 whatever was found."),
        ({"evidence": {"kind": "capture", "path": "c.tar.gz"}}, "Judged from a capture, not from the live node."),
    ],
)
def test_what_limits_the_certificate_is_noted(sample, change, words):
    assert words in plain(certificate.render(sample.results(**change)))
    assert words not in plain(certificate.render(sample.results()))


def test_the_record_holds_every_finding_with_bounds_and_source(sample):
    results = sample.rejected()
    page = Page(certificate.render(results))
    record = [row for row in page.rows if len(row) == 7]
    assert {row[1].split()[0] for row in record[1:]} >= {finding["key"] for finding in results["findings"]}
    width = next(row for row in record if row[0] == "pass" and row[1].startswith("pcie.gpu-link-width"))
    assert width[2:] == ["gpu0, gpu1, gpu4-gpu7", "16", "16", "-", "h100-setup-guide"]
    memory = next(row for row in record if row[1].startswith("memory.installed"))
    assert memory[3:6] == ["768 GiB", ">= 512 GiB", ">= 1 TiB"]


def test_parts_that_pass_alike_share_a_row_with_all_that_was_observed(sample):
    rates = [sample.finding("compute.matmul-fp16", f"gpu{i}", value=700.5 + i, unit="TFLOPS") for i in range(3)]
    page = Page(certificate.render(sample.results(rates)))
    (row,) = [row for row in page.rows if row[0] == "pass"]
    assert row[2:4] == ["gpu0-gpu2", "700.5, 701.5, 702.5 TFLOPS"]


def test_a_long_bound_is_told_below_the_demand(sample):
    system = sample.finding("platform.os", value="ubuntu", recommended=sample.bound("matches", "ubuntu|" * 20))
    page = Page(certificate.render(sample.results([system])))
    (row,) = [row for row in page.rows if row[0] == "pass"]
    assert row[5] == "see at left"
    assert row[1].endswith("Recommended: matches " + "ubuntu|" * 20)


def test_only_a_web_address_becomes_a_link(sample):
    def links(url):
        page = Page(certificate.render(sample.results([sample.finding("a.b", source_url=url)])))
        return [value for tag, name, value in page.attributes if name == "href"]

    assert links("https://docs.nvidia.com/x") == ["https://docs.nvidia.com/x"]
    assert links("https://github.com/a/b tests/data.xml") == ["https://github.com/a/b"]
    assert links("javascript:alert(1)") == []
    assert links("the guide this project began from") == []


def test_verdicts_differ_by_more_than_colour(sample):
    style = re.search(r"(?s)<style>(.*?)</style>", certificate.render(sample.results())).group(1)
    shapes = re.findall(r"\.v-(?:fail|unverified|advisory|waived) {(.*?)}", style)
    assert len({re.sub(r"color:[^;]*;", "", shape) for shape in shapes}) == 4


def test_a_host_name_cannot_leave_the_style_sheet(sample):
    text = certificate.render(sample.results(host='x"; } body { display: none } @import "y'))
    assert re.search(r'@bottom-left { content: "[A-Za-z0-9 .:_-]*"; font: ', text)
    assert "@import" not in re.search(r"(?s)<style>(.*?)</style>", text).group(1)
