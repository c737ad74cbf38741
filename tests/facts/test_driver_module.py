import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.driver_module import MODULE_VERSION, parse
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
GCC = b"GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
CLOSED = b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.07  Sat Feb 17 22:55:48 UTC 2024\n" + GCC
OPEN = (
    b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build  "
    b"(dvs-builder@U22-I3-H04-01-5)  Wed Oct 29 22:15:31 UTC 2025\n" + GCC
)
ARM = b"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  550.90.07  Release Build  (x)\n"


def test_probe_reads_the_file_under_its_own_path():
    assert (MODULE_VERSION.name, MODULE_VERSION.is_file) == ("proc/driver/nvidia/version", True)


@pytest.mark.parametrize(("data", "version"), [(CLOSED, "535.161.07"), (OPEN, "580.105.08"), (ARM, "550.90.07")])
def test_closed_and_open_modules_name_their_version(data, version):
    assert parse(data).value == version
    assert parse(data.replace(b"\n", b"\r\n")).value == version


@pytest.mark.parametrize(("data", "version"), [(CLOSED, "535.161.07"), (OPEN, "580.105.08")])
def test_every_prefix_says_the_same_or_nothing(data, version):
    for end in range(len(data)):
        found = parse(data[:end])
        assert isinstance(found, Unknown) or (found.value == version and end > data.index(b"\n"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GCC,
        CLOSED + OPEN,
        b"NVRM version: NVIDIA UNIX x86_64 Kernel Module\n",
        b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  N/A  x\n",
        b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + b"9" * 5000 + b".1 x\n",
        b"cat: /proc/driver/nvidia/version: No such file or directory\n",
        b"\xff\x00NVRM version: 5\n",
    ],
)
def test_what_names_no_version_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


def test_a_list_of_modules_names_no_version():
    assert isinstance(parse((CAPTURES / "kernel-misc" / "01-lsmod-nvidia.txt").read_bytes()), Unknown)


@given(st.binary(max_size=300), st.integers(0, len(OPEN)))
def test_garbage_never_raises(noise, at):
    for data in (noise, OPEN[:at] + noise + OPEN[at:]):
        assert isinstance(parse(data), (Known, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    for filler in (b"Kernel Module ", b" ", b"Kernel Module for "):
        assert isinstance(parse(b"NVRM version: NVIDIA UNIX " + filler * 200_000 + b"\n"), Unknown)
    assert time.process_time() - started < 5
