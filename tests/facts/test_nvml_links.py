"""NVLinks and pairs in the nvml probe's entry of a GPU: counted whole, or unknown."""

import pytest

from nodeready.facts.nvlink import Link
from nodeready.facts.nvml_links import LinkErrors, link_errors, links, pairs
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

SPEED = Quantity(26.562, "GB/s")
NO_MIG, NO_VGPU = Known("Disabled"), Known("None")


def links_of(**entry):
    return links(entry, NO_MIG, NO_VGPU)


def link(index, state="active", **more):
    counters = dict.fromkeys(("replay_errors", "recovery_errors", "crc_flit_errors"), 0)
    about = {"speed_gb_per_s": 26.562, **counters} if state == "active" else {}
    return {"index": index, "state": state, **about, **more}


def test_inactive_links_have_no_speed_and_those_that_are_not_there_no_place():
    listed = [link(0), link(1, "inactive"), link(2, "not-supported"), link(3, replay_errors=7)]
    entry = {"nvlink": listed, "nvlink_count": 3}
    assert links_of(**entry).value == (Link(0, SPEED), Link(1, None), Link(3, SPEED))
    assert link_errors(entry).value == (LinkErrors(0, 0, 0, 0), LinkErrors(3, 7, 0, 0))


@pytest.mark.parametrize(
    ("listed", "count", "reason"),
    [
        ([link(0), link(1)], 3, "NVML has 3 NVLinks and lists 2"),
        ([link(0), link(0)], 2, "an NVLink is listed as"),
        ([link(0), {"state": "active"}], 2, "an NVLink is listed as"),
        ([link(0), link(1, "unknown")], 2, "an NVLink is listed as"),
        ([link(0), 5], 2, "an NVLink is listed as"),
        ("eighteen", 18, "the nvml probe has no nvlink"),
        ([link(0)], 2**40, "nvlink_count reads"),
        ([link(0)], None, "the nvml probe has no nvlink_count"),
    ],
)
def test_a_list_of_links_that_does_not_add_up_is_unknown(listed, count, reason):
    entry = {"nvlink": listed, "nvlink_count": count}
    assert links_of(**entry).reason.startswith(reason)
    assert isinstance(link_errors(entry), Unknown)


def test_an_active_link_without_a_speed_or_counter_makes_them_unknown():
    unread = {"nvlink/0/speed_gb_per_s": ["nvmlSpeed(0)"], "nvlink/1/replay_errors": ["nvmlReplay(1)"]}
    errors = {"nvmlSpeed(0)": "FUNCTION_NOT_FOUND", "nvmlReplay(1)": "UNKNOWN"}
    listed = [link(0, speed_gb_per_s=None), link(1, speed_gb_per_s=None, replay_errors=None)]
    entry = {"nvlink": listed, "nvlink_count": 2, "unread": unread, "errors": errors}
    speed, counter = links_of(**entry), link_errors(entry)
    assert speed.reason == "speed_gb_per_s of NVLink 0 is unknown: nvmlSpeed(0): FUNCTION_NOT_FOUND"
    assert counter.reason == "replay_errors of NVLink 1 is unknown: nvmlReplay(1): UNKNOWN"
    assert (speed.missing, counter.missing) == (True, False)
    odd = links_of(nvlink=[link(0, speed_gb_per_s=-1)], nvlink_count=1)
    assert odd.reason == "of NVLink 0 speed_gb_per_s reads -1"


def test_a_gpu_has_no_links_where_nothing_else_hides_them():
    none = {"nvlink": [link(0, "not-supported")], "nvlink_count": 0}
    no_mig_here = {**none, "errors": {"nvmlDeviceGetMigMode": "NOT_SUPPORTED"}}
    assert links(none, NO_MIG, NO_VGPU) == Known((), note="NVLink is not supported on this GPU")
    assert links(no_mig_here, Unknown("nvmlDeviceGetMigMode: NOT_SUPPORTED"), NO_VGPU).value == ()
    assert links(none, Known("Enabled"), NO_VGPU).reason == "NVLink is not supported in MIG mode"
    assert "whether MIG hides it is unknown: lost" in links(none, Unknown("lost"), NO_VGPU).reason
    assert links(none, NO_MIG, Known("VGPU")).reason == "NVLink is not supported on a virtual GPU"
    assert link_errors(none).value == ()


def test_a_pair_that_is_not_known_makes_all_pairs_of_the_gpu_unknown():
    peers = {index: Known(f"0000:{index}0:00.0") for index in range(4)}
    said = {"1": "OK", "2": "DISABLED_BY_REGKEY", "3": "OK"}
    bus_ids = ("0000:10:00.0", "0000:20:00.0", "0000:30:00.0")
    whole = pairs({"index": 0, "p2p_nvlink": said}, peers)
    assert whole.value == dict(zip(bus_ids, said.values(), strict=True))
    errors = {"nvmlDeviceGetP2PStatus(0, 3)": "GPU_IS_LOST"}
    less = {"index": 0, "p2p_nvlink": {"1": "OK", "2": "OK"}, "errors": errors}
    assert pairs(less, peers).reason == "nvmlDeviceGetP2PStatus(0, 3): GPU_IS_LOST"
    assert isinstance(pairs({**less, "errors": {}}, peers), Unknown)
    assert isinstance(pairs({"index": 0, "p2p_nvlink": said}, {**peers, 3: Unknown("no bus id")}), Unknown)
    assert pairs({"index": 0, "p2p_nvlink": {}}, {0: peers[0]}).value == {}
    assert isinstance(pairs({"index": 0}, peers), Unknown)
