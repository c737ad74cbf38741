"""Quantities of one dimension are ordered; others raise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.quantity import Quantity, UnitError


@pytest.mark.parametrize("text", ["", "5", "GiB", "5 parsecs", "5 GiB 3", "five GiB", "1e5 GiB", "nan GiB"])
def test_text_that_is_no_quantity(text):
    with pytest.raises(UnitError):
        Quantity.parse(text)


def test_kib_and_gib():
    assert Quantity.parse("536870912 KiB") == Quantity.parse("512 GiB")
    assert Quantity.parse("512 GB") < Quantity.parse("512 GiB")
    assert Quantity(2048, "MiB").to("GiB").value == 2


def test_dimensions_do_not_mix():
    with pytest.raises(UnitError):
        assert Quantity(1, "W") < Quantity(1, "GiB")
    with pytest.raises(UnitError):
        assert Quantity(1, "W") == 1


@given(st.integers(-(10**6), 10**6), st.sampled_from(["GiB", "W", "TFLOPS", "degC", "GB/s"]))
def test_text_and_back(value, unit):
    assert Quantity.parse(str(Quantity(value, unit))) == Quantity(value, unit)
