"""Section I: the test harness itself: pytest, its plugins and testinfra."""

import html
import json
import os
import re
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from edits import failed
from field_case import Proof, Run, case, fails, passes, scene, unverified

_SERVICE = "systemctl_is-active_nvidia-fabricmanager"
_SKIP_ALL = """
import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.skip(reason="not today"))
"""
# what a plugin for retries does, and what it shows at the end: the last result of each item
_TWICE = """
import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for _ in range(3):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        if report.failed:
            report.outcome = "passed"
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
_SICK = ("nvlink-link-down",)


def _folder(process):
    return Path(re.search(r"^report: (.+)/certificate.html$", process.stdout, re.MULTILINE)[1])


def _evidence_of_sick_node(tmp_path):
    from nodeready.simulate.write import simulate

    simulate("sxm", tmp_path / "node", list(_SICK), {}, 0)
    return tmp_path / "node"


def _rows(process):
    """What the HTML report holds: all of its data, and its rows by item."""
    page = (_folder(process) / "report.html").read_text()
    return json.loads(html.unescape(re.search(r'data-jsonblob="([^"]*)"', page)[1]))


def _reports_do_not_need_capture(gate_run, tmp_path):
    """With -s and without it a row holds what was observed: nothing in it comes from captured output."""
    node = _evidence_of_sick_node(tmp_path)
    for options in ((), ("-s",)):
        process, results = gate_run("--node-type", "sxm", "--evidence", node, *options)
        assert results["acceptance"] == "rejected"
        (row,) = _rows(process)["tests"]["checks/test_nvlink.py::test_every_nvlink_is_up_at_full_speed[gpu4]"]
        assert row["result"] == "Failed"
        assert "active NVLink links is 17, demanded 18" in row["log"]


def _the_report_keeps_its_parts(gate_run, healthy):
    """The HTML report has its table of the run, and a row for each check on a subject with its own columns."""
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy)
    data = _rows(process)
    assert {"Python", "Plugins"} <= data["environment"].keys()
    assert len(data["tests"]) == len({(f["check"], f["subject"]) for f in results["findings"]})
    for rows in data["tests"].values():
        assert all(
            word in "".join(rows[0]["resultsTableRow"]) for word in ("col-check", "col-observed", "col-demanded")
        )
    (row,) = data["tests"]["checks/test_gpu.py::test_driver_lists_every_gpu[node]"]
    assert '<td class="col-observed">8</td>' in row["resultsTableRow"]


def _one_row_for_a_check_on_a_subject(gate_run, healthy):
    """Several demands of one check are one row, and a demand without a bound is no number that passed."""
    process, results = gate_run("--node-type", "sxm", "--evidence", healthy)
    rows = list(ET.parse(_folder(process) / "junit.xml").iter("testcase"))
    pairs = {(f["check"], f["subject"]) for f in results["findings"]}
    assert len(rows) == len(pairs) < len(results["findings"])
    not_demanded = [f for f in results["findings"] if f["verdict"] == "not-applicable"]
    assert not_demanded
    assert all(f["observed"] is None for f in not_demanded)


def _a_connection_that_hangs_costs_its_deadline(tmp_path, monkeypatch):
    """A command over a connection that never answers is ended at its deadline, and is no answer."""
    from nodeready.evidence.recording import Ended
    from nodeready.evidence.transport import Transport, Way

    (tmp_path / "ssh").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    begin = time.monotonic()
    recording = Transport("ssh://node-1", Way(), shared=False).ask(["echo fine"], 0.5)
    assert time.monotonic() - begin < 10
    assert recording.ended is Ended.TIMED_OUT
    assert "0.5 s" in recording.reason


def _the_path_of_an_operator(monkeypatch):
    """Tools in sbin are found by a user whose PATH lacks it, from a folder that this user may not enter."""
    from nodeready.evidence.probe import command
    from nodeready.evidence.runner import run

    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    said = run(command("sh", "-c", 'echo "$PATH"', name="path")).stdout.decode()
    assert {"/usr/sbin", "/sbin"} <= set(said.strip().split(":"))


def _the_release_with_the_bug_is_not_taken():
    """The project asks for a testinfra behind the release whose service.exists was broken."""
    from importlib.metadata import requires, version

    from packaging.requirements import Requirement

    wanted = next(r for r in map(Requirement, requires("nodeready")) if r.name == "pytest-testinfra")
    assert version("pytest-testinfra") in wanted.specifier
    assert "10.1.0" not in wanted.specifier


def _a_demand_without_a_bound_is_refused(tmp_path):
    """A baseline that demands a key and gives no bound is refused, and a key that is a site's to set says so."""
    from nodeready.baseline import BaselineError, load

    (tmp_path / "site.toml").write_text(
        'extends = "sxm@2026.12"\n["memory.dimms/count"]\nsource = "site"\nwhy = "it is told"\nrequired = {}\n'
    )
    with pytest.raises(BaselineError, match=r"memory\.dimms/count"):
        load("sxm", str(tmp_path / "site.toml"))
    unbound = [demand for demand in load("sxm").demands.values() if not demand.required and not demand.recommended]
    assert unbound
    assert all(demand.absent for demand in unbound)


