"""Plain `nvidia-smi`: the table for people, which shows little and rounds it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nodeready.evidence.probe import Probe
from nodeready.facts import nvidia_smi_values as values
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.nvidia_smi import FIELDS, Smi
from nodeready.facts.text import lines, no_value
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

# `nvidia-smi -q` tells all of it and more, so no live node is asked for it
TABLE = Probe("nvidia-smi", ("nvidia-smi",), tier="handed-in")

_NOT_SHOWN = Unknown("the plain table of nvidia-smi does not show it: hand in `nvidia-smi -q`", missing=True)
_VERSIONS = re.compile(
    r"\| NVIDIA-SMI \S{1,40}\s+(?:Driver|KMD) Version: (\S{1,40})\s+CUDA (?:UMD )?Version: (\S{1,40})\s*\|"
)
_FIRST = re.compile(
    r"\|\s{1,4}[0-9]{1,3}\s{1,3}(\S.{0,60}?)\s{1,60}(\S{1,8})\s{0,4}\|"
    r"\s{1,6}([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s{1,3}\S{1,8}\s?\|\s{1,30}(\S{1,20})\s\|"
)
_SECOND = re.compile(
    r"\|\s?\S{1,6}\s{1,6}(\S{1,6})\s{1,8}(\S{1,8})\s{1,20}(\S{1,8})\s?/\s{0,4}(\S{1,8})\s{1,3}\|"
    r"\s{1,20}(\S{1,20})\s?/\s{0,8}(\S{1,20})\s\|\s{1,12}(\S{1,8})\s{1,12}(\S.{0,20}?)\s\|"
)
_THIRD = re.compile(r"\|\s{1,60}\|\s{1,60}\|\s{1,60}(\S{1,12})\s\|")
_ENDS = ("Processes:", "MIG devices:")
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}")
_PERSISTENCE, _ON_OFF = {"On": "Enabled", "Off": "Disabled"}, values.one_of("Enabled", "Disabled")


def parse(data: bytes) -> Smi | Unknown:
    """What the table shows of each GPU; all else is missing, so that another form may be asked. Nothing is raised.

    Its one column of ECC errors adds all kinds up: a sum above 0 is kept as errors of the memory, one of
    0 proves nothing of either kind. A GPU's lines that were cut away leave its fields unknown, and the
    number of GPUs is known only where something follows the last one.

    >>> smi = parse(b'''
    ... | NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
    ... |=========================================+========================+======================|
    ... |   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |                    0 |
    ... | N/A   41C    P0             69W /  700W |       0MiB /  81559MiB |      0%      Default |
    ... |                                         |                        |             Disabled |
    ... +-----------------------------------------+------------------------+----------------------+
    ... | Processes:                                                                              |
    ... ''')
    >>> gpu = smi.gpus["0000:00:09.0"]
    >>> smi.attached.value, str(gpu["memory_total"].value), gpu["mig_current"].value, gpu["ecc_mode_current"].value
    (1, '81559 MiB', 'Disabled', 'Enabled')
    >>> gpu["row_remap_pending"].reason
    'the plain table of nvidia-smi does not show it: hand in `nvidia-smi -q`'
    """
    if not data.strip():
        return Unknown("the output is empty")
    text = [line.rstrip() for line in lines(data)]
    rows, ended = _rows(text)
    head = next((match for match in map(_VERSIONS.match, text) if match), None)
    if head is None and not rows:
        return Unknown(_why_none(text))
    gpus: dict[str, dict[str, Reading[Any]]] = {}
    doubts = [] if ended else ["the table is cut: nothing follows its last GPU"]
    for row in rows:
        bus_id = normal_bus_id(row[0][3])
        if bus_id is None or bus_id in gpus:
            doubts.append(f"GPU {row[0][3]} is in the table twice")
            gpus[bus_id or row[0][3]] = dict.fromkeys(FIELDS, Unknown(doubts[-1]))
        else:
            gpus[bus_id] = _gpu(*row)
    attached: Reading[int] = Unknown("; ".join(doubts)) if doubts else Known(len(gpus))
    versions = [Unknown("the table has no line of versions") if head is None else _version(head[at]) for at in (1, 2)]
    return Smi(versions[0], versions[1], attached, gpus, _complaint(text))


_Match = re.Match[str]


def _rows(text: list[str]) -> tuple[list[tuple[_Match, _Match | None, _Match | None]], bool]:
    """The three lines of each GPU, and whether something follows the last one."""
    rows: list[tuple[_Match, _Match | None, _Match | None]] = []
    for at, line in enumerate(text):
        if line.startswith("|") and any(words in line for words in _ENDS):
            return rows, True
        first = _FIRST.fullmatch(line)
        if first is not None:
            below = [*text[at + 1 : at + 3], "", ""]
            second = _SECOND.fullmatch(below[0])
            rows.append((first, second, _THIRD.fullmatch(below[1]) if second else None))
    return rows, False


def _why_none(text: list[str]) -> str:
    shown = next((line for line in text if line.strip()), "")
    if any("| NVIDIA-SMI " in line and not line.startswith("|") for line in text):
        return f"every line begins with a host's name: hand in the table of one node ({shown!r:.80})"
    return f"not the table of nvidia-smi: {shown!r:.200}"


def _complaint(text: list[str]) -> str:
    said = [line for line in text if line and line[0] not in "|+$" and line.strip() and not _DATE.match(line)]
    return "; ".join(line[:200] for line in said[:8])


def _version(text: str) -> Reading[str]:
    return _value("the line of versions", text, values.version)


def _value(what: str, text: str, convert: Callable[[str], Any]) -> Reading[Any]:
    value = None if no_value(text) else convert(text)
    return Unknown(f"{what} of the plain table reads {text!r:.80}") if value is None else Known(value)


def _spaced(printed: str, unit: str, as_unit: str = "") -> Callable[[str], Any]:
    """A number to which its unit is joined, as in `81559MiB`."""
    convert = values.quantity(printed, as_unit or printed)
    return lambda text: convert(f"{text[: -len(unit)]} {printed}" if text.endswith(unit) else text)


def _gpu(first: _Match, second: _Match | None, third: _Match | None) -> dict[str, Reading[Any]]:
    gpu: dict[str, Reading[Any]] = dict.fromkeys(FIELDS, _NOT_SHOWN)
    name, persistence, _, errors = first.groups()
    gpu["product_name"] = (
        Unknown(f"the plain table cuts the name: {name!r:.80}", missing=True)
        if name.endswith("...")
        else _value("the name", name, values.name)
    )
    gpu["persistence"] = _value("persistence", persistence, _PERSISTENCE.get)
    gpu["ecc_mode_current"] = _value("the ECC column", errors, _ecc_mode)
    gpu["ecc_dram_uncorrected_volatile"] = _ecc_errors(errors)
    cut = Unknown("the table is cut in this GPU, or its lines are not understood")
    said = second.groups() if second else ()
    columns: dict[str, tuple[int, Callable[[str], Any]]] = {
        "temperature": (0, _spaced("C", "C", "degC")),
        "performance_state": (1, values.performance_state),
        "power_draw": (2, _spaced("W", "W")),
        "power_limit": (3, _spaced("W", "W")),
        "memory_used": (4, _spaced("MiB", "MiB")),
        "memory_total": (5, _spaced("MiB", "MiB")),
        "gpu_util": (6, _spaced_percent),
        "compute_mode": (7, values.name),
    }
    for field, (at, convert) in columns.items():
        gpu[field] = _value(field, said[at], convert) if said else cut
    gpu["mig_current"] = _value("MIG mode", third[1], _ON_OFF) if third else cut
    return gpu


def _spaced_percent(text: str) -> int | None:
    return values.percent(f"{text[:-1]} %" if text.endswith("%") else text)


def _ecc_mode(text: str) -> str | None:
    """A count of errors, or On where MIG hides it, is printed only where ECC is on."""
    if text == "Off":
        return "Disabled"
    return "Enabled" if text == "On" or values.count(text) is not None else None


def _ecc_errors(text: str) -> Reading[int]:
    count = values.count(text)
    if not count:
        return Unknown(f"the plain table shows one sum of all uncorrected errors, {text!r:.20}", missing=True)
    return Known(count, note="the plain table's sum of all uncorrected errors")
