"""What goes wrong with the driver and the CUDA toolkit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.driverless import (
    no_answer_and_no_load,
    no_module,
    unanswered,
    without_load,
    without_module,
)
from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    logged,
    no_load,
    no_load_on_victim,
    nothing,
    on_every_gpu,
    on_node,
    on_victim,
    together,
    victim,
)
from nodeready.simulate.releases import install

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.shapes import Shape

# a kernel log without any word of the driver says nothing of its GPUs
_NO_WORD = on_node(UNVERIFIED, "health.xid", "health.sxid")
_BEFORE_THE_UPGRADE = "580.159.03"


def _lose_the_module(node: Node) -> None:
    without_module(node)


def _refuse_the_module(node: Node) -> None:
    without_module(node)
    logged(
        node,
        "PKCS#7 signature not signed with a trusted key",
        "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
    )


def _leave_nouveau(node: Node) -> None:
    without_module(node, "nouveau")
    taken = (f"NVRM: GPU {gpu.bus_id} is already bound to nouveau." for gpu in node.gpus)
    logged(node, *taken, f"NVRM: The NVIDIA probe routine was not called for {len(node.gpus)} device(s).")


def _hang(node: Node) -> None:
    """What a collector records that gives each command 10 seconds (timeout exits 124)."""
    node.driver.refusal_status = 124
    logged(
        node,
        "INFO: task nvidia-smi:20917 blocked for more than 120 seconds.",
        f"      Tainted: P           OE     {node.os.kernel} #171-Ubuntu",
        "task:nvidia-smi      state:D stack:    0 pid:20917 ppid: 20911 flags:0x00004002",
    )
    without_load(node)


def _lose_nvidia_smi(node: Node) -> None:
    node.absent.add("nvidia-smi")
    without_load(node)


def _upgrade_without_reboot(node: Node) -> None:
    node.driver.module = _BEFORE_THE_UPGRADE
    if node.fabric_manager:
        node.fabric_manager.version = _BEFORE_THE_UPGRADE
    branch, minor, _ = node.driver.library.split(".")
    node.driver.refusal_status = 18
    node.driver.refusal = (
        f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {branch}.{minor}\n"
    )


def _install_520(node: Node) -> None:
    node.driver.module = node.driver.library = "520.61.05"
    node.driver.cuda = "11.8"
    if node.fabric_manager:
        node.fabric_manager.version = "520.61.05"


def _stay_on_570(node: Node) -> None:
    install(node, "570")


def _miss_the_fixes(node: Node) -> None:
    install(node, "580", "580.105.08")


def _install_old_toolkit(node: Node) -> None:
    node.cuda_toolkit = "11.5"


def _without_toolkit(node: Node) -> None:
    node.cuda_toolkit = None


def _lose_uvm(node: Node) -> None:
    node.driver.cuda_refusal = "cuInit: error 999 (unknown error)"
    node.driver.lost_files = ("nvidia-uvm", "nvidia-uvm-tools")


def _lose_a_device_file(node: Node) -> None:
    node.driver.lost_files = (f"nvidia{victim(node).place}",)


def _make_files_late(node: Node) -> None:
    node.driver.lost_files = ("nvidia-uvm", "nvidia-uvm-tools")


def _cut_the_device_files(node: Node) -> None:
    node.spoilers["device-files"] = lambda output: replace(output, stdout=output.stdout[:-5])


def _refuse_cuda(node: Node) -> None:
    node.driver.cuda_refusal = "cuInit: error 802 (system not yet initialized)"


def _hold_exclusively(node: Node) -> None:
    gpu = victim(node)
    gpu.printed["compute_mode"] = "Exclusive_Process"
    gpu.cuda_error = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"


def _has_fabric(shape: Shape) -> bool:
    return shape.fabric[0] == "Completed"


FAULTS = (
    Fault(
        "driver-not-loaded",
        "The kernel was upgraded and the module was not built for it: nvidia-smi exits 9.",
        _lose_the_module,
        together(no_module, _NO_WORD),
        case="B2",
    ),
    Fault(
        "secure-boot",
        "Secure Boot refuses the unsigned module: the same error of nvidia-smi, and a line in the kernel log.",
        _refuse_the_module,
        together(no_module, _NO_WORD),
        case="B3",
    ),
    Fault(
        "nouveau-loaded",
        "The distribution's own module has taken the GPUs: nvidia's cannot get them.",
        _leave_nouveau,
        together(on_node(FAIL, "driver.nouveau"), no_module),
        case="B4",
    ),
    Fault(
        "nvidia-smi-hangs",
        "nvidia-smi sits in the driver and never returns: whoever waits for it waits for ever.",
        _hang,
        together(no_answer_and_no_load, on_node(ADVISORY, "host.hangs")),
        case="B5",
    ),
    Fault(
        "nvidia-smi-missing",
        "The module is loaded, and the driver's tools are not installed.",
        _lose_nvidia_smi,
        no_answer_and_no_load,
    ),
    Fault(
        "driver-library-mismatch",
        "An upgrade replaced the library under the loaded module: nvidia-smi exits 18 until the next reboot.",
        _upgrade_without_reboot,
        together(
            on_node(FAIL, "driver.responds", "driver.matches-library"),
            lambda node: tuple(row for row in unanswered(node) if row.check != "driver.matches-library"),
            on_node(ADVISORY, "driver.security-floor"),
        ),
        case="B1",
    ),
    Fault(
        "old-driver",
        "The image still holds a driver of CUDA 11: it runs, and nothing built for CUDA 12 or newer starts on it.",
        _install_520,
        together(
            on_node(FAIL, "driver.version", "cuda.driver-version", "cuda.toolkit-version", "frameworks.torch"),
            on_node(UNVERIFIED, "driver.branch-supported", "driver.security-floor"),
            on_every_gpu(UNVERIFIED, "health.recovery-action"),
            no_load,
        ),
    ),
    Fault(
        "driver-branch-ended",
        "The driver works, and its branch gets no fixes any more.",
        _stay_on_570,
        on_node(ADVISORY, "driver.branch-supported", "driver.security-floor"),
    ),
    Fault(
        "driver-without-fixes",
        "The driver is of a branch that is supported, and older than the last security bulletin.",
        _miss_the_fixes,
        on_node(ADVISORY, "driver.security-floor"),
    ),
    Fault(
        "old-toolkit",
        "nvcc on PATH is the distribution's own 11.5, which compiles nothing for Hopper.",
        _install_old_toolkit,
        on_node(FAIL, "cuda.toolkit-version"),
    ),
    Fault(
        "nvcc-missing",
        "There is no nvcc, as on nodes that run containers only: nothing is wrong, and one thing was not measured.",
        _without_toolkit,
        on_node(UNVERIFIED, "cuda.toolkit-version"),
        case="C12",
    ),
    Fault(
        "uvm-missing",
        "The device file of nvidia-uvm is missing: nvidia-smi shows all GPUs, and CUDA starts on none.",
        _lose_uvm,
        together(
            on_node(FAIL, "driver.device-files"),
            on_node(UNVERIFIED, "frameworks.torch", "network.write-bandwidth"),
            no_load,
        ),
        case="C9",
    ),
    Fault(
        "uvm-made-late",
        "The device file of nvidia-uvm is made for the first CUDA program: it was not there, and nothing is wrong.",
        _make_files_late,
        nothing,
    ),
    Fault(
        "gpu-device-file-missing",
        "One GPU has no device file: root's nvidia-smi still lists it, and no job can open it.",
        _lose_a_device_file,
        on_node(FAIL, "driver.device-files"),
    ),
    Fault(
        "device-files-cut",
        "The list of device files was cut on its way: what is missing from it may be there.",
        _cut_the_device_files,
        on_node(UNVERIFIED, "driver.device-files"),
    ),
    Fault(
        "cuda-802-with-a-good-fabric",
        "CUDA says that the system is not initialised (802) although the fabric is: a matter of kernel and driver.",
        _refuse_cuda,
        together(on_node(UNVERIFIED, "frameworks.torch", "network.write-bandwidth"), no_load),
        case="C3",
        can_have=_has_fabric,
    ),
    Fault(
        "compute-mode-exclusive",
        "One GPU lets only one process in, and somebody is in: it cannot be measured, and is not broken.",
        _hold_exclusively,
        together(
            on_node(FAIL, "frameworks.torch"),
            no_load_on_victim,
            on_node(UNVERIFIED, "network.write-bandwidth"),
            on_victim(ADVISORY, "gpu.compute-mode"),
        ),
        case="C15",
    ),
)
