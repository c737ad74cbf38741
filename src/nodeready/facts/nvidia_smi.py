"""What `nvidia-smi -q` says of a node, whichever of its two forms printed it and whichever driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nodeready.facts import nvidia_smi_values as values

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.reading import Reading

Form = Literal["xml", "text"]


class Smi(NamedTuple):
    """One document, GPU by GPU.

    `attached` is the header's count of GPUs, unknown where the document does not bear it out. `gpus`
    is keyed by normalised bus id, in document order; each holds one reading for every name in
    `FIELDS`. `complaint` holds the lines that are no part of a document, such as "Unable to determine
    the device handle for GPU0000:A1:00.0: Unknown Error".
    """

    driver_version: Reading[str]
    cuda_version: Reading[str]
    attached: Reading[int]
    gpus: dict[str, dict[str, Reading[Any]]]
    complaint: str = ""


class Field(NamedTuple):
    """Where the drivers print a value, below the GPU: one path for each spelling, and what the text means.

    `A + B` is a value printed in parts that are added; it is known where each part is. Of spellings
    that one driver prints together, the first printed stands first: a cut then never changes a value.
    """

    xml: tuple[str, ...]
    text: tuple[str, ...]
    convert: Callable[[str], Any]


def _field(xml: str, text: str, convert: Callable[[str], Any]) -> Field:
    return Field(tuple(xml.split(" | ")), tuple(text.split(" | ")), convert)


def _event(xml: str, text: str) -> Field:
    return Field(
        (f"clocks_event_reasons/clocks_event_reason_{xml}", f"clocks_throttle_reasons/clocks_throttle_reason_{xml}"),
        (f"Clocks Event Reasons/{text}", f"Clocks Throttle Reasons/{text}"),
        values.active,
    )


_ON_OFF = values.one_of("Enabled", "Disabled")
_YES_NO = values.one_of("Yes", "No")
_MIB, _WATT, _MHZ, _CELSIUS = (values.quantity(*unit) for unit in (("MiB",), ("W",), ("MHz",), ("C", "degC")))
_GEN, _WIDTH = "pci/pci_gpu_link_info/pcie_gen", "pci/pci_gpu_link_info/link_widths"
_GEN_TEXT, _WIDTH_TEXT = "PCI/GPU Link Info/PCIe Generation", "PCI/GPU Link Info/Link Width"
_VOLATILE, _AGGREGATE = "ecc_errors/volatile", "ecc_errors/aggregate"
_VOLATILE_TEXT, _AGGREGATE_TEXT = "ECC Errors/Volatile", "ECC Errors/Aggregate"
_BANKS = "remapped_rows/row_remapper_histogram/row_remapper_histogram"
_BANKS_TEXT = "Remapped Rows/Bank Remap Availability Histogram"

_FABRIC_HEALTH: tuple[tuple[str, str, str, Callable[[str], Any]], ...] = (
    ("summary", "summary", "Summary", values.name),
    ("bandwidth", "bandwidth", "Bandwidth", values.name),
    ("recovery", "route_recovery_in_progress", "Route Recovery in progress", values.name),
    ("route", "route_unhealthy", "Route Unhealthy", values.name),
    ("timeout", "access_timeout_recovery", "Access Timeout Recovery", values.name),
    ("configuration", "incorrect_configuration", "Incorrect Configuration", values.name_or_none),
)

HEADER: dict[str, Field] = {
    "driver_version": Field(("driver_version",), ("Driver Version",), values.version),
    "cuda_version": Field(("cuda_version",), ("CUDA Version",), values.version),
    "attached": Field(("attached_gpus",), ("Attached GPUs",), values.count),
}

# fmt: off
FIELDS: dict[str, Field] = {
    "product_name": _field("product_name", "Product Name", values.name),
    "product_brand": _field("product_brand", "Product Brand", values.name),
    "device_id": _field("pci/pci_device_id", "PCI/Device Id", values.pci_id),
    "subsystem_id": _field("pci/pci_sub_system_id", "PCI/Sub System Id", values.pci_id),
    "serial": _field("serial", "Serial Number", values.name),
    "uuid": _field("uuid", "GPU UUID", values.uuid),
    "minor": _field("minor_number", "Minor Number", values.count),
    "vbios": _field("vbios_version", "VBIOS Version", values.name),
    "board_part": _field("board_part_number", "Board Part Number", values.name),
    "gpu_part": _field("gpu_part_number", "GPU Part Number", values.name),
    "inforom_image": _field("inforom_version/img_version", "Inforom Version/Image Version", values.name),
    "persistence": _field("persistence_mode", "Persistence Mode", _ON_OFF),
    "mig_current": _field("mig_mode/current_mig", "MIG Mode/Current", _ON_OFF),
    "mig_pending": _field("mig_mode/pending_mig", "MIG Mode/Pending", _ON_OFF),
    "performance_state": _field("performance_state", "Performance State", values.performance_state),
    "link_gen_current": _field(f"{_GEN}/current_link_gen", f"{_GEN_TEXT}/Current", values.generation),
    "link_gen_max": _field(f"{_GEN}/max_link_gen", f"{_GEN_TEXT}/Max", values.generation),
    "link_gen_device_max": _field(f"{_GEN}/max_device_link_gen", f"{_GEN_TEXT}/Device Max", values.generation),
    "link_width_current": _field(f"{_WIDTH}/current_link_width", f"{_WIDTH_TEXT}/Current", values.lanes),
    "link_width_max": _field(f"{_WIDTH}/max_link_width", f"{_WIDTH_TEXT}/Max", values.lanes),
    "replay_counter": _field("pci/replay_counter", "PCI/Replays Since Reset", values.count),
    "memory_total": _field("fb_memory_usage/total", "FB Memory Usage/Total", _MIB),
    "memory_used": _field("fb_memory_usage/used", "FB Memory Usage/Used", _MIB),
    "bar1_total": _field("bar1_memory_usage/total", "BAR1 Memory Usage/Total", _MIB),
    "compute_mode": _field("compute_mode", "Compute Mode", values.name),
    "gpu_util": _field("utilization/gpu_util", "Utilization/GPU | Utilization/Gpu", values.percent),
    "ecc_mode_current": _field("ecc_mode/current_ecc", "ECC Mode/Current | Ecc Mode/Current", _ON_OFF),
    "ecc_mode_pending": _field("ecc_mode/pending_ecc", "ECC Mode/Pending | Ecc Mode/Pending", _ON_OFF),
    "ecc_sram_uncorrected_volatile": _field(
        f"{_VOLATILE}/sram_uncorrectable_parity + {_VOLATILE}/sram_uncorrectable_secded"
        f" | {_VOLATILE}/sram_uncorrectable",
        f"{_VOLATILE_TEXT}/SRAM Uncorrectable Parity + {_VOLATILE_TEXT}/SRAM Uncorrectable SEC-DED"
        f" | {_VOLATILE_TEXT}/SRAM Uncorrectable", values.count),
    "ecc_sram_uncorrected_aggregate": _field(
        f"{_AGGREGATE}/sram_uncorrectable_parity + {_AGGREGATE}/sram_uncorrectable_secded"
        f" | {_AGGREGATE}/sram_uncorrectable",
        f"{_AGGREGATE_TEXT}/SRAM Uncorrectable Parity + {_AGGREGATE_TEXT}/SRAM Uncorrectable SEC-DED"
        f" | {_AGGREGATE_TEXT}/SRAM Uncorrectable", values.count),
    "ecc_dram_uncorrected_volatile": _field(
        f"{_VOLATILE}/dram_uncorrectable", f"{_VOLATILE_TEXT}/DRAM Uncorrectable", values.count),
    "ecc_dram_uncorrected_aggregate": _field(
        f"{_AGGREGATE}/dram_uncorrectable", f"{_AGGREGATE_TEXT}/DRAM Uncorrectable", values.count),
    "ecc_sram_corrected_volatile": _field(
        f"{_VOLATILE}/sram_correctable", f"{_VOLATILE_TEXT}/SRAM Correctable", values.count),
    "ecc_dram_corrected_volatile": _field(
        f"{_VOLATILE}/dram_correctable", f"{_VOLATILE_TEXT}/DRAM Correctable", values.count),
    "channel_repair_pending": _field(
        "ecc_errors/channel_repair_pending", "ECC Errors/Channel Repair Pending", _YES_NO),
    "tpc_repair_pending": _field("ecc_errors/tpc_repair_pending", "ECC Errors/TPC Repair Pending", _YES_NO),
    "unrepairable_memory": _field("ecc_errors/unrepairable_memory", "ECC Errors/Unrepairable Memory", _YES_NO),
    "sram_threshold_exceeded": _field(
        f"{_AGGREGATE}/sram_threshold_exceeded", f"{_AGGREGATE_TEXT}/SRAM Threshold Exceeded", _YES_NO),
    "row_remap_pending": _field("remapped_rows/remapped_row_pending", "Remapped Rows/Pending", _YES_NO),
    "row_remap_failure": _field(
        "remapped_rows/remapped_row_failure", "Remapped Rows/Remapping Failure Occurred", _YES_NO),
    "row_remap_corrected": _field(
        "remapped_rows/remapped_row_corr", "Remapped Rows/Correctable Error", values.count),
    "row_remap_uncorrected": _field(
        "remapped_rows/remapped_row_unc", "Remapped Rows/Uncorrectable Error", values.count),
    "row_remap_banks_low": _field(f"{_BANKS}_low", f"{_BANKS_TEXT}/Low", values.banks),
    "row_remap_banks_none": _field(f"{_BANKS}_none", f"{_BANKS_TEXT}/None", values.banks),
    "recovery_action": _field("gpu_recovery_action", "GPU Recovery Action", values.name_or_none),
    "event_hw_slowdown": _event("hw_slowdown", "HW Slowdown"),
    "event_hw_thermal": _event("hw_thermal_slowdown", "HW Slowdown/HW Thermal Slowdown"),
    "event_power_brake": _event("hw_power_brake_slowdown", "HW Slowdown/HW Power Brake Slowdown"),
    "event_sw_thermal": _event("sw_thermal_slowdown", "SW Thermal Slowdown"),
    "event_sw_power_cap": _event("sw_power_cap", "SW Power Cap"),
    "event_idle": _event("gpu_idle", "Idle"),
    "event_application_clocks": _event("applications_clocks_setting", "Applications Clocks Setting"),
    "power_limit": _field(
        "gpu_power_readings/current_power_limit | power_readings/enforced_power_limit",
        "GPU Power Readings/Current Power Limit | Power Readings/Enforced Power Limit", _WATT),
    "power_limit_default": _field(
        "gpu_power_readings/default_power_limit | power_readings/default_power_limit",
        "GPU Power Readings/Default Power Limit | Power Readings/Default Power Limit", _WATT),
    "power_limit_max": _field(
        "gpu_power_readings/max_power_limit | power_readings/max_power_limit",
        "GPU Power Readings/Max Power Limit | Power Readings/Max Power Limit", _WATT),
    "power_draw": _field(
        "gpu_power_readings/average_power_draw | gpu_power_readings/instant_power_draw"
        " | gpu_power_readings/power_draw | power_readings/power_draw",
        "GPU Power Readings/Average Power Draw | GPU Power Readings/Instantaneous Power Draw"
        " | GPU Power Readings/Power Draw | Power Readings/Power Draw", _WATT),
    "temperature": _field("temperature/gpu_temp", "Temperature/GPU Current Temp", _CELSIUS),
    "margin": _field("temperature/gpu_temp_tlimit", "Temperature/GPU T.Limit Temp", _CELSIUS),
    "margin_slowdown": _field(
        "temperature/gpu_temp_slow_tlimit_threshold", "Temperature/GPU Slowdown T.Limit Temp", _CELSIUS),
    "margin_shutdown": _field(
        "temperature/gpu_temp_max_tlimit_threshold", "Temperature/GPU Shutdown T.Limit Temp", _CELSIUS),
    "memory_temperature": _field("temperature/memory_temp", "Temperature/Memory Current Temp", _CELSIUS),
    "sm_clock": _field("clocks/sm_clock", "Clocks/SM", _MHZ),
    "sm_clock_max": _field("max_clocks/sm_clock", "Max Clocks/SM", _MHZ),
    "memory_clock_max": _field("max_clocks/mem_clock", "Max Clocks/Memory", _MHZ),
    "application_clock": _field("applications_clocks/graphics_clock", "Applications Clocks/Graphics", _MHZ),
    "application_clock_default": _field(
        "default_applications_clocks/graphics_clock", "Default Applications Clocks/Graphics", _MHZ),
    "application_memory_clock": _field("applications_clocks/mem_clock", "Applications Clocks/Memory", _MHZ),
    "application_memory_clock_default": _field(
        "default_applications_clocks/mem_clock", "Default Applications Clocks/Memory", _MHZ),
    "fabric_state": _field("fabric/state", "Fabric/State", values.name),
    "fabric_status": _field("fabric/status", "Fabric/Status", str),  # any NVML error may stand here: that is a value
    **{
        f"fabric_health_{name}": _field(f"fabric/health/{tag}", f"Fabric/Health/{label}", convert)
        for name, tag, label, convert in _FABRIC_HEALTH
    },
    "gsp_firmware": _field("gsp_firmware_version", "GSP Firmware Version", values.name),
    "virtualization": _field(
        "gpu_virtualization_mode/virtualization_mode", "GPU Virtualization Mode/Virtualization Mode",
        values.name_or_none),
    "processes": _field("processes", "Processes", {"None": ()}.get),
}

# what drivers without a recovery action say instead
RESET_STATUS: dict[str, Field] = {
    "Reset Required": _field("gpu_reset_status/reset_required", "GPU Reset Status/Reset Required", _YES_NO),
    "Drain and Reset Recommended": _field(
        "gpu_reset_status/drain_and_reset_recommended", "GPU Reset Status/Drain and Reset Recommended", _YES_NO),
}

# the list of processes: where an entry starts, then its pid, type and name
PROCESS: dict[Form, tuple[str, str, str, str]] = {
    "xml": (
        "processes/process_info", "processes/process_info/pid", "processes/process_info/type",
        "processes/process_info/process_name"),
    "text": (
        "Processes/Process ID", "Processes/Process ID", "Processes/Process ID/Type", "Processes/Process ID/Name"),
}
# fmt: on
