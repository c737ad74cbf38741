"""The pytest plugin: options, items, outcomes and exit status of a gate.

It stays out of every run without `--node-type`; the modules of the gate are imported only then.
"""

from __future__ import annotations

import copy
import dataclasses
import gc
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from nodeready import options
from nodeready.interrupt import interruptible

if TYPE_CHECKING:
    from collections.abc import Generator

    from nodeready.check import Check
    from nodeready.engine import Expectation, Judging
    from nodeready.gate import Gate

_GATE = pytest.StashKey["Gate"]()
_RUN = pytest.StashKey["GateRun"]()
_EXPECT = pytest.StashKey["Expectation"]()
_LABELS = {"advisory": ("advisory", "a", "ADVISORY"), "unverified": ("unverified", "U", "UNVERIFIED")}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the contract; testinfra brings --hosts, --sudo and --ssh-config."""
    group = parser.getgroup("nodeready", "node readiness")
    for name, settings in options.OPTIONS.items():
        group.addoption(name, **settings)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Open the gate before pytest-html looks for its options: usage errors end the run here."""
    option = config.option
    if option.node_type is None or option.help or getattr(option, "version", 0):
        return
    gc.disable()  # nearly all that a gate makes lives to its end: looking for garbage in it costs a tenth of the run
    config.add_cleanup(gc.enable)
    from nodeready.evidence.transport import LOCAL, TransportError, Way, host_specs
    from nodeready.gate import Gate, Request, UsageError

    refusal = options.refusal(lambda name: config.getoption(name, default=None), config.inipath)
    if refusal:
        raise pytest.UsageError(refusal)
    request = Request(
        node_type=option.node_type,
        tier=option.tier,
        evidence=option.evidence or "",
        baseline=option.baseline,
        settings=tuple(option.set),
        python=option.python,
        report_dir=option.report_dir,
        sudo=bool(config.getoption("sudo", default=False)),
        sudo_user=config.getoption("sudo_user", default=None) or "",
        way=Way(**{name: config.getoption(name, default=None) or "" for name in Way.__dataclass_fields__}),
        force=option.force,
        in_service=option.in_service,
        report_only=option.report_only,
    )
    try:
        specs = host_specs(config.getoption("hosts", default=None) or LOCAL, request.way)
        config.stash[_GATE] = gate = Gate.open(dataclasses.replace(request, host=specs[0]))
        if option.collectonly:
            return
        if len(specs) > 1:
            from nodeready.hosts_run import HostsRun

            gates = [gate.for_host(spec) for spec in specs]
            config.pluginmanager.register(HostsRun(config, gates), "nodeready-run")
            return
        folder = gate.make_folder()
    except (UsageError, TransportError) as error:
        raise pytest.UsageError(_harmless(error)) from None
    if hasattr(option, "htmlpath") and not option.htmlpath:
        option.htmlpath, option.self_contained_html = str(folder / "report.html"), True
    if getattr(option, "tbstyle", "") == "auto":
        option.tbstyle = "no"  # the summary says it in an operator's words
    if getattr(option, "reportchars", "") == "fE":
        option.reportchars = ""
    config.stash[_RUN] = run = GateRun(config, gate)
    config.pluginmanager.register(run, "nodeready-run")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """An option that does not exist ends the run before its value is taken for a path and imported from."""
    if not any(arg.split("=")[0] == "--node-type" for arg in args):
        return
    known, unknown = parser.parse_known_and_unknown_args(args, copy.copy(early_config.option))
    if unknown:
        raise pytest.UsageError(f"unrecognized arguments: {' '.join(unknown)}")
    refusal = options.from_evidence(known.evidence, early_config.inipath, known.file_or_dir)
    if refusal:
        raise pytest.UsageError(refusal)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each planned subject of a check."""
    check, gate = _check(metafunc.function), metafunc.config.stash.get(_GATE, None)
    if check is not None and gate is not None:
        subjects = gate.plan.subjects(check.per)
        metafunc.parametrize(check.per, subjects, ids=subjects, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the checks of later tiers; a gate without a node type is a usage error."""
    gate = config.stash.get(_GATE, None)
    if gate is None:
        if any(_check(getattr(item, "function", None)) for item in items):
            from nodeready.baseline import node_types

            raise pytest.UsageError(
                f"--node-type is missing: say what the node should be, one of {', '.join(node_types())}"
            )
        return
    planned = gate.plan.by_check
    checks = [(item, _check(getattr(item, "function", None))) for item in items]
    items[:] = [item for item, check in checks if check is None or check.id in planned]


def _check(function: object) -> Check | None:
    found = getattr(function, "check", None)
    return found if type(found).__name__ == "Check" and hasattr(found, "remedy") else None


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Any:
    """The node under judgement."""
    return _judging(request).node


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Any:
    """One planned GPU of the node, whether it was found or not."""
    return _judging(request).subject(request.param)


@pytest.fixture
def expect(request: pytest.FixtureRequest) -> Any:
    """Hold a reading against a demand and record the finding; never stops the check."""
    check = _check(request.function)
    if check is None:
        raise pytest.UsageError("`expect` belongs to checks: mark the function with @check")
    subject = request.node.callspec.params[check.per]
    made = _judging(request).expectation(check, subject)
    request.node.stash[_EXPECT] = made
    return made


def _judging(request: pytest.FixtureRequest) -> Judging:
    run = request.config.stash.get(_RUN, None)
    if run is None or run.judging is None:
        raise pytest.UsageError("--node-type is missing: these fixtures exist only in a gate")
    return run.judging


