"""Section B: driver, NVML and nvidia-smi."""

import json

from edits import XML, failed, given, logged, replaced, smi, tag, together
from field_case import SCOPE, advises, cannot, case, fails, passes, scene, unverified

_DCGM_PASSED = {"dcgmi_diag_-j": "dcgmi/01-diag-r1-json-pass-dcgm2-schema.txt"}
_LOST_IN_THREE_LINES = (
    "NVRM: The NVIDIA GPU 0000:9b:00.0",
    "NVRM: (PCI ID: 10de:2330) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)
_CLASH = {
    "probe": "nvml",
    "schema": 1,
    "error": "the module pynvml is not nvidia-ml-py: uninstall the package pynvml, install nvidia-ml-py",
    "devices": [],
}


def _version(version):
    """Another driver version, in all that tells one."""

    def edit(files):
        for name in list(files):
            files[name] = files[name].replace(b"580.178.04", version.encode())

    return edit


CASES = (
    case(
        "B1",
        "an upgrade replaced the library below the loaded module",
        scene(
            fails("driver.matches-library", "node", "mismatch", "580.178"),
            fails("driver.responds", "node", "18"),
            passes("pcie.gpu-present", "node", 8),
            faults="driver-library-mismatch",
            failing="driver.responds driver.matches-library",
        ),
        scene(
            fails("driver.matches-library", "node", "580.159.03", "580.178"),
            faults="driver-library-mismatch",
        ),
    ),
    case(
        "B2",
        "the kernel was upgraded and has no module of the driver",
        scene(
            fails("driver.responds", "node", "9", "not loaded"),
            passes("pcie.gpu-present", "node", 8),
            faults="driver-not-loaded",
            failing="driver.responds",
        ),
    ),
    case(
        "B3",
        "Secure Boot refuses the module",
        scene(
            fails("driver.responds", "node", "not loaded", "unsigned module", remedy=("kernel log",)),
            faults="secure-boot",
            failing="driver.responds",
        ),
    ),
    case(
        "B4",
        "the distribution's own module holds the GPUs",
        scene(
            fails("driver.nouveau", "node", "True", remedy=("nouveau",)),
            faults="nouveau-loaded",
            failing="driver.nouveau driver.responds",
        ),
    ),
    case(
        "B5",
        "nvidia-smi hangs in the kernel and can't be killed",
        scene(
            fails("driver.responds", "node", "124"),
            advises("host.hangs", "node", "nvidia-smi", "blocked"),
            unverified("gpu.memory", "gpu0", by="driver.responds@node"),
            faults="nvidia-smi-hangs",
            failing="driver.responds",
        ),
    ),
    cannot(
        "B6",
        "a monitor is wedged, and whoever watches it sees green",
        SCOPE,
        "a run of the gate ends with its answer; there is no monitor that would have to watch itself",
    ),
    case(
        "B7",
        "the maker's diagnostic hangs, and the driver gets the blame",
        scene(
            unverified("health.dcgm-diag", "node"),
            passes("driver.responds", "node", True),
            edit=together(given("dcgmi_diag_-j", ""), failed("dcgmi_diag_-j", 124)),
            failing="",
        ),
    ),
    case(
        "B8",
        "the binding knows a call that the driver does not",
        scene(
            unverified("health.leftovers/processes", "gpu4", "pyNVML"),
            passes("gpu.memory", "gpu4", 81559),
            unverified("thermal.margin", "gpu4", "FUNCTION_NOT_FOUND"),
            nvml=(
                "function-not-found nvmlDeviceGetComputeRunningProcesses_v3",
                "function-not-found nvmlDeviceGetMarginTemperature",
            ),
            failing="",
        ),
    ),
    case(
        "B9",
        "the driver lacks the newer call for the state of the fabric",
        scene(
            passes("nvlink.fabric-state", "gpu4", "Completed, Success"),
            nvml=("function-not-found nvmlDeviceGetGpuFabricInfoV",),
        ),
        scene(
            fails("nvlink.fabric-state", "gpu4", "In Progress"),
            nvml=("function-not-found nvmlDeviceGetGpuFabricInfoV", "gpu 4 fabric_state 2"),
        ),
    ),
    case(
        "B10",
        "the newer call for memory is not found, the older one works",
        scene(passes("gpu.memory", "gpu4", 81559), nvml=("function-not-found nvmlDeviceGetMemoryInfo_v2",)),
        scene(
            fails("gpu.memory", "gpu4", "40960 MiB"),
            nvml=("function-not-found nvmlDeviceGetMemoryInfo_v2", f"gpu 4 memory_total_bytes {40960 * 2**20}"),
        ),
    ),
    case(
        "B11",
        "values that no GPU can have, from a driver of a bad branch",
        scene(
            fails("gpu.telemetry", "gpu4", "0 W"),
            passes("gpu.telemetry", "gpu3", "plausible"),
            faults="power-sensor-reads-0",
            failing="gpu.telemetry",
        ),
        scene(fails("driver.known-bad", "node", "hang"), faults="known-bad-driver"),
    ),
    case(
        "B12",
        "two packages own the name of the Python module for NVML",
        scene(
            unverified("gpu.memory", "gpu4", "nvidia-ml-py"),
            edit=together(
                failed(XML, 127, error="nvidia-smi: command not found"),
                failed("nvidia-smi_-q", 127, error="nvidia-smi: command not found"),
                given("nvml", json.dumps(_CLASH)),
            ),
        ),
        scene(passes("gpu.memory", "gpu4", 81559), edit=given("nvml", json.dumps(_CLASH)), acceptance="accepted"),
    ),
    case(
        "B13",
        "a driver version is no number",
        scene(passes("driver.version", "node", "545.29.06"), edit=_version("545.29.06"), failing=""),
        scene(passes("driver.version", "node", "550.120"), driver="550.120", failing=""),
        scene(fails("driver.version", "node", "440.33.01", ">= 525"), edit=_version("440.33.01")),
    ),
    case(
        "B14",
        "versions compared as text",
        scene(
            passes("driver.version", "node", "550.100.0"),
            edit=_version("550.100.0"),
            settings=("driver.version=550.99.0",),
            failing="",
        ),
        scene(fails("driver.version", "node", "99.1", ">= 525"), edit=_version("99.1")),
        scene(
            passes("driver.version", "node", "535.104.05"),
            edit=_version("535.104.05"),
            settings=("driver.version=535.104.5",),
        ),
    ),
    case(
        "B15",
        "one GPU answers N/A and Unknown Error, its siblings are well",
        scene(
            unverified("gpu.memory", "gpu4", "Unknown Error"),
            unverified("health.ecc-mode", "gpu4"),
            passes("gpu.memory", "gpu3", 81559),
            passes("thermal.margin", "gpu5", 55),
            faults="one-gpu-unknown-error",
            acceptance="rejected",
        ),
        scene(
            unverified("power.limit", "gpu4", "Unknown Error"),
            passes("power.limit", "gpu5", 700),
            faults="power-limit-unreadable",
            acceptance="incomplete",
        ),
        scene(
            unverified("gpu.telemetry", "gpu4"),
            edit=tag("gpu_temp", "ERR!", within="temperature"),
            failing="",
        ),
    ),
    case(
        "B16",
        "a reset is pending, and the maker's diagnostic says healthy",
        scene(
            fails("health.recovery-action", "gpu4", "Reset"),
            passes("health.dcgm-diag", "node", 0),
            faults="recovery-reset",
            captures=_DCGM_PASSED,
            failing="health.recovery-action",
        ),
    ),
    case(
        "B17",
        "a lost GPU is told as a failed call for remapped rows",
        scene(
            fails("gpu.count", "node", "is 7", "0000:9b:00.0", "GPU_IS_LOST"),
            unverified("health.row-remap-pending", "gpu4", "GPU_IS_LOST", by="gpu.count@node"),
            passes("health.row-remap-pending", "gpu3", "No"),
            nvml=("gpu 4 fault lost",),
            failing="gpu.count",
            acceptance="rejected",
        ),
        # it is lost while NVML is asked, which still lists it
        scene(
            fails("gpu.count", "node", "is 7", "0000:9b:00.0", "GPU_IS_LOST"),
            unverified("health.row-remap-pending", "gpu4", "GPU_IS_LOST", by="gpu.count@node"),
            nvml=("gpu 4 fault lost 2",),
            failing="gpu.count",
        ),
        scene(
            fails("health.recovery-action", "gpu4", "RESET_REQUIRED", remedy=("reset the GPU",)),
            unverified("health.row-remap-pending", "gpu4", "RESET_REQUIRED", by="health.recovery-action@gpu4"),
            passes("gpu.count", "node", 8),
            passes("health.recovery-action", "gpu3", "None"),
            nvml=("gpu 4 fault reset-required",),
            failing="health.recovery-action",
            acceptance="rejected",
        ),
    ),
    case(
        "B18",
        "the driver tells of a lost GPU in three lines and without an Xid",
        scene(
            fails("health.xid", "node", "gpu4", "0000:9b:00.0", "fell off the bus", "no Xid"),
            edit=logged(*_LOST_IN_THREE_LINES),
            failing="health.xid",
        ),
    ),
    case(
        "B19",
        "GPUs are counted by lines, so nobody knows which one is missing",
        scene(
            fails("gpu.count", "node", "is 7", "missing: gpu4 (0000:9b:00.0, slot 25)"),
            fails("pcie.gpu-present", "node", "is 7", "missing: gpu4 (0000:9b:00.0, slot 25)"),
            faults="gpu-fell-off-the-bus",
        ),
        # the bus shows eight, and the driver knows of seven
        scene(
            fails("gpu.count", "node", "is 7", "0000:9b:00.0"),
            passes("pcie.gpu-present", "node", 8),
            edit=together(
                smi(r"<gpu id=.*?</gpu>\n*", ""),
                replaced(XML, "<attached_gpus>8<", "<attached_gpus>7<"),
            ),
        ),
    ),
    case(
        "B20",
        "the memory of a GPU reads as not supported",
        scene(
            unverified("gpu.memory", "gpu4", "N/A"),
            passes("gpu.memory", "gpu3", 81559),
            faults="field-not-available",
            acceptance="incomplete",
        ),
    ),
    case(
        "B21",
        "a virtual machine is not shown links and lanes",
        scene(passes("nvlink.links-active", "gpu0", 0), faults="nvlink-not-passed-on", node_type="sxm-1", failing=""),
        scene(
            unverified("nvlink.links-active", "gpu4", "MIG mode"),
            unverified("gpu.telemetry", "gpu4", by="gpu.mig@gpu4"),
            faults="mig-on",
        ),
        scene(
            unverified("nvlink.links-active", "gpu4", by="gpu.mig@gpu4"),
            faults="mig-on",
        ),
    ),
    case(
        "B22",
        "an Xid names its GPU in another form than NVML does",
        *(
            scene(
                fails("health.xid", "node", "Xid 79 on gpu4 (0000:9b:00.0)"),
                edit=logged(f"NVRM: Xid (PCI:{bus_id}): 79, pid=1234, GPU has fallen off the bus."),
                failing="health.xid",
            )
            for bus_id in ("0000:9b:00", "00000000:9B:00.0", "0000:9b:00.0")
        ),
    ),
    case(
        "B23",
        "a margin below zero",
        scene(
            fails("thermal.margin", "gpu4", "is -5", ">= -1"),
            edit=tag("gpu_temp_tlimit", "-5 C", within="temperature"),
        ),
        scene(unverified("thermal.margin", "gpu4", "N/A"), edit=tag("gpu_temp_tlimit", "N/A", within="temperature")),
        scene(advises("thermal.margin", "gpu4", "is 0"), faults="warm"),
    ),
)
