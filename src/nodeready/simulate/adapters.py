"""Network adapters as data: what each calls itself, and how its port comes up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Adapter:
    """One kind of adapter with one port: its part, its PCI name and ids, its firmware, the rate in Gb/s."""

    part: str
    name: str
    ids: str
    subsystem: str
    firmware: str
    layer: str
    rate: int


CONNECTX_7 = Adapter("MT4129", "MT2910 Family [ConnectX-7]", "15b3:1021", "15b3:0041", "28.43.2566", "InfiniBand", 400)
CONNECTX_6_DX = Adapter(
    "MT4125", "MT2892 Family [ConnectX-6 Dx]", "15b3:101d", "15b3:0016", "22.43.2566", "Ethernet", 100
)
CONNECTX_4_LX = Adapter(
    "MT4117", "MT27710 Family [ConnectX-4 Lx]", "15b3:1015", "15b3:0003", "14.32.1900", "Ethernet", 25
)
