"""The parser of the all-reduce probe's document: what is odd is unknown, nothing raises."""

import doctest
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts import allreduce
from nodeready.facts.allreduce import Allreduce, allreduce_probe, parse
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

SIZE = 8 << 30
READINGS = ("busbw", "p5", "message", "ranks", "verified", "version", "algorithm", "nvls_channels")


def entry(**changes):
    """An entry as rank 0 of a healthy node would give it."""
    return {
        "device": "cuda:0",
        "uuid": "GPU-1",
        "bus_id": "0000:1B:00.0",
        "size": SIZE,
        "rank": 0,
        "ranks": 8,
        "bytes": SIZE,
        "busbw_gb_s": 476.2,
        "p5_gb_s": 474.0,
        "cv": 0.002,
        "iterations": 60,
        "verified": True,
        "nccl": {"version": "2.26.2", "algorithm": "NVLS", "nvls_channels": 16, "settings": {}},
        "error": None,
        **changes,
    }


def document(*entries, **changes):
    head = {"probe": "allreduce", "schema": 1, "torch": "2.7.0+cu126", "error": None}
    return json.dumps({**head, "results": list(entries), **changes}).encode()


def only(**changes):
    (rank,) = parse(document(entry(**changes))).ranks.values()
    return rank


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(allreduce) == (0, 3)


def test_a_healthy_rank_is_known_throughout():
    found = parse(document(entry()))
    assert found.ranks.keys() == {("0000:1b:00.0", SIZE)}
    rank = found.of("0000:1b:00.0")[SIZE]
    assert all(isinstance(getattr(rank, name), Known) for name in READINGS)
    assert (rank.busbw.value, rank.ranks.value, rank.error) == (Quantity(476.2, "GB/s"), 8, "")
    assert found.of("0000:2b:00.0") == {}


def test_the_probe_ends_its_workers_before_it_is_ended_itself():
    probe = allreduce_probe("python", "allreduce.py")
    assert float(probe.argv[-1]) == probe.deadline - 20 == 120
    assert (probe.family, probe.tier, probe.answers) == ("load", "acceptance", (0, 3))


@pytest.mark.parametrize(
    "changes",
    [
        {"busbw_gb_s": None},
        {"busbw_gb_s": "476"},
        {"busbw_gb_s": -1.0},
        {"busbw_gb_s": 0},
        {"busbw_gb_s": float("nan")},
        {"busbw_gb_s": True},
        {"p5_gb_s": None},
        {"p5_gb_s": 480.0},  # above the median
        {"cv": 0.1},
        {"cv": None},
        {"iterations": 0},
        {"iterations": True},
        {"bytes": None},
        {"bytes": 0},
        {"ranks": 1},
        {"ranks": None},
    ],
    ids=str,
)
def test_a_rate_that_cannot_be_is_unknown(changes):
    assert isinstance(only(**changes).busbw, Unknown)


@pytest.mark.parametrize("value", [None, 1, "true", []])
def test_sums_that_were_not_compared_are_not_right(value):
    assert isinstance(only(verified=value).verified, Unknown)


@pytest.mark.parametrize("nccl", [None, [], {}, {"algorithm": 4}, {"algorithm": "nvls<b>"}, {"algorithm": ""}])
def test_an_algorithm_that_is_not_told_is_unknown(nccl):
    rank = only(nccl=nccl)
    assert isinstance(rank.algorithm, Unknown)
    assert isinstance(rank.nvls_channels, Unknown)
    assert isinstance(rank.busbw, Known)


def test_settings_are_nccl_s_own_variables_and_short():
    told = {"NCCL_ALGO": "Ring", "PATH": "/", "NCCL_<b>": "1", "NCCL_X": 5, "NCCL_TOPO_FILE": "x" * 500}
    assert only(nccl={"settings": told}).settings == {"NCCL_ALGO": "Ring", "NCCL_TOPO_FILE": "x" * 60}


def test_an_error_leaves_nothing_known_but_the_gpu():
    rank = only(error="no answer within 96 s")
    assert all(getattr(rank, name).reason == "no answer within 96 s" for name in READINGS)
    assert (rank.error, rank.uuid.value) == ("no answer within 96 s", "GPU-1")
    assert only(error=[]).error == "the entry's error reads []"


def test_two_entries_for_one_gpu_are_none():
    found = parse(document(entry(), entry(busbw_gb_s=900.0, p5_gb_s=900.0)))
    assert "two entries" in found.of("0000:1b:00.0")[SIZE].busbw.reason


_NAMELESS = [{"device": 0}, {"device": ""}, {"size": "8"}, {"size": True}, {"size": 0}]


@pytest.mark.parametrize("changes", _NAMELESS, ids=str)
def test_an_entry_that_says_not_of_what_it_is_is_counted(changes):
    found = parse(document(entry(**changes), 5, entry(verified=False, **changes)))
    assert found == Allreduce({}, unplaced=3, unplaced_wrong=1)


def test_a_wrong_sum_without_a_bus_id_is_counted():
    found = parse(document(entry(bus_id=None, verified=False)))
    assert (found.unplaced, found.unplaced_wrong) == (0, 1)
    assert found.ranks.keys() == {("cuda:0", SIZE)}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "printed nothing"),
        (b"[]", "not a document"),
        (document(error="an all-reduce needs two devices"), "^an all-reduce needs two devices$"),
        (document(error=5), "reads 5"),
        (document(results=None), "no list"),
        (document(schema=2), "schema 2"),
        (document(probe="matmul"), "not a document"),
    ],
)
def test_what_is_no_document_is_unknown(data, reason):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert re.search(reason, found.reason)


def test_every_prefix_is_unknown():
    whole = document(entry(), entry(bus_id="0000:2B:00.0"))
    assert all(isinstance(parse(whole[:cut]), Unknown) for cut in range(len(whole)))


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from(sorted(entry())), _ODD)
@settings(max_examples=150, deadline=None)
def test_no_odd_value_raises(name, value):
    found = parse(document(entry(**{name: value})))
    assert isinstance(found, Allreduce)
