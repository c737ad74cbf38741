"""What the board's own controller (BMC) tells: supplies, fans, inlet, and the events that it noted."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from nodeready.facts import bmc_events, bmc_sensors, dmi_power, host_files
from nodeready.facts.bmc_sensors import FAN, OK, SUPPLY, TEMPERATURE
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from nodeready.facts.bmc_events import Event, Log
    from nodeready.facts.bmc_sensors import Sensor, Sensors
    from nodeready.node.host import Host
    from nodeready.node.sources import Sources

T = TypeVar("T")

PRESENT = "Presence detected"
_NO_FAULT = (PRESENT, "Fully Redundant", "Transition to OK", "Device Present", "Device Enabled", "State Deasserted")
_FAULT = re.compile(
    r"(?i)fail|lost|error|absent|degraded|non-redundant|out-of-range|critical|removed|disabled|inactive"
)
# events of these parts are old news where their own sensors say how they are now
_HAS_SENSORS = re.compile(r"(?i)power supply|\bPSU?[0-9]{0,2}\b|\bfan")
_REDUNDANT = "redundan"
_INLET = ("inlet", "ambient", "intake")
_NOT_AIR = ("dimm", "gpu", "cpu", "water", "liquid", "coolant", "nvme", "cx", "nic")
_NAMED = 4


class Bmc:
    """The readings of a BMC; where a node shows none, every one of them says so."""

    def __init__(self, sources: Sources, host: Host) -> None:
        self._sources, self._host = sources, host

    @cached_property
    def _sensors(self) -> Reading[Sensors]:
        """The sensors by ipmitool, else by freeipmi."""
        forms = (
            (bmc_sensors.IPMITOOL_SDR, bmc_sensors.parse),
            (bmc_sensors.IPMI_SENSORS, bmc_sensors.parse_freeipmi),
        )
        absent: list[Unknown] = []
        for probe, parse in forms:
            found = self._sources.documents.read(probe, parse)
            if not isinstance(found, Unknown):
                return Known(found, recordings=(probe.name,))
            if not found.missing:
                return found
            absent.append(found)
        recordings = tuple(name for form in absent for name in form.recordings)
        return Unknown(self._why_none("; ".join(form.reason for form in absent)), missing=True, recordings=recordings)

    def _why_none(self, reason: str) -> str:
        """The reason in plain words where the kernel has no way to a BMC."""
        device, named = self._host.setting("ipmi_device"), self._host.setting("bmc_named")
        if not isinstance(device, Known) or device.value:
            return reason
        if isinstance(named, Known) and named.value:
            return "the firmware names a BMC, and the kernel has no way to it: load ipmi_si and ipmi_devintf"
        return "this node shows no BMC: the kernel has no IPMI device"

    @property
    def responds(self) -> Reading[bool]:
        """Whether the BMC tells its sensors; a node that shows no BMC is known to have none that does."""
        sensors, device = self._sensors, self._host.setting("ipmi_device")
        if isinstance(sensors, Known):
            return Known(True, note="it lists sensors", recordings=sensors.recordings)
        if isinstance(device, Known) and not device.value and sensors.missing:
            recordings = (*sensors.recordings, host_files.HOST_FILES.name)
            return Known(False, note=sensors.reason, recordings=recordings)
        return sensors

    def _of(self, kind: str, what: str, *, redundancy: bool | None = False) -> Reading[list[Sensor]]:
        """The sensors of one kind, with or without those of redundancy; none is unknown."""
        sensors = self._sensors
        if isinstance(sensors, Unknown):
            return sensors
        found = [
            sensor
            for sensor in sensors.value.listed
            if sensor.kind == kind and redundancy in (None, _tells_redundancy(sensor))
        ]
        if not found:
            return Unknown(f"the BMC shows no sensor of {what}", recordings=sensors.recordings)
        return Known(found, recordings=sensors.recordings)

    @property
    def bad_supplies(self) -> Reading[int]:
        """Power supplies that have a fault, or no input."""
        return self._bad(SUPPLY, "power supplies")

    @property
    def supplies(self) -> Reading[int]:
        """Power supplies that are there."""
        sensors = self._of(SUPPLY, "power supplies")
        if isinstance(sensors, Unknown):
            return sensors
        there = [sensor for sensor in sensors.value if PRESENT in sensor.words]
        if not there:
            return Unknown("no sensor of the BMC tells of a supply's presence", recordings=sensors.recordings)
        return self._whole(Known(len(there), recordings=sensors.recordings))

    @property
    def supply_redundancy(self) -> Reading[str]:
        """The redundancy of the supplies in the BMC's words; of several sensors the worst."""
        return self._redundancy(SUPPLY, "the redundancy of power supplies")

    @property
    def bad_fans(self) -> Reading[int]:
        """Fans that stand still, or run out of their range."""
        return self._bad(FAN, "fans")

    @property
    def inlet(self) -> Reading[Quantity]:
        """The temperature of the air that the node takes in; of several sensors the highest."""
        sensors = self._of(TEMPERATURE, "temperatures")
        if isinstance(sensors, Unknown):
            return sensors
        named = [sensor for sensor in sensors.value if _is_inlet(sensor.name)]
        values = [(sensor.value, sensor.name) for sensor in named if sensor.value is not None]
        if not values:
            return Unknown("the BMC shows no temperature of an inlet", recordings=sensors.recordings)
        value, name = max(values)
        return self._whole(Known(Quantity(value, "degC"), note=name, recordings=sensors.recordings))

    def _bad(self, kind: str, what: str) -> Reading[int]:
        sensors = self._of(kind, what, redundancy=None if kind == FAN else False)
        if isinstance(sensors, Unknown):
            return sensors
        told = [sensor for sensor in sensors.value if sensor.words or sensor.value is not None]
        if not told:
            return Unknown(f"no sensor of {what} has a reading", recordings=sensors.recordings)
        bad = [f"{sensor.name}: {why}" for sensor in told if (why := _fault(sensor))]
        strange = [f"{sensor.name}: {word}" for sensor in told for word in sensor.words if _is_strange(word)]
        if strange and not bad:
            return Unknown(f"words of the BMC that are not known: {_some(strange)}", recordings=sensors.recordings)
        return self._whole(Known(len(bad), note=_some(bad), recordings=sensors.recordings), certain=bool(bad))

    def _whole(self, reading: Known[T], *, certain: bool = False) -> Reading[T]:
        """What a list of sensors tells, where it was not cut; a fault that was found is `certain` all the same."""
        sensors = self._sensors
        if certain or (isinstance(sensors, Known) and sensors.value.whole):
            return reading
        return Unknown("the BMC's list lacks its closing line: it was cut", recordings=reading.recordings)

    def _redundancy(self, kind: str, what: str) -> Reading[str]:
        sensors = self._of(kind, what, redundancy=True)
        if isinstance(sensors, Unknown):
            return sensors
        words = [word for sensor in sensors.value for word in sensor.words]
        if not words:
            return Unknown(f"{what} has no reading", recordings=sensors.recordings)
        worst = next((word for word in words if word != "Fully Redundant"), words[0])
        return self._whole(Known(worst, recordings=sensors.recordings))

    @property
    def rated_for_each_gpu(self) -> Reading[Quantity]:
        """What the supplies that are there can give, less the host's part, for each planned GPU."""
        probe, terms = dmi_power.DMI_POWER, self._sources.terms
        found = self._sources.documents.read(probe, dmi_power.parse)
        if isinstance(found, Unknown):
            return found
        there = [supply for supply in found if supply.present]
        unknown = next((supply.rated for supply in there if isinstance(supply.rated, Unknown)), None)
        if unknown is not None or not there:
            reason = unknown.reason if unknown is not None else "no power supply is listed as present"
            return Unknown(f"{probe.name}: {reason}", recordings=(probe.name,))
        total = sum(supply.rated.value.to("W").value for supply in there)
        host = terms.host_power.to("W").value
        note = f"{len(there)} supplies of {total:g} W in all, {host:g} W of it for the host"
        share = Quantity(max(0.0, total - host) / terms.gpu_count, "W")
        return Known(share, note=note, recordings=(probe.name,))

    @property
    def events_since_boot(self) -> Reading[int]:
        """Critical events that the BMC noted since this boot and did not take back, of parts without sensors."""
        log, booted = self._log, self._host.setting("boot_time")
        if isinstance(log, Unknown):
            return log
        events = self._standing(log.value)
        if not events:
            return self._counted(log, [])
        if isinstance(booted, Unknown):
            return Unknown(f"when this boot was is unknown: {booted.reason}", recordings=log.recordings)
        undated = [event for event in events if event.at is None]
        since = [event for event in events if event.at is not None and event.at >= booted.value]
        if undated and not since:
            return Unknown(f"the BMC had no clock when it noted: {_told(undated)}", recordings=log.recordings)
        return self._counted(log, since, certain=bool(since))

    @property
    def events_standing(self) -> Reading[int]:
        """Critical events of any time that were not taken back; those since boot are among them."""
        log = self._log
        return log if isinstance(log, Unknown) else self._counted(log, self._standing(log.value))

    @cached_property
    def _log(self) -> Reading[Log]:
        probe = bmc_events.IPMITOOL_SEL
        found = self._sources.documents.read(probe, bmc_events.parse)
        if not isinstance(found, Unknown):
            return Known(found, recordings=(probe.name,))
        if not found.missing:
            return found
        return Unknown(self._why_none(found.reason), missing=True, recordings=found.recordings)

    def _standing(self, log: Log) -> list[Event]:
        """What was not taken back, without what a part's own sensor tells better."""
        told = isinstance(self._sensors, Known)
        return [e for e in bmc_events.standing(log.entries) if not (told and _HAS_SENSORS.search(e.sensor))]

    @staticmethod
    def _counted(log: Known[Log], events: list[Event], *, certain: bool = False) -> Reading[int]:
        if not log.value.whole and not certain:
            return Unknown("the BMC's log lacks its closing line: it was cut", recordings=log.recordings)
        last = f"of the last {bmc_events.LAST} entries" if len(log.value.entries) >= bmc_events.LAST else ""
        return Known(len(events), note=_told(events) or last, recordings=log.recordings)


def _tells_redundancy(sensor: Sensor) -> bool:
    return _REDUNDANT in sensor.name.lower() or any(_REDUNDANT in word.lower() for word in sensor.words)


def _fault(sensor: Sensor) -> str:
    """Why a supply or a fan is not well, in words; empty where it is."""
    if sensor.state not in (OK, "no reading"):
        return f"{sensor.state}" + (f" at {sensor.value:g} {sensor.unit}" if sensor.value is not None else "")
    if sensor.kind == FAN and sensor.unit == "RPM" and sensor.value == 0:
        return "stands still"
    return ", ".join(word for word in sensor.words if _FAULT.search(word) and word not in _NO_FAULT)


def _is_strange(word: str) -> bool:
    return word not in _NO_FAULT and _FAULT.search(word) is None


def _is_inlet(name: str) -> bool:
    low = name.lower()
    return any(word in low for word in _INLET) and not any(word in low for word in _NOT_AIR)


def _told(events: list[Event]) -> str:
    return _some([f"{event.sensor}: {event.said}" for event in events])


def _some(words: list[str]) -> str:
    return ", ".join(words[:_NAMED]) + (f" and {len(words) - _NAMED} more" if len(words) > _NAMED else "")
