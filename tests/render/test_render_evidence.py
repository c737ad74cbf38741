"""Hostile text on its whole way, from a node's own outputs to every file of a run and to the terminal."""

import html
import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from nodeready import outputs, render, results
from nodeready.check import load_checks
from nodeready.gate import Gate, Request
from nodeready.render.escape import is_plain

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;{{7*7}}]]>--><b>"
    "\x1b[31mX\x1b]0;t\x07\x9b31m\u202eevil\u2066\u200f\u061c\x7f\u2028\x85\u200b\ufeff\u00ad\u05d0\u3164\u0336"
)
IN_XML = HOSTILE.replace("\x1b", "").replace("\x07", "")
TRACE = "evil"
SHARES = {"a little": 0.05, "a half": 0.5, "all": 1.0}
SAMPLE = re.compile(r'(nodeready_[a-z_]+)\{((?:[a-z_0-9]+="(?:[^"\\]|\\[\\"n])*",?)+)\} (-?[0-9.]+(?:e[+-][0-9]+)?)')


def texts_of(value, rng, share):
    if isinstance(value, dict):
        return {key: texts_of(item, rng, share) for key, item in value.items()}
    if isinstance(value, list):
        return [texts_of(item, rng, share) for item in value]
    if isinstance(value, str) and rng.random() < share:
        return rng.choice((HOSTILE, f"{value}{HOSTILE}\n\ud800"))
    return value


def lines_of(data, rng, share):
    made = []
    for line in data.decode().split("\n"):
        if line.strip() and rng.random() < share:
            how = rng.randrange(3)
            new = HOSTILE if how == 0 else f"\\g<0>{HOSTILE}"
            line = f"{line}{HOSTILE}" if how == 2 else re.sub(r"[^:=\s]+\s*$", new, line, count=1)
        made.append(line)
    return "\n".join(made).encode()


def poisoned(name, data, rng, share):
    if name.endswith("-x"):
        return re.sub(
            r">([^<>\n]+)<",
            lambda match: f">{match[1]}{html.escape(IN_XML)}<" if rng.random() < share else match[0],
            data.decode(),
        ).encode()
    try:
        return json.dumps(texts_of(json.loads(data), rng, share)).encode()
    except ValueError:
        return lines_of(data, rng, share)


def hostile_node(files, how):
    """The files of a node of which much is hostile: values, whole outputs, complaints, messages of the kernel."""
    rng = random.Random(how)
    made = {}
    for name, data in files.items():
        what = rng.randrange(8) if how in SHARES else 3
        made[name] = poisoned(name, data, rng, SHARES[how]) if what > 3 else data
        if how == "complaints" or what == 0:
            made |= {f"{name}.rc": b"9", f"{name}.err": f"{HOSTILE}\n".encode()}
        elif how == "garbage" or what == 1:
            made[name] = f"{HOSTILE * 3}\n".encode()
        elif how == "megabytes":
            made[name] = b"A" * 1_000_000 + f"{HOSTILE}\n".encode()
    if how != "megabytes":
        xids = "".join(
            f"[ 18.{code}] NVRM: Xid (PCI:0000:9b:00): {code}, {HOSTILE} name={HOSTILE}\n" for code in (79, 31, 999)
        )
        lost = f"[ 19.1] NVRM: Xid (PCI:{HOSTILE}): 79, x\n[ 19.2] nvidia-nvswitch0: SXid (PCI:{HOSTILE}): 12028, {HOSTILE}\n"
        made["dmesg"] = files["dmesg"] + (xids + lost).encode()
    made[f"x{HOSTILE.replace('/', '')}\n.txt"] = b"x"
    return made


WAYS = (*SHARES, "complaints", "garbage", "megabytes")


