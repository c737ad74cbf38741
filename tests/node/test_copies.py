"""What the copies of a node say: which pair is slow, what is left to another check, what proves nothing."""

import json

import pytest

from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.model import INACTIVE
from nodeready.simulate.outputs.copies import copies

TOPO = "nvidia-smi_topo_-m"


@pytest.fixture
def gpu_of(node_of):
    """One GPU of a node with changes to its copies document or to the simulated node."""

    def make(number, node_type="sxm", change=None, spoil=None, count=None, without=()):
        node = build(node_type, 0, count)
        if spoil:
            spoil(node)
        document = json.loads(copies(node).stdout)
        if change:
            change(document)
        changes = {"copies": json.dumps(document).encode(), **dict.fromkeys(without)}
        return node_of(node, changes, node_type).gpus[number]

    return make


def entries(document, gpu, copy, peer=None):
    return [
        entry
        for entry in document["results"]
        if entry["device"] == f"cuda:{gpu}"
        and entry["copy"] == copy
        and (peer is None or entry["peer_device"] == f"cuda:{peer}")
    ]


def changed(gpu, copy, peer=None, **values):
    def change(document):
        found = entries(document, gpu, copy, peer)
        assert found
        for entry in found:
            entry.update(values)

    return change


def seen_at(generation):
    return {"generation": {"min": generation, "median": 5, "max": 5}, "width": {"min": 16, "median": 16, "max": 16}}


# ---- the link ----------------------------------------------------------------------------------


def test_a_low_generation_under_load_fails_whatever_is_read_when_idle(gpu_of):
    reading = gpu_of(3, change=changed(3, "to-host", link=seen_at(4))).pcie.generation
    assert (reading.value, reading.note, reading.doubt, reading.recordings) == (4, "under load", "", ("copies",))


def test_a_full_one_under_load_passes_whatever_is_read_when_idle(gpu_of):
    def sleep(node):
        node.gpus[3].link.generation = 1
        node.gpus[3].printed["performance_state"] = "P8"

    assert gpu_of(3, spoil=sleep).pcie.generation.value == 5
    idle = gpu_of(3, spoil=sleep, without=["copies"]).pcie.generation
    assert (idle.value, "read it under load" in idle.doubt) == (1, True)


def test_without_a_sample_the_link_is_as_it_was_read(gpu_of):
    def unseen(document):
        for entry in document["results"]:
            entry["link"] = None

    assert gpu_of(3, change=unseen).pcie.generation.recordings != ("copies",)
    one_way = gpu_of(3, change=changed(3, "to-host", link=None)).pcie.generation
    assert (one_way.value, one_way.recordings) == (5, ("copies",))


def test_fewer_lanes_under_load_count(gpu_of):
    link = {**seen_at(5), "width": {"min": 8, "median": 16, "max": 16}}
    assert gpu_of(3, change=changed(3, "to-device", link=link)).pcie.width.value == 8


# ---- the host ----------------------------------------------------------------------------------


def test_a_low_rate_from_memory_that_may_be_far_away_proves_nothing(gpu_of):
    far = gpu_of(2, change=changed(2, "to-device", gb_s=40.0, p5=39.0, host_cpus=None)).copies.to_device
    assert (far.value.value, "processors beside the GPU" in far.doubt) == (40.0, True)
    near = gpu_of(2, change=changed(2, "to-device", gb_s=40.0, p5=39.0)).copies.to_device
    assert near.doubt == ""


@pytest.mark.parametrize("copy", ["to-device", "to-host"])
def test_bytes_that_arrive_wrong_one_way_are_enough(gpu_of, copy):
    assert gpu_of(2, change=changed(2, copy, verified=False)).copies.host_correct.value is False
    assert isinstance(gpu_of(2, change=changed(2, copy, verified=None)).copies.host_correct, Unknown)


def test_wrong_bytes_of_an_unknown_gpu_let_no_gpu_be_called_right(gpu_of):
    stray = changed(5, "device", bus_id=None, verified=False)
    for reading in ("memory_correct", "host_correct", "peers_correct"):
        found = getattr(gpu_of(2, change=stray).copies, reading)
        assert "of a GPU whose bus id is unknown" in found.reason


def test_copies_of_another_gpu_are_not_this_ones(gpu_of):
    gpu = gpu_of(2, change=changed(2, "to-device", uuid="GPU-00000000-0000-0000-0000-000000000000"))
    assert "the driver lists GPU-" in gpu.copies.to_device.reason
    assert isinstance(gpu.copies.to_host, Known)


# ---- peers -------------------------------------------------------------------------------------


def test_the_slowest_pair_is_named(gpu_of):
    slow = gpu_of(2, change=changed(2, "to-peer", 6, gb_s=200.0, p5=199.0)).copies.slowest_peer
    assert (str(slow.value), slow.note) == ("200 GB/s", "from gpu2 (0000:4c:00.0) to gpu6 (0000:cb:00.0)")
    assert gpu_of(6, change=changed(2, "to-peer", 6, gb_s=200.0, p5=199.0)).copies.slowest_peer.value.value > 390


