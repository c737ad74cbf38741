"""What NVML says of a node's GPUs, from the nvml probe: the fields of `nvidia-smi -q`, and some that it lacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nodeready.evidence.probe import Probe
from nodeready.facts import nvml_values as values
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.nvidia_smi import FIELDS
from nodeready.facts.nvml_entry import Datum, read, said, table
from nodeready.facts.nvml_links import link_errors, links, pairs
from nodeready.facts.probe_document import document
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_GPUS = 64
# NVML's words for a GPU that is gone until the node restarts, and for one that it lets nobody use until a reset
LOST, RESET_REQUIRED = "GPU_IS_LOST", "RESET_REQUIRED"
_SERVES = (
    "driver.version",
    "cuda.driver-version",
    "gpu.count",
    "gpu.product",
    "gpu.memory",
    "gpu.compute-capability",
    "gpu.mig",
    "pcie.gpu-link-generation",
    "pcie.gpu-link-width",
    "health.ecc-mode",
    "health.ecc-uncorrected",
    "health.row-remap-pending",
    "health.row-remap-failure",
    "health.recovery-action",
    "health.clock-events",
    "power.limit",
    "thermal.margin",
    "nvlink.links-active",
    "nvlink.fabric-state",
)


def nvml_probe(python: str, script: str) -> Probe:
    """The probe under the suite's own Python; exit status 3 says that there is no NVML library or binding.

    The script ends within 15 s whatever hangs, which leaves it 5 s to print.
    """
    return Probe("nvml", (python, script), deadline=20.0, family="nvidia", answers=(0, 3), serves=_SERVES)


@dataclass(frozen=True)
class Nvml:
    """The probe's document, GPU by GPU.

    `gpus` is keyed by normalised bus id; each holds one reading for every name in `nvidia_smi.FIELDS`,
    with the same type of value, and for `MORE`. `device_count` is unknown where the document does not
    bear it out. `unplaced` says of each index that has no bus id why, `refused` of each bus id by which call NVML
    said that the GPU is lost or waits for a reset.
    """

    driver_version: Reading[str]
    cuda_version: Reading[str]
    device_count: Reading[int]
    gpus: dict[str, dict[str, Reading[Any]]]
    unplaced: dict[int, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def lost(self) -> dict[str, str]:
        """The GPUs that nobody can use before the node restarts or resets them, by bus id or index, and NVML's word."""
        placed = {bus_id: why for bus_id, why in self.refused.items() if why.endswith(LOST)}
        known = {f"index {index}": why for index, why in sorted(self.unplaced.items())}
        return placed | {at: why for at, why in known.items() if why.endswith((LOST, RESET_REQUIRED))}

    def gpu_field(self, bus_id: str, name: str) -> Reading[Any]:
        """A field of one GPU; of one that NVML does not list the reason says which it could not place."""
        if bus_id in self.gpus:
            return self.gpus[bus_id][name]
        unplaced = "".join(f"; index {index}: {why}" for index, why in sorted(self.unplaced.items()))
        return Unknown(f"NVML lists no GPU at {bus_id}{unplaced}")


def _same(convert: Callable[[Any], Any], *names: str) -> dict[str, Datum]:
    return {name: Datum(name, convert) for name in names}


def _event(bit: int) -> Datum:
    return Datum("clocks_event_reasons", lambda reasons: values.bit(reasons, bit))


