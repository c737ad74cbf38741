"""A GPU that NVML calls lost, or lets nobody use until a reset, is a failure also where nvidia-smi says nothing of it."""

import json

import pytest

from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build

SMI = ("nvidia-smi_-q_-x", "nvidia-smi_-q")


def document(gpus, **errors):
    """What the nvml probe says of GPUs of which the fifth answers with these errors."""
    devices = [{"index": i, "bus_id": f"0000{gpu.bus_id}", "errors": {}, "unread": {}} for i, gpu in enumerate(gpus)]
    devices[4]["errors"] = errors
    if "nvmlDeviceGetHandleByIndex" in errors:
        del devices[4]["bus_id"]
    whole = {"probe": "nvml", "schema": 1, "error": None, "errors": {}, "device_count": len(gpus), "devices": devices}
    return json.dumps(whole).encode()


@pytest.fixture
def asked(node_of):
    """A node of which NVML gives the fifth GPU's calls these errors; without nvidia-smi unless it is wanted."""

    def ask(by_smi=False, **errors):
        simulated = build("sxm")
        changes = {} if by_smi else dict.fromkeys(SMI)
        return node_of(simulated, {**changes, "nvml": document(simulated.gpus, **errors)})

    return ask


@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetTemperature"])
def test_a_lost_gpu_is_missing_from_the_count_by_its_place(asked, call):
    node = asked(**{call: "GPU_IS_LOST"})
    assert node.gpu_count.value == 7
    assert node.gpu_count.note.startswith("missing: gpu4 (0000:9b:00.0, slot 25); ")
    assert f"{call}: GPU_IS_LOST" in node.gpu_count.defect
    assert node.gpu_count.recordings == ("nvml",)
    unknown = node.gpus[4].smi("serial")
    assert isinstance(unknown, Unknown)
    assert unknown.causes == ("gpu.count", "pcie.gpu-present")
    assert node.gpus[3].smi("serial").causes == ()


def test_a_gpu_that_nvml_only_has_no_answer_from_is_not_called_lost(asked):
    node = asked(nvmlDeviceGetHandleByIndex="UNKNOWN")
    assert node.gpu_count.reason.endswith("NVML counts 8 GPUs and gives the bus ids of 7")
    count = asked(nvmlDeviceGetTemperature="UNKNOWN").gpu_count
    assert (count.value, count.defect) == (8, "")


def test_a_lost_gpu_is_lost_although_nvidia_smi_still_lists_it(asked):
    count = asked(by_smi=True, nvmlDeviceGetTemperature="GPU_IS_LOST").gpu_count
    assert count.value == 8
    assert "GPU_IS_LOST" in count.defect
    assert count.recordings == ("nvidia-smi_-q_-x", "nvml")


def test_a_gpu_that_nvml_refuses_until_a_reset_asks_for_one(asked):
    node = asked(nvmlDeviceGetTemperature="RESET_REQUIRED")
    found = [gpu.health.recovery_action for gpu in node.gpus]
    said = "nvmlDeviceGetTemperature: RESET_REQUIRED"
    assert found[4] == Known("Reset", note=said, recordings=("nvml",))
    assert all(isinstance(reading, Unknown) for reading in [*found[:4], *found[5:]])
    assert node.gpus[4].smi("serial").causes == ("health.recovery-action",)
    assert node.gpu_count.value == 8
    assert not node.gpu_count.defect


def test_a_recovery_action_of_none_does_not_hide_that_nvml_waits_for_a_reset(asked):
    node = asked(by_smi=True, nvmlDeviceGetTemperature="RESET_REQUIRED")
    asks = node.gpus[4].health.recovery_action
    assert (asks.value, asks.defect) == ("None", "nvmlDeviceGetTemperature: RESET_REQUIRED")
    assert node.gpus[3].health.recovery_action == Known("None", recordings=("nvidia-smi_-q_-x",))


def test_a_gpu_that_nvml_gives_no_handle_of_until_a_reset_is_missing(asked):
    node = asked(nvmlDeviceGetHandleByIndex="RESET_REQUIRED")
    assert node.gpu_count.value == 7
    assert "index 4 (nvmlDeviceGetHandleByIndex: RESET_REQUIRED)" in node.gpu_count.defect
