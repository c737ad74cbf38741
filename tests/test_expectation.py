"""A demand's verdict on a reading, and the bounds that are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.expectation import Bound, BoundError, Demand, judge, observed_json
from nodeready.quantity import Quantity, UnitError
from nodeready.reading import Known, Unknown
from nodeready.verdict import Verdict


def demand(required=None, recommended=None, unit="", **more):
    return Demand(
        key="layer.thing",
        title="thing",
        per="node",
        tier="quick",
        measure="must",
        unit=unit,
        required=Bound.parse(required, unit) if required else None,
        recommended=Bound.parse(recommended, unit) if recommended else None,
        source="s",
        why="w",
        **more,
    )


@pytest.mark.parametrize(
    ("required", "recommended", "value", "verdict"),
    [
        ({"min": 5}, None, 5, "pass"),
        ({"min": 5}, None, 4, "fail"),
        ({"min": 5}, {"min": 8}, 6, "advisory"),
        ({"max": 0}, None, 1, "fail"),
        ({"equals": "No"}, None, "No", "pass"),
        ({"equals": "No"}, None, "Yes", "fail"),
        ({"one_of": [0, 18]}, None, 18, "pass"),
        ({"one_of": [0, 18]}, None, 9, "fail"),
        ({"between": [1, 3]}, None, 3, "pass"),
        ({"between": [1, 3]}, None, 4, "fail"),
        ({"matches": "a+"}, None, "aa", "pass"),
        ({"matches": "a+"}, None, "aab", "fail"),
        (None, {"max": 0}, 3, "advisory"),
    ],
)
def test_plain_bounds(required, recommended, value, verdict):
    assert judge(demand(required, recommended), Known(value)).verdict.value == verdict


def test_quantities_compare_across_units():
    memory = demand({"min": "512 GiB"}, {"min": "1 TiB"}, unit="GiB")
    assert judge(memory, Known(Quantity(1024, "GiB"))).verdict is Verdict.PASS
    assert judge(memory, Known(Quantity(600, "GiB"))).verdict is Verdict.ADVISORY
    assert judge(memory, Known(Quantity(511, "GiB"))).verdict is Verdict.FAIL


def test_a_reading_that_shows_only_a_share_is_held_against_that_share():
    memory = demand({"min": "512 GiB"}, {"min": "1 TiB"}, unit="GiB")
    assert judge(memory, Known(Quantity(504, "GiB"), share=0.97)).verdict is Verdict.ADVISORY
    assert judge(memory, Known(Quantity(1007, "GiB"), share=0.97)).verdict is Verdict.PASS
    assert judge(memory, Known(Quantity(495, "GiB"), share=0.97)).verdict is Verdict.FAIL


def test_versions_compare_by_number_not_by_text():
    driver = demand({"min": "525"}, unit="version")
    assert judge(driver, Known("1000.1")).verdict is Verdict.PASS
    assert judge(driver, Known("99.9")).verdict is Verdict.FAIL
    assert judge(driver, Known("525.60.13")).verdict is Verdict.PASS


def test_a_doubtful_miss_is_unverified_unless_the_ceiling_misses_too():
    link = demand({"min": 5})
    assert judge(link, Known(1, doubt="idle", ceiling=5)).verdict is Verdict.UNVERIFIED
    assert judge(link, Known(1, doubt="idle")).verdict is Verdict.UNVERIFIED
    assert judge(link, Known(1, doubt="idle", ceiling=4)).verdict is Verdict.FAIL
    assert judge(link, Known(5, doubt="idle", ceiling=5)).verdict is Verdict.PASS


def test_a_defect_fails_whatever_the_bound():
    assert judge(demand({"min": 1}), Known(9, defect="the parts do not add up")).verdict is Verdict.FAIL


def test_above_the_plausible_maximum_the_measurement_failed():
    rate = demand({"min": "620 TFLOPS"}, unit="TFLOPS", plausible=Quantity(900, "TFLOPS"))
    assert judge(rate, Known(Quantity(736, "TFLOPS"))).verdict is Verdict.PASS
    assert judge(rate, Known(Quantity(2000, "TFLOPS"))).verdict is Verdict.UNVERIFIED


@given(st.text(), st.booleans())
def test_unknown_is_never_better_than_unverified(reason, missing):
    assert judge(demand({"min": 0}), Unknown(reason, missing=missing)).verdict is Verdict.UNVERIFIED
    assert observed_json(demand({"min": 0}), Unknown(reason)) is None


def test_absent_is_not_applicable_even_where_nothing_was_read():
    assert judge(demand(absent="no such part"), Unknown("x")).verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("table", "unit"),
    [
        ({}, ""),
        ({"min": 5, "max": 6}, ""),
        ({"atleast": 5}, ""),
        ({"equals": ""}, ""),
        ({"one_of": []}, ""),
        ({"between": [3, 1]}, ""),
        ({"between": [1]}, ""),
        ({"min": "five"}, ""),
        ({"min": True}, ""),
        ({"min": 512}, "GiB"),
        ({"min": "512 W"}, "GiB"),
        ({"min": "512"}, "GiB"),
        ({"min": "much"}, "version"),
        ({"min": 525}, "version"),
        ({"matches": "("}, ""),
        (5, ""),
    ],
)
def test_bounds_that_are_refused(table, unit):
    with pytest.raises((BoundError, UnitError)):
        Bound.parse(table, unit)


@given(
    st.integers(-100, 100), st.integers(-100, 100), st.integers(-100, 100), st.sampled_from(["min", "max", "equals"])
)
def test_a_stricter_bound_holds_for_no_value_that_the_other_refuses(one, other, value, operator):
    strict, loose = Bound(operator, one), Bound(operator, other)
    if strict.at_least_as_strict_as(loose) and strict.holds(value):
        assert loose.holds(value)


def test_comparing_a_number_with_a_quantity_is_an_error_not_a_verdict():
    with pytest.raises(UnitError):
        judge(demand({"min": "512 GiB"}, unit="GiB"), Known(9999))
