import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.os_release import OS_RELEASE, OsRelease, parse
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
FIELDS = ("id", "version_id", "pretty_name", "id_like")
HEALTHY = b"""# made by the distribution
NAME="Rocky Linux"
VERSION="9.4 (Blue Onyx)"
ID="rocky"
ID_LIKE="rhel centos fedora"

VERSION_ID='9.4'
PRETTY_NAME="Rocky \\"Blue\\" \\$9.4"
PLATFORM_ID=platform:el9
"""


def test_probe_reads_the_file_under_its_own_path():
    assert (OS_RELEASE.name, OS_RELEASE.is_file) == ("etc/os-release", True)


def test_quotes_escapes_comments_and_bare_words_are_read_as_a_shell_does():
    found = parse(HEALTHY)
    assert found.id.value == "rocky"
    assert found.version_id.value == "9.4"
    assert found.id_like.value == "rhel centos fedora"
    assert found.pretty_name.value == 'Rocky "Blue" $9.4'


def test_a_real_file_with_its_last_newline_is_read_and_without_it_is_cut():
    data = (CAPTURES / "os-release" / "01-ubuntu-etc-os-release.txt").read_bytes()
    assert not data.endswith(b"\n")
    assert "cut" in parse(data).reason
    found = parse(data + b"\n")
    assert [getattr(found, name).value for name in FIELDS] == ["ubuntu", "22.04", "Ubuntu 22.04.5 LTS", "debian"]


def test_every_prefix_says_the_same_or_nothing():
    whole = parse(HEALTHY)
    known = 0
    for end in range(len(HEALTHY)):
        found = parse(HEALTHY[:end])
        if isinstance(found, Unknown):
            assert found.reason
            continue
        for name in FIELDS:
            reading = getattr(found, name)
            if isinstance(reading, Known):
                known += 1
                assert reading.value == getattr(whole, name).value
            else:
                assert reading.reason
    assert known > 0


def test_a_field_that_is_not_there_is_unknown():
    found = parse(b"NAME=Debian\nVERSION_CODENAME=trixie\n")
    assert isinstance(found, OsRelease)
    assert isinstance(found.id, Unknown)
    assert "VERSION_ID" in found.version_id.reason


@pytest.mark.parametrize(
    "line",
    [
        b'ID="ubuntu',
        b"ID=",
        b'ID=""',
        b"ID=$(reboot)",
        b"ID=ubuntu debian",
        b"ID=ub\x00untu",
        b"ID=\xff\xfe",
        b"ID=ubuntu\nID=debian",
    ],
)
def test_a_value_that_is_no_word_is_unknown(line):
    found = parse(b"NAME=x\n" + line + b"\n")
    assert isinstance(found.id, Unknown)
    assert found.id.reason


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"cat: /etc/os-release: No such file\n", b"[Thu] a=b\n", b"\xff" * 99 + b"\n"]
)
def test_what_is_no_os_release_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert not found.missing


@given(st.binary(max_size=300), st.integers(0, len(HEALTHY)))
def test_garbage_never_raises(noise, at):
    for data in (noise + b"\n", HEALTHY[:at] + noise + HEALTHY[at:]):
        assert isinstance(parse(data), (OsRelease, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    for value in (b'"' + b"\\" * 3_000_001 + b'"', b"a" * 3_000_000 + b" b", b"'" + b"x" * 3_000_000):
        assert isinstance(parse(b"NAME=x\nID=" + value + b"\n").id, Unknown)
    assert time.process_time() - started < 5
