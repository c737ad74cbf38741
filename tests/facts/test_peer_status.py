"""`nvidia-smi topo -p2p r`."""

import pytest

from nodeready.facts.peer_status import PEER_STATUS, parse
from nodeready.reading import Known, Unknown

TABBED = b" \tGPU0\tGPU1\tGPU2\t\n GPU0\tX\tOK\tOK\t\n GPU1\tOK\tX\tCNS\t\n GPU2\tOK\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"
BLANKS = b"        GPU0    GPU1\n GPU0   X       CNS\n GPU1   CNS     X\n"


def test_the_probe_asks_whether_memory_can_be_read():
    assert PEER_STATUS.name == "nvidia-smi_topo_-p2p_r"


def test_every_ordered_pair_has_a_word():
    status = parse(TABBED)
    assert status.of(0).value == {1: "OK", 2: "OK"}
    assert status.of(1).value == {0: "OK", 2: "chipset not supported"}
    assert parse(BLANKS).of(0).value == {1: "chipset not supported"}


def test_colours_do_not_count():
    assert parse(TABBED.replace(b"GPU0\tGPU1\tGPU2", b"\x1b[4mGPU0\tGPU1\tGPU2\x1b[0m")).of(0).value == {
        1: "OK",
        2: "OK",
    }


@pytest.mark.parametrize("word", [b"U", b"YES", b"[N/A]", b""])
def test_a_row_with_a_word_that_is_not_known_says_nothing(word):
    status = parse(TABBED.replace(b"GPU0\tX\tOK\tOK", b"GPU0\tX\tOK\t" + word))
    assert isinstance(status.of(0), Unknown)
    assert isinstance(status.of(2), Known)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"Invalid combination of input arguments.\n", TABBED * 2, TABBED.replace(b"GPU2", b"GPU1")]
)
def test_other_output_is_unknown(data):
    assert isinstance(parse(data), Unknown)


def test_any_prefix_gives_the_same_words_or_none():
    for end in range(len(TABBED)):
        status = parse(TABBED[:end])
        if isinstance(status, Unknown):
            continue
        for index in range(3):
            words = status.of(index)
            assert isinstance(words, Unknown) or words.value == parse(TABBED).of(index).value
