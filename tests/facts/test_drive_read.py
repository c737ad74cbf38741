"""The parser of the drive-read probe's document: what is odd is unknown, a part is never a value, nothing raises."""

import doctest
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts import drive_read
from nodeready.facts.drive_read import DriveRead, drive_read_probe, parse
from nodeready.probes import drive_read as probe
from nodeready.reading import Known, Unknown


def entry(**changes):
    """An entry as a drive at PCIe 4.0 x4 would give it."""
    return {
        "device": "nvme0n1",
        "drive": "nvme0",
        "bus_id": "0000:1B:00.0",
        "model": "SAMSUNG MZWLR3T8HCLS-00A07",
        "serial": "S0",
        "bytes": 3840755982336,
        "link_gts": 16.0,
        "link_width": 4,
        "in_flight": 0,
        "others_before_gb_s": 0.0,
        "others_during_gb_s": 0.0003,
        "seconds": 2.254,
        "gb_s": 6.75,
        "p5": 6.7,
        "cv": 0.004,
        "blocks": 14484,
        "blank": 0.31,
        "read_errno": None,
        "read_offset": None,
        "error": None,
        **changes,
    }


def document(*entries, **changes):
    head = {"probe": "drive-read", "schema": 1, "python": "3.12.3", "block_bytes": 1048576, "error": None}
    return json.dumps({**head, "results": list(entries), **changes}).encode()


def only(**changes):
    (drive,) = parse(document(entry(**changes))).drives.values()
    return drive


def test_the_example_in_the_docstring_holds():
    assert doctest.testmod(drive_read) == (0, 4)


def test_a_healthy_drive_is_known_throughout():
    found = parse(document(entry()))
    drive = found.drives["nvme0n1"]
    assert (drive.rate.value, drive.busy.value, drive.blank, drive.failed, found.unplaced) == (6.75, "", 0.31, "", 0)
    assert (drive.drive, drive.bus_id, drive.model) == ("nvme0", "0000:1b:00.0", "SAMSUNG MZWLR3T8HCLS-00A07")


def test_the_names_are_those_that_the_probe_gives():
    assert probe.Namespace("nvme0n1", "/dev/nvme0n1").entry().keys() == entry().keys()
    assert probe.new_document(probe.parse_options([])).keys() >= json.loads(document()).keys()


@pytest.mark.parametrize(
    ("speed", "width", "carries"),
    [(8.0, 4, 3.938), (16.0, 4, 7.877), (32.0, 4, 15.754), (16.0, 2, 3.938), (5.0, 4, 2.0), (32.0, 2, 7.877)],
)
def test_what_a_link_carries(speed, width, carries):
    assert round(only(link_gts=speed, link_width=width).link.value, 3) == carries


@pytest.mark.parametrize(
    "changes", [{"link_gts": None}, {"link_gts": 12.0}, {"link_width": 3}, {"link_width": 0}, {"link_width": True}]
)
def test_a_link_that_is_none_is_unknown(changes):
    assert isinstance(only(**changes).link, Unknown)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gb_s": None}, "gb_s reads null, no number"),
        ({"gb_s": "6.7"}, 'gb_s reads "6.7", no number'),
        ({"gb_s": True}, "gb_s reads true, no number"),
        ({"gb_s": 0}, "gb_s reads 0, which cannot be"),
        ({"gb_s": 6750.0}, "gb_s reads 6750.0, which cannot be"),  # MB/s
        ({"blocks": 0}, "blocks reads 0, which cannot be"),
        ({"blocks": None}, "blocks reads null, no number"),
        ({"error": "Permission denied"}, "Permission denied"),
        ({"error": ""}, 'the entry\'s error reads ""'),
        ({"read_errno": "EIO"}, 'a read failed with "EIO"'),
    ],
)
def test_what_proves_nothing_is_unknown_and_says_why(changes, reason):
    assert only(**changes).rate.reason == reason


@pytest.mark.parametrize("code", drive_read.FAILURES)
def test_an_error_instead_of_data_is_the_drives(code):
    said = "read at byte 4096: Input/output error"
    assert only(gb_s=None, blocks=None, read_errno=code, read_offset=4096, error=said).failed == said


