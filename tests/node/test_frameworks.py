"""Toolkits and frameworks against the driver, and environments without PyTorch."""

import json

import pytest

from nodeready.evidence.recording import Recording
from nodeready.node.catalogue import TORCH
from nodeready.reading import Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs


def document(node, **changes):
    found = json.loads(outputs(node)["torch"].stdout)
    return json.dumps({**found, **changes}).encode()


@pytest.mark.parametrize(
    ("driver", "toolkit", "way"),
    [
        ("580", "13.0", "full"),
        ("580", "12.8", "full"),
        ("580", "13.2", "minor version"),
        ("550", "12.8", "minor version"),
        ("570", "13.0", "none"),
        ("535", "12.2", "full"),
        ("535", "11.5", "full"),
    ],
)
def test_a_toolkit_fits_the_driver_in_full_in_part_or_not_at_all(node_of, driver, toolkit, way):
    node = build("sxm", 0, 1, driver)
    node.cuda_toolkit = toolkit
    assert node_of(node).frameworks.toolkit_on_driver.value == way


def test_a_build_for_a_newer_major_version_does_not_run(node_of):
    node = build("sxm", 0, 1, "570")
    devices = [{"index": 0, "bus_id": node.gpus[0].bus_id, "capability": None, "error": "driver too old"}]
    found = node_of(node, {"torch": document(node, cuda="13.0", devices=devices)}).frameworks.torch_on_driver
    assert (found.value, "CUDA 13 needs 580.65.06" in found.note) == ("none", True)


def test_one_that_runs_all_the_same_has_a_compatibility_package(node_of):
    node = build("sxm", 0, 1, "570")
    found = node_of(node, {"torch": document(node, cuda="13.0")}).frameworks.torch_on_driver
    assert (found.value, "forward compatibility" in found.note) == ("forward", True)


def test_a_major_version_that_the_table_does_not_know_is_unknown(node_of):
    node = build("sxm", 0, 1)
    found = node_of(node, {"torch": document(node, cuda="14.0")}).frameworks
    assert "does not know CUDA 14" in found.torch_on_driver.reason


def test_a_cpu_build_is_the_builds_own_failure(node_of):
    node = build("sxm", 0, 1)
    found = node_of(node, {"torch": document(node, cuda=None, devices=[])}).frameworks.torch_on_driver
    assert (isinstance(found, Unknown), found.causes) == (True, ("frameworks.torch",))


def test_an_environment_of_tensorflow_alone_tells_its_python_and_its_version(node_of):
    node = build("sxm", 0, 1)
    said = document(node, torch=None, cuda=None, tensorflow="2.20.0", error="no torch", devices=[])
    made = node_of(node)
    made.evidence.recordings["torch"] = Recording("torch", rc=3, stdout=said)
    assert TORCH.refusals == (3,)
    assert (made.frameworks.python.value, made.frameworks.tensorflow.value) == ("3.12.3", "2.20.0")
    assert isinstance(made.torch.version, Unknown)


@pytest.mark.parametrize("version", [5, "", "two", True, ["2.20.0"]])
def test_a_tensorflow_that_is_no_version_is_unknown_and_not_absent(node_of, version):
    node = build("sxm", 0, 1)
    found = node_of(node, {"torch": document(node, tensorflow=version)}).frameworks.tensorflow
    assert (isinstance(found, Unknown), found.missing) == (True, False)


def test_without_tensorflow_there_is_nothing_to_judge(node_of, judge, folder_of):
    node = build("sxm", 0, 1)
    found = node_of(node, {"torch": document(node, tensorflow=None)}).frameworks.tensorflow
    assert (found.missing, found.recordings) == (True, ())
    _, findings = judge(
        folder_of({"torch": document(node, tensorflow=None)}), settings=("gpu.count=1",), tier="acceptance"
    )
    assert findings["frameworks.tensorflow", "node"]["verdict"] == "not-applicable"


def test_a_probe_that_did_not_run_leaves_tensorflow_unverified(judge, folder_of, healthy_files):
    _, findings = judge(folder_of({"dmesg": healthy_files["dmesg"]}), settings=("gpu.count=1",), tier="acceptance")
    assert findings["frameworks.tensorflow", "node"]["verdict"] == "unverified"
    assert findings["frameworks.python", "node"]["verdict"] == "unverified"
