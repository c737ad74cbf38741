"""A PCI bus id has one spelling here, whatever tool printed it."""

from __future__ import annotations

import re

_BUS_ID = re.compile(
    r"(?:(?:GPU|PCI)[ :]*)?(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?", re.ASCII | re.IGNORECASE
)


def normal_bus_id(text: str) -> str | None:
    """The bus id in lower case with a domain of four digits, None where the text is no bus id.

    A domain that does not fit in four digits keeps those it needs; a missing domain or function is 0,
    but one of them must be there (`53:00` could be either half).

    >>> [normal_bus_id(t) for t in ("00000000:53:00.0", "GPU0000:A1:00.0", "PCI:0000:0f:00", "53:00.0", "53:00")]
    ['0000:53:00.0', '0000:a1:00.0', '0000:0f:00.0', '0000:53:00.0', None]
    """
    match = _BUS_ID.fullmatch(text.strip())
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    if domain is None and function is None:
        return None
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function or '0'}".lower()