_PLACES: dict[str, Datum] = {
    **_same(values.name, "product_name", "product_brand", "serial", "vbios", "board_part", "compute_mode"),
    **_same(values.name, "gsp_firmware"),
    **_same(values.pci_id, "device_id", "subsystem_id"),
    **_same(values.uuid, "uuid"),
    **_same(values.count(2**16), "minor"),
    **_same(values.one_of("Enabled", "Disabled"), "persistence", "mig_current", "mig_pending"),
    **_same(values.one_of("Enabled", "Disabled"), "ecc_mode_current", "ecc_mode_pending"),
    **_same(values.one_of("Yes", "No"), "sram_threshold_exceeded", "row_remap_pending", "row_remap_failure"),
    **_same(values.performance_state, "performance_state"),
    **_same(values.generation, "link_gen_current", "link_gen_max", "link_gen_device_max"),
    **_same(values.lanes, "link_width_current", "link_width_max"),
    **_same(values.count(2**32 - 1), "replay_counter", "row_remap_corrected", "row_remap_uncorrected"),
    **_same(values.count(10**15), "ecc_sram_uncorrected_volatile", "ecc_sram_uncorrected_aggregate"),
    **_same(values.count(10**15), "ecc_dram_uncorrected_volatile", "ecc_dram_uncorrected_aggregate"),
    **_same(values.count(10**15), "ecc_sram_corrected_volatile", "ecc_dram_corrected_volatile"),
    **_same(values.name_or_none, "recovery_action", "virtualization"),
    **_same(values.processes, "processes"),
    "memory_total": Datum("memory_total_bytes", values.memory(1)),
    "memory_used": Datum("memory_used_bytes", values.memory(0)),
    "bar1_total": Datum("bar1_total_bytes", values.memory(1)),
    "gpu_util": Datum("gpu_util_percent", values.count(101)),
    "event_hw_slowdown": _event(0x8),
    "event_hw_thermal": _event(0x40),
    "event_power_brake": _event(0x80),
    "event_sw_thermal": _event(0x20),
    "event_sw_power_cap": _event(0x4),
    "event_idle": _event(0x1),
    "event_application_clocks": _event(0x2),
    "power_limit": Datum("power_limit_watts", values.quantity("W", 1, 20_000)),
    "power_limit_default": Datum("power_limit_default_watts", values.quantity("W", 1, 20_000)),
    "power_limit_max": Datum("power_limit_max_watts", values.quantity("W", 1, 20_000)),
    "power_draw": Datum("power_draw_watts", values.quantity("W", 0, 20_000)),
    "temperature": Datum("temperature_degc", values.quantity("degC", -60, 200)),
    "margin": Datum("margin_degc", values.quantity("degC", -200, 200)),
    "margin_slowdown": Datum("margin_slowdown_degc", values.quantity("degC", -200, 200)),
    "margin_shutdown": Datum("margin_shutdown_degc", values.quantity("degC", -200, 200)),
    "memory_temperature": Datum("memory_temperature_degc", values.quantity("degC", -60, 200)),
    "sm_clock": Datum("sm_clock_mhz", values.quantity("MHz", 0, 20_000)),
    "sm_clock_max": Datum("sm_clock_max_mhz", values.quantity("MHz", 1, 20_000)),
    "fabric_state": Datum("fabric/state", values.name),
    "fabric_status": Datum("fabric/status", values.any_text),
    # what nvidia-smi -q does not say, or not so
    "compute_capability": Datum("compute_capability", values.capability),
    "row_remap_banks": Datum("row_remap_banks", values.banks),
    "row_remap_banks_low": Datum("row_remap_banks/low", values.count(2**31)),
    "row_remap_banks_none": Datum("row_remap_banks/none", values.count(2**31)),
    "fabric_health": Datum("fabric/health", values.fabric_health),
}
MORE = ("compute_capability", "row_remap_banks", "fabric_health", "nvlinks", "nvlink_errors", "p2p_nvlink")


