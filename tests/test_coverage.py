"""docs/coverage.md has every row, names checks that exist, and is current."""

import importlib.util
from pathlib import Path

import pytest

from nodeready.check import load_checks

DOCS = Path(__file__).resolve().parents[1] / "docs"
spec = importlib.util.spec_from_file_location("make_coverage", DOCS / "make_coverage.py")
coverage = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage)

LAYERS = {"P": 14, "H": 22, "D": 12, "C": 11, "N": 10, "I": 11, "E": 12, "M": 6}
EVERY = [f"{letter}{number}" for letter, last in LAYERS.items() for number in range(1, last + 1)]
EVERY += [f"R{number:02}" for number in range(1, 32)]
CHECKS = load_checks()


def test_every_row_is_there_once():
    assert list(coverage.rows()) == EVERY


@pytest.mark.parametrize("name", EVERY)
def test_a_row_names_checks_that_exist_or_says_why_it_has_none(name):
    row = coverage.rows()[name]
    ways = [key for key in ("checks", "planned", "not-taken") if row.get(key)]
    assert len(ways) == 1, row
    assert set(row.get("checks", ())) <= set(CHECKS)


def test_at_least_eighty_rows_of_the_survey_are_judged():
    assert sum("checks" in row for name, row in coverage.rows().items() if name[0] != "R") >= 80


def test_every_check_answers_a_row():
    named = {check for row in coverage.rows().values() for check in row.get("checks", ())}
    beyond = {"health.dcgm-diag", "security.container-socket", "bmc.responds", "platform.hypervisor"}
    assert set(CHECKS) - named <= beyond


def test_the_page_is_current():
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page(), "run `make docs`"
