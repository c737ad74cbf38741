"""The parser of the memory patterns probe's document: what is odd is unknown, a wrong word is never lost."""

import doctest
import json

import pytest

from nodeready.facts import patterns
from nodeready.facts.patterns import NEEDED, Patterns, parse, patterns_probe
from nodeready.probes import gpu_patterns, gpu_workers
from nodeready.probes import patterns as probe
from nodeready.reading import Known, Unknown

AT = "0000:1b:00.0"
WORD = {"offset_bytes": 4096, "xor": "0x0000000000020000", "pattern": "zeros, inverted"}


def entry(**changes):
    """An entry as a healthy H100 SXM would give it."""
    return {
        "device": "cuda:0",
        "uuid": "GPU-1",
        "bus_id": "0000:1B:00.0",
        "name": "NVIDIA H100 80GB HBM3",
        "total_bytes": 85045477376,
        "free_bytes": 84400000000,
        "cap_bytes": None,
        "covered_bytes": 82141249536,
        "left_bytes": 1900000000,
        "patterns": list(NEEDED),
        "rounds": 3,
        "passes": 17,
        "checked_bytes": 82141249536 * 34,
        "wrong_words": 0,
        "wrong": [],
        "verified": True,
        "ecc": {"before": {"corrected": 7, "uncorrected": 0}, "after": {"corrected": 7, "uncorrected": 0}},
        "error": None,
        **changes,
    }


def document(*entries, **changes):
    head = {"probe": "patterns", "schema": 1, "torch": "2.7.0+cu126", "error": None}
    return json.dumps({**head, "results": list(entries), **changes}).encode()


def only(**changes):
    return parse(document(entry(**changes))).result(AT)


def without(name):
    whole = entry()
    del whole[name]
    return parse(document(whole)).result(AT)


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(patterns) == (0, 4)


def test_a_healthy_result_is_known_throughout():
    found = parse(document(entry()))
    assert (found.results.keys(), found.torch.value) == ({AT}, "2.7.0+cu126")
    result = only()
    assert (result.wrong_words.value, result.corrected.value, result.uncorrected.value) == (0, 0, 0)
    assert (result.uuid.value, result.error) == ("GPU-1", "")
    assert result.sizes.value == patterns.Sizes(85045477376, 84400000000, 82141249536, 1900000000, None)


def test_what_the_probe_writes_is_what_the_parser_asks_for():
    assert tuple(gpu_patterns.PATTERNS) == NEEDED
    assert {*probe.FIGURES, *gpu_workers.WHO} >= entry().keys()


@pytest.mark.parametrize("error", [None, "CUDA error: unspecified launch failure"])
@pytest.mark.parametrize("rounds", [0, 3])
def test_wrong_words_are_known_whatever_came_after_them(error, rounds):
    result = only(wrong_words=2, verified=False, wrong=[WORD, {"offset_bytes": True}, None], rounds=rounds, error=error)
    assert result.wrong_words.value == 2
    place = 'at byte 0x1000 of the memory taken, bits 0x0000000000020000, pattern "zeros, inverted"'
    assert result.wrong_words.note == place


@pytest.mark.parametrize(
    "changes",
    [
        {"wrong_words": 3},  # and yet verified
        {"wrong_words": -1},
        {"wrong_words": True},
        {"wrong_words": "0"},
        {"wrong_words": None},
        {"verified": None},
        {"verified": False},
        {"verified": 1},
        {"rounds": 0},
        {"rounds": None},
        {"rounds": 4},  # more than were compared
        {"checked_bytes": 82141249536 * 29},
        {"checked_bytes": None},
        {"patterns": list(NEEDED[1:])},
        {"patterns": None},
        {"covered_bytes": 0},
        {"covered_bytes": None},
        {"total_bytes": 0},
        {"error": "CUDA error: uncorrectable ECC error encountered"},
        {"error": ""},
        {"error": 5},
    ],
)
def test_no_wrong_word_is_known_only_of_memory_that_was_gone_over(changes):
    assert isinstance(only(**changes).wrong_words, Unknown)


@pytest.mark.parametrize("name", ["wrong_words", "verified", "rounds", "checked_bytes", "patterns", "covered_bytes"])
def test_a_figure_that_is_not_there_is_no_zero(name):
    assert isinstance(without(name).wrong_words, Unknown)


