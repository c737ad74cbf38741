"""What a value in the nvml probe's document may be: a converter gives it, or None for what cannot be.

Drivers have been seen to answer with numbers that no GPU can have; they are no readings.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from nodeready.facts import nvidia_smi_values
from nodeready.facts.text import no_value
from nodeready.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

_PCI_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")
_CAPABILITY = re.compile(r"[0-9]{1,2}\.[0-9]")
_LANES = (1, 2, 4, 8, 12, 16, 32)
_KINDS = ("C", "G", "C+G", "M+C")
_BANKS = ("max", "high", "partial", "low", "none")
_MIB = 2**20
_MOST_PIDS = 2**22  # of the kernel


def _by(pattern: Callable[[str], str | None]) -> Callable[[Any], str | None]:
    return lambda value: pattern(value) if isinstance(value, str) else None


def any_text(value: Any) -> str | None:
    """Any text that is not blank."""
    return value.strip()[:200] if isinstance(value, str) and value.strip() else None


def name(value: Any) -> str | None:
    """Any word but those that stand for no value.

    >>> [name(v) for v in ("NVIDIA H100 80GB HBM3", "N/A", "None", 7)]
    ['NVIDIA H100 80GB HBM3', None, None, None]
    """
    text = any_text(value)
    return None if text is None or no_value(text) else nvidia_smi_values.name(text)


def name_or_none(value: Any) -> str | None:
    """As `name`, where the word None is a value."""
    return "None" if value == "None" else name(value)


def one_of(*words: str) -> Callable[[Any], str | None]:
    """One of these words."""
    return lambda value: value if isinstance(value, str) and value in words else None


uuid = _by(nvidia_smi_values.uuid)
version = _by(nvidia_smi_values.version)
performance_state = _by(nvidia_smi_values.performance_state)
pci_id = _by(lambda text: text if _PCI_ID.fullmatch(text) else None)
capability = _by(lambda text: text if _CAPABILITY.fullmatch(text) else None)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -(2**63) < value < 2**64:
        return None
    return value if math.isfinite(value) else None


def count(limit: int) -> Callable[[Any], int | None]:
    """A whole number from 0 up to, not including, `limit`.

    >>> [count(2**32 - 1)(v) for v in (0, 150, 2**32 - 1, -1, True, "7")]
    [0, 150, None, None, None, None]
    """

    def convert(value: Any) -> int | None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return value if whole and 0 <= value < limit else None

    return convert


def generation(value: Any) -> int | None:
    """A PCIe generation, from 1."""
    return count(10)(value) or None


def lanes(value: Any) -> int | None:
    """A PCIe link width."""
    return value if count(33)(value) in _LANES else None


def bit(value: Any, mask: int) -> bool | None:
    """Whether a bit is set in a set of bits.

    >>> bit(0x1, 0x8), bit(0x9, 0x8), bit(-1, 0x8)
    (False, True, None)
    """
    bits = count(2**63)(value)
    return None if bits is None else bool(bits & mask)


def quantity(unit: str, least: float, most: float) -> Callable[[Any], Quantity | None]:
    """A number of this unit within bounds that no part leaves; a whole one is an int, as nvidia-smi's are.

    >>> str(quantity("W", 1, 20_000)(700.0)), quantity("degC", -60, 200)(2**32 - 1)
    ('700 W', None)
    """

    def convert(value: Any) -> Quantity | None:
        number = _number(value)
        if number is None or not least <= number <= most:
            return None
        return Quantity(int(number) if float(number).is_integer() else float(number), unit)

    return convert


def memory(least_mib: int) -> Callable[[Any], Quantity | None]:
    """A number of bytes, in MiB as nvidia-smi counts memory: whole ones.

    >>> str(memory(1)(85_520_809_984)), memory(1)(0), memory(0)(-4096)
    ('81559 MiB', None, None)
    """

    def convert(value: Any) -> Quantity | None:
        size = count(2**50)(value)
        if size is None or round(size / _MIB) < least_mib:
            return None
        return Quantity(round(size / _MIB), "MiB")

    return convert


def banks(value: Any) -> tuple[int, ...] | None:
    """Memory banks by the spare rows left to them: all, high, partial, low, none."""
    if not isinstance(value, dict):
        return None
    counts = [count(2**31)(value.get(name)) for name in _BANKS]
    found = tuple(n for n in counts if n is not None)
    return found if len(found) == len(_BANKS) else None


def fabric_health(value: Any) -> str | None:
    """What is wrong with the fabric, in words, `none` where nothing is.

    >>> fabric_health({"degraded_bandwidth": False, "route_unhealthy": True}), fabric_health({})
    ('route unhealthy', None)
    """
    if not isinstance(value, dict) or not value:
        return None
    wrong = []
    for key, found in value.items():
        if found is not False and count(16)(found) is None and found is not True:
            return None
        if found:
            wrong.append(key.replace("_", " ") + ("" if found is True else f" {found}"))
    return ", ".join(wrong) or "none"


def processes(value: Any) -> tuple[tuple[int, str, str], ...] | None:
    """The processes on a GPU by pid: pid, nvidia-smi's type and name, `(unknown)` where NVML gave none."""
    if not isinstance(value, list):
        return None
    found = []
    for entry in value:
        if not isinstance(entry, dict):
            return None
        pid, kind = count(_MOST_PIDS + 1)(entry.get("pid")), one_of(*_KINDS)(entry.get("type"))
        if not pid or kind is None:
            return None
        found.append((pid, kind, any_text(entry.get("name")) or "(unknown)"))
    return tuple(sorted(found))
