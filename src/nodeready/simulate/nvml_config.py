"""The node as the driver's library shows it: the file that tells the tests' fake NVML which node to play.

The form of the file is that of tests/fake_nvml/README.md: what it does not set is not supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.model import INACTIVE
from nodeready.simulate.outputs.smi_field import DEPRECATED, NOT_AVAILABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nodeready.simulate.model import EccCounts, Gpu, Node

    Item = int | str | None
    Items = dict[str, Item]

_MIB = 2**20
_DRIVER_NOT_LOADED, _VERSION_MISMATCH = 9, 18
_TIMED_OUT = 124  # what a collector's `timeout` exits with
# the first branch whose library has a call, by the bindings that NVIDIA gave out with each
_SINCE = {
    "nvmlDeviceGetGpuFabricInfo": 525,
    "nvmlDeviceGetCurrentClocksEventReasons": 535,
    "nvmlDeviceGetSramEccErrorStatus": 535,
    "nvmlDeviceGetGpuFabricInfoV": 550,
    "nvmlDeviceGetMarginTemperature": 570,
    "nvmlDeviceGetTemperatureV": 570,
}
_RECOVERY_SINCE = 570
# NVML's codes: the place of a word, or its number
_ON_OFF, _NO_YES = ("Disabled", "Enabled"), ("No", "Yes")
_RECOVERY = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")
_COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
_FABRIC_STATES = (NOT_AVAILABLE, "Not Started", "In Progress", "Completed")
_FABRIC_STATUSES = {"Success": 0, "Insufficient Resources": 23}
_BRAND_NVIDIA = 14
_ARCHITECTURES = {"Ampere": 7, "Hopper": 9}
_NVLINK_VERSIONS = {"Ampere": 4, "Hopper": 6}
_TO_GPU, _TO_SWITCH = 0, 2
_P2P_NOT_SUPPORTED = 5
_EVENTS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clocks_setting": 0x100,
}
# what every question about a GPU is answered with, and what the fake calls it
_REFUSALS = {"Unknown Error": "unknown", "GPU is lost": "lost", "GPU requires reset": "reset-required"}
_STILL_ANSWERED = 2  # the handle and the PCI address, by which nvidia-smi lists the GPU all the same
_NO_VALUE = frozenset({NOT_AVAILABLE, DEPRECATED, *_REFUSALS})


def _times(factor: int) -> Callable[[str], int]:
    """The number at the front of a printed value, in a smaller unit."""
    return lambda text: round(float(text.split()[0]) * factor)


# of what NVML is not asked
_NO_CALL: tuple[str, Callable[[str], Item]] = ("", str)
# what a fault of the model prints instead of one value, by its path in the XML: NVML's item, and its number for it
_PRINTED: dict[str, tuple[str, Callable[[str], Item]]] = {
    "product_name": ("product_name", str),
    "serial": ("serial", str),
    "uuid": ("uuid", str),
    "vbios_version": ("vbios", str),
    "board_part_number": ("board_part", str),
    "persistence_mode": ("persistence", _ON_OFF.index),
    "performance_state": ("performance_state", lambda text: int(text.removeprefix("P"))),
    "compute_mode": ("compute_mode", _COMPUTE_MODES.index),
    "gpu_recovery_action": ("recovery_action", _RECOVERY.index),
    "pci/replay_counter": ("replay_counter", int),
    "fb_memory_usage/total": ("memory_total_bytes", _times(_MIB)),
    "fb_memory_usage/used": ("memory_used_bytes", _times(_MIB)),
    "utilization/gpu_util": ("gpu_util_percent", _times(1)),
    "temperature/gpu_temp": ("temperature_degc", _times(1)),
    "temperature/gpu_temp_tlimit": ("margin_degc", _times(1)),
    "temperature/memory_temp": ("memory_temperature_degc", _times(1)),
    "gpu_power_readings/current_power_limit": ("power_limit_mw", _times(1000)),
    "gpu_power_readings/default_power_limit": ("power_limit_default_mw", _times(1000)),
    "gpu_power_readings/max_power_limit": ("power_limit_max_mw", _times(1000)),
    "gpu_power_readings/average_power_draw": ("power_draw_mw", _times(1000)),
    "clocks/sm_clock": ("sm_clock_mhz", _times(1)),
    "max_clocks/sm_clock": ("sm_clock_max_mhz", _times(1)),
    "bar1_memory_usage/total": ("bar1_total_bytes", _times(_MIB)),
    "gsp_firmware_version": ("gsp_firmware", str),
    "fabric/health/bandwidth": ("fabric_health_mask", {"Full": 2, "Degraded": 1}.__getitem__),
    "gpu_part_number": _NO_CALL,
    "inforom_version/img_version": _NO_CALL,
    "applications_clocks/graphics_clock": _NO_CALL,
    "ecc_errors/channel_repair_pending": _NO_CALL,
    "ecc_errors/unrepairable_memory": _NO_CALL,
}


def render(node: Node) -> str | None:
    """The file of one node; None where there is no driver, and so no library of it.

    A GPU that the driver does not list is not in the file. Raises `ValueError` for what a fault of the
    model prints and this module has no number for.
    """
    driver = node.driver
    if not driver.loaded and "nvidia-smi" in node.absent:
        return None
    major, minor = (int(part) for part in driver.cuda.split("."))
    lines = [
        f"driver {driver.module}",
        f"nvml {major}.{driver.library}",
        f"cuda {major * 1000 + minor * 10}",
        *(f"function-not-found {call}" for call, since in _SINCE.items() if driver.major < since),
    ]
    if not driver.loaded:
        lines.append(f"init-error {_DRIVER_NOT_LOADED}")
    elif driver.module != driver.library:
        lines.append(f"init-error {_VERSION_MISMATCH}")
    elif driver.refusal_status == _TIMED_OUT:
        lines.append("hang nvmlInitWithFlags")
    for index, gpu in enumerate(node.listed_gpus):
        lines += [f"gpu {index} {key} {value}" for key, value in _items(node, gpu, index).items() if value is not None]
        lines += [
            f"gpu {index} {line}" for line in (*_links(gpu), *_pairs(node, gpu), *_processes(gpu), *_refused(gpu))
        ]
    return "".join(f"{line}\n" for line in lines)


def _items(node: Node, gpu: Gpu, index: int) -> Items:
    """Every text and number of one GPU, None where it has none."""
    return {
        **_identity(node, gpu, index),
        **_link(gpu),
        **_memory(gpu),
        **_errors(node, gpu),
        **_state(node, gpu),
        **_temperatures(gpu),
        **_nvlink(node, gpu),
        **_replaced(gpu),
    }


def _replaced(gpu: Gpu) -> Items:
    """The values that the driver gives otherwise, or not at all."""
    found: Items = {}
    for path, text in gpu.printed.items():
        if path not in _PRINTED:
            raise ValueError(f"{path} is printed as {text!r}: _PRINTED does not say what NVML answers")
        key, convert = _PRINTED[path]
        if key:
            found[key] = None if text in _NO_VALUE else convert(text)
    return found


def _identity(node: Node, gpu: Gpu, index: int) -> Items:
    product = gpu.product
    major, minor = product.capability.split(".")
    return {
        "bus_id": f"0000{gpu.bus_id}".upper(),
        "device_id": f"0x{product.device}10de",
        "subsystem_id": f"0x{product.subsystem}10de",
        "product_name": product.name,
        "brand": _BRAND_NVIDIA,
        "architecture": _ARCHITECTURES[product.architecture],
        "capability_major": major,
        "capability_minor": minor,
        "serial": gpu.serial,
        "uuid": gpu.uuid,
        "minor": index,
        "vbios": product.vbios,
        "board_part": product.board_part,
        "gsp_firmware": node.driver.module,
        "virtualization": int(node.shape.virtual),
        "persistence": 1,
        "mig_current": _ON_OFF.index(gpu.mig),
        "mig_pending": _ON_OFF.index(gpu.mig_pending),
        "compute_mode": 0,
    }


def _link(gpu: Gpu) -> Items:
    return {
        "link_gen_current": gpu.link.generation,
        "link_gen_max": gpu.link.max_generation,
        "link_gen_device_max": gpu.link.device_generation,
        "link_width_current": gpu.link.width,
        "link_width_max": gpu.link.max_width,
        "replay_counter": gpu.replays,
    }


def _memory(gpu: Gpu) -> Items:
    return {
        "memory_total_bytes": gpu.memory_mib * _MIB,
        "memory_reserved_bytes": gpu.product.reserved_mib * _MIB,
        "memory_used_bytes": gpu.memory_used * _MIB,
        "bar1_total_bytes": gpu.product.bar1_mib * _MIB,
        "bar1_used_bytes": _MIB,
    }


def _errors(node: Node, gpu: Gpu) -> Items:
    """ECC and the row remapper: nothing is counted while ECC is off, and MIG hides the remapper."""
    found: Items = {"ecc_mode_current": _ON_OFF.index(gpu.ecc), "ecc_mode_pending": _ON_OFF.index(gpu.ecc_pending)}
    if gpu.ecc == "Enabled":
        found |= _counts(gpu.volatile, "volatile") | _counts(gpu.aggregate, "aggregate")
        worn_out = gpu.aggregate.sram_parity + gpu.aggregate.sram_secded > 4
        found["sram_threshold_exceeded"] = int(worn_out)
    if gpu.mig == "Disabled":
        remap, spare = gpu.remap, ("max", "high", "partial", "low", "none")
        found |= {
            "row_remap_corrected": remap.correctable,
            "row_remap_uncorrected": remap.uncorrectable,
            "row_remap_pending": _NO_YES.index(remap.pending),
            "row_remap_failure": _NO_YES.index(remap.failure),
            **{f"row_remap_{word}": banks for word, banks in zip(spare, remap.banks, strict=True)},
        }
    knows_recovery = node.driver.major >= _RECOVERY_SINCE
    found["recovery_action"] = _RECOVERY.index(gpu.recovery_action) if knows_recovery else None
    return found


def _counts(errors: EccCounts, period: str) -> Items:
    return {
        f"sram_corrected_{period}": errors.sram_correctable,
        f"sram_parity_{period}": errors.sram_parity,
        f"sram_secded_{period}": errors.sram_secded,
        f"dram_corrected_{period}": errors.dram_correctable,
        f"dram_uncorrected_{period}": errors.dram_uncorrectable,
    }


def _state(node: Node, gpu: Gpu) -> Items:
    """What it does, draws and is allowed to draw, and its part in the fabric."""
    low, default, high = gpu.product.power
    idle = 0 if gpu.mig == "Disabled" else None
    in_fabric = gpu.fabric_state != NOT_AVAILABLE
    return {
        "performance_state": 0,
        "gpu_util_percent": idle,
        "memory_util_percent": idle,
        "clocks_event_reasons": sum(_EVENTS[name] for name in gpu.active_events),
        "power_limit_mw": round(gpu.power_limit * 1000),
        "power_limit_default_mw": default * 1000,
        "power_limit_min_mw": low * 1000,
        "power_limit_max_mw": high * 1000,
        "power_draw_mw": round(gpu.power_draw * 1000),
        "sm_clock_mhz": gpu.sm_clock,
        "sm_clock_max_mhz": gpu.product.sm_clock,
        "memory_clock_mhz": gpu.product.memory_clock,
        "memory_clock_max_mhz": gpu.product.memory_clock,
        "fabric_state": _FABRIC_STATES.index(gpu.fabric_state) if in_fabric else None,
        "fabric_status": None if gpu.fabric_status == NOT_AVAILABLE else _FABRIC_STATUSES[gpu.fabric_status],
        "fabric_health_mask": 0 if in_fabric and node.driver.major >= _SINCE["nvmlDeviceGetGpuFabricInfoV"] else None,
    }


def _temperatures(gpu: Gpu) -> Items:
    """Thresholds are margins on Hopper and degrees before it."""
    found: Items = {"temperature_degc": gpu.temperature, "memory_temperature_degc": gpu.memory_temperature}
    if gpu.product.tlimits is not None:
        shutdown, slowdown, highest = gpu.product.tlimits
        found |= {
            "margin_degc": gpu.margin,
            "margin_shutdown_degc": shutdown,
            "margin_slowdown_degc": slowdown,
            "margin_max_operating_degc": highest,
            "margin_memory_degc": 0,
        }
    if gpu.product.degrees is not None:
        found |= {"shutdown_degc": gpu.product.degrees[0], "slowdown_degc": gpu.product.degrees[1]}
    return found


def _nvlink(node: Node, gpu: Gpu) -> Items:
    """What all links have in common; MIG hides them."""
    if gpu.mig != "Disabled":
        return {}
    return {
        "nvlink_count": len(gpu.links),
        "nvlink_version": _NVLINK_VERSIONS[gpu.product.architecture],
        "nvlink_speed_mbps": _times(1000)(gpu.product.link_speed),
        "nvlink_remote_type": _TO_SWITCH if node.shape.fabric[0] == "Completed" else _TO_GPU,
    }


def _links(gpu: Gpu) -> Iterator[str]:
    """The links that are not as all others: down, or slow."""
    if gpu.mig != "Disabled":
        return
    for number, link in enumerate(gpu.links):
        if link == INACTIVE:
            yield f"link {number} state 0"
        elif link != gpu.product.link_speed:
            yield f"link {number} speed_mbps {_times(1000)(link)}"


def _pairs(node: Node, gpu: Gpu) -> Iterator[str]:
    """The GPUs that this one cannot reach over NVLink."""
    size = node.shape.joined
    for index, other in enumerate(node.listed_gpus):
        together = size > 0 and gpu.place // size == other.place // size and _linked(gpu) and _linked(other)
        if other is not gpu and not together:
            yield f"p2p {index} {_P2P_NOT_SUPPORTED}"


def _linked(gpu: Gpu) -> bool:
    return gpu.mig == "Disabled" and any(link != INACTIVE for link in gpu.links)


def _processes(gpu: Gpu) -> Iterator[str]:
    """What computes on it."""
    for process in gpu.processes:
        yield f"process {process.pid} C {process.name}"


def _refused(gpu: Gpu) -> Iterator[str]:
    """What a GPU that is gone or out of order answers to every question."""
    if not gpu.answers:
        yield "fault lost"
    elif gpu.every_value:
        yield f"fault {_REFUSALS[gpu.every_value]} {_STILL_ANSWERED}"
