"""The part of `nvidia-smi -q` that moves: events, memory, errors, temperature, power, clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.smi_errors import ecc_fields, remapped_rows
from nodeready.simulate.outputs.smi_field import DEPRECATED, LATEST, NOT_AVAILABLE, Field, group, leaf

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu

_EVENTS = (
    ("gpu_idle", "Idle", 0),
    ("applications_clocks_setting", "Applications Clocks Setting", 0),
    ("sw_power_cap", "SW Power Cap", 0),
    ("hw_slowdown", "HW Slowdown", 0),
    ("hw_thermal_slowdown", "HW Thermal Slowdown", 1),
    ("hw_power_brake_slowdown", "HW Power Brake Slowdown", 1),
    ("sync_boost", "Sync Boost", 0),
    ("sw_thermal_slowdown", "SW Thermal Slowdown", 0),
    ("display_clocks_setting", "Display Clock Setting", 0),
)
_EVENT_COUNTERS = (
    ("sw_power_cap", "SW Power Capping"),
    ("sync_boost", "Sync Boost"),
    ("sw_therm_slowdown", "SW Thermal Slowdown"),
    ("hw_therm_slowdown", "HW Thermal Slowdown"),
    ("hw_power_brake", "HW Power Braking"),
)
_POWER_LIMITS = (
    ("current_power_limit", "Current Power Limit"),
    ("requested_power_limit", "Requested Power Limit"),
    ("default_power_limit", "Default Power Limit"),
    ("min_power_limit", "Min Power Limit"),
    ("max_power_limit", "Max Power Limit"),
)


def load_fields(gpu: Gpu) -> tuple[Field, ...]:
    """Everything between the PCI section and the fabric."""
    return (
        leaf("fan_speed", "Fan Speed", NOT_AVAILABLE),
        leaf("performance_state", "Performance State", "P0"),
        *_events(gpu),
        leaf("sparse_operation_mode", "Sparse Operation Mode", "Disabled", since=535),
        *_memory(gpu),
        leaf("compute_mode", "Compute Mode", "Default"),
        *_utilization(gpu),
        group(
            "dram_encryption_mode",
            "DRAM Encryption Mode",
            leaf("current_dram_encryption", "Current", NOT_AVAILABLE),
            leaf("pending_dram_encryption", "Pending", NOT_AVAILABLE),
            since=570,
        ),
        *ecc_fields(gpu),
        remapped_rows(gpu),
        *_temperature(gpu),
        *_power(gpu),
        *_clocks(gpu),
    )


def _events(gpu: Gpu) -> tuple[Field, ...]:
    def reasons(word: str, label: str, since: int, until: int) -> Field:
        states = (
            leaf(
                f"clocks_{word}_reason_{tag}", text, "Active" if tag in gpu.active_events else "Not Active", deeper=deep
            )
            for tag, text, deep in _EVENTS
        )
        return group(f"clocks_{word}_reasons", f"Clocks {label} Reasons", *states, since=since, until=until)

    counters = (
        leaf(f"clocks_event_reasons_counters_{tag}", label, f"{gpu.event_counters.get(tag, 0)} us")
        for tag, label in _EVENT_COUNTERS
    )
    return (
        reasons("throttle", "Throttle", 0, 534),
        reasons("event", "Event", 535, LATEST),
        group("clocks_event_reasons_counters", "Clocks Event Reasons Counters", *counters, since=575),
    )


def _memory(gpu: Gpu) -> tuple[Field, ...]:
    def amounts(tag: str, label: str, total: int, used: int, free: int, *, reserved: int | None = None) -> Field:
        return group(
            tag,
            label,
            leaf("total", "Total", f"{total} MiB"),
            *([] if reserved is None else [leaf("reserved", "Reserved", f"{reserved} MiB")]),
            leaf("used", "Used", f"{used} MiB"),
            leaf("free", "Free", f"{free} MiB"),
        )

    product = gpu.product
    used = gpu.memory_used
    free = gpu.memory_mib - product.reserved_mib + 1 - used
    return (
        amounts("fb_memory_usage", "FB Memory Usage", gpu.memory_mib, used, free, reserved=product.reserved_mib),
        amounts("bar1_memory_usage", "BAR1 Memory Usage", product.bar1_mib, 1, product.bar1_mib - 1),
        amounts("cc_protected_memory_usage", "Conf Compute Protected Memory Usage", 0, 0, 0),
    )


def _utilization(gpu: Gpu) -> tuple[Field, ...]:
    share = "0 %" if gpu.mig == "Disabled" else NOT_AVAILABLE
    sessions = (
        leaf("session_count", "Active Sessions", 0),
        leaf("average_fps", "Average FPS", 0),
        leaf("average_latency", "Average Latency", 0),
    )
    return (
        group(
            "utilization",
            "Utilization",
            leaf("gpu_util", "Gpu", share, until=569),
            leaf("gpu_util", "GPU", share, since=570),
            leaf("memory_util", "Memory", share),
            leaf("encoder_util", "Encoder", share),
            leaf("decoder_util", "Decoder", share),
            leaf("jpeg_util", "JPEG", share, since=535),
            leaf("ofa_util", "OFA", share, since=535),
        ),
        group("encoder_stats", "Encoder Stats", *sessions),
        group("fbc_stats", "FBC Stats", *sessions),
    )


def _temperature(gpu: Gpu) -> tuple[Field, ...]:
    product = gpu.product
    if product.tlimits:
        shutdown, slowdown, highest, memory = *product.tlimits, 0
        word, kind = "T.Limit Temp", "tlimit_"
    else:
        shutdown, slowdown, highest, memory = product.degrees or (0, 0, 0, 0)
        word, kind = "Temp", ""
    return (
        group(
            "temperature",
            "Temperature",
            leaf("gpu_temp", "GPU Current Temp", f"{gpu.temperature} C"),
            leaf("gpu_temp_tlimit", "GPU T.Limit Temp", f"{gpu.margin} C" if product.tlimits else NOT_AVAILABLE),
            leaf(f"gpu_temp_max_{kind}threshold", f"GPU Shutdown {word}", f"{shutdown} C"),
            leaf(f"gpu_temp_slow_{kind}threshold", f"GPU Slowdown {word}", f"{slowdown} C"),
            leaf(f"gpu_temp_max_gpu_{kind}threshold", f"GPU Max Operating {word}", f"{highest} C"),
            leaf("gpu_target_temperature", "GPU Target Temperature", NOT_AVAILABLE),
            leaf("memory_temp", "Memory Current Temp", f"{gpu.memory_temperature} C"),
            leaf(f"gpu_temp_max_mem_{kind}threshold", f"Memory Max Operating {word}", f"{memory} C"),
        ),
        group(
            "supported_gpu_target_temp",
            "",
            leaf("gpu_target_temp_min", "", NOT_AVAILABLE),
            leaf("gpu_target_temp_max", "", NOT_AVAILABLE),
        ),
    )


def _power(gpu: Gpu) -> tuple[Field, ...]:
    low, default, high = gpu.product.power
    limits = (gpu.power_limit, gpu.power_limit, default, low, high)
    draw = f"{gpu.power_draw:.2f} W"
    state = (leaf("power_state", "", "P0", until=594), leaf("power_state", "", DEPRECATED, since=595))
    return (
        group(
            "power_readings",
            "Power Readings",
            leaf("power_state", "", "P0"),
            leaf("power_management", "Power Management", "Supported"),
            leaf("power_draw", "Power Draw", draw),
            leaf("power_limit", "Power Limit", f"{gpu.power_limit:.2f} W"),
            leaf("default_power_limit", "Default Power Limit", f"{default:.2f} W"),
            leaf("enforced_power_limit", "Enforced Power Limit", f"{gpu.power_limit:.2f} W"),
            leaf("min_power_limit", "Min Power Limit", f"{low:.2f} W"),
            leaf("max_power_limit", "Max Power Limit", f"{high:.2f} W"),
            until=534,
        ),
        group(
            "gpu_power_readings",
            "GPU Power Readings",
            *state,
            leaf("power_draw", "Power Draw", draw, until=569),
            leaf("average_power_draw", "Average Power Draw", draw, since=570),
            leaf("instant_power_draw", "Instantaneous Power Draw", f"{gpu.power_draw + 0.24:.2f} W", since=570),
            *(leaf(tag, label, f"{watts:.2f} W") for (tag, label), watts in zip(_POWER_LIMITS, limits, strict=True)),
            since=535,
        ),
        group(
            "gpu_memory_power_readings",
            "GPU Memory Power Readings ",  # the blank is nvidia-smi's
            leaf("power_draw", "Power Draw", NOT_AVAILABLE, until=569),
            leaf("average_power_draw", "Average Power Draw", f"{gpu.memory_power_draw:.2f} W", since=570),
            leaf("instant_power_draw", "Instantaneous Power Draw", NOT_AVAILABLE, since=570),
            since=550,
        ),
        group(
            "module_power_readings",
            "Module Power Readings",
            *state,
            leaf("power_draw", "Power Draw", NOT_AVAILABLE, until=569),
            leaf("average_power_draw", "Average Power Draw", NOT_AVAILABLE, since=570),
            leaf("instant_power_draw", "Instantaneous Power Draw", NOT_AVAILABLE, since=570),
            *(leaf(tag, label, NOT_AVAILABLE) for tag, label in _POWER_LIMITS),
            since=535,
        ),
        leaf("power_smoothing", "Power Smoothing", NOT_AVAILABLE, since=570),
        group(
            "power_profiles",
            "Workload Power Profiles",
            leaf("power_profile_requested_profiles", "Requested Profiles", NOT_AVAILABLE),
            leaf("power_profile_enforced_profiles", "Enforced Profiles", NOT_AVAILABLE),
            since=570,
        ),
        leaf("edpp_multiplier", "EDPp Multiplier", "100.00%", since=590),
    )


def _clocks(gpu: Gpu) -> tuple[Field, ...]:
    def mhz(tag: str, label: str, value: int) -> Field:
        return leaf(f"{tag}_clock", label, f"{value} MHz")

    product = gpu.product
    applications = (mhz("graphics", "Graphics", product.sm_clock), mhz("mem", "Memory", product.memory_clock))
    gone = (leaf("graphics_clock", "Graphics", DEPRECATED), leaf("mem_clock", "Memory", DEPRECATED))
    return (
        group(
            "clocks",
            "Clocks",
            mhz("graphics", "Graphics", gpu.sm_clock),
            mhz("sm", "SM", gpu.sm_clock),
            mhz("mem", "Memory", product.memory_clock),
            mhz("video", "Video", 765),
        ),
        group("applications_clocks", "Applications Clocks", *applications, until=589),
        group("applications_clocks", "Applications Clocks", *gone, since=590),
        group("default_applications_clocks", "Default Applications Clocks", *applications, until=589),
        group("default_applications_clocks", "Default Applications Clocks", *gone, since=590),
        group("deferred_clocks", "Deferred Clocks", leaf("mem_clock", "Memory", NOT_AVAILABLE)),
        group(
            "max_clocks",
            "Max Clocks",
            mhz("graphics", "Graphics", product.sm_clock),
            mhz("sm", "SM", product.sm_clock),
            mhz("mem", "Memory", product.memory_clock),
            mhz("video", "Video", product.video_clock),
        ),
        group("max_customer_boost_clocks", "Max Customer Boost Clocks", mhz("graphics", "Graphics", product.sm_clock)),
        group(
            "clock_policy",
            "Clock Policy",
            leaf("auto_boost", "Auto Boost", NOT_AVAILABLE),
            leaf("auto_boost_default", "Auto Boost Default", NOT_AVAILABLE),
        ),
        group("voltage", "Voltage", leaf("graphics_volt", "Graphics", "670.000 mV"), since=535, until=579),
    )
