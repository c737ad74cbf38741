"""NVLink growth, peers and health by forms and corners that no simulated fault has."""

import json
import re

import pytest

from nodeready.reading import Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs

ERRORS, LATER = "nvidia-smi_nvlink_-e", "nvidia-smi_nvlink_-e-later"


@pytest.fixture
def growth(node_of):
    """The growth of the first GPU's links, of which one has counted before."""

    def make(changes, counted=(0, 0, 0)):
        node = build("sxm")
        node.links.counted[0, 3] = counted
        return node_of(node, changes).gpus[0].fabric.growth

    return make


def test_links_that_never_counted_an_error_need_no_second_sample(growth):
    found = growth({LATER: None})
    assert (found.errors.value, found.crc_rate.value) == (0, 0.0)
    assert "none since the driver was loaded" in found.errors.note


def test_old_errors_without_a_second_sample_are_unknown(growth):
    found = growth({LATER: None}, (14, 2, 31))
    assert isinstance(found.errors, Unknown)
    assert "47 errors since the driver was loaded" in found.errors.reason
    assert isinstance(found.crc_rate, Unknown)


def test_samples_without_a_clock_tell_no_rate(node_of):
    node = build("sxm")
    node.links.counted[0, 3] = (14, 2, 31)
    node.links.untimed = True
    found = node_of(node).gpus[0].fabric.growth.errors
    assert "does not say when it was taken" in found.reason


def test_a_link_that_is_up_and_has_no_counters_is_unknown(growth):
    data = outputs(build("sxm"))[ERRORS].stdout
    lines = [line for line in data.split(b"\n") if b"Link 17:" not in line]
    found = growth({ERRORS: b"\n".join(lines)})
    assert found.errors.reason == f"{ERRORS} lists no counters of link 17, which is up"


def test_an_output_without_uuids_goes_by_place(node_of, growth):
    bare = {name: re.sub(rb" \(UUID: \S+\)", b"", outputs(build("sxm"))[name].stdout) for name in (ERRORS, LATER)}
    assert growth(bare).errors.value == 0
    half = bare[ERRORS].partition(b"GPU 4:")[0]
    assert isinstance(node_of(changes={ERRORS: half}).gpus[5].fabric.growth.errors, Unknown)


def test_crc_errors_are_told_by_the_second_and_by_link(node_of):
    node = build("sxm")
    node.links.growth[0, 5] = (0, 0, 600)
    found = node_of(node).gpus[0].fabric.growth
    assert (found.errors.value, found.crc_rate.value) == (0, 150.0)
    assert found.crc_rate.note.startswith("link 5; in 4.0 s")


def test_a_gpu_without_links_has_no_errors_of_links(node_of):
    assert node_of(node_type="pcie").gpus[0].fabric.growth.errors.note == "no link is up"


@pytest.mark.parametrize("name", ["lspci_-nnvvv", "sys/bus/pci/links"])
def test_switches_are_counted_in_each_form(name, node_of):
    if name.startswith("sys"):
        lines = "".join(
            f"/sys/devices/pci0000:80/0000:8{n}:00.0/{a}\n"
            for n in range(3, 6)
            for a in ("vendor:0x10de", "device:0x22a3")
        )
        node = node_of(changes={"lspci_-nnvvv": None, name: lines.encode()})
        assert node.fabric.switches.value == 3
    else:
        assert node_of().fabric.switches.value == 4


def test_a_switch_that_answers_with_all_ones_does_not_count(node_of):
    data = outputs(build("sxm"))["lspci_-nnvvv"].stdout
    head = next(line for line in data.split(b"\n") if b"10de:22a3" in line)
    sick = data.replace(head, head.partition(b" (rev ")[0] + b" (rev ff)")
    found = node_of(changes={"lspci_-nnvvv": sick}).fabric.switches
    assert (found.value, "rev ff" in found.note) == (3, True)


