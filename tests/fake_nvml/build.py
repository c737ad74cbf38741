"""Builds the fake libnvidia-ml.so.1 and writes the file that says what it plays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIBRARY = "libnvidia-ml.so.1"
BUSES = (0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB)
MIB = 2**20
# what repeats in the file, with one line for each entry of a list
REPEATED = ("fault", "not-supported", "process", "link", "p2p")

# one board of a healthy HGX H100 node as its driver 580.105.08 reports it when idle
H100: dict[str, Any] = {
    "product_name": "NVIDIA H100 80GB HBM3",
    "device_id": "0x233010de",
    "subsystem_id": "0x16c110de",
    "vbios": "96.00.99.00.01",
    "board_part": "692-2G520-0200-000",
    "gsp_firmware": "580.105.08",
    "brand": 14,
    "architecture": 9,
    "persistence": 1,
    "mig_current": 0,
    "mig_pending": 0,
    "performance_state": 0,
    "link_gen_current": 5,
    "link_gen_max": 5,
    "link_gen_device_max": 5,
    "link_width_current": 16,
    "link_width_max": 16,
    "replay_counter": 150,
    "memory_total_bytes": 81559 * MIB,
    "memory_reserved_bytes": 480 * MIB,
    "memory_used_bytes": 0,
    "bar1_total_bytes": 131072 * MIB,
    "bar1_used_bytes": MIB,
    "compute_mode": 0,
    "gpu_util_percent": 0,
    "memory_util_percent": 0,
    "ecc_mode_current": 1,
    "ecc_mode_pending": 1,
    "sram_corrected_volatile": 0,
    "sram_parity_volatile": 0,
    "sram_secded_volatile": 0,
    "sram_corrected_aggregate": 0,
    "sram_parity_aggregate": 0,
    "sram_secded_aggregate": 0,
    "sram_threshold_exceeded": 0,
    "dram_corrected_volatile": 0,
    "dram_uncorrected_volatile": 0,
    "dram_corrected_aggregate": 0,
    "dram_uncorrected_aggregate": 0,
    "row_remap_corrected": 0,
    "row_remap_uncorrected": 0,
    "row_remap_pending": 0,
    "row_remap_failure": 0,
    "row_remap_max": 2560,
    "row_remap_high": 0,
    "row_remap_partial": 0,
    "row_remap_low": 0,
    "row_remap_none": 0,
    "recovery_action": 0,
    "clocks_event_reasons": "0x1",
    "power_limit_mw": 700_000,
    "power_limit_default_mw": 700_000,
    "power_limit_min_mw": 200_000,
    "power_limit_max_mw": 700_000,
    "power_draw_mw": 68_570,
    "temperature_degc": 29,
    "memory_temperature_degc": 37,
    "margin_degc": 58,
    "margin_slowdown_degc": -2,
    "margin_shutdown_degc": -8,
    "margin_max_operating_degc": 0,
    "margin_memory_degc": 0,
    "sm_clock_mhz": 345,
    "sm_clock_max_mhz": 1980,
    "memory_clock_mhz": 2619,
    "memory_clock_max_mhz": 2619,
    "fabric_state": 3,
    "fabric_status": 0,
    "fabric_health_mask": 0,
    "virtualization": 0,
    "capability_major": 9,
    "capability_minor": 0,
    "nvlink_count": 18,
    "nvlink_version": 6,
    "nvlink_speed_mbps": 26562,
    "nvlink_remote_type": 2,
}


def build(folder: Path) -> Path:
    """Compile the library into `folder`, once; the folder, which LD_LIBRARY_PATH is to name."""
    library = folder / LIBRARY
    if not library.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"{LIBRARY}.made"
        sources = sorted(str(path) for path in HERE.glob("*.c"))
        flags = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}")
        subprocess.run(["gcc", *flags, "-o", str(made), *sources, "-ldl"], check=True)
        made.replace(library)
    return folder


def h100(index: int, **changes: Any) -> dict[str, Any]:
    """The items of one healthy H100 of an HGX board; a change to None leaves an item out: not supported."""
    bus = BUSES[index % len(BUSES)]
    identity = {
        "bus_id": f"00000000:{bus:02X}:00.0",
        "serial": f"165062400{index:04d}",
        "uuid": f"GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a69{index}",
        "minor": index,
    }
    return {**identity, **H100, **changes}


def write_config(
    path: Path,
    *,
    gpus: list[dict[str, Any]] | None = None,
    driver: str = "580.105.08",
    nvml: str = "13.580.105.08",
    cuda: int = 13000,
    lines: tuple[str, ...] = (),
) -> Path:
    """Write the file and give back its path; the default is eight healthy H100.

    `gpus` holds the items of each GPU, which the file's README names: texts and numbers, or a list
    where a key may repeat (`fault`, `not-supported`, `process`, `link`, `p2p`). None leaves one out.
    `lines` are items of the whole library, such as `function-not-found nvmlDeviceGetGpuFabricInfoV`.
    """
    listed = [h100(index) for index in range(8)] if gpus is None else gpus
    text = [f"driver {driver}", f"nvml {nvml}", f"cuda {cuda}"]
    for index, items in enumerate(listed):
        # a link is checked against the number of links, which has to stand before it
        for key, value in sorted(items.items(), key=lambda item: item[0] in REPEATED):
            values = value if isinstance(value, (list, tuple)) else [value]
            text += [f"gpu {index} {key} {one}" for one in values if one is not None]
    path.write_text("\n".join([*text, *lines, ""]))
    return path


def run_probe(
    library: Path,
    config: Path,
    *arguments: object,
    python: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    """Run the nvml probe on the fake library: its document and the process, which ended with 0 or 3."""
    script = HERE.parents[1] / "src/nodeready/probes/nvml.py"
    variables = {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML_CONFIG": str(config), **(env or {})}
    argv = [sys.executable, *python, str(script), *map(str, arguments)]
    process = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=variables)
    if process.returncode not in (0, 3):
        raise AssertionError(f"{argv} exited {process.returncode}: {process.stderr}")
    return json.loads(process.stdout), process
