import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.meminfo import MEMINFO, Meminfo, parse
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
HEALTHY = b"""MemTotal:       1056706868 kB
MemFree:        1026759156 kB
MemAvailable:   1017833168 kB
Buffers:         2620172 kB
"""


def test_probe_reads_the_file_under_its_own_path():
    assert (MEMINFO.name, MEMINFO.is_file) == ("proc/meminfo", True)


@pytest.mark.parametrize(
    ("name", "total"), [("01-sichek-meminfo.txt", 2113413736), ("02-rhel-meminfo-insights.txt", 8009912)]
)
def test_real_files_give_their_total_in_kibibytes(name, total):
    found = parse((CAPTURES / "meminfo" / name).read_bytes())
    assert found.total.value == Quantity(total, "KiB")
    assert found.total.value.unit == "KiB"


def test_every_prefix_says_the_same_or_nothing():
    for end in range(len(HEALTHY)):
        found = parse(HEALTHY[:end])
        if isinstance(found, Meminfo):
            assert found.total.value == Quantity(1056706868, "KiB")
            assert HEALTHY[:end].count(b"\n") >= 2
        else:
            assert found.reason
            assert not found.missing


def test_a_file_that_stops_after_the_total_was_cut():
    found = parse(HEALTHY.split(b"\n")[0] + b"\n")
    assert isinstance(found, Unknown)
    assert "cut" in found.reason


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n\n",
        b"MemFree: 5 kB\n",
        b"MemTotal:       1056706868 MB\nMemFree: 5 kB\n",
        b"MemTotal:       [N/A] kB\nMemFree: 5 kB\n",
        b"MemTotal:       " + b"9" * 5000 + b" kB\nMemFree: 5 kB\n",
        b"MemTotal: 1 kB\nMemTotal: 2 kB\nMemFree: 5 kB\n",
        b"cat: /proc/meminfo: Permission denied\n",
        HEALTHY.replace(b"1056", b"10\x0056"),
        HEALTHY.decode().encode("utf-16"),
    ],
)
def test_what_is_no_total_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@given(st.binary(max_size=400), st.integers(0, len(HEALTHY)))
def test_garbage_never_raises(noise, at):
    for data in (noise, HEALTHY[:at] + noise + HEALTHY[at:]):
        found = parse(data)
        assert isinstance(found, Unknown) or isinstance(found.total, (Known, Unknown))


def test_a_line_of_megabytes_takes_linear_time():
    started = time.process_time()
    assert isinstance(parse(b"MemTotal:" + b" " * 4_000_000 + b"x\nMemFree: 1 kB\n"), Unknown)
    assert time.process_time() - started < 5
