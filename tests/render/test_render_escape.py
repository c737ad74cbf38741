import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.render.escape import CAP, Seen, harmless, head_and_tail, is_plain, prose, visible, visible_lines


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("8 GPUs, 97 % of µs", "8 GPUs, 97 % of µs"),
        ("\x1b[31mok\x1b[0m", "\\x1b[31mok\\x1b[0m"),
        ("a\x00b", "a\\x00b"),
        ("pass\nverdict: pass\r", "pass\\nverdict: pass\\r"),
        ("abc\u202edef\u2066", "abc\\u202edef\\u2066"),
        ("\u200f\u061c\ufeff", "\\u200f\\u061c\\ufeff"),
        ("\u2028\x85\xa0", "\\u2028\\x85\\xa0"),
        ("\ud800\uffff", "\\ud800\\uffff"),
        ("\U000e0041", "\\U000e0041"),
        ("serial \u05d0\u05d1 12 of 8", "serial \\u05d0\\u05d1 12 of 8"),  # would stand to the right of the numbers
        ("\u0661\ufdfd\U0001e900", "\\u0661\\ufdfd\\U0001e900"),
        ("fai\u0336l\u0336ed\ufe0f", "fai\\u0336l\\u0336ed\\ufe0f"),
        ("GPU\u3164\u2800\uffa0\u115f7", "GPU\\u3164\\u2800\\uffa0\\u115f7"),
    ],
)
def test_what_a_reader_would_not_see_is_spelled_out(raw, shown):
    assert visible(raw) == shown


@given(st.text(st.characters(exclude_categories=())), st.integers(20, 100))
def test_any_text_comes_out_printable_short_and_the_same_when_shown_again(text, cap):
    shown = visible(text, cap)
    assert shown.isprintable()
    assert is_plain(shown)
    assert len(shown) <= cap + 40
    assert visible(shown, cap) == shown
    shown.encode("utf-8")


def test_a_long_text_says_how_many_bytes_are_missing():
    assert visible("é" * 1_000_000, 10) == "é" * 10 + "… (1999980 bytes more)"


def test_a_cut_never_splits_what_was_spelled_out():
    assert visible("ab\x1b\x1b", 7) == "ab\\x1b… (1 bytes more)"


def test_an_error_keeps_its_lines_and_nothing_else():
    assert visible_lines("no:\n  \x1b[2Ja\r\n\u202e") == "no:\n  \\x1b[2Ja\\r\n\\u202e"


def test_an_authors_line_ends_are_folded():
    assert prose("Reset the GPU,\n   then run\tthe gate again.\n") == "Reset the GPU, then run the gate again."
    assert prose("a \n b" + "c" * 1_000_000, 10) == "a bccccccc… (999993 bytes more)"


def test_head_and_tail_keeps_both_ends_and_counts_the_rest():
    cut = head_and_tail("H" * 60 + "x" * 1000 + "T" * 30, 90)
    assert cut.startswith("H" * 60)
    assert cut.endswith("T" * 30)
    assert "1000 bytes left out" in cut
    assert head_and_tail("short", 90) == "short"


def test_a_document_is_harmless_in_depth_names_of_keys_included():
    made = harmless({"a\x1b": [{"message": "x\ny", "why": "x\ny", "value": ["\u202e", 1, None, True]}]})
    assert made == {"a\\x1b": [{"message": "x\\ny", "why": "x y", "value": ["\\u202e", 1, None, True]}]}


def test_names_of_parts_are_cut_shorter_than_values():
    made = harmless({"serial": "9" * 1000, "value": "9" * 1000})
    assert len(made["serial"]) < 120 < CAP < len(made["value"])


def test_a_seen_document_is_not_worked_on_twice(sample):
    seen = Seen.of(sample.results())
    assert Seen.of(seen) is seen
    assert json.loads(json.dumps(seen)) == sample.results()
