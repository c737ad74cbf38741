"""Section C: CUDA, frameworks and their versions."""

import json

from edits import document, failed, given, left_out, smi, together
from field_case import LATER, Proof, absent, advises, cannot, case, fails, passes, scene, unverified


def _other_order(whole):
    """CUDA's own order, fastest first: the sick GPU comes first and is called cuda:0."""
    names = {entry["device"]: entry for entry in whole["devices"]}
    order = ["cuda:4", *(name for name in names if name != "cuda:4")]
    new = {old: f"cuda:{place}" for place, old in enumerate(order)}
    for entry in (*whole["devices"], *whole["results"]):
        entry["device"] = new[entry["device"]]
    whole["devices"].sort(key=lambda entry: entry["device"])
    whole["results"].sort(key=lambda entry: entry["device"])


def _judging_imports_no_torch(judge, healthy, monkeypatch):
    """The suite's own process never imports torch: a run reads what its probes printed."""
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    results, found = judge(healthy)
    assert results["acceptance"] == "accepted"
    assert found["frameworks.torch", "node"]["observed"]["value"].startswith("2.11")


_NO_FILE = "libcuda.so.1: file too short"

CASES = (
    case(
        "C1",
        "CUDA refuses with error 802, and nvidia-smi lists all GPUs",
        scene(
            fails("nvlink.fabric-manager", "node", remedy=("fabric",)),
            fails("nvlink.fabric-state", "gpu0", "In Progress"),
            unverified("frameworks.torch/devices", "node", "802"),
            passes("gpu.count", "node", 8),
            faults="fabric-in-progress",
            failing="nvlink.fabric-manager nvlink.fabric-state",
        ),
        scene(
            unverified("frameworks.torch/devices", "node", "802", by="nvlink.fabric-manager@node"),
            unverified("compute.matmul-fp16", "gpu4", "802", by="nvlink.fabric-state@gpu4"),
            faults="fabric-in-progress",
        ),
        scene(absent("nvlink.fabric-manager", "node"), node_type="pcie", acceptance="accepted"),
    ),
    case(
        "C2",
        "one GPU of a board in a virtual machine, whose fabric never completes",
        scene(
            fails("nvlink.fabric-state", "gpu0", "In Progress"),
            node_type="sxm-1",
            edit=together(
                smi("<state>Completed<", "<state>In Progress<", 0), smi("<status>Success<", "<status>N/A<", 0)
            ),
        ),
        scene(passes("nvlink.fabric-state", "gpu0", "Completed, Success"), node_type="sxm-1"),
    ),
    case(
        "C3",
        "error 802 with a fabric that is complete: a matter of kernel and driver",
        scene(
            unverified("frameworks.torch/devices", "node", "802"),
            passes("nvlink.fabric-manager", "node", "active"),
            passes("nvlink.fabric-state", "gpu0", "Completed, Success"),
            faults="cuda-802-with-a-good-fabric",
            acceptance="incomplete",
        ),
    ),
    case(
        "C4",
        "the fabric manager is of another version than the driver",
        scene(
            fails("nvlink.fabric-manager/version", "node", "fabric manager ", "driver 580.178.04"),
            faults="fabric-manager-version-skew",
            failing="nvlink.fabric-manager/version",
        ),
    ),
    case(
        "C5",
        "the fabric manager runs and lacks resources for a GPU",
        scene(
            fails("nvlink.fabric-state", "gpu4", "Insufficient Resources"),
            passes("nvlink.fabric-manager", "node", "active"),
            faults="fabric-insufficient-resources",
            failing="nvlink.fabric-state",
        ),
    ),
    case(
        "C6",
        "the fabric manager has stopped, and the fabric still says that it is complete",
        scene(
            fails("nvlink.fabric-manager", "node", "inactive"),
            passes("nvlink.fabric-state", "gpu4", "Completed, Success"),
            faults="fabric-manager-dead",
            failing="nvlink.fabric-manager",
        ),
    ),
    case(
        "C7",
        "a fabric manager is demanded where there is no NVSwitch",
        *(
            scene(
                absent("nvlink.fabric-manager", "node"),
                absent("nvlink.switches", "node"),
                node_type=node_type,
                acceptance="accepted",
            )
            for node_type in ("pcie", "nvl", "sxm-1", "h200-nvl")
        ),
        scene(
            fails("gpu.product", "gpu0", "10de:2342"),
            captures={"nvidia-smi_-q": "nvidia-smi-q/18-gh200.txt"},
            bare=True,
            judged_as="h200-sxm",
        ),
    ),
    case(
        "C8",
        "PyTorch shows the GPUs and holds no code for them",
        scene(
            fails("frameworks.torch/arch", "node", "sm_90"),
            passes("gpu.compute-capability", "gpu4", "9.0"),
            faults="torch-without-sm90",
            failing="frameworks.torch/arch",
        ),
    ),
    case(
        "C9",
        "CUDA starts with an unknown error: the device file of nvidia-uvm is missing",
        scene(
            fails("driver.device-files", "node", "/dev/nvidia-uvm", "999", remedy=("nvidia-modprobe -u",)),
            unverified("frameworks.torch/devices", "node", "999", "/dev/nvidia-uvm", by="driver.device-files@node"),
            unverified("compute.matmul-fp16", "gpu4", "999", by="driver.device-files@node"),
            faults="uvm-missing",
            failing="driver.device-files",
            acceptance="rejected",
        ),
        # nobody started CUDA yet: the first program may have the file made
        scene(
            advises("driver.device-files", "node", "/dev/nvidia-uvm"),
            faults="uvm-missing",
            edit=left_out("torch", "matmul"),
            failing="",
        ),
        # it was made so
        scene(passes("driver.device-files", "node", "none"), faults="uvm-made-late", acceptance="accepted"),
        scene(
            advises("driver.modules", "node", "nvidia_uvm"),
            fails("driver.device-files", "node", "/dev/nvidia-uvm"),
            faults="uvm-not-loaded",
            failing="driver.device-files",
        ),
    ),
    case(
        "C10",
        "CUDA is available, and the first kernel fails",
        scene(
            fails("frameworks.torch/devices", "node", "0000:9b:00.0"),
            unverified("compute.matmul-fp16", "gpu4", "uncorrectable ECC error"),
            faults="cuda-fails-on-one",
            failing="frameworks.torch/devices",
        ),
    ),
    cannot(
        "C11",
        "one start of CUDA in a thousand fails",
        LATER,
        "a rate needs many starts: burn-in repeats the probe; a gate that starts once fails and says with which error",
    ),
    case(
        "C12",
        "there is no nvcc, and all that runs brings its own CUDA",
        scene(
            unverified("cuda.toolkit-version", "node", "nvcc"),
            passes("cuda.driver-version", "node", "13.0"),
            passes("frameworks.torch/cuda", "node", "13.0"),
            faults="nvcc-missing",
            acceptance="accepted-with-advisories",
        ),
    ),
    case(
        "C13",
        "CUDA shows fewer GPUs than the driver, since a variable hides them",
        scene(
            unverified("frameworks.torch/devices", "node", "CUDA_VISIBLE_DEVICES"),
            passes("gpu.count", "node", 8),
            faults="cuda-devices-masked",
            failing="",
        ),
    ),
    case(
        "C14",
        "CUDA numbers the GPUs otherwise than the driver",
        scene(
            fails("compute.matmul-fp16", "gpu4", "0000:9b:00.0", "601.4"),
            passes("compute.matmul-fp16", "gpu0", 738.227),
            faults="slow-gpu",
            edit=document("matmul", _other_order),
        ),
    ),
    case(
        "C15",
        "a GPU is busy or unavailable: it lets one process in, and one is in",
        scene(
            advises("gpu.compute-mode", "gpu4", "Exclusive_Process"),
            unverified("compute.matmul-fp16", "gpu4", "busy or unavailable"),
            faults="compute-mode-exclusive",
        ),
        scene(fails("gpu.compute-mode", "gpu4", "Prohibited"), faults="compute-mode-prohibited"),
    ),
    case(
        "C16",
        "the driver's libraries are there and empty",
        scene(
            fails("driver.responds", "node", "12"),
            edit=together(
                failed("nvidia-smi_-q_-x", 12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n"),
                failed("nvidia-smi_-q", 12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n"),
            ),
        ),
        scene(
            unverified("frameworks.torch/devices", "node", _NO_FILE),
            edit=together(
                document("torch", lambda whole: whole.update(error=_NO_FILE, devices=[])),
                given("matmul", json.dumps({"probe": "matmul", "schema": 1, "error": _NO_FILE})),
            ),
            acceptance="incomplete",
        ),
    ),
    case(
        "C17",
        "every test imports torch for itself",
        Proof(_judging_imports_no_torch, ("judge", "healthy", "monkeypatch")),
    ),
)
