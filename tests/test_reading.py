"""An unknown reading raises whenever it is used as a value."""

import dataclasses
import operator

import pytest

from nodeready.reading import Known, Unknown, Unverified, cite, first_of

USES = [
    bool,
    int,
    float,
    len,
    list,
    operator.index,
    hash,
    lambda u: u == 0,
    lambda u: u != 0,
    lambda u: 0 == u,
    lambda u: u < 1,
    lambda u: u >= 1,
    lambda u: 1 > u,
    lambda u: u + 1,
    lambda u: 1 - u,
    lambda u: u * 2,
    lambda u: 1 in u,
    lambda u: u.value,
    lambda u: not u,
    lambda u: u == u,
    lambda u: sum([u]),
    lambda u: max(u, 1),
]


@pytest.mark.parametrize("use", USES, ids=range(len(USES)))
def test_unknown_raises_when_used(use):
    with pytest.raises((Unverified, TypeError)):
        use(Unknown("the tool was not there"))


def test_unknown_says_why_when_it_raises():
    with pytest.raises(Unverified, match="the tool was not there"):
        bool(Unknown("the tool was not there"))


def test_a_missing_form_falls_through_and_the_note_says_so():
    reading = first_of(Unknown("a was not recorded", missing=True), cite(Known(5), "b"))
    assert reading.value == 5
    assert reading.recordings == ("b",)
    assert "a was not recorded" in reading.note
    assert "read from b" in reading.note


def test_a_form_that_is_there_and_says_nothing_does_not_fall_through():
    reading = first_of(Unknown("a printed nothing"), Known(5))
    assert isinstance(reading, Unknown)
    assert reading.reason == "a printed nothing"


def test_forms_that_disagree_are_unknown():
    reading = first_of(cite(Known(5), "a"), cite(Known(4), "b"))
    assert isinstance(reading, Unknown)
    assert reading.reason == "a says 5, b says 4"
    assert not reading.missing


def test_forms_taken_at_different_times_are_not_compared():
    assert first_of(Known(5), Known(4), agree=False).value == 5


def test_no_form_at_all_is_unknown_with_every_reason():
    reading = first_of(Unknown("no a", missing=True, causes=("x.y",)), Unknown("no b", missing=True))
    assert isinstance(reading, Unknown)
    assert reading.missing
    assert "no a" in reading.reason
    assert "no b" in reading.reason
    assert reading.causes == ("x.y",)


def test_map_keeps_the_citation():
    assert cite(Known(2, note="n"), "r").map(lambda v: v * 2) == Known(4, note="n", recordings=("r",))


@pytest.mark.parametrize(
    "reading",
    [
        Known(4, note="n", doubt="d", ceiling=5, share=0.97, share_reason="s", defect="x"),
        Unknown("why", missing=True, causes=("gpu.mig",)),
    ],
    ids=["known", "unknown"],
)
def test_a_cited_reading_keeps_all_else(reading):
    """`cited` is written out field by field: a field that is added and forgotten there shows here."""
    defaults = {field.name for field in dataclasses.fields(reading) if getattr(reading, field.name) == field.default}
    assert defaults == {"recordings"}
    assert vars(cite(reading, "lspci_-nn")) == vars(dataclasses.replace(reading, recordings=("lspci_-nn",)))
