import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.nvcc import NVCC, parse
from nodeready.reading import Known, Unknown

HEALTHY = b"""nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2024 NVIDIA Corporation
Built on Thu_Mar_28_02:18:24_PDT_2024
Cuda compilation tools, release 12.4, V12.4.131
Build cuda_12.4.r12.4/compiler.34097967_0
"""


def test_probe_runs_the_command_of_its_name():
    assert (NVCC.name, NVCC.argv) == ("nvcc_--version", ("nvcc", "--version"))


def test_the_release_is_the_toolkits_version():
    assert parse(HEALTHY).value == "12.4"
    assert parse(HEALTHY.replace(b"12.4", b"13.0")).value == "13.0"


def test_every_prefix_says_the_same_or_nothing():
    for end in range(len(HEALTHY)):
        found = parse(HEALTHY[:end])
        assert isinstance(found, Unknown) or found.value == "12.4"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEALTHY[:-1],
        HEALTHY + HEALTHY.replace(b"12.4", b"11.8"),
        HEALTHY.replace(b"release 12.4", b"release 12"),
        HEALTHY.replace(b"release 12.4", b"release " + b"1" * 5000),
        b"bash: nvcc: command not found\n",
        b"\xff\x00\n",
    ],
)
def test_what_names_no_release_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@given(st.binary(max_size=300), st.integers(0, len(HEALTHY)))
def test_garbage_never_raises(noise, at):
    for data in (noise + b"\n", HEALTHY[:at] + noise + HEALTHY[at:]):
        assert isinstance(parse(data), (Known, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    assert isinstance(parse(b"Cuda compilation tools, release 12.4, V12.4" + b" " * 3_000_000 + b"x\n"), Unknown)
    assert time.process_time() - started < 5
