"""`nvidia-smi nvlink -s`: real outputs, cut and edited."""

from __future__ import annotations

import doctest
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts import nvlink
from nodeready.facts.nvlink import NVLINK_STATUS, Link, NvLink, parse
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
H100_SPEED, V100_SPEED = Quantity(26.562, "GB/s"), Quantity(25.781, "GB/s")


def raw(number):
    (path,) = (CAPTURES / "nvlink-s").glob(f"{number}-*")
    return path.read_bytes()


def said(reading):
    return reading.value if isinstance(reading, Known) else None


def gpu(index, *lines, name="NVIDIA H100 80GB HBM3"):
    head = f"GPU {index}: {name} (UUID: GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a69{index})"
    return "\n".join([head, *(f"\t {line}" for line in lines)]) + "\n"


def links(count, speed="26.562 GB/s"):
    return [f"Link {index}: {speed}" for index in range(count)]


def test_a_healthy_h100_has_eighteen_links():
    output = parse(raw("01"))
    assert list(output.gpus) == [0]
    assert output.gpus[0].uuid.value == "GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691"
    assert output.gpus[0].name == "NVIDIA H100 80GB HBM3"
    assert output.gpus[0].links.value == tuple(Link(index, H100_SPEED) for index in range(18))


@pytest.mark.parametrize("number", ["02", "04"])
def test_mig_mode_answers_nothing(number):
    assert parse(raw(number)).gpus[0].links.reason == "Nvlink queries are not supported for Devices in MIG mode"


def test_eight_a100_of_which_the_last_is_cut():
    output = parse(raw("05"))
    assert [len(output.gpus[index].links.value) for index in range(7)] == [12] * 7
    assert output.gpus[7].links.reason == "the output stops in the middle of a line: the last list may be cut"
    mended = parse(raw("05") + b"\n")
    assert mended.gpus[7].links.value == mended.gpus[0].links.value


def test_an_elided_list_is_unknown():
    output = parse(raw("07"))
    assert output.gpus[0].links.reason == "the list of links has a gap: '[...]' stands where link 1 should"


@pytest.mark.parametrize("word", [b"inactive", b"inActive", b"INACTIVE"])
def test_all_links_inactive_is_an_answer(word):
    output = parse(raw("08").replace(b"inactive", word))
    assert output.gpus[6].links.value == ()
    assert b"links are " + word in output.gpus[6].links.note.encode()


def test_inactive_links_are_named():
    output = parse(raw("10"))
    down = {
        index: [link.index for link in status.links.value if link.speed is None]
        for index, status in output.gpus.items()
        if isinstance(status.links, Known)
    }
    assert down == {0: [], 1: [], 2: [], 3: [3, 5], 4: [1], 5: [0, 4]}
    assert output.gpus[3].links.value[4] == Link(4, V100_SPEED)
    assert said(output.gpus[6].links) is None


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "no link is listed"),
        ([*links(3), "Link 4: 26.562 GB/s"], "a gap: 'Link 4: 26.562 GB/s' stands where link 3 should"),
        (["Link 1: 26.562 GB/s"], "a gap: 'Link 1: 26.562 GB/s' stands where link 0 should"),
        ([*links(3), "Link 2: 26.562 GB/s"], "a gap"),
        ([*links(3), "Link 3: N/A"], "a line is not understood: 'Link 3: N/A'"),
        ([*links(3), "Link 3: 26.562 MB/s"], "a line is not understood"),
        ([*links(3), "Link 3: Unknown Error"], "a line is not understood"),
        ([*links(3), "..."], "a gap"),
        ([*links(3), "NVML: Unable to retrieve NVLink information as all links are inactive"], "not understood"),
        (["Unable to retrieve NVLink information: Unknown Error"], "a line is not understood"),
    ],
)
def test_one_strange_list_leaves_the_others_readable(lines, reason):
    output = parse((gpu(0, *links(18)) + gpu(1, *lines) + gpu(2, *links(18))).encode())
    assert reason in output.gpus[1].links.reason
    assert len(output.gpus[0].links.value) == len(output.gpus[2].links.value) == 18


