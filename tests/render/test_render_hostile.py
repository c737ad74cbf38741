"""A node that says harmful things: nothing of it runs, hides or forges in any report."""

import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from nodeready.render import certificate, html_report, junit, prometheus, terminal

RENDERERS = {
    "certificate": certificate.render,
    "report": html_report.render,
    "junit": junit.render,
    "prometheus": prometheus.render,
    "terminal": lambda results: "\n".join(terminal.summary(results)) + "\n",
}
HOSTILE = {
    "markup": "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&]]>--><td>",
    "template": "{{ 7 * 7 }}{% raw %}",
    "ansi": "\x1b[2J\x1b]0;title\x07\x9b31m",
    "direction": "\u202eevil\u2066\u200f\u061c",
    "nul": "a\x00b\x08\x7f",
    "lines": 'ok\r\nnodeready_exit_status 0\n# HELP x\n\u2028\x85ACCEPTED at tier quick"} 1\n',
    "surrogate": "\ud800\uffff\ufffe",
}
HOSTILE["all"] = "".join(HOSTILE.values())
HOSTILE["long"] = "A" * 5000 + HOSTILE["all"]


def poisoned(sample, text):
    """A rejected node with the text in every field that a node fills in."""
    results = sample.rejected(host=text, busy=text, evidence={"kind": "folder", "path": text})
    results["findings"] = list({f["verdict"]: f for f in results["findings"]}.values())
    results["node"]["gpus"] = results["node"]["gpus"][-2:]
    results["node"] |= dict.fromkeys(("product", "driver", "cuda", "os", "memory"), text)
    for gpu in results["node"]["gpus"]:
        gpu.update(dict.fromkeys(("serial", "uuid", "bus_id", "product", "slot"), text))
    for finding in results["findings"]:
        finding.update(dict.fromkeys(("message", "title", "why", "remedy", "source_title"), text))
        finding["evidence"] = [text]
        finding["observed"] = finding["observed"] and {"value": [text, text], "unit": text}
    results["unjudged"] = [{"check": "gpu.mig", "key": "gpu.mig", "subject": text, "error": text}]
    results["overrides"] = {text: text}
    return results


@pytest.fixture(scope="module")
def poison(sample):
    return {name: poisoned(sample, text) for name, text in HOSTILE.items()}


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_report_holds_a_character_that_cannot_be_seen(poison, form, name):
    text = RENDERERS[form](poison[name])
    text.encode("utf-8")
    allowed = text.replace("\n", "").replace("\t", "")
    own = RENDERERS[form](poison["markup"]).replace("\n", "").replace("\t", "")
    odd = {character for character in allowed if not character.isprintable()}
    assert odd <= {character for character in own if not character.isprintable()}
    if form != "report":
        assert allowed.isprintable()


@pytest.mark.parametrize("form", RENDERERS)
def test_a_megabyte_is_cut_and_counted(sample, form):
    text = RENDERERS[form](poisoned(sample, "A" * 1_000_000))
    assert len(text) < 200_000
    assert "A" * 1000 not in text
    if form != "prometheus":
        assert re.search(r"bytes more\)|bytes left out", text)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_certificate_has_the_same_tags_whatever_the_node_says(sample, poison, name):
    class Tags(HTMLParser):
        def __init__(self, text):
            super().__init__()
            self.seen = set()
            self.feed(text)

        def handle_starttag(self, tag, attributes):
            self.seen.add((tag, *sorted(name for name, _ in attributes)))

    harmless = Tags(certificate.render(poisoned(sample, "harmless"))).seen
    assert Tags(certificate.render(poison[name])).seen == harmless
    assert "<script" not in certificate.render(poison[name])


@pytest.mark.parametrize("name", HOSTILE)
def test_the_report_puts_only_quoted_text_into_the_page(poison, name):
    page = html_report.render(poison[name])
    data = json.loads(html.unescape(re.search(r'data-jsonblob="([^"]*)"', page).group(1)))
    for tests in data["tests"].values():
        for test in tests:
            for cell in test["resultsTableRow"]:
                assert re.fullmatch(r'<td class="col-[a-z]+">[^<>\n]*</td>', cell)
            assert not re.search("[<>]", test["log"])
    assert not [text for text in data["environment"].values() if re.search("[<>]", text)]
    assert page.count("<script") == 1
    assert "alert(1)</script>" not in page


@pytest.mark.parametrize("name", HOSTILE)
def test_junit_stays_well_formed(poison, name):
    suite = ET.fromstring(junit.render(poison[name]).encode("utf-8")).find("testsuite")
    assert len(suite.findall("testcase")) == int(suite.get("tests"))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_line_can_be_forged(sample, poison, name):
    metrics = prometheus.render(poison[name]).split("\n")
    assert len(metrics) == len(prometheus.render(poisoned(sample, "harmless")).split("\n"))
    assert all(re.match(r"nodeready_\w+{|# (?:HELP|TYPE) nodeready_|$", line) for line in metrics)
    lines = terminal.summary(poison[name])
    assert [line for line in lines if re.match("(?:ACCEPTED|INCOMPLETE|BUSY) ", line)] == []
    assert lines[-1].startswith("REJECTED at tier quick on ")
    assert len(lines) <= 60


def test_the_terminal_only_ever_sends_its_own_colours(poison):
    text = "\n".join(terminal.summary(poison["all"], colour=True))
    assert set(re.findall("\x1b[^m]*m", text)) <= {"\x1b[31;1m", "\x1b[33;1m", "\x1b[33m", "\x1b[0m"}
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_importing_the_renderers_costs_neither_jinja2_nor_pytest():
    code = (
        "import sys; from nodeready.render import certificate, html_report, junit, prometheus, terminal; "
        "print(sorted({'jinja2', 'pytest', 'pytest_html', 'markupsafe'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_rendering_does_not_change_the_document(sample):
    results = sample.rejected()
    before = json.dumps(results)
    for render in RENDERERS.values():
        render(results)
    assert json.dumps(results) == before