@pytest.mark.parametrize("code", [None, "EINVAL", "ENOMEM", 5, ["EIO"], {}])
def test_an_error_of_ours_is_not(code):
    assert only(gb_s=None, read_errno=code, error="read at byte 4096: Invalid argument").failed == ""


@pytest.mark.parametrize(
    ("changes", "busy"),
    [
        ({"others_before_gb_s": 3.2}, "others moved 3.2 GB/s before it was read"),
        ({"others_during_gb_s": 0.012}, "others moved 0.012 GB/s meanwhile"),
        ({"in_flight": 7}, "7 requests of others were under way before it was read"),
        ({"others_before_gb_s": 0.004, "others_during_gb_s": 0.004}, ""),
        (
            {"others_before_gb_s": 2, "others_during_gb_s": 1, "in_flight": 9},
            "others moved 2 GB/s before it was read and others moved 1 GB/s meanwhile",
        ),
        ({"others_before_gb_s": None, "others_during_gb_s": 1}, "others moved 1 GB/s meanwhile"),
    ],
)
def test_what_others_did_is_told_where_it_counts(changes, busy):
    assert only(**changes).busy.value == busy


@pytest.mark.parametrize("name", ["others_before_gb_s", "others_during_gb_s", "in_flight"])
@pytest.mark.parametrize("value", [None, -1, "0", True])
def test_what_was_not_counted_is_unknown(name, value):
    assert isinstance(only(**{name: value}).busy, Unknown)


@pytest.mark.parametrize("changes", [{"device": None}, {"device": " "}, {"device": 7}])
def test_an_entry_that_names_no_drive_is_counted(changes):
    found = parse(document(entry(**changes), entry(device="nvme1n1")))
    assert (list(found.drives), found.unplaced) == (["nvme1n1"], 1)


def test_a_second_entry_of_a_drive_is_counted_and_not_taken():
    found = parse(document(entry(gb_s=1.0), entry()))
    assert (found.drives["nvme0n1"].rate.value, found.unplaced) == (1.0, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the drive-read probe printed nothing"),
        (document(entry(), error="no sysfs"), "no sysfs"),
        (document(entry(), error=" "), 'error of the drive-read probe reads " "'),
        (document(entry(), results={}), "results of the drive-read probe reads {}, no list"),
        (document(entry(), block_bytes=4096), "block_bytes reads 4096, the floors are of reads of 1048576"),
        (document(entry(), block_bytes=None), "block_bytes reads null, the floors are of reads of 1048576"),
        (document(entry(), probe="matmul"), "the output is not a document of the drive-read probe"),
        (document(entry(), schema=2), "the drive-read probe's document has schema 2, known is 1"),
    ],
)
def test_a_document_without_results_says_why(data, reason):
    assert parse(data).reason == reason


def test_no_part_of_a_document_is_a_value():
    whole = document(entry(), entry(device="nvme1n1", gb_s=1.0))
    assert isinstance(parse(whole), DriveRead)
    assert all(isinstance(parse(whole[:length]), Unknown) for length in range(len(whole)))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(entry())), anything, anything)
def test_nothing_raises_and_a_drive_has_a_number_or_a_reason(name, value, results):
    for data in (document(entry(**{name: value})), document(results=results), document(results=[value])):
        found = parse(data)
        for drive in () if isinstance(found, Unknown) else found.drives.values():
            assert isinstance(drive.rate, Unknown) or 0 < drive.rate.value <= 130
            assert isinstance(drive.rate, Unknown) or drive.failed == ""
            assert isinstance(drive.link, Unknown) or drive.link.value > 0
            assert 0 <= drive.blank <= 1


def test_the_probe_leaves_its_script_time_to_give_up_a_drive():
    asked = drive_read_probe("python3", "drive_read.py")
    assert asked.argv == ("python3", "drive_read.py", "--deadline", "100")
    assert (asked.deadline, asked.family, asked.tier, asked.answers) == (120.0, "load", "acceptance", (0,))
    assert asked.root_for
    assert isinstance(only().rate, Known)
