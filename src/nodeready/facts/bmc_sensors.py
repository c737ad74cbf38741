"""What the BMC's sensors say, from `ipmitool sdr elist` or freeipmi's `ipmi-sensors`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.small_files import closing, is_whole
from nodeready.facts.text import lines
from nodeready.reading import Unknown

_SERVES = ("bmc.responds", "power.supplies", "thermal.fans", "thermal.inlet")
_ROOT = "the sensors of the BMC"

# a BMC answers slowly: some hundred sensors take ten seconds
IPMITOOL_SDR = command(
    "sh",
    "-c",
    closing("ipmitool sdr elist"),
    name="ipmitool_sdr_elist",
    deadline=20.0,
    family="bmc",
    serves=_SERVES,
    root_for=_ROOT,
)
IPMI_SENSORS = command(
    "sh",
    "-c",
    closing("ipmi-sensors --comma-separated-output --no-header-output"),
    name="ipmi-sensors",
    deadline=20.0,
    family="bmc",
    instead_of=IPMITOOL_SDR.name,
    serves=_SERVES,
    root_for=_ROOT,
)

SUPPLY, FAN, TEMPERATURE, OTHER = "supply", "fan", "temperature", "other"
OK = "ok"
# name, number, state, entity and its instance, what it says
_ELIST = re.compile(r"([^|]{1,40}?) *\| [0-9A-F]{1,3}h \| ([a-z]{2,3}) *\| *([0-9]{1,3})\.[0-9]{1,3} \| ?(.*)")
_CSV = re.compile(r"[0-9]{1,5},([^,]{1,60}),([^,]{1,60}),([^,]{1,20}),([^,]{1,20}),(.+)")
_QUOTED = re.compile(r"'([^']{1,120})'")
_POWER_SUPPLY, _FANS = "10", ("29", "30")
_SUPPLY_NAME = re.compile(r"(?i)\bPSU?[ _]?[0-9]{0,2}\b|PSU|power suppl")
_FAN_NAME = re.compile(r"(?i)\bfan|fan[0-9_ ]|_fan")
_NUMBER = re.compile(r"(-?[0-9]{1,7}(?:\.[0-9]{1,4})?) (degrees C|RPM|percent|Watts|Amps|Volts)")
_UNITS = {"C": "degrees C", "RPM": "RPM", "%": "percent", "W": "Watts", "A": "Amps", "V": "Volts"}
# ipmitool's states of a threshold sensor: non-critical, critical, non-recoverable; ns: no reading
_STATES = {
    "ok": OK,
    "ns": "no reading",
    **dict.fromkeys(("nc", "lnc", "unc"), "not critical"),
    **dict.fromkeys(("cr", "lcr", "ucr"), "critical"),
    **dict.fromkeys(("nr", "lnr", "unr"), "not recoverable"),
}


class Sensor(NamedTuple):
    """One sensor: its `kind`, its state (`ok`, `no reading`, or how bad), its number with unit, and its words.

    `value` is None where the sensor gives no number; `words` are the states that it asserts.
    """

    name: str
    kind: str
    state: str
    value: float | None
    unit: str
    words: tuple[str, ...]


class Sensors(NamedTuple):
    """All that the BMC listed, in its order; `whole` is false where the closing line is missing."""

    listed: tuple[Sensor, ...]
    whole: bool


def parse(data: bytes) -> Sensors | Unknown:
    """The sensors of `ipmitool sdr elist`; unknown where no line is one.

    >>> supply, inlet = parse(b'''PS1 Status       | 85h | ok  | 10.1 | Presence detected
    ... Inlet Temp       | 05h | ok  |  7.1 | 22 degrees C
    ... ''').listed
    >>> supply.kind, supply.words, inlet.kind, inlet.value
    ('supply', ('Presence detected',), 'temperature', 22.0)
    """
    found = []
    for line in lines(data):
        match = _ELIST.fullmatch(line.rstrip())
        state = _STATES.get(match[2]) if match else None
        if match and state:
            found.append(_sensor(match[1], match[3], state, match[4]))
    return _sensors(found, data, "no line of it is a sensor of ipmitool sdr elist")


def _sensors(found: list[Sensor], data: bytes, otherwise: str) -> Sensors | Unknown:
    return Sensors(tuple(found), is_whole(data)) if found else Unknown(otherwise)


def _sensor(name: str, entity: str, state: str, said: str) -> Sensor:
    number = _NUMBER.fullmatch(said)
    unit = number[2] if number else ""
    kind = _kind(name, unit, by_entity=SUPPLY if entity == _POWER_SUPPLY else FAN if entity in _FANS else "")
    silent = said in ("", "No Reading", "Not Readable", "Disabled")
    words = () if number or silent else tuple(word.strip() for word in said.split(","))
    return Sensor(name, kind, "no reading" if said == "No Reading" else state, _value(number), unit, words)


def _value(number: re.Match[str] | None) -> float | None:
    return float(number[1]) if number else None


def _kind(name: str, unit: str, by_entity: str = "") -> str:
    if unit == "degrees C":
        return TEMPERATURE
    if unit == "RPM" or by_entity == FAN or _FAN_NAME.search(name):
        return FAN
    if by_entity or _SUPPLY_NAME.search(name):
        return SUPPLY
    return OTHER


def parse_freeipmi(data: bytes) -> Sensors | Unknown:
    r"""The sensors of `ipmi-sensors --comma-separated-output`; unknown where no line is one.

    >>> (supply,) = parse_freeipmi(
    ...     b"70,PWR_PSU0,Power Supply,0.00,W,'At or Below (<=) Lower Critical Threshold'\n"
    ... ).listed
    >>> supply.kind, supply.state, supply.value, supply.words
    ('supply', 'critical', 0.0, ('At or Below (<=) Lower Critical Threshold',))
    """
    found = []
    for line in lines(data):
        match = _CSV.fullmatch(line.strip())
        words = tuple(_QUOTED.findall(match[5])) if match else ()
        if match and (words or match[5] == "N/A"):
            kinds = {"Power Supply": SUPPLY, "Fan": FAN, "Temperature": TEMPERATURE, "Cooling Device": FAN}
            unit = _UNITS.get(match[4], "")
            number = re.fullmatch(r"-?[0-9]{1,7}(?:\.[0-9]{1,4})?", match[3])
            found.append(
                Sensor(
                    match[1],
                    kinds.get(match[2]) or _kind(match[1], unit),
                    _freeipmi_state(words),
                    float(number[0]) if number and unit else None,
                    unit,
                    tuple(word for word in words if word != "OK"),
                )
            )
    return _sensors(found, data, "no line of it is a sensor of ipmi-sensors")


def _freeipmi_state(words: tuple[str, ...]) -> str:
    text = " ".join(words)
    for state in ("Non-recoverable", "Non-critical", "Critical"):
        if f"{state} Threshold" in text:
            return {"Non-recoverable": "not recoverable", "Non-critical": "not critical", "Critical": "critical"}[state]
    return OK if words else "no reading"
