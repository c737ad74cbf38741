import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.nvidia_ctk import NVIDIA_CTK, parse
from nodeready.reading import Known, Unknown

HEALTHY = b"NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 9b69590c7428470a72f2ae05f826412976af1395\n"


def test_probe_belongs_to_the_container_family():
    assert (NVIDIA_CTK.name, NVIDIA_CTK.family) == ("nvidia-ctk_--version", "container")


@pytest.mark.parametrize("version", ["1.17.4", "1.18.0-rc.2", "1.20.1"])
def test_the_version_is_the_toolkits(version):
    assert parse(HEALTHY.replace(b"1.17.4", version.encode())).value == version


def test_every_prefix_says_the_same_or_nothing():
    for end in range(len(HEALTHY)):
        found = parse(HEALTHY[:end])
        assert isinstance(found, Unknown) or found.value == "1.17.4"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEALTHY[:-1],
        b"NVIDIA Container Runtime version 1.17.4\n",
        b"NVIDIA Container Toolkit CLI version\n",
        b"NVIDIA Container Toolkit CLI version unknown\n",
        b"NVIDIA Container Toolkit CLI version " + b"1" * 5000 + b".0\n",
        HEALTHY + HEALTHY.replace(b"1.17.4", b"1.16.2"),
        b"\xff\x00\n",
    ],
)
def test_what_names_no_version_is_unknown(data):
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
    assert isinstance(parse(b"NVIDIA Container Toolkit CLI version 1" + b".1" * 1_500_000 + b"\n"), Unknown)
    assert time.process_time() - started < 5