def test_an_error_line_belongs_to_the_gpu_above_it():
    text = gpu(0, *links(18)) + "Unable to determine the device handle for GPU 0000:A1:00.0\n" + gpu(2, *links(18))
    output = parse(text.encode())
    assert list(output.gpus) == [0, 2]
    assert said(output.gpus[0].links) is None
    assert len(output.gpus[2].links.value) == 18


def test_the_last_list_may_be_cut():
    output = parse((gpu(0, *links(18)) + gpu(1, *links(7))).encode())
    assert output.gpus[1].links.reason == "its list may be cut: 7 links where GPU 0 lists 18"
    first = parse((gpu(0, *links(7)) + gpu(1, *links(18))).encode())
    assert [len(status.links.value) for status in first.gpus.values()] == [7, 18]
    none = parse((gpu(0, *links(18)) + gpu(1, "NVML: all links are inActive")).encode())
    assert none.gpus[1].links.value == ()


def test_a_gpu_that_is_listed_twice_is_unknown():
    output = parse((gpu(0, *links(18)) + gpu(1, *links(18)) + gpu(0, *links(18))).encode())
    assert output.gpus[0].links.reason == output.gpus[0].uuid.reason == "GPU 0 is listed twice"
    assert len(output.gpus[1].links.value) == 18


def test_a_gpu_without_uuid():
    output = parse(b"GPU 0: NVIDIA H100\n\t Link 0: 26.562 GB/s\n")
    assert output.gpus[0].name == "NVIDIA H100"
    assert said(output.gpus[0].uuid) is None
    assert output.gpus[0].links.value == (Link(0, H100_SPEED),)


@pytest.mark.parametrize("number", ["05", "10"])
def test_a_prefix_says_nothing_else(number):
    document = raw(number) + b"\n"
    whole = parse(document)
    first_block = document.index(b"GPU 1")
    lines = document.splitlines(keepends=True)
    cuts = {*itertools.accumulate(map(len, lines)), *range(first_block, len(document), 7)}
    for cut in sorted(cut for cut in cuts if cut >= first_block):  # with one block nothing more can be known
        part = parse(document[:cut])
        for index, status in part.gpus.items():
            assert said(status.uuid) in (None, said(whole.gpus[index].uuid))
            assert said(status.links) in (None, said(whole.gpus[index].links))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n \n",
        b"GPU 0: NVIDIA H100",
        b"\x00\n",
        b"x" * 1_000_000,
        b"x" * 1_000_000 + b"\n",
        b"No devices were found\n",
        b"\t Link 0: 26.562 GB/s\n",
    ],
)
def test_what_lists_no_gpu_is_unknown(data):
    output = parse(data)
    assert isinstance(output, Unknown)
    assert 0 < len(output.reason) < 300
    assert output.missing is False


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=50))
def test_no_bytes_make_the_parser_raise(data, more):
    assert isinstance(parse(data), (NvLink, Unknown))
    assert isinstance(parse(gpu(0, *links(2)).encode() + data + b"\n\t Link 2: " + more + b"\n"), NvLink)


def test_a_number_is_bounded():
    output = parse(gpu(0, f"Link 0: {'9' * 5000} GB/s").encode())
    assert "not understood" in output.gpus[0].links.reason


def test_every_capture_is_accounted_for():
    numbers = {path.name[:2] for path in (CAPTURES / "nvlink-s").iterdir()}
    assert numbers == {"01", "02", "04", "05", "07", "08", "10"}


def test_the_probe_and_the_example():
    assert (NVLINK_STATUS.name, NVLINK_STATUS.family) == ("nvidia-smi_nvlink_-s", "nvidia")
    result = doctest.testmod(nvlink)
    assert result.attempted > 0
    assert result.failed == 0
