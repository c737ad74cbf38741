import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.fabric_manager import FM_ACTIVE, FM_VERSION, parse_state, parse_version
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
VERSION = b"Fabric Manager version is : 580.105.08\n"


def test_probes_take_a_stopped_and_an_absent_unit_as_an_answer():
    assert FM_ACTIVE.name == "systemctl_is-active_nvidia-fabricmanager"
    assert FM_ACTIVE.answers == (0, 3, 4)
    assert FM_VERSION.name == "nv-fabricmanager_--version"


@pytest.mark.parametrize("state", ["active", "inactive", "failed", "activating", "deactivating", "reloading"])
def test_one_word_of_systemd_is_the_state(state):
    assert parse_state(f"{state}\n".encode()).value == state


@pytest.mark.parametrize("state", ["active", "inactive", "failed", "activating", "deactivating", "reloading"])
def test_no_prefix_of_a_state_is_another_state(state):
    data = f"{state}\n".encode()
    for end in range(len(data)):
        assert isinstance(parse_state(data[:end]), Unknown)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"active\nactive\n",
        b"inactive\nactive\n",
        b"Active\n",
        b" active\n",
        b"active\x00\n",
        b"unknown\n",
        b"System has not been booted with systemd as init system (PID 1). Can't operate.\n",
        b"\xff\xfe\n",
        b"active" * 500_000 + b"\n",
    ],
)
def test_what_is_no_state_is_unknown(data):
    found = parse_state(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@pytest.mark.parametrize("data", [VERSION, b"\n\n\tFabric Manager version is : 580.105.08\n\n", VERSION + VERSION])
def test_the_version_is_read_wherever_its_line_stands(data):
    assert parse_version(data).value == "580.105.08"


def test_every_prefix_of_a_version_says_the_same_or_nothing():
    for end in range(len(VERSION)):
        assert isinstance(parse_version(VERSION[:end]), Unknown)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        VERSION + VERSION.replace(b"580", b"570"),
        b"Fabric Manager version is : \n",
        b"Fabric Manager version is : " + b"5" * 5000 + b".1\n",
        b"nv-fabricmanager: error while loading shared libraries: libnvidia-nscq.so.2\n",
        b"\xff\x00\n",
    ],
)
def test_what_names_no_version_is_unknown(data):
    found = parse_version(data)
    assert isinstance(found, Unknown)
    assert found.reason


def test_logs_of_the_fabric_manager_are_neither_state_nor_version():
    files = sorted((CAPTURES / "fabricmanager").iterdir())
    assert files
    for path in files:
        data = path.read_bytes()
        for found in (parse_state(data), parse_version(data), parse_state(data + b"\n"), parse_version(data + b"\n")):
            assert isinstance(found, Unknown)
            assert found.reason


@given(st.binary(max_size=300))
def test_garbage_never_raises(noise):
    for data in (noise, noise + b"\n", noise + VERSION):
        assert isinstance(parse_state(data), (Known, Unknown))
        assert isinstance(parse_version(data), (Known, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    assert isinstance(
        parse_version(b" " * 3_000_000 + b"Fabric Manager version is" + b" " * 3_000_000 + b"\n"), Unknown
    )
    assert time.process_time() - started < 5
