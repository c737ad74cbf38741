"""What drives read, by corners that no simulated fault has."""

import json

import pytest

from nodeready.reading import Unknown
from nodeready.simulate.build import build


def drive(number, **changes):
    about = {"device": f"nvme{number}n1", "drive": f"nvme{number}", "bus_id": f"0000:{0x19 + number:02x}:00.0"}
    link = {"model": "SSD", "link_gts": 16.0, "link_width": 4}
    others = {"in_flight": 0, "others_before_gb_s": 0.0, "others_during_gb_s": 0.0}
    figures = {"gb_s": 6.75, "blocks": 14484, "blank": 0.0, "read_errno": None, "read_offset": None, "error": None}
    return {**about, **link, **others, **figures, **changes}


def silent(number, error="Permission denied", **changes):
    return drive(number, **{"gb_s": None, "blocks": None, "blank": None, "error": error, **changes})


@pytest.fixture
def read(node_of):
    """The readings of a node whose drives read so."""

    def make(*drives):
        head = {"probe": "drive-read", "schema": 1, "block_bytes": 1048576, "error": None}
        document = json.dumps({**head, "results": list(drives)}).encode()
        return node_of(changes={"drive-read": document, "nvme-drives": None}).drive_rates

    return make


def test_the_slowest_by_its_share_decides_and_is_named(read):
    found = read(drive(0), drive(1, gb_s=7.0, link_gts=32.0, blank=0.125), drive(2, gb_s=3.4, link_gts=8.0)).share
    assert (found.value, found.doubt) == (0.444, "")
    told = "nvme1n1 (SSD, at 0000:1a:00.0) read 7 of 15.8 GB/s that its link carries, 12% of it blank"
    assert found.note == f"{told}, the slowest of 3"


def test_a_drive_without_a_figure_hides_no_slow_one(read):
    found = read(drive(0, gb_s=1.0), silent(1))
    assert found.share.value == 0.127
    assert found.failed.reason == "nvme1n1 (SSD, at 0000:1a:00.0): Permission denied"


def test_a_drive_that_failed_counts_though_others_were_not_read(read):
    failed = silent(2, "read at byte 4096: Input/output error", read_errno="EIO")
    found = read(drive(0), silent(1), failed).failed
    assert found.value == 1
    assert found.note == "nvme2n1 (SSD, at 0000:1b:00.0): read at byte 4096: Input/output error"
    assert read(failed).share.reason == found.note


def test_a_link_that_is_not_told_leaves_the_share_unknown_and_no_failure(read):
    found = read(drive(0, link_gts=None))
    assert found.share.reason == "nvme0n1 (SSD, at 0000:19:00.0): link_gts reads null, no number"
    assert found.failed.value == 0
    beside = read(drive(0, link_gts=None), drive(1), drive(2, gb_s=0.4)).share
    assert isinstance(beside, Unknown)
    assert "nvme0n1" in beside.reason
    assert "of the others the slowest: nvme2n1" in beside.reason


def test_more_than_the_link_carries_is_no_measurement(read):
    found = read(drive(0), drive(1, gb_s=8.1)).share
    assert isinstance(found, Unknown)
    assert found.reason.endswith("read 8.1 of 7.88 GB/s that its link carries: the measurement is at fault")


def test_a_drive_in_use_is_in_doubt_and_a_sure_slow_one_is_the_ceiling(read):
    used = {"gb_s": 0.8, "others_during_gb_s": 5.0}
    found = read(drive(0, **used), drive(1, gb_s=1.6)).share
    assert (found.value, found.ceiling, found.doubt) == (0.102, 0.203, "others moved 5 GB/s meanwhile")
    assert read(drive(0, **used)).share.ceiling is None


def test_what_the_kernel_did_not_count_is_in_doubt(read):
    found = read(drive(0, gb_s=0.8, others_during_gb_s=None)).share
    assert found.doubt == "whether others used it is not known: others_during_gb_s reads null, no number"


def test_entries_of_no_drive_make_all_unknown(read):
    found = read(drive(0), drive(0))
    reasons = {found.share.reason, found.failed.reason}
    assert reasons == {"1 entries of drive-read do not say of which drive"}


def test_without_any_drive_nothing_is_known(read):
    assert read().share.reason == read().failed.reason == "there was no NVMe drive to read"
    assert read().share.causes == ("storage.drives",)


def test_a_drive_that_the_kernel_has_and_that_was_not_read_is_named(node_of):
    node = node_of()
    document = json.loads(node.evidence.recordings["drive-read"].stdout)
    missing = document["results"].pop()
    found = node_of(changes={"drive-read": json.dumps(document).encode()}).drive_rates
    assert found.failed.reason == f"{missing['drive']} was not read"
    assert found.failed.recordings == ("drive-read", "nvme-drives")
    assert found.share.value > 0.8


def test_many_drives_are_told_in_short(read):
    found = read(*(silent(number) for number in range(8)))
    assert found.share.reason.endswith("; and 6 more")
    failed = read(*(silent(n, "bad", read_errno="ENODATA") for n in range(8))).failed
    assert (failed.value, failed.note.endswith("and 4 more")) == (8, True)


def test_a_document_that_was_not_recorded_may_be_the_drivers_doing(node_of):
    found = node_of(changes={"drive-read": None}).drive_rates
    for reading in (found.share, found.failed):
        assert (reading.reason, reading.causes) == ("drive-read was not recorded", ("driver.responds",))


def test_a_virtual_machine_is_not_asked(node_of):
    assert isinstance(node_of(build("sxm-1")).drive_rates.share, Unknown)