def test_half_of_a_listing_tells_no_number_of_switches(node_of):
    data = outputs(build("sxm"))["lspci_-nnvvv"].stdout
    assert isinstance(node_of(changes={"lspci_-nnvvv": data[: len(data) // 2]}).fabric.switches, Unknown)


def nvml(**more):
    """A document of the nvml probe with two GPUs, and nothing but what is asked of it."""
    node = build("sxm", 0, 2)
    devices = [
        {"index": index, "bus_id": f"0000{gpu.bus_id}", "uuid": gpu.uuid, "errors": {}, "unread": {}, **more}
        for index, gpu in enumerate(node.gpus)
    ]
    head = {"probe": "nvml", "schema": 1, "driver_version": "580.178.04", "cuda_version": "13.0", "device_count": 2}
    return node, json.dumps({**head, "errors": {}, "error": None, "devices": devices}).encode()


@pytest.mark.parametrize(
    ("words", "silent"), [({"0": "OK", "1": "OK"}, 0), ({"0": "CHIPSET_NOT_SUPPORTED", "1": "NOT_SUPPORTED"}, 1)]
)
def test_nvml_tells_which_peers_can_be_read_where_nvidia_smi_was_not_asked(words, silent, node_of):
    node, document = nvml(p2p_nvlink=words)
    gpu = node_of(node, {"nvidia-smi_topo_-p2p_r": None, "nvml": document}).gpus[0]
    assert gpu.fabric.peers.silent_peers.value == silent


@pytest.mark.parametrize(
    ("fabric", "word"),
    [
        ({"state": "Completed", "status": "Success"}, "not told"),
        ({"state": "Completed", "status": "Success", "health": {"degraded_bandwidth": False}}, "healthy"),
        ({"state": "Completed", "status": "Success", "health": {"route_unhealthy": True}}, "route unhealthy"),
    ],
)
def test_nvml_tells_the_health_of_the_fabric_where_there_is_no_nvidia_smi(fabric, word, node_of):
    node, document = nvml(fabric=fabric)
    changes = {name: None for name in outputs(node) if name.startswith("nvidia-smi")}
    assert node_of(node, {**changes, "nvml": document}).gpus[0].fabric.health.value == word


def test_the_words_of_a_platform_that_reports_health_are_read(node_of):
    """As GB200 and GB300 print them; Hopper's own captures say N/A."""
    node = build("sxm")
    node.gpus[0].printed = {"fabric/health/summary": "Healthy", "fabric/health/bandwidth": "Full"}
    node.gpus[1].printed = {"fabric/health/summary": "Unhealthy", "fabric/health/route_unhealthy": "True"}
    node.gpus[2].printed = {"fabric/health/incorrect_configuration": "Insufficient Nvlinks"}
    gpus = node_of(node).gpus
    words = [gpus[index].fabric.health.value for index in range(4)]
    assert words == [
        "healthy",
        "summary Unhealthy, route unhealthy True",
        "configuration Insufficient Nvlinks",
        "not told",
    ]


def test_old_drivers_that_know_no_health_report_none(node_of):
    assert node_of(build("sxm", 0, 8, "535")).gpus[0].fabric.health.value == "not told"


def test_a_matrix_of_fewer_gpus_than_the_driver_lists_is_unknown(node_of):
    data = outputs(build("sxm", 0, 4))["nvidia-smi_topo_-m"].stdout
    found = node_of(changes={"nvidia-smi_topo_-m": data}).gpus[0].fabric.peers.short_pairs
    assert found.reason == "it shows 4 GPUs, the driver lists 8"


def test_one_short_gpu_is_not_counted_on_its_partners(node_of):
    node = build("sxm")
    node.gpus[4].links[0] = "<inactive>"
    gpus = node_of(node).gpus
    assert gpus[0].fabric.peers.short_pairs.value == 0
    own = gpus[4].fabric.peers.short_pairs
    assert (isinstance(own, Unknown), own.causes) == (True, ("nvlink.links-active",))


def test_the_mesh_of_four_has_six_links_to_each(node_of):
    gpus = node_of(node_type="sxm-4").gpus
    assert [gpu.fabric.peers.short_pairs.value for gpu in gpus] == [0, 0, 0, 0]
    node = build("sxm-4")
    node.links.paired[frozenset((0, 2))] = 5
    assert [gpu.fabric.peers.short_pairs.value for gpu in node_of(node).gpus] == [1, 0, 1, 0]


@pytest.mark.parametrize(("count", "verdict"), [(0, True), (3, False)])
def test_nvml_tells_the_counters_where_nvidia_smi_was_not_asked(node_of, count, verdict):
    link = {"state": "active", "speed_gb_per_s": 26.562, "recovery_errors": 0, "crc_flit_errors": 0}
    links = [{"index": index, **link, "replay_errors": count} for index in range(18)]
    node, document = nvml(nvlink=links, nvlink_count=18)
    gone = {name: None for name in outputs(node) if name.startswith("nvidia-smi_nvlink")}
    found = node_of(node, {**gone, "nvml": document}).gpus[0].fabric.growth.errors
    if verdict:
        assert (found.value, found.recordings) == (0, ("nvml",))
    else:
        assert "54 errors since the driver was loaded" in found.reason
