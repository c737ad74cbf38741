import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.containerd import CONTAINERD, Containerd, parse
from nodeready.reading import Known, Unknown

WHOLE = b"""Client:
  Version:  1.7.24
  Revision: 88bf19b2105c8b17560993bee28a01ddc2f97182
  Go version: go1.22.10

Server:
  Version:  1.7.22
  Revision: 7f7fdf5fed64eb6a7caf99b3e12efcf9d60e311c
  UUID: 0f2b2b1c-6a0e-4b1c-9a3b-0a1b2c3d4e5f
"""
CLIENT = WHOLE[: WHOLE.index(b"Server:")]


def test_probe_belongs_to_the_container_family():
    assert (CONTAINERD.name, CONTAINERD.family) == ("ctr_version", "container")


def test_client_and_daemon():
    found = parse(WHOLE)
    assert (found.client_version.value, found.server_version.value) == ("1.7.24", "1.7.22")


def test_a_client_without_a_daemon_is_no_daemon():
    for data in (CLIENT, CLIENT + b'ctr: cannot access containerd socket "/run/containerd/containerd.sock"\n'):
        found = parse(data)
        assert found.client_version.value == "1.7.24"
        assert "no daemon answered" in found.server_version.reason


@pytest.mark.parametrize(
    ("text", "version"),
    [("v2.0.1", "2.0.1"), ("1.6.20~ds1", "1.6.20~ds1"), ("v2.1.0-rc.1", "2.1.0-rc.1"), ("1.7.0+bzr", "1.7.0+bzr")],
)
def test_versions_in_every_spelling(text, version):
    assert parse(WHOLE.replace(b"1.7.22", text.encode())).server_version.value == version


@pytest.mark.parametrize("text", ["", "unknown", "v", "1", "1.7.22 dirty", "9" * 9 + ".1"])
def test_what_is_no_version_is_unknown(text):
    found = parse(WHOLE.replace(b"1.7.22", text.encode()))
    assert found.server_version.reason
    assert found.client_version.value == "1.7.24"


def test_a_part_without_a_version_or_with_two_is_unknown():
    assert "names no version" in parse(WHOLE.replace(b"  Version:  1.7.22\n", b"")).server_version.reason
    assert "several" in parse(WHOLE + b"Server:\n  Version: 2.0.0\n").server_version.reason


def test_every_prefix_says_the_same_or_nothing():
    whole = parse(WHOLE)
    known = 0
    for end in range(len(WHOLE)):
        found = parse(WHOLE[:end])
        for name in ("client_version", "server_version") if isinstance(found, Containerd) else ():
            reading = getattr(found, name)
            if isinstance(reading, Known):
                known += 1
                assert reading.value == getattr(whole, name).value
    assert known


def test_configuration_files_are_not_the_daemons_word(captures):
    files = sorted((captures / "container-runtime").iterdir())
    assert len(files) == 5
    for path in files:
        assert isinstance(parse(path.read_bytes()), Unknown), path.name


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"Client", b"ctr containerd.io 1.7.24\n", b"  Version: 1.7.24\n", b"\xff\n"]
)
def test_what_is_no_answer_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@given(st.binary(max_size=200), st.integers(0, len(WHOLE)))
def test_garbage_never_raises(noise, at):
    for data in (noise + b"\n", WHOLE[:at] + noise + WHOLE[at:]):
        assert isinstance(parse(data), (Containerd, Unknown))
