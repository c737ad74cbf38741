"""The health of one GPU: memory errors, row remapping, recovery, slowdowns, and what was left behind on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodeready.node.catalogue import NVML
from nodeready.node.occupation import compute_processes
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, explained_by, first_unknown

if TYPE_CHECKING:
    from nodeready.node.gpus import Gpu

_SLOWDOWNS = {
    "event_hw_slowdown": "HW slowdown",
    "event_hw_thermal": "HW thermal slowdown",
    "event_power_brake": "HW power brake",
    "event_sw_thermal": "SW thermal slowdown",
}
# what a reset, or an exchange, is still waited for besides the row remapper
_REPAIRS = {"channel_repair_pending": "a memory channel", "tpc_repair_pending": "a TPC"}
_NO_WATTS, _TOO_MANY_WATTS = Quantity(1, "W"), 1.5
_COLDEST, _HOTTEST = Quantity(1, "degC"), Quantity(125, "degC")


class Health:
    """ECC, row remapping, recovery and slowdowns."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self.ecc_mode = gpu.smi("ecc_mode_current")
        self.ecc_mode_pending = gpu.smi("ecc_mode_pending")
        self.sram_uncorrected = self._counted("ecc_sram_uncorrected_volatile")
        self.dram_uncorrected = self._counted("ecc_dram_uncorrected_volatile")
        self.sram_corrected = self._counted("ecc_sram_corrected_volatile")
        self.dram_corrected = self._counted("ecc_dram_corrected_volatile")
        self.sram_uncorrected_lifetime = _with_threshold(
            self._counted("ecc_sram_uncorrected_aggregate"), gpu.smi("sram_threshold_exceeded")
        )
        self.dram_uncorrected_lifetime = self._counted("ecc_dram_uncorrected_aggregate")
        self.row_remap_pending = self._remapper("row_remap_pending")
        self.row_remap_failure = self._remapper("row_remap_failure")
        self.remapped_uncorrected = self._remapper("row_remap_uncorrected")
        self.remapped_corrected = self._remapper("row_remap_corrected")

    @property
    def recovery_action(self) -> Reading[str]:
        """What the driver asks for; one that NVML lets nobody use until a reset asks for that in any case."""
        asked, refused = self._gpu.smi("recovery_action"), self._gpu.waits_for_reset
        if not refused:
            return asked
        if isinstance(asked, Unknown):
            return Known("Reset", note=refused, recordings=(NVML.name,))
        return replace(asked, defect=refused, recordings=(*asked.recordings, NVML.name))

    def _counted(self, field: str) -> Reading[int]:
        """A counter of ECC, which counts nothing while ECC is off."""
        reading = self._gpu.smi(field)
        return explained_by(reading, "health.ecc-mode") if isinstance(reading, Unknown) else reading

    def _remapper(self, field: str) -> Reading[Any]:
        """What the row remapper says, which says nothing while the GPU is in MIG mode."""
        reading = self._gpu.smi(field)
        return explained_by(reading, "gpu.mig") if isinstance(reading, Unknown) else reading

    @property
    def reset_pending(self) -> Reading[str]:
        """Whether a row remap waits for a reset; a repair of another part that does is a defect."""
        waiting = [words for field, words in _REPAIRS.items() if self._says_yes(field)]
        reading = self.row_remap_pending
        if isinstance(reading, Unknown) or not waiting:
            return reading
        return replace(reading, defect=f"the repair of {' and '.join(waiting)} waits for a reset of the GPU")

    @property
    def remap_failed(self) -> Reading[str]:
        """Whether a row remap failed; memory that the GPU itself calls unrepairable is a defect."""
        reading = self.row_remap_failure
        if isinstance(reading, Unknown) or not self._says_yes("unrepairable_memory"):
            return reading
        return replace(reading, defect="the GPU says that it holds memory that cannot be repaired")

    def _says_yes(self, field: str) -> bool:
        """Whether the driver says Yes; older ones have no such field."""
        reading = self._gpu.smi(field)
        return isinstance(reading, Known) and reading.value == "Yes"

    @property
    def banks_short_of_rows(self) -> Reading[int]:
        """How many memory banks have few spare rows left."""
        return self._remapper("row_remap_banks_low")

    @property
    def banks_without_rows(self) -> Reading[int]:
        """How many memory banks have no spare row left; after a failed remap that is nothing new."""
        reading, failed = self._remapper("row_remap_banks_none"), self.row_remap_failure
        if isinstance(reading, Known) and isinstance(failed, Known) and failed.value == "Yes":
            reason = f"{reading.value} banks have no spare row left, which the failed row remap says already"
            return Unknown(reason, recordings=reading.recordings, causes=("health.row-remap-failure",))
        return reading

    @property
    def slowdowns(self) -> Reading[str]:
        """The slowdowns in force, in words; `none` only where every one of them was read."""
        readings = {words: self._gpu.smi(field, volatile=True) for field, words in _SLOWDOWNS.items()}
        active = [words for words, reading in readings.items() if isinstance(reading, Known) and reading.value]
        recordings = tuple(dict.fromkeys(name for r in readings.values() for name in r.recordings))
        if not active:
            unknown = [reading for reading in readings.values() if isinstance(reading, Unknown)]
            return unknown[0] if unknown else Known("none", recordings=recordings)
        doubt = ""
        utilisation = self._gpu.smi("gpu_util", volatile=True)
        if active == [_SLOWDOWNS["event_sw_thermal"]] and isinstance(utilisation, Known) and utilisation.value > 0:
            doubt = "the GPU was under load, where one sample of it is no fault; read it idle"
        return Known(", ".join(active), recordings=recordings, doubt=doubt)

    @property
    def leftover_processes(self) -> Reading[int]:
        """Processes that compute on the GPU although no job holds the node."""
        listed = self._gpu.smi("processes", volatile=True)
        if isinstance(listed, Unknown):
            return listed
        found = compute_processes(listed.value)
        return Known(len(found), note=", ".join(f"{pid} ({name})" for pid, name in found), recordings=listed.recordings)

    @property
    def leftover_memory(self) -> Reading[Quantity]:
        """Memory in use that no process owns, as a context leaves behind whose process died."""
        used, processes = self._gpu.smi("memory_used", volatile=True), self._gpu.smi("processes", volatile=True)
        if isinstance(used, Unknown):
            return used
        if isinstance(processes, Unknown):
            return processes
        if compute_processes(processes.value):
            reason = "processes on the GPU hold memory of their own"
            return Unknown(reason, recordings=processes.recordings, causes=("health.leftovers",))
        return Known(used.value, recordings=used.recordings)

    @property
    def telemetry(self) -> Reading[str]:
        """`plausible` where utilisation, memory, power and temperature are numbers that the GPU can have."""
        smi = self._gpu.smi
        names = ("gpu_util", "memory_used", "memory_total", "power_draw", "temperature")
        readings = {name: smi(name, volatile=True) for name in names}
        cited = tuple(dict.fromkeys(name for r in readings.values() for name in r.recordings))
        known = {name: reading.value for name, reading in readings.items() if isinstance(reading, Known)}
        wrong = _implausible(known, smi("power_limit_max"))
        if wrong:
            return Known(", ".join(wrong), recordings=cited)
        unknown = first_unknown(*readings.values())
        if unknown is not None:
            return explained_by(unknown, "gpu.mig")
        return Known("plausible", recordings=cited)


