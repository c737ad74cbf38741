import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from nodeready.facts.support import branch_supported, meets_security_floor
from nodeready.reading import Known, Unknown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHIPPED = tomllib.loads((Path(__file__).parents[2] / "baselines" / "tables.toml").read_text(encoding="utf-8"))
BRANCHES, SECURITY = SHIPPED["driver-branches"], SHIPPED["driver-security"]
ISSUED, LAST = date(2026, 11, 30), date(2027, 3, 10)
TABLE = {
    "issued": ISSUED,
    "valid_until": LAST,
    "branches": {"535": {"until": date(2026, 6, 30)}, "595": {"until": date(2027, 1, 31)}, "550": {"ended": True}},
    "floors": {"510": {"minimum": "510.99"}, "580": {"minimum": "580.178.04"}, "535": {"last": "535.309.01"}},
}
JUDGES = (branch_supported, meets_security_floor)


@pytest.mark.parametrize(
    ("version", "on", "supported", "note"),
    [
        ("595.71.05", ISSUED, True, "branch 595 is supported until 2027-01-31"),
        ("595.71.05", date(2027, 1, 31), True, "branch 595 is supported until 2027-01-31"),
        ("595.71.05", date(2027, 2, 1), False, "the support of branch 595 ended on 2027-01-31"),
        ("535.309.01", ISSUED, False, "the support of branch 535 ended on 2026-06-30"),
        ("550.163.01", LAST, False, "branch 550 is at its end of life"),
    ],
)
def test_a_branch_is_supported_up_to_its_last_day(version, on, supported, note):
    reading = branch_supported(version, TABLE, on)
    assert (reading.value, reading.note) == (supported, note)


@pytest.mark.parametrize(
    ("version", "meets"),
    [
        ("510.100", True),
        ("510.99", True),
        ("510.99.01", True),
        ("510.98.99", False),
        ("510.9", False),
        ("580.178.04", True),
        ("580.178.4", True),
        ("580.178.10", True),
        ("580.178.03", False),
        ("580.178", False),
        ("580.95.05", False),
        ("580.1000.01", True),
    ],
)
def test_versions_compare_by_their_numbers(version, meets):
    assert meets_security_floor(version, TABLE, ISSUED).value is meets


def test_a_branch_without_fixes_meets_no_floor():
    reading = meets_security_floor("535.999.99", TABLE, ISSUED)
    assert (reading.value, reading.note) == (False, "branch 535 gets no more fixes; its last was 535.309.01")


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    ("on", "words"),
    [
        (LAST + timedelta(days=1), "stale since 2027-03-10"),
        (date(2030, 1, 1), "stale since 2027-03-10"),
        (ISSUED - timedelta(days=1), "can't tell of that day"),
        (date(1970, 1, 1), "can't tell of that day"),
    ],
)
def test_outside_its_time_a_table_says_nothing(judge, on, words):
    for version in ("535.309.01", "595.71.05", "580.178.04"):
        reading = judge(version, TABLE, on)
        assert isinstance(reading, Unknown)
        assert words in reading.reason


@pytest.mark.parametrize("judge", JUDGES)
def test_a_branch_that_is_not_in_the_table_is_unknown(judge):
    reading = judge("700.10.01", TABLE, ISSUED)
    assert isinstance(reading, Unknown)
    assert reading.reason.endswith("issued on 2026-11-30, does not know branch 700")


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    "version",
    ["", "N/A", "580", "580.", "580.x", "v580.1", "580.95.05-1ubuntu1", "580.95.05\n", "9" * 99 + ".1", "580.-1"],
)
def test_what_is_no_version_is_unknown(judge, version):
    reading = judge(version, TABLE, ISSUED)
    assert isinstance(reading, Unknown)
    assert "is no driver version" in reading.reason


DATED = {name: table for name, table in SHIPPED.items() if "issued" in table}


def test_what_ages_is_dated():
    assert {"driver-branches", "driver-security", "driver-known-bad"} <= set(DATED)


@pytest.mark.parametrize("table", DATED.values(), ids=DATED)
def test_shipped_tables_are_dated_and_have_a_source(table):
    assert table["valid_until"] == table["issued"] + timedelta(days=100)
    assert {"title", "where", "kind"} <= set(table)


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        ("525.147.05", False),
        ("535.309.01", False),
        ("550.163.01", False),
        ("560.35.05", False),
        ("565.57.01", False),
        ("570.211.01", False),
        ("575.57.08", False),
        ("580.159.04", True),
        ("590.48.01", False),
        ("595.91.07", True),
        ("610.57.04", False),
        ("620.10.01", True),
    ],
)
def test_shipped_branches(version, supported):
    assert branch_supported(version, BRANCHES, ISSUED).value is supported
    assert isinstance(branch_supported(version, BRANCHES, LAST + timedelta(days=1)), Unknown)


def test_a_branch_that_ends_soon_is_named_with_its_end():
    assert branch_supported("595.91.07", BRANCHES, ISSUED).note == "branch 595 is supported until 2027-03-31"
    assert branch_supported("580.159.04", BRANCHES, ISSUED).note == "branch 580 is supported until 2028-06-30"
    assert isinstance(branch_supported("615.71.09", BRANCHES, ISSUED), Unknown)


@pytest.mark.parametrize(
    ("version", "meets"),
    [
        ("525.147.05", False),
        ("535.309.01", False),
        ("535.104.12", False),
        ("550.163.01", False),
        ("570.211.01", False),
        ("575.57.08", False),
        ("580.159.04", False),
        ("580.178.04", True),
        ("590.48.01", False),
        ("595.71.05", False),
        ("595.91.07", True),
        ("610.57.04", True),
        ("615.71.09", True),
    ],
)
def test_shipped_floors(version, meets):
    reading = meets_security_floor(version, SECURITY, ISSUED)
    assert reading.value is meets
    assert isinstance(meets_security_floor(version, SECURITY, LAST + timedelta(days=1)), Unknown)


def test_second_hand_figures_say_so():
    for branch, entry in SECURITY["floors"].items():
        assert ("minimum" in entry) != ("last" in entry)
        assert entry["bulletin"]
        note = meets_security_floor(f"{branch}.1.1", SECURITY, ISSUED).note
        assert ("second-hand" in note) is ("minimum" in entry)
    assert "second-hand" in SECURITY["newest"]


def test_a_branch_of_neither_table_is_unknown_in_both():
    for judge, table in zip(JUDGES, (BRANCHES, SECURITY), strict=True):
        assert isinstance(judge("470.256.02", table, ISSUED), Unknown)
        assert isinstance(judge("580.178.04", table, ISSUED), Known)