CASES = (
    case("I1", "all tests are skipped, and pytest exits with 0", Run((), 10, "incomplete", plugin=_SKIP_ALL)),
    case(
        "I2",
        "a misspelt selection runs nothing",
        Run(("-k", "mispelt_name"), 5, "incomplete"),
        Run(("-m", "mispelt and"), 4),
        Run((), 4, first=("checks/test_no_such_file.py",)),
        Run(("--deselect", "checks/"), 5, "incomplete"),
        Run(("-k", "memory"), 10, "incomplete", says=("subset: not an acceptance",)),
    ),
    case(
        "I3",
        "a retry turns a failure into a pass",
        Run(("--reruns", "2"), 4, says=("unrecognized arguments",)),
        Run((), 1, "rejected", faults=_SICK, plugin=_TWICE),
    ),
    case("I4", "tests run in several processes and contend for the GPUs", Run(("-n", "2"), 4)),
    case(
        "I5",
        "-s takes captured output out of the report",
        Proof(_reports_do_not_need_capture, ("gate_run", "tmp_path")),
    ),
    case(
        "I6",
        "a new release of the report's plugin loses details",
        Proof(_the_report_keeps_its_parts, ("gate_run", "healthy")),
    ),
    case(
        "I7",
        "a row for each number floods the report",
        Proof(_one_row_for_a_check_on_a_subject, ("gate_run", "healthy")),
    ),
    case(
        "I8",
        "a command over a connection has no timeout",
        Proof(_a_connection_that_hangs_costs_its_deadline, ("tmp_path", "monkeypatch")),
    ),
    case(
        "I9", "a library for connections waits for ever", Run(("--hosts", "paramiko://node-1"), 4, says=("paramiko",))
    ),
    case(
        "I10",
        "a service that is stopped, not installed, or can't be asked",
        scene(fails("nvlink.fabric-manager", "node", "inactive"), edit=failed(_SERVICE, 3, "inactive\n")),
        scene(fails("nvlink.fabric-manager", "node"), edit=failed(_SERVICE, 4, "inactive\n")),
        scene(
            unverified("nvlink.fabric-manager", "node"),
            edit=failed(_SERVICE, 1, error="Failed to connect to bus: No such file or directory"),
            failing="",
        ),
        scene(passes("nvlink.fabric-manager", "node", "active")),
    ),
    case("I11", "a login that is no login: no sbin in PATH", Proof(_the_path_of_an_operator, ("monkeypatch",))),
    case(
        "I12",
        "one release of testinfra asks for services in a wrong way",
        Proof(_the_release_with_the_bug_is_not_taken),
    ),
    case(
        "I13",
        "a new check finds old faults, and nodes drain",
        Run(("--report-only",), 0, "rejected", says=("REJECTED",), faults=_SICK),
    ),
    case(
        "I14",
        "thresholds are absent, and pass means nothing",
        Proof(_a_demand_without_a_bound_is_refused, ("tmp_path",)),
    ),
)
