"""`nvidia-smi --query-gpu=FIELDS --format=csv`: the driver's document in the columns that somebody asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nodeready.evidence.probe import Probe
from nodeready.facts import nvidia_smi_values as values
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.nvidia_smi import FIELDS, Smi
from nodeready.facts.text import is_cut, lines, no_value
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.quantity import Quantity

# which fields it holds is up to whoever made it, so it is only read where it is handed in
QUERY_GPU = Probe("nvidia-smi_--query-gpu", ("nvidia-smi", "--query-gpu=FIELDS", "--format=csv"), tier="handed-in")
CAPABILITY = "compute_capability"  # what this form tells beyond FIELDS

_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,6})?")
_UNIT = re.compile(r" \[[^\[\]]{1,8}\]$")
_CAPABILITY = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}")


def _quantity(printed: str, unit: str = "") -> Callable[[str], Quantity | None]:
    """A number with its unit, or without where `nounits` was asked for: the unit of a column is always the same."""
    convert = values.quantity(printed, unit)
    return lambda text: convert(f"{text} {printed}" if _NUMBER.fullmatch(text) else text)


def _percent(text: str) -> int | None:
    return values.percent(text if text.endswith("%") else f"{text} %")


def _lanes(text: str) -> int | None:
    return values.lanes(text if text.endswith("x") else f"{text}x")


def _capability(text: str) -> str | None:
    return text if _CAPABILITY.fullmatch(text) else None


_ECC, _PCIE, _EVENT = "ecc.errors", "pcie.link", ("clocks_event_reasons", "clocks_throttle_reasons")
_ON_OFF, _YES_NO = values.one_of("Enabled", "Disabled"), values.one_of("Yes", "No")
_MIB, _WATT, _MHZ, _CELSIUS = _quantity("MiB"), _quantity("W"), _quantity("MHz"), _quantity("C", "degC")
_BUS_ID = ("pci.bus_id", "gpu_bus_id")


def _event(name: str) -> tuple[tuple[str, ...], Callable[[str], Any]]:
    return tuple(f"{group}.{name}" for group in _EVENT), values.active


# a field of the document: the columns that hold it, the first that is there, and what their text means
_COLUMNS: dict[str, tuple[tuple[str, ...], Callable[[str], Any]]] = {
    "product_name": (("name", "gpu_name"), values.name),
    "device_id": (("pci.device_id",), values.pci_id),
    "subsystem_id": (("pci.sub_device_id",), values.pci_id),
    "serial": (("serial", "gpu_serial"), values.name),
    "uuid": (("uuid", "gpu_uuid"), values.uuid),
    "vbios": (("vbios_version",), values.name),
    "persistence": (("persistence_mode",), _ON_OFF),
    "mig_current": (("mig.mode.current",), _ON_OFF),
    "mig_pending": (("mig.mode.pending",), _ON_OFF),
    "performance_state": (("pstate",), values.performance_state),
    "link_gen_current": ((f"{_PCIE}.gen.gpucurrent", f"{_PCIE}.gen.current"), values.generation),
    "link_gen_max": ((f"{_PCIE}.gen.max",), values.generation),
    "link_gen_device_max": ((f"{_PCIE}.gen.gpumax",), values.generation),
    "link_width_current": ((f"{_PCIE}.width.current",), _lanes),
    "link_width_max": ((f"{_PCIE}.width.max",), _lanes),
    "memory_total": (("memory.total",), _MIB),
    "memory_used": (("memory.used",), _MIB),
    "compute_mode": (("compute_mode",), values.name),
    "gpu_util": (("utilization.gpu",), _percent),
    "ecc_mode_current": (("ecc.mode.current",), _ON_OFF),
    "ecc_mode_pending": (("ecc.mode.pending",), _ON_OFF),
    "ecc_sram_uncorrected_volatile": ((f"{_ECC}.uncorrected.volatile.sram",), values.count),
    "ecc_sram_uncorrected_aggregate": ((f"{_ECC}.uncorrected.aggregate.sram",), values.count),
    "ecc_dram_uncorrected_volatile": ((f"{_ECC}.uncorrected.volatile.dram",), values.count),
    "ecc_dram_uncorrected_aggregate": ((f"{_ECC}.uncorrected.aggregate.dram",), values.count),
    "ecc_sram_corrected_volatile": ((f"{_ECC}.corrected.volatile.sram",), values.count),
    "ecc_dram_corrected_volatile": ((f"{_ECC}.corrected.volatile.dram",), values.count),
    "sram_threshold_exceeded": ((f"{_ECC}.uncorrected.aggregate.sram.thresholdExceeded",), _YES_NO),
    "row_remap_pending": (("remapped_rows.pending",), _YES_NO),
    "row_remap_failure": (("remapped_rows.failure",), _YES_NO),
    "row_remap_corrected": (("remapped_rows.correctable", "remapped_rows.sbe"), values.count),
    "row_remap_uncorrected": (("remapped_rows.uncorrectable", "remapped_rows.dbe"), values.count),
    "recovery_action": (("gpu_recovery_action",), values.name_or_none),
    "event_hw_slowdown": _event("hw_slowdown"),
    "event_hw_thermal": _event("hw_thermal_slowdown"),
    "event_power_brake": _event("hw_power_brake_slowdown"),
    "event_sw_thermal": _event("sw_thermal_slowdown"),
    "event_sw_power_cap": _event("sw_power_cap"),
    "event_idle": _event("gpu_idle"),
    "power_limit": (("enforced.power.limit", "gpu.power.current_limit"), _WATT),
    "power_limit_default": (("power.default_limit", "gpu.power.default_limit"), _WATT),
    "power_limit_max": (("power.max_limit", "gpu.power.max_limit"), _WATT),
    "power_draw": (("power.draw.average", "power.draw"), _WATT),
    "temperature": (("temperature.gpu",), _CELSIUS),
    "margin": (("temperature.gpu.tlimit",), _CELSIUS),
    "memory_temperature": (("temperature.memory",), _CELSIUS),
    "sm_clock": (("clocks.current.sm", "clocks.sm"), _MHZ),
    "sm_clock_max": (("clocks.max.sm",), _MHZ),
    "fabric_state": (("fabric.state",), values.name),
    "fabric_status": (("fabric.status",), str),
    "fabric_health_summary": (("fabric.health.summary",), values.name),
    "fabric_health_bandwidth": (("fabric.health.bandwidth",), values.name),
    "fabric_health_recovery": (("fabric.health.route_recovery_in_progress",), values.name),
    "fabric_health_route": (("fabric.health.route_unhealthy",), values.name),
    "fabric_health_timeout": (("fabric.health.access_timeout_recovery",), values.name),
    "fabric_health_configuration": (("fabric.health.incorrect_configuration",), values.name_or_none),
    CAPABILITY: (("compute_cap",), _capability),
}


def parse(data: bytes) -> Smi | Unknown:
    """The document of one table, a GPU for each row; nothing is ever raised.

    A column that was not asked for is missing, so that another form may be asked. How many GPUs there
    are is known from the column `count` alone: a table that was cut or filtered looks like a whole one.

    >>> smi = parse(b'''pci.bus_id, count, memory.total [MiB], mig.mode.current
    ... 00000000:19:00.0, 1, 81559 MiB, [N/A]
    ... ''')
    >>> gpu = smi.gpus["0000:19:00.0"]
    >>> smi.attached.value, str(gpu["memory_total"].value), gpu["mig_current"].reason
    (1, '81559 MiB', "mig.mode.current reads '[N/A]'")
    >>> gpu["row_remap_pending"].missing, gpu["row_remap_pending"].reason
    (True, 'the table has no column remapped_rows.pending: add it to --query-gpu')
    """
    if not data.strip():
        return Unknown("the output is empty")
    rows = [[cell.strip() for cell in line.split(",")] for line in lines(data) if line.strip()]
    if not rows:
        return Unknown("the output is cut in its first line")
    head = [_UNIT.sub("", cell) for cell in rows[0]]
    places = [place for place, name in enumerate(head) if name in _BUS_ID]
    if len(places) != 1:
        return Unknown(_without_bus_id(head))
    gpus: dict[str, dict[str, Reading[Any]]] = {}
    doubts, strange = [], []
    for row in rows[1:]:
        bus_id = normal_bus_id(row[places[0]]) if len(row) == len(head) else None
        if bus_id is None:
            strange.append(", ".join(row)[:200])
        elif bus_id in gpus:
            doubts.append(f"GPU {bus_id} is listed twice")
            gpus[bus_id] = dict.fromkeys((*FIELDS, CAPABILITY), Unknown(doubts[-1]))
        else:
            gpus[bus_id] = _gpu(dict(zip(head, row, strict=True)), head)
    if not gpus:
        return Unknown(f"no row names a GPU: {', '.join(rows[-1])!r:.200}")
    if strange or is_cut(data):
        doubts.append(f"a line is no row of the table: {strange[0]!r}" if strange else "the table is cut in a line")
    whole = [dict(zip(head, row, strict=True)) for row in rows[1:] if len(row) == len(head)]
    return Smi(
        driver_version=_same(whole, head, "driver_version", values.version),
        cuda_version=Unknown("nvidia-smi --query-gpu has no column of it", missing=True),
        attached=_attached(whole, head, len(gpus), doubts),
        gpus=gpus,
        complaint="; ".join(strange[:8]),
    )


def _without_bus_id(head: list[str]) -> str:
    seen = ", ".join(head)
    if "name" in head or "index" in head or "uuid" in head:
        return f"the table has no column pci.bus_id, which tells GPUs apart: add it to --query-gpu ({seen!r:.120})"
    return f"no table of --query-gpu, or one without its header line (noheader): {seen!r:.200}"


def _gpu(row: dict[str, str], head: list[str]) -> dict[str, Reading[Any]]:
    readings: dict[str, Reading[Any]] = {}
    for field in (*FIELDS, CAPABILITY):
        columns, convert = _COLUMNS.get(field, ((), str))
        there = [column for column in columns if column in row]
        if not there:
            wanted = f"no column {columns[0]}: add it to --query-gpu" if columns else f"no column of {field}"
            readings[field] = Unknown(f"the table has {wanted}", missing=True)
        elif head.count(there[0]) > 1:
            readings[field] = Unknown(f"the table has the column {there[0]} twice")
        else:
            readings[field] = _value(there[0], row[there[0]], convert)
    return readings


def _value(column: str, text: str, convert: Callable[[str], Any]) -> Reading[Any]:
    value = None if no_value(text) else convert(text)
    return Unknown(f"{column} reads {text!r:.80}") if value is None else Known(value)


def _same(rows: list[dict[str, str]], head: list[str], column: str, convert: Callable[[str], Any]) -> Reading[Any]:
    """What a column says of the node as a whole: one value in all rows."""
    if column not in head:
        return Unknown(f"the table has no column {column}: add it to --query-gpu", missing=True)
    said = list(dict.fromkeys(row[column] for row in rows))
    if len(said) != 1:
        return Unknown(f"{column} reads {' and '.join(map(repr, said[:2]))}")
    return _value(column, said[0], convert)


def _attached(rows: list[dict[str, str]], head: list[str], held: int, doubts: list[str]) -> Reading[int]:
    said: Reading[int] = _same(rows, head, "count", values.count)
    if isinstance(said, Unknown):
        return said
    if said.value != held:
        doubts = [f"the column count says {said.value} GPUs, the table holds {held}", *doubts]
    return Unknown("; ".join(doubts)) if doubts else said