@pytest.mark.parametrize("name", ["total_bytes", "free_bytes", "covered_bytes", "left_bytes", "cap_bytes"])
def test_sizes_need_all_of_them(name):
    assert isinstance(without(name).sizes, Unknown)
    assert isinstance(only(**{name: "1"}).sizes, Unknown)
    assert isinstance(only(**{name: -1}).sizes, Unknown)


def test_more_than_all_of_the_memory_cannot_be():
    assert isinstance(only(covered_bytes=85045477377).sizes, Unknown)
    assert isinstance(only(free_bytes=85045477377).sizes, Unknown)


def test_an_error_of_the_gpu_leaves_its_ecc_counters_known():
    after = {"corrected": 9, "uncorrected": 1}
    result = only(
        error="CUDA error: uncorrectable ECC error encountered",
        verified=None,
        ecc={"before": {"corrected": 7, "uncorrected": 0}, "after": after},
    )
    assert (result.corrected.value, result.uncorrected.value) == (2, 1)
    assert result.wrong_words.reason == result.sizes.reason == "CUDA error: uncorrectable ECC error encountered"


@pytest.mark.parametrize(
    "ecc",
    [
        None,
        {},
        {"before": None, "after": {"corrected": 0, "uncorrected": 0}},
        {"before": {"corrected": 0, "uncorrected": 0}},
        {"before": {"corrected": None, "uncorrected": None}, "after": {"corrected": 0, "uncorrected": 0}},
        {"before": {"corrected": 8, "uncorrected": 2}, "after": {"corrected": 7, "uncorrected": 0}},
        {"before": {"corrected": False, "uncorrected": "0"}, "after": {"corrected": 7, "uncorrected": 0}},
    ],
)
def test_errors_that_were_not_counted_are_not_none(ecc):
    result = only(ecc=ecc)
    assert isinstance(result.corrected, Unknown)
    assert isinstance(result.uncorrected, Unknown)
    assert result.wrong_words.value == 0


def test_wrong_words_of_an_unplaced_gpu_are_not_lost():
    nowhere = entry(device="cuda:3", bus_id=None)
    found = parse(document(entry(), {**nowhere, "verified": False}, {"wrong_words": 1}, nowhere, None))
    assert (found.unplaced_wrong, found.unplaced) == (2, 2)


def test_two_entries_for_one_gpu_are_believed_only_where_one_found_wrong_words():
    assert isinstance(parse(document(entry(), entry())).result(AT).wrong_words, Unknown)
    wrong = entry(wrong_words=1, verified=False)
    for pair in ((entry(), wrong), (wrong, entry())):
        assert parse(document(*pair)).result(AT).wrong_words.value == 1


def test_a_gpu_that_gave_no_answer_is_named_where_its_bus_id_is_unknown():
    found = parse(document(entry(device="cuda:3", bus_id=None, error="no answer within 60 s"), {}))
    reason = found.result("0000:2a:00.0").wrong_words.reason
    assert "cuda:3, whose bus id is unknown: no answer within 60 s" in reason
    assert "1 of its entries name no device" in reason


def test_any_prefix_of_a_document_says_the_same_or_nothing():
    whole = document(entry(), entry(device="cuda:1", bus_id="0000:2A:00.0", wrong_words=1, verified=False))
    for end in range(len(whole)):
        assert isinstance(parse(whole[:end]), Unknown)


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"{}", document(schema=2), document(probe="matmul"), document(results=None), document(error="no")],
)
def test_what_is_no_such_document_is_unknown(data):
    assert isinstance(parse(data), Unknown)


def test_the_script_ends_before_its_probe():
    asked = patterns_probe("python3", "patterns.py", deadline=140)
    options = probe.parse_options(asked.argv[2:])
    assert options.deadline == 120 < asked.deadline
    assert (asked.family, asked.tier, asked.answers) == ("load", "acceptance", (0, 3))


def test_a_document_without_entries_knows_no_gpu():
    found = parse(document())
    assert isinstance(found, Patterns)
    assert isinstance(found.torch, Known)
    assert found.result(AT).wrong_words.reason == f"the patterns probe has no result of {AT}"