@pytest.fixture(scope="module")
def run(tmp_path_factory, healthy_files):
    """A hostile node's run folder, what is announced, and the summary; each is judged once."""
    made = {}

    def judged(how):
        if how not in made:
            place = tmp_path_factory.mktemp("hostile")
            files = hostile_node(healthy_files, how) if how else healthy_files
            for name, data in files.items():
                (place / "node" / name).parent.mkdir(parents=True, exist_ok=True)
                (place / "node" / name).write_bytes(data)
            gate = Gate.open(Request(node_type="sxm", evidence=str(place / "node"), report_dir=str(place / "reports")))
            folder, said = gate.make_folder(), []
            judging = gate.gather(said.append)
            judging.run_all(load_checks())
            found = results.build(gate, judging)
            outputs.write(gate, found, with_report=True)
            made[how] = folder, said, outputs.summary(gate, found, colour=False)
        return made[how]

    return judged


@pytest.mark.parametrize("how", WAYS)
def test_no_file_and_no_line_holds_what_a_reader_does_not_see(run, how):
    folder, said, summary = run(how)
    assert [line for line in said if not line.isprintable()] == []
    assert [line for line in summary if not is_plain(line)] == []
    for path in folder.iterdir():
        if path.suffix != ".gz":
            text = path.read_bytes().decode("utf-8")  # strict: half a character would be none
            assert {c for c in text if not is_plain(c)} <= {"\n"} | ({"\t"} if path.name == "report.html" else set()), (
                path
            )
            assert path.stat().st_size < 4_000_000, path
    if how != "megabytes":
        assert TRACE in (folder / "certificate.html").read_text()  # it did come through


class Tags(HTMLParser):
    """Every tag of a page with the names of its attributes, and the addresses that it leads to."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.addresses = set(), set()
        self.feed(Path(path).read_text())

    def handle_starttag(self, tag, attributes):
        self.tags.add((tag, *sorted(name for name, _ in attributes)))
        self.addresses |= {value for name, value in attributes if name in ("href", "src")}

    def handle_comment(self, data):
        self.tags.add("comment")


@pytest.mark.parametrize("how", WAYS)
def test_pages_hold_their_own_elements_and_no_others(run, how):
    template = Path(render.__file__).parent / "templates/certificate.html.j2"
    own = set(re.findall(r"<([a-z][a-z0-9]*)", template.read_text()))
    page = Tags(run(how)[0] / "certificate.html")
    assert {tag for tag, *_ in page.tags} <= own
    assert {name for _, *names in page.tags for name in names} & {"onerror", "onload", "src", "onclick"} == set()
    assert all(address.startswith(("https://", "#")) for address in page.addresses)
    assert Tags(run(how)[0] / "report.html").tags == Tags(run("")[0] / "report.html").tags


@pytest.mark.parametrize("how", WAYS)
def test_what_the_reports_script_puts_into_the_page_is_quoted(run, how):
    page = (run(how)[0] / "report.html").read_text()
    data = json.loads(html.unescape(re.search(r'data-jsonblob="([^"]*)"', page)[1]))
    told = [test for tests in data["tests"].values() for test in tests]
    assert all(
        re.fullmatch(r'<td class="col-[a-z]+">[^<>]*</td>', cell) for test in told for cell in test["resultsTableRow"]
    )
    for text in (*(test["log"] for test in told), *data["environment"].values()):
        assert not re.search("[<>]", text)
        assert is_plain(text.replace("\n", ""))


@pytest.mark.parametrize("how", WAYS)
def test_the_files_for_machines_keep_their_form(run, how):
    folder = run(how)[0]
    found = json.loads((folder / "results.json").read_text())
    schema = json.loads((Path(render.__file__).parent / "results.schema.json").read_text())
    jsonschema.validate(found, schema)
    suite = ET.parse(folder / "junit.xml").getroot().find("testsuite")
    assert len(suite.findall("testcase")) == int(suite.get("tests"))
    metrics = (folder / "node.prom").read_text()
    assert metrics.endswith("\n")
    series = []
    for line in metrics.split("\n")[:-1]:
        sample = SAMPLE.fullmatch(line)
        assert sample or re.fullmatch(r"# (HELP|TYPE) nodeready_[a-z_]+ [ -~]+", line), line
        series += [sample.group(1, 2)] if sample else []
    assert len(series) == len(set(series))
    assert float(re.search(r"nodeready_exit_status\{.*\} (\d+)", metrics)[1]) == found["exit_status"] != 0