def _implausible(known: dict[str, Any], limit: Reading[Quantity]) -> list[str]:
    """The values that no GPU in use can have, in words."""
    wrong = []
    if known.get("gpu_util", 0) > 100:
        wrong.append(f"utilisation {known['gpu_util']} %")
    if "memory_used" in known and "memory_total" in known and known["memory_used"] > known["memory_total"]:
        wrong.append(f"{known['memory_used']} of {known['memory_total']} memory in use")
    power = known.get("power_draw")
    if power is not None and power < _NO_WATTS:
        wrong.append(f"a power draw of {power}")
    elif power is not None and isinstance(limit, Known) and power > limit.value * _TOO_MANY_WATTS:
        wrong.append(f"a power draw of {power}, with a highest limit of {limit.value}")
    heat = known.get("temperature")
    if heat is not None and not _COLDEST <= heat <= _HOTTEST:
        wrong.append(f"a temperature of {heat}")
    return wrong


def _with_threshold(errors: Reading[int], exceeded: Reading[str]) -> Reading[int]:
    """The lifetime errors; the GPU's own word that its threshold is exceeded fails whatever their number."""
    if isinstance(errors, Known) and isinstance(exceeded, Known) and exceeded.value == "Yes":
        return replace(errors, defect="the GPU says that its SRAM threshold is exceeded")
    return errors
