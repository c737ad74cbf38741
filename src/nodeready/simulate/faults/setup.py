"""What is set up wrongly: driver parts, firmware, GPUs that are not alike, settings left behind by others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    no_load,
    no_load_on_victim,
    on_every_gpu,
    on_node,
    on_victim,
    rows,
    several_gpus,
    together,
    victim,
)
from nodeready.simulate.outputs.output import Output
from nodeready.simulate.releases import RELEASES, install

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.shapes import Shape

_MODULES = "proc/modules"
_LARGE = ("2335", "233b")  # 141 GB: branch 535 needed a fix for them
_ODD_FROM = 3  # so many GPUs it takes for one to be the odd one


def _install_560(node: Node) -> None:
    install(node, "550", "560.35.03")
    node.driver.cuda = "12.6"
    node.torch = replace(RELEASES["570"].torch)


def _install_a_suspect(node: Node) -> None:
    install(node, "535", "535.129.03")


def _suspected(node: Node) -> tuple[Expected, ...]:
    large = node.shape.product.device in _LARGE
    old = rows(ADVISORY, "driver.branch-supported", "driver.security-floor")
    return (*rows(FAIL if large else ADVISORY, "driver.known-bad"), *old)


def _without_uvm(node: Node) -> None:
    def without(output: Output) -> Output:
        lines = [line for line in output.stdout.split(b"\n") if not line.startswith(b"nvidia_uvm ")]
        return replace(output, stdout=b"\n".join(lines).replace(b"nvidia_uvm,", b""))

    node.spoilers[_MODULES] = without
    node.driver.cuda_refusal = "cuInit: error 999 (unknown error)"
    node.driver.lost_files = ("nvidia-uvm", "nvidia-uvm-tools")


def _wait_with_nouveau(node: Node) -> None:
    waiting = b"nouveau 2306048 0 - Live 0xffffffffc3a00000\n"
    node.spoilers[_MODULES] = lambda output: replace(output, stdout=output.stdout + waiting)


def _hide_modules(node: Node) -> None:
    node.spoilers[_MODULES] = lambda _: None


def _turn_persistence_off(node: Node) -> None:
    for gpu in node.gpus:
        gpu.printed["persistence_mode"] = "Disabled"


def _leave_a_variable(node: Node) -> None:
    node.environment = {"CUDA_LAUNCH_BLOCKING": "1", "CUDA_HOME": "/usr/local/cuda", "NCCL_P2P_DISABLE": "0"}


def _hide_the_environment(node: Node) -> None:
    node.spoilers["environment"] = lambda output: replace(output, stdout=output.stdout[:-4])


def _leave_an_old_gsp(node: Node) -> None:
    victim(node).printed["gsp_firmware_version"] = "580.95.05"


def _corrupt_the_inforom(node: Node) -> None:
    place = f"0000{victim(node).bus_id}".upper()
    warning = f"WARNING: infoROM is corrupted at gpu {place}\n".encode()
    for name in ("nvidia-smi_-q_-x", "nvidia-smi_-q"):
        node.spoilers[name] = lambda output: replace(output, stderr=output.stderr + warning)


def _slow_the_clock(node: Node) -> None:
    victim(node).printed["max_clocks/sm_clock"] = f"{node.shape.product.sm_clock - 225} MHz"


def _cap_the_card(node: Node) -> None:
    victim(node).printed["gpu_power_readings/max_power_limit"] = f"{node.shape.product.power[1] + 15:.2f} W"


def _draw_much(node: Node) -> None:
    victim(node).power_draw += 95


def _run_warm(node: Node) -> None:
    gpu = victim(node)
    gpu.temperature, gpu.margin = gpu.temperature + 26, gpu.margin - 26


def _let_nobody_in(node: Node) -> None:
    gpu = victim(node)
    gpu.printed["compute_mode"] = "Prohibited"
    gpu.cuda_error = "CUDA error: all CUDA-capable devices are busy or unavailable"


def _set_clocks(node: Node) -> None:
    victim(node).printed["applications_clocks/graphics_clock"] = "1200 MHz"


def _encrypt(node: Node) -> None:
    node.confidential = "ON"


def _refuse_to_tell(node: Node) -> None:
    node.spoilers["nvidia-smi_conf-compute_-f"] = lambda _: Output(b"Invalid subcommand: conf-compute\n", 2)


def _misread_power(node: Node) -> None:
    gpu = victim(node)
    gpu.printed["gpu_power_readings/average_power_draw"] = "0.00 W"


def _can_have_an_odd_one(shape: Shape) -> bool:
    return shape.gpus >= _ODD_FROM


def _another(name: str, why: str, path: str, value: str, check: str) -> Fault:
    """One GPU of several differs in what it prints."""

    def apply(node: Node) -> None:
        victim(node).printed[path] = value

    return Fault(name, why, apply, on_node(ADVISORY, check), can_have=several_gpus)


FAULTS = (
    Fault(
        "known-bad-driver",
        "The driver is of a branch in which peer-to-peer transfers of NCCL hang on healthy hardware.",
        _install_560,
        together(
            on_node(FAIL, "driver.known-bad"),
            on_node(UNVERIFIED, "driver.security-floor"),
            on_node(ADVISORY, "driver.branch-supported"),
        ),
        case="B11",
    ),
    Fault(
        "suspected-driver",
        "The driver's version is suspected of hangs; with 141 GB GPUs it lacks a fix that they need.",
        _install_a_suspect,
        _suspected,
        case="B11",
    ),
    Fault(
        "uvm-not-loaded",
        "nvidia_uvm is not loaded and cannot be: nvidia-smi shows all GPUs, and CUDA starts on none.",
        _without_uvm,
        together(
            on_node(FAIL, "driver.device-files"),
            on_node(UNVERIFIED, "frameworks.torch", "network.write-bandwidth"),
            no_load,
            on_node(ADVISORY, "driver.modules"),
        ),
        case="C9",
    ),
    Fault(
        "nouveau-waits",
        "nouveau is loaded beside NVIDIA's module: which of them gets the GPUs at the next boot is a matter of luck.",
        _wait_with_nouveau,
        on_node(FAIL, "driver.nouveau"),
        case="B4",
    ),
    Fault(
        "modules-unread",
        "Nobody recorded which kernel modules are loaded.",
        _hide_modules,
        on_node(UNVERIFIED, "driver.modules", "driver.nouveau"),
    ),
    Fault(
        "persistence-off",
        "Nothing keeps the GPUs initialised: each first call takes seconds, and settings are lost in between.",
        _turn_persistence_off,
        on_every_gpu(ADVISORY, "driver.persistence-mode"),
        case="H24",
    ),
    Fault(
        "launch-blocking-left",
        "/etc/environment still holds CUDA_LAUNCH_BLOCKING=1 from a debugging session.",
        _leave_a_variable,
        on_node(ADVISORY, "driver.environment"),
    ),
    Fault(
        "environment-cut",
        "The list of environment variables was cut on its way: one that harms could have stood there.",
        _hide_the_environment,
        on_node(UNVERIFIED, "driver.environment"),
    ),
    Fault(
        "gsp-of-another-build",
        "One GPU's system processor runs the firmware of another driver build.",
        _leave_an_old_gsp,
        on_victim(FAIL, "firmware.gsp"),
    ),
    Fault(
        "inforom-corrupted",
        "nvidia-smi exits with 0 and warns that the InfoROM of one GPU is corrupted.",
        _corrupt_the_inforom,
        on_victim(FAIL, "firmware.inforom"),
    ),
    _another(
        "mixed-vbios",
        "One GPU was exchanged and has an older VBIOS than the others.",
        "vbios_version",
        "96.00.74.00.01",
        "consistency.vbios",
    ),
    _another(
        "mixed-inforom",
        "One GPU was exchanged and has an older InfoROM image than the others.",
        "inforom_version/img_version",
        "G520.0200.00.04",
        "consistency.inforom",
    ),
    _another(
        "mixed-gpu-part",
        "One GPU has another part number than the others, with the same PCI id.",
        "gpu_part_number",
        "2330-865-A1",
        "consistency.gpu-part",
    ),
    Fault(
        "lower-max-clock",
        "One GPU's highest clock is lower than that of the others.",
        _slow_the_clock,
        on_node(FAIL, "consistency.max-clocks"),
        can_have=several_gpus,
    ),
    Fault(
        "other-max-power",
        "One GPU's highest power limit differs from that of the others.",
        _cap_the_card,
        on_node(ADVISORY, "consistency.power-limit"),
        can_have=several_gpus,
    ),
    Fault(
        "one-gpu-draws-much",
        "All GPUs are idle, and one draws 95 W more than its siblings.",
        _draw_much,
        on_node(ADVISORY, "consistency.idle-power"),
        can_have=_can_have_an_odd_one,
    ),
    Fault(
        "one-gpu-warm",
        "All GPUs are idle, and one is 26 degrees warmer than its siblings: a cold plate or fan.",
        _run_warm,
        on_node(ADVISORY, "consistency.idle-temperature"),
        can_have=_can_have_an_odd_one,
        case="F16",
    ),
    Fault(
        "compute-mode-prohibited",
        "One GPU lets no process in at all.",
        _let_nobody_in,
        together(
            on_victim(FAIL, "gpu.compute-mode"),
            on_node(FAIL, "frameworks.torch"),
            no_load_on_victim,
            on_node(UNVERIFIED, "network.write-bandwidth"),
        ),
        case="C15",
    ),
    Fault(
        "application-clocks-low",
        "The tenant before set the clocks of one GPU to 1200 MHz, and left.",
        _set_clocks,
        on_victim(FAIL, "gpu.application-clocks"),
        case="F19",
    ),
    Fault(
        "confidential-computing-on",
        "Confidential computing is switched on where nobody asked for it: transfers are encrypted and slow.",
        _encrypt,
        on_node(FAIL, "gpu.confidential-computing"),
    ),
    Fault(
        "confidential-computing-untold",
        "This nvidia-smi does not know the command: whether confidential computing is on was not measured.",
        _refuse_to_tell,
        on_node(UNVERIFIED, "gpu.confidential-computing"),
    ),
    Fault(
        "power-sensor-reads-0",
        "One GPU says that it draws nothing, which no GPU does.",
        _misread_power,
        on_victim(FAIL, "gpu.telemetry"),
        case="B11",
    ),
)