def test_a_wrong_pair_is_named_and_a_pair_that_was_not_compared_is_unknown(gpu_of):
    wrong = gpu_of(2, change=changed(2, "to-peer", 6, verified=False)).copies.peers_correct
    assert (wrong.value, wrong.note) == (False, "wrong from gpu2 (0000:4c:00.0) to gpu6 (0000:cb:00.0)")
    assert isinstance(gpu_of(2, change=changed(2, "to-peer", 6, verified=None)).copies.peers_correct, Unknown)


def test_a_pair_without_a_measurement_is_unknown_and_one_to_a_sick_gpu_is_its_own_matter(gpu_of):
    failed = changed(2, "to-peer", 6, error="CUDA error: unspecified launch failure")
    assert gpu_of(2, change=failed).copies.slowest_peer.reason == "CUDA error: unspecified launch failure"

    def sick(document):
        changed(6, "device", error="hung")(document)
        changed(2, "to-peer", 6, error="not copied", skipped=True)(document)

    assert isinstance(gpu_of(2, change=sick).copies.slowest_peer, Known)
    assert gpu_of(2, change=sick).copies.peers_correct.value is True
    assert gpu_of(6, change=sick).copies.slowest_peer.reason == "hung"


def test_a_pair_that_was_skipped_for_a_gpu_that_is_not_sick_is_unknown(gpu_of):
    skipped = changed(2, "to-peer", 6, error="not copied", skipped=True)
    assert gpu_of(2, change=skipped).copies.slowest_peer.reason == "not copied"


def test_a_pair_that_nvlink_does_not_join_is_another_checks_matter(gpu_of):
    def part(node):
        node.links.paired[frozenset((2, 6))] = 0

    parted = gpu_of(2, spoil=part)
    assert parted.copies.slowest_peer.value.value > 390
    assert parted.fabric.peers.short_pairs.value == 1


def test_a_copy_through_the_host_is_not_taken_for_nvlink(gpu_of):
    slow = gpu_of(2, spoil=lambda node: node.links.silent.add((2, 6))).copies.slowest_peer
    assert slow.value.value < 30
    assert "through the host's memory" in slow.note


def test_a_board_without_any_nvlink_is_not_passed_for_what_pcie_gives(gpu_of):
    def break_all(node):
        node.gpus[2].links = [INACTIVE] * 18

    found = gpu_of(2, spoil=break_all).copies.slowest_peer
    assert (found.reason, "nvlink.links-active" in found.causes) == ("NVLink joins it with no other GPU", True)
    assert gpu_of(3, spoil=break_all).copies.slowest_peer.value.value > 390


def test_the_pair_of_a_gpu_with_fewer_links_is_told_by_that_one(gpu_of):
    def lose_ten(node):
        node.gpus[2].links[:10] = [INACTIVE] * 10

    assert gpu_of(2, spoil=lose_ten).copies.slowest_peer.value.value < 180
    assert gpu_of(3, spoil=lose_ten).copies.slowest_peer.value.value > 390


def test_of_cards_without_a_bridge_nothing_is_demanded(gpu_of):
    def leave_out(node):
        for gpu in node.gpus:
            gpu.links = [INACTIVE] * len(gpu.links)

    found = gpu_of(0, "nvl", spoil=leave_out).copies.slowest_peer
    assert (found.share, found.share_reason) == (0.0, "no NVLink joins it")
    assert found.value.value < 50
    assert gpu_of(0, "nvl").copies.slowest_peer.share == 1.0


def test_without_the_matrix_a_board_is_joined_and_cards_are_not_known_to_be(gpu_of):
    assert gpu_of(0, without=[TOPO]).copies.slowest_peer.value.value > 390
    assert TOPO in gpu_of(0, "nvl", without=[TOPO]).copies.slowest_peer.reason


def test_one_gpu_alone_has_no_pair_and_needs_its_own_copy_all_the_same(gpu_of):
    alone = gpu_of(0, count=1).copies
    assert (alone.slowest_peer.share, alone.peers_correct.value) == (0.0, True)
    failed = gpu_of(0, count=1, change=changed(0, "device", error="hung")).copies
    assert failed.slowest_peer.reason == failed.peers_correct.reason == "hung"
    assert isinstance(gpu_of(0, count=1, without=["copies"]).copies.peers_correct, Unknown)


def test_the_last_of_two_has_no_pair_left_to_measure(gpu_of):
    def sick(document):
        changed(1, "device", error="hung")(document)
        changed(0, "to-peer", 1, error="not copied", skipped=True)(document)

    found = gpu_of(0, "nvl", change=sick).copies
    assert "there is no pair" in found.slowest_peer.reason
    assert "there is no pair" in found.peers_correct.reason
