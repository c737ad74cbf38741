"""Missing device files: which are due, and what the first CUDA program says of that of nvidia-uvm."""

import json

import pytest

from nodeready.reading import Unknown
from nodeready.simulate.build import build

CONTROL, UVM = "nvidiactl", "nvidia-uvm"
SMI = ("nvidia-smi_-q_-x", "nvidia-smi_-q")


def listing(*names):
    return "".join(f"device:/dev/{name}\n" for name in names).encode() + b"end:\n"


def torch(error, devices=()):
    return json.dumps({"probe": "torch", "schema": 1, "torch": "2.7.0", "devices": devices, "error": error}).encode()


@pytest.fixture
def found(node_of):
    """What is said of an sxm node with these device files; other recordings as named, torch unread by default."""

    def say(names, node_type="sxm", **changes):
        changes = {name.replace("__", "-"): data for name, data in changes.items()}
        node = node_of(changes={"torch": None, "device-files": listing(*names), **changes}, node_type=node_type)
        return node.driver_parts.missing_device_files

    return say


GPUS = [f"nvidia{minor}" for minor in range(8)]
ALL = [*GPUS, CONTROL, UVM]


def test_nothing_is_missing_where_all_are_there(found):
    reading = found(ALL)
    assert (reading.value, reading.defect, reading.recordings) == ("none", "", ("device-files",))


@pytest.mark.parametrize("name", [*GPUS, CONTROL])
def test_each_file_that_is_due_is_named(found, name):
    assert found([other for other in ALL if other != name]).value == f"/dev/{name}"


def test_several_missing_files_are_all_named(found):
    assert found(GPUS[:6]).value == "/dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia6, /dev/nvidia7"
    assert found([]).value.endswith(", ".join(f"/dev/{name}" for name in GPUS))


def test_as_many_files_as_gpus_are_enough_whatever_their_numbers(found):
    assert found([*GPUS[1:], "nvidia8", CONTROL, UVM]).value == "none"
    assert found(["nvidia4", CONTROL, UVM], node_type="pcie").value == "none"


def test_the_file_of_a_gpu_that_is_gone_is_not_due(node_of):
    simulated = build("sxm")
    gpu = simulated.gpus[4]
    gpu.on_bus = gpu.in_driver = False
    without = listing(*(name for name in ALL if name != "nvidia4"))
    node = node_of(simulated, {"device-files": without})
    assert node.gpu_count.value == 7
    assert node.driver_parts.missing_device_files.value == "none"


def test_before_any_cuda_program_uvm_may_still_be_made(found):
    reading = found([*GPUS, CONTROL])
    assert (reading.value, reading.defect) == ("/dev/nvidia-uvm", "")
    assert "may have it made" in reading.note


@pytest.mark.parametrize("code", [100, 304, 999])
def test_uvm_is_at_fault_where_cuda_did_not_start_without_it(found, code):
    reading = found([*GPUS, CONTROL], torch=torch(f"cuInit: error {code} (unknown error)"))
    assert reading.value == "/dev/nvidia-uvm"
    assert f"cuInit: error {code}" in reading.defect
    assert reading.recordings == ("device-files", "torch")


@pytest.mark.parametrize(
    "error",
    [
        "cuInit: error 802 (system not yet initialized)",
        "cuInit: error 803 (system has unsupported display driver / cuda driver combination)",
        "cuInit: error 9990 (what)",
        "this torch is built without CUDA",
        "no CUDA driver here: libcuda.so.1",
    ],
)
def test_an_error_with_another_cause_proves_nothing_of_uvm(found, error):
    reading = found([*GPUS, CONTROL], torch=torch(error))
    assert (reading.value, reading.defect) == ("/dev/nvidia-uvm", "")


def test_a_gpu_that_cuda_used_proves_that_uvm_was_made(found):
    works = {"index": 0, "name": "H100", "bus_id": "0000:19:00.0", "capability": "9.0", "error": None}
    reading = found([*GPUS, CONTROL], torch=torch(None, [works]))
    assert reading.value == "none"
    assert "was made" in reading.note
    # but of no other file
    assert found([*GPUS[:7], CONTROL], torch=torch(None, [works])).value == "/dev/nvidia-uvm, /dev/nvidia7"
    broken = {**works, "capability": None, "error": "CUDA error 719"}
    assert found([*GPUS, CONTROL], torch=torch(None, [broken])).value == "/dev/nvidia-uvm"


def test_where_the_driver_lists_no_gpu_no_file_is_due(found):
    silent = dict.fromkeys(SMI)
    reading = found([], **silent)
    assert isinstance(reading, Unknown)
    assert reading.causes == ("driver.responds", "gpu.count")
    assert "no nvidiactl and no nvidia-uvm" in reading.reason
    assert isinstance(found(ALL, **silent), Unknown)


def test_an_unread_list_is_unknown(node_of):
    assert node_of(changes={"device-files": None}).driver_parts.missing_device_files.missing
    cut = node_of(changes={"device-files": listing(*ALL)[:-5]}).driver_parts.missing_device_files
    assert cut.reason == "device-files: the list of device files was cut before its end"