def parse(data: bytes) -> Nvml | Unknown:
    """The whole document; unknown where it is cut, not the probe's, or says that there is no NVML or none that starts.

    >>> found = parse(b'''{"probe": "nvml", "schema": 1, "driver_version": "580.105.08", "cuda_version": "13.0",
    ... "device_count": 2, "errors": {}, "error": null, "devices": [{"index": 0, "bus_id": "00000000:19:00.0",
    ... "memory_total_bytes": 85520809984, "unread": {"temperature_degc": ["nvmlDeviceGetTemperature"]},
    ... "errors": {"nvmlDeviceGetTemperature": "UNKNOWN"}},
    ... {"index": 1, "errors": {"nvmlDeviceGetHandleByIndex": "GPU_IS_LOST"}}]}''')
    >>> str(found.gpus["0000:19:00.0"]["memory_total"].value), found.gpus["0000:19:00.0"]["temperature"].reason
    ('81559 MiB', 'nvmlDeviceGetTemperature: UNKNOWN')
    >>> found.unplaced, found.device_count.reason
    ({1: 'nvmlDeviceGetHandleByIndex: GPU_IS_LOST'}, 'NVML counts 2 GPUs and gives the bus ids of 1')
    """
    found = document(data, "nvml", 1)
    if isinstance(found, Unknown):
        return found
    if found.get("error") is not None:
        loader = table(found.get("errors")).get("dlopen")
        return Unknown(f"{said(found['error'])}{f': {said(loader)}' if loader else ''}", missing=True)
    entries = [table(entry) for entry in found["devices"]] if isinstance(found.get("devices"), list) else []
    refusal = table(found.get("errors")).get("nvmlInit")
    if refusal is not None and not entries:  # as a nvidia-smi that exits with a status: other forms may be asked
        return Unknown(f"nvmlInit: {said(refusal)}", missing=True)
    places = [_bus_id(entry) for entry in entries]
    gpus: dict[str, dict[str, Reading[Any]]] = {}
    unplaced: dict[int, str] = {}
    for position, (entry, bus_id) in enumerate(zip(entries, places, strict=True)):
        if isinstance(bus_id, Unknown):
            unplaced[_index(entry, position)] = bus_id.reason
        elif bus_id.value in gpus:
            twice = Unknown(f"NVML lists GPU {bus_id.value} twice")
            gpus[bus_id.value] = dict.fromkeys((*FIELDS, *MORE), twice)
        else:
            gpus[bus_id.value] = _gpu(entry, entries, places)
    return Nvml(
        driver_version=read(found, Datum("driver_version", values.version)),
        cuda_version=read(found, Datum("cuda_version", values.version)),
        device_count=_count(found, len(gpus), len(entries)),
        gpus=gpus,
        unplaced=unplaced,
        refused={
            bus_id.value: why
            for entry, bus_id in zip(entries, places, strict=True)
            if isinstance(bus_id, Known) and (why := _refusal(entry))
        },
    )


def _refusal(entry: dict[str, Any]) -> str:
    """The first call that NVML answered with such a word; of a pair it may speak of the other GPU."""
    errors = table(entry.get("errors")).items()
    return next((f"{call}: {said(e)}" for call, e in errors if e in (LOST, RESET_REQUIRED) and "P2P" not in call), "")


def _fabric_state(entry: dict[str, Any], state: Reading[str]) -> Reading[str]:
    """What NVML does not support on this GPU nvidia-smi prints as N/A, which may be right; no other error is."""
    asked = table(entry.get("unread")).get("fabric")
    if isinstance(state, Known) or not isinstance(asked, list) or not asked:
        return state
    if table(entry.get("errors")).get(asked[-1]) != "NOT_SUPPORTED":
        return state
    return Unknown(f"{state.reason}: nvidia-smi prints 'N/A'", causes=state.causes)


def _index(entry: dict[str, Any], position: int) -> int:
    index = values.count(MOST_GPUS)(entry.get("index"))
    return position if index is None else index


def _bus_id(entry: dict[str, Any]) -> Reading[str]:
    return read(entry, Datum("bus_id", lambda text: normal_bus_id(text) if isinstance(text, str) else None))


def _count(found: dict[str, Any], placed: int, listed: int) -> Reading[int]:
    count = read(found, Datum("device_count", values.count(MOST_GPUS + 1)))
    if isinstance(count, Known) and not count.value == placed == listed:
        return Unknown(f"NVML counts {count.value} GPUs and gives the bus ids of {placed}")
    return count


def _gpu(entry: dict[str, Any], entries: list[dict[str, Any]], places: list[Reading[str]]) -> dict[str, Reading[Any]]:
    none = Unknown("the nvml probe does not ask for it", missing=True)
    readings = {name: read(entry, _PLACES[name]) if name in _PLACES else none for name in (*FIELDS, *MORE)}
    readings["fabric_state"] = _fabric_state(entry, readings["fabric_state"])
    state, status = readings["fabric_state"], readings["fabric_status"]
    if isinstance(state, Known) and state.value != "Completed" and isinstance(status, Unknown):
        readings["fabric_status"] = Unknown(f"NVML gives no fabric status while the state is {state.value}")
    if isinstance(state, Known) and "health" not in entry["fabric"]:
        readings["fabric_health"] = Unknown("this platform reports no fabric health")
    readings["nvlinks"] = links(entry, readings["mig_current"], readings["virtualization"])
    readings["nvlink_errors"] = link_errors(entry)
    peers = {_index(other, place): bus_id for place, (other, bus_id) in enumerate(zip(entries, places, strict=True))}
    readings["p2p_nvlink"] = pairs(entry, peers)
    return readings