class GateRun:
    """The hooks of one gate, registered only when there is one."""

    def __init__(self, config: pytest.Config, gate: Gate) -> None:
        self.config, self.gate = config, gate
        self.judging: Judging | None = None
        self.results: dict[str, Any] | None = None
        self.ran: set[tuple[str, str]] = set()

    def _say(self, text: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(text)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Get the evidence before the first check; a busy node runs nothing."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return (yield)  # pytest ends here: nothing is asked of the node for a run that judges nothing
        selected = {check.id for item in session.items if (check := _check(getattr(item, "function", None)))}
        tiers = self.gate.plan.by_check
        self.gate.load_wanted = any(d.tier != "quick" for check_id in selected for d in tiers.get(check_id, ()))
        with interruptible():
            self.judging = self.gate.gather(lambda text: self._say(_harmless(text)))
        if self.gate.busy:
            session.items.clear()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Pytest's outcome from the join of the findings."""
        report = yield
        expectation = item.stash.get(_EXPECT, None)
        if expectation is None or call.when != "call":
            return report
        if report.failed and self.judging is not None and call.excinfo is not None:
            self.judging.withdraw(expectation, call.excinfo.exconly())
        self.ran.add((expectation.check.id, expectation.subject))
        report.user_properties.append(("nodeready", _rows(expectation)))
        report.nodeready_check = True  # type: ignore[attr-defined]
        if report.failed:
            report.longrepr = _harmless(report.longrepr)
        else:
            _set_outcome(report, expectation)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that is no check and fails is not explained away by findings that pass."""
        if report.failed and not getattr(report, "nodeready_check", False):
            self.gate.foreign_failure = self.gate.foreign_failure or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """What could not be collected is said in full: tracebacks are off for the checks' sake."""
        if report.failed:
            self._say(str(report.longrepr))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """ADVISORY and UNVERIFIED in pytest's own counts."""
        return _LABELS.get(getattr(report, "nodeready_verdict", ""))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Acceptance from plan minus findings; it overrides only pytest's 0 and 1."""
        from nodeready import outputs, results

        yield
        if self.judging is None:
            return
        self.gate.subset = self._is_subset()
        outer = 0 if self.gate.busy else int(session.exitstatus)
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR  # what it stays if the lines below raise
        try:
            found = results.build(self.gate, self.judging, outer)
            seen = outputs.write(self.gate, found, with_report=not self._html_is_ours())
        except Exception:  # noqa: BLE001 - let through, it would end in 1, which says that the node was rejected
            self._say(traceback.format_exc())
            return
        self.results = seen
        gc.freeze()  # pytest and the interpreter collect once more each as they end: it all goes with the process
        session.exitstatus = found["exit_status"]

    def _html_is_ours(self) -> bool:
        return self.gate.folder is not None and (self.gate.folder / "report.html").is_file()

    def _is_subset(self) -> bool:
        planned = {(o.demand.check, o.subject) for o in self.gate.plan.obligations}
        return not self.gate.busy and bool(planned - self.ran)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """The last words, after pytest's own."""
        from nodeready import outputs

        if self.results is None:
            self.gate.discard_empty_folder()
            return
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        colour = bool(reporter and reporter.hasmarkup)
        for line in outputs.summary(self.gate, self.results, colour=colour):
            self._say(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_report_title(self, report: Any) -> None:
        """The report's title names node and tier."""
        report.title = f"{self.gate.host} as {self.gate.request.node_type}, tier {self.gate.plan.tier}"

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_summary(self, prefix: list[str]) -> None:
        """What pytest-html's outcomes stand for here."""
        from nodeready.render import html_report

        prefix.append(f"<p>{html_report.LEGEND}</p>")

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_header(self, cells: list[str]) -> None:
        """Layer, check, subject, observed, demanded, source, remedy."""
        from nodeready.render import html_report

        cells[:] = html_report.table_header()

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        """The row of one check on one subject."""
        from nodeready.render import html_report

        rows: Any = dict(getattr(report, "user_properties", ())).get("nodeready")
        if rows:
            cells[1:] = html_report.table_cells(rows)[1:]


def _harmless(text: object) -> str:
    """What may hold a node's own words, with everything invisible spelled out."""
    from nodeready.render.escape import visible_lines

    return visible_lines(str(text), 4000)


def _set_outcome(report: pytest.TestReport, expectation: Expectation) -> None:
    verdict = expectation.verdict.value
    from nodeready.render.escape import visible

    text = "\n".join(visible(f.message) for f in expectation.findings if f.verdict.value == verdict) or "judged nothing"
    report.nodeready_verdict = verdict  # type: ignore[attr-defined]
    if verdict == "fail":
        report.outcome, report.longrepr = "failed", text
    elif verdict == "unverified":
        report.outcome, report.when, report.longrepr = "failed", "setup", text
    elif verdict in ("advisory", "waived"):
        report.outcome, report.longrepr, report.wasxfail = "skipped", text, text


def _rows(expectation: Expectation) -> list[dict[str, Any]]:
    """The findings of one item, and a row for each planned key that it left unjudged."""
    from nodeready.render.escape import Seen
    from nodeready.render.groups import unjudged
    from nodeready.results import finding_row, unjudged_row

    judging, check, subject = expectation.judging, expectation.check, expectation.subject
    judged = {finding.key for finding in expectation.findings}
    left = [d for d in judging.plan.by_check.get(check.id, ()) if d.key not in judged]
    stand_ins = unjudged(Seen({"unjudged": [unjudged_row(judging, d, subject) for d in left]}))
    return [*(finding_row(judging, finding) for finding in expectation.findings), *stand_ins]
