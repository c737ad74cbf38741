"""`dcgmi diag -j`: what each test of NVIDIA's diagnostic said of each entity, by DCGM 2 to 4."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nodeready.evidence.probe import Probe
from nodeready.facts.probe_document import shown
from nodeready.reading import Unknown

# it puts load on the GPUs for minutes to hours, so it is only read where it is handed in;
# dcgmi exits with another status where a test failed, and its document then says which
DCGM_DIAG = Probe(
    "dcgmi_diag_-j",
    ("dcgmi", "diag", "-r", "LEVEL", "-j"),
    tier="handed-in",
    answers=tuple(range(256)),
    serves=("health.dcgm-diag",),
)

# DCGM 4 renamed the root
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_STATUSES = {"pass": "pass", "fail": "fail", "warn": "warn", "skip": "skip", "skipped": "skip", "not run": "skip"}
_MOST_TEXT = 400


@dataclass(frozen=True)
class TestResult:
    """One test on one entity; `entity` is as in `GPU 3`, '' where the result names none.

    `status` is `pass`, `fail`, `warn` (also: passed with a complaint) or `skip`, `said` the test's own reason.
    """

    __test__ = False  # its name is DCGM's word, not pytest's

    name: str
    entity: str
    status: str
    said: str = ""


class DcgmDiag(NamedTuple):
    """All results of one output, over all iterations.

    `serials` are the serial numbers of entities, `error` is the diagnostic's own word why it could not
    run, `problems` what of the document could not be read: a test without a failure may stand there.
    """

    results: tuple[TestResult, ...]
    serials: dict[str, str]
    error: str
    problems: tuple[str, ...]

    def of(self, status: str) -> list[TestResult]:
        """The results with that status."""
        return [result for result in self.results if result.status == status]


def parse(data: bytes) -> DcgmDiag | Unknown:
    """Every result of every test; unknown where the document is cut, is none of DCGM's, or holds no test at all.

    >>> found = parse(b'''{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [
    ...   {"name": "memory", "test_summary": {"status": "Fail"}, "results": [
    ...     {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass"},
    ...     {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 3, "status": "Fail",
    ...      "warnings": [{"warning": "Error using CUDA API cuMemAlloc", "error_id": 38}]}]}]}]}}
    ... ''')
    >>> [(r.name, r.entity, r.status, r.said) for r in found.of("fail")]
    [('memory', 'GPU 3', 'fail', 'Error using CUDA API cuMemAlloc')]
    >>> parse(b'{"DCGM GPU Diagnostic": {"runtime_error": "No GPUs"}}').reason
    'the diagnostic ran no test: No GPUs'
    """
    if not data.strip():
        return Unknown("the output is empty")
    text = data.decode("utf-8", "replace")
    start = text.find("{")
    try:
        document = json.loads(text[start:] if start >= 0 else text)
    except (ValueError, RecursionError):
        return Unknown("no whole JSON document: `dcgmi diag -j` makes one, its table is not read")
    reader = _Reader()
    reader.read(document)
    if not reader.seen:
        return Unknown(f"no document of dcgmi diag: it holds neither {' nor '.join(map(repr, _ROOTS))}")
    if not reader.results:
        reasons = [part for part in ("; ".join(reader.errors), *reader.problems[:1]) if part]
        return Unknown(f"the diagnostic ran no test: {reasons[0] if reasons else 'its list of tests is empty'}")
    return DcgmDiag(tuple(reader.results), reader.serials, "; ".join(reader.errors), tuple(reader.problems))


@dataclass
class _Reader:
    results: list[TestResult] = field(default_factory=list)
    serials: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seen: bool = False

    def read(self, document: Any) -> None:
        """One run, or `--iterations` of it."""
        if not isinstance(document, dict):
            return
        for run in self._list(document.get("iterations", []), "iterations"):
            self.read(run)
        for name in _ROOTS:
            if name in document:
                self.seen = True
                self._root(document[name])
        self._entities(document)
        if self.seen and str(document.get("Overall Result", "Pass")).lower() != "pass":
            said = document.get("Warning", "")
            self.results.append(TestResult("overall result", "", "fail", _text(said)))

    def _root(self, root: Any) -> None:
        if not isinstance(root, dict):
            self.problems.append(f"the diagnostic reads {shown(root)}")
            return
        if root.get("runtime_error"):
            self.errors.append(_text(root["runtime_error"]))
        serials = root.get("GPU Device Serials")
        for number, serial in serials.items() if isinstance(serials, dict) else ():
            self.serials[f"GPU {number}"] = str(serial)
        for category in self._list(root.get("test_categories", []), "test_categories"):
            tests = category.get("tests", []) if isinstance(category, dict) else category
            for test in self._list(tests, "tests"):
                self._test(test)

    def _entities(self, document: dict[str, Any]) -> None:
        for group in self._list(document.get("entity_groups", []), "entity_groups"):
            entities = group.get("entities", []) if isinstance(group, dict) else []
            for entity in entities if isinstance(entities, list) else ():
                if isinstance(entity, dict) and isinstance(entity.get("serial_num"), str):
                    name = f"{group.get('entity_group')} {entity.get('entity_id')}"
                    self.serials[name] = entity["serial_num"]

    def _test(self, test: Any) -> None:
        if not isinstance(test, dict) or not isinstance(test.get("name"), str):
            self.problems.append(f"a test reads {shown(test)}")
            return
        name = test["name"][:80]
        results = self._list(test.get("results", []), f"the results of {name}")
        found = [self._result(name, result, _entity(result)) for result in results]
        summary = test.get("test_summary")
        if summary is not None:
            joined = self._result(name, summary, "")
            # a test that failed without a result of its own is told by its summary alone
            if joined and (not found or joined.status not in ("pass", *(r.status for r in found if r))):
                found.append(joined)
        if not found:
            self.problems.append(f"the test {name} has no result")
        self.results += [result for result in found if result]

    def _result(self, name: str, result: Any, entity: str) -> TestResult | None:
        said = result.get("status") if isinstance(result, dict) else None
        status = _STATUSES.get(said.strip().lower()) if isinstance(said, str) else None
        if status is None:
            self.problems.append(f"the test {name} on {entity or 'the node'} reads {shown(said)}")
            return None
        complaint = _text(result.get("warnings", ""))
        if status == "pass" and complaint:
            status = "warn"  # DCGM passes a test that could not do all it should, such as allocate too little memory
        return TestResult(name, entity, status, complaint)

    def _list(self, value: Any, what: str) -> list[Any]:
        if isinstance(value, list):
            return value
        self.problems.append(f"{what[:100]} reads {shown(value)}, no list")
        return []


def _entity(result: Any) -> str:
    """Who the result is about: DCGM 4 names any entity, earlier ones number GPUs."""
    if not isinstance(result, dict):
        return ""
    if "entity_id" in result:
        return f"{result.get('entity_group', 'entity')} {result['entity_id']}"[:80]
    numbers = result.get("gpu_id", result.get("gpu_ids", ""))
    return f"GPU {', '.join(map(str, numbers)) if isinstance(numbers, list) else numbers}"[:80] if numbers != "" else ""


def _text(warnings: Any) -> str:
    """The warnings as one line: a text, several texts, or tables that hold one each."""
    several = warnings if isinstance(warnings, list) else [warnings]
    texts = [str(each.get("warning", "")) if isinstance(each, dict) else str(each) for each in several]
    return " ".join("; ".join(text for text in texts if text).split())[:_MOST_TEXT]
