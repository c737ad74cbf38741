"""The hooks of a run over several hosts: pytest collects the checks once, a judge for each host runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pluggy import HookimplMarker

from nodeready.check import Check
from nodeready.hosts import joined, judge_hosts
from nodeready.interrupt import interruptible
from nodeready.render.escape import visible

if TYPE_CHECKING:
    from collections.abc import Generator

    from nodeready.gate import Gate
    from nodeready.hosts import Outcome

hookimpl = HookimplMarker("pytest")
_WORDS = {0: "accepted", 1: "rejected", 10: "incomplete", 11: "busy", 3: "not judged", 2: "interrupted"}
_PYTESTS_OWN = (2, 3, 4, 5)


class HostsRun:
    """One run over several hosts; each writes its own run folder."""

    def __init__(self, config: Any, gates: list[Gate]) -> None:
        self.config, self.gates = config, gates
        self.outcomes: list[Outcome] = []
        self.foreign_failure = False
        self.subset = False

    def _say(self, text: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(text)

    @hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> Generator[None, object, object]:
        """The checks go to the judges; tests that are no checks stay with pytest."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return (yield)  # pytest ends here: no host is asked for a run that judges nothing
        found = [(item, getattr(getattr(item, "function", None), "check", None)) for item in session.items]
        selected = [(check, item.callspec.params[check.per]) for item, check in found if isinstance(check, Check)]
        session.items[:] = [item for item, check in found if not isinstance(check, Check)]
        wanted = {check.id for check, _ in selected}
        for gate in self.gates:
            gate.load_wanted = any(d.tier != "quick" for check in wanted for d in gate.plan.by_check.get(check, ()))
        self._say(f"{len(self.gates)} hosts, a judge each")
        with interruptible():
            self.outcomes = judge_hosts(self.gates, selected, self._tell, session.config.option.maxfail)
        self.subset = any(outcome.subset for outcome in self.outcomes)
        return (yield)

    def _tell(self, outcome: Outcome) -> None:
        self._say(f"{visible(outcome.host)}: {visible(outcome.sentence)}")
        for line in outcome.said:
            self._say(f"    {visible(line)}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test that is no check and fails is not explained away by hosts that were accepted."""
        self.foreign_failure = self.foreign_failure or bool(report.failed)

    def pytest_collectreport(self, report: Any) -> None:
        """What could not be collected is said in full."""
        if report.failed:
            self._say(str(report.longrepr))

    @hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: Any) -> Generator[None, None, None]:
        """The status of all hosts, joined with pytest's own."""
        yield
        outer = int(session.exitstatus)
        if not self.outcomes:
            return  # interrupted, or nothing was collected: pytest's own status says so
        statuses = [outcome.status for outcome in self.outcomes]
        if self.foreign_failure or (outer in _PYTESTS_OWN and not (outer == 5 and not session.items)):
            statuses.append(outer)
        session.exitstatus = joined(statuses)

    @hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """The last words: how many hosts came to what, and where their reports lie."""
        if not self.outcomes:
            for gate in self.gates:
                gate.discard_empty_folder()
            return
        counts: dict[str, list[str]] = {}
        for outcome in self.outcomes:
            counts.setdefault(_WORDS.get(outcome.status, "not judged"), []).append(outcome.host)
        for word, hosts in counts.items():
            if word != "accepted":
                self._say(f"{word}: {visible(', '.join(hosts))}")
        folder = self.gates[0].request.report_dir
        self._say(f"reports: {visible(folder)}/HOST/latest/certificate.html")
        tier = self.gates[0].plan.tier
        total = ", ".join(f"{len(hosts)} {word}" for word, hosts in counts.items())
        part = " (subset: not an acceptance)" if self.subset else ""
        self._say(f"{len(self.outcomes)} HOSTS at tier {tier}: {total}{part}")
