"""What a word that nvidia-smi prints means: a converter gives the value, or None for what it does not understand.

Converters see no `N/A` and its like: those are sorted out before. Digits are bounded, so that no text
of any length turns into a number that cannot be held or printed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

_COUNT = re.compile(r"[0-9]{1,18}")
_BANKS = re.compile(r"([0-9]{1,9}) bank\(s\)")
_NUMBER = re.compile(r"([+-]?[0-9]{1,9}(?:\.[0-9]{1,6})?) ([A-Za-z%]+)")
_VERSION = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,5}){1,3}")
_STATE = re.compile(r"P[0-9]{1,2}")
_LANES = re.compile(r"(1|2|4|8|12|16|32)x")
_GENERATION = re.compile(r"[1-9]")
_PCI_ID = re.compile(r"(?:0x)?([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})")
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

# what NVML answers instead of a value, where a field may hold any word
_REFUSALS = frozenset({
    "none",
    "already initialized",
    "corrupted inforom",
    "driver not loaded",
    "function not found",
    "gpu requires reset",
    "in use by another client",
    "insufficient external power",
    "insufficient memory",
    "insufficient permissions",
    "insufficient size",
    "interrupt request issue",
    "invalid argument",
    "no data",
    "not found",
    "not ready",
    "timeout",
    "uninitialized",
})  # fmt: skip


def name(text: str) -> str | None:
    """Any word but NVML's refusals; `None` is no name.

    >>> [name(t) for t in ("NVIDIA H100 80GB HBM3", "Insufficient Permissions", "None")]
    ['NVIDIA H100 80GB HBM3', None, None]
    """
    return None if text.strip("[]").lower() in _REFUSALS else text


def name_or_none(text: str) -> str | None:
    """As `name`, where the word None is a value: there is nothing to recover, nothing virtual.

    >>> name_or_none("None")
    'None'
    """
    return text if text == "None" else name(text)


def one_of(*words: str) -> Callable[[str], str | None]:
    """One of the words that this field can hold."""
    return lambda text: text if text in words else None


def active(text: str) -> bool | None:
    """Whether a clock event is active."""
    return {"Active": True, "Not Active": False}.get(text)


def count(text: str) -> int | None:
    """A number of things, 0 or more."""
    return int(text) if _COUNT.fullmatch(text) else None


def banks(text: str) -> int | None:
    """A number of memory banks.

    >>> banks("2560 bank(s)")
    2560
    """
    match = _BANKS.fullmatch(text)
    return int(match[1]) if match else None


def generation(text: str) -> int | None:
    """A PCIe generation; there is no generation 0."""
    return int(text) if _GENERATION.fullmatch(text) else None


def lanes(text: str) -> int | None:
    """A link width.

    >>> lanes("16x")
    16
    """
    match = _LANES.fullmatch(text)
    return int(match[1]) if match else None


def version(text: str) -> str | None:
    """A version of two to four numbers."""
    return text if _VERSION.fullmatch(text) else None


def performance_state(text: str) -> str | None:
    """P0 to P15."""
    return text if _STATE.fullmatch(text) else None


def uuid(text: str) -> str | None:
    """The UUID of a GPU."""
    return text if _UUID.fullmatch(text) else None


def pci_id(text: str) -> str | None:
    """Vendor and device as lspci prints them.

    >>> pci_id("0x233010DE")
    '10de:2330'
    """
    match = _PCI_ID.fullmatch(text)
    return f"{match[2]}:{match[1]}".lower() if match else None


def percent(text: str) -> int | None:
    """A share of 100."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[2] != "%" or not _COUNT.fullmatch(match[1]):
        return None
    return int(match[1])


def quantity(printed: str, unit: str = "") -> Callable[[str], Quantity | None]:
    """A number printed with this unit, as a quantity of `unit`; only degrees can be negative.

    >>> str(quantity("C", "degC")("-8 C")), quantity("W")("700 mW")
    ('-8 degC', None)
    """

    def convert(text: str) -> Quantity | None:
        match = _NUMBER.fullmatch(text)
        if match is None or match[2] != printed or (printed != "C" and match[1][0] in "+-"):
            return None
        number = float(match[1])
        return Quantity(int(number) if number.is_integer() else number, unit or printed)

    return convert
