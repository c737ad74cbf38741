"""`nvidia-smi -L`, as a container prints it: real outputs, cut and edited."""

from __future__ import annotations

import doctest
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts import nvidia_smi_list
from nodeready.facts.nvidia_smi_list import CONTAINER_GPUS, parse
from nodeready.reading import Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
UUID = "GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691"


def line(index, name="NVIDIA H100 80GB HBM3"):
    return f"GPU {index}: {name} (UUID: {UUID[:-1]}{index})\n"


EIGHT = "".join(map(line, range(8)))


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("01-h100-590-cap.txt", {UUID: "NVIDIA H100 80GB HBM3"}),
        ("02-h100-mig-590-cap.txt", {UUID: "NVIDIA H100 80GB HBM3"}),
        ("04-h200-mig-590-cap.txt", {UUID: "NVIDIA H200"}),
    ],
)
def test_real_lists(name, gpus):
    assert parse((CAPTURES / "nvidia-smi-L" / name).read_bytes()) == gpus
    assert len(list((CAPTURES / "nvidia-smi-L").iterdir())) == 3


def test_eight_gpus():
    assert parse(EIGHT.encode()) == {f"{UUID[:-1]}{index}": "NVIDIA H100 80GB HBM3" for index in range(8)}
    assert parse(("\n" + EIGHT.replace("\n", "\r\n") + "\n").encode()) == parse(EIGHT.encode())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the output is empty"),
        (" \n", "the output is empty"),
        (EIGHT + "Unable to determine the device handle for GPU 0000:A1:00.0: Unknown Error\n", "not a GPU: 'Unable"),
        ("WARNING: infoROM is corrupted at gpu 0000:53:00.0\n" + EIGHT, "not a GPU: 'WARNING"),
        ("Failed to initialize NVML: Unknown Error\n", "not a GPU: 'Failed"),
        ("No devices found.\n", "not a GPU: 'No devices"),
        (f"  MIG 3g.40gb     Device  0: (UUID: MIG-{UUID[4:]})\n", "not a GPU: 'MIG"),
        (line(0)[:-1], "the output stops in the middle of a line"),
        (EIGHT + line(8)[:20], "the output stops in the middle of a line"),
        (EIGHT + line(3), "a GPU is listed twice: 'GPU 3"),
        (EIGHT + line(8).replace("GPU 8", "GPU 7"), "a GPU is listed twice"),
        ("GPU 0: NVIDIA H100 (UUID: GPU-1)\n", "not the UUID of a GPU: 'GPU-1'"),
        ("GPU 0: (UUID: )\n", "not a GPU"),
        ("\x00" * 10 + "\n", "not a GPU"),
        ("x" * 1_000_000 + "\n", "not a GPU"),
    ],
)
def test_anything_else_is_unknown(text, reason):
    gpus = parse(text.encode())
    assert isinstance(gpus, Unknown)
    assert gpus.reason.startswith(reason)
    assert len(gpus.reason) < 300
    assert gpus.missing is False


def test_a_prefix_is_whole_lines_or_unknown():
    whole = parse(EIGHT.encode())
    for cut in range(1, len(EIGHT) + 1):
        part = parse(EIGHT[:cut].encode())
        if EIGHT[cut - 1] == "\n":
            assert part.items() <= whole.items()
        else:
            assert isinstance(part, Unknown)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_raise(data):
    assert isinstance(parse(data), (dict, Unknown))
    assert isinstance(parse(line(0).encode() + data), (dict, Unknown))


def test_the_name_and_the_example():
    assert CONTAINER_GPUS == "container-gpus"
    result = doctest.testmod(nvidia_smi_list)
    assert result.attempted > 0
    assert result.failed == 0
