"""What a node's readings are taken by: how many slots are planned, and the baseline's settings and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from nodeready.quantity import Quantity


@dataclass(frozen=True)
class Terms:
    """The terms of one judgement.

    `power_rated` and `power_least` are the recommended and the required power limit where a baseline
    lets a card run below its rating: rates are then held against as much less. A port counts from
    `port_rate` on and a link is slow below `link_speed`; `host_power` is what the rest of the node draws.
    `tables` are the dated tables of driver branches and security floors, looked at as of `today`, and the
    site's slot list. Xid errors count over the last `xid_window` hours of the kernel log, None for all since
    boot. `links` are the numbers of active NVLinks that a GPU may have, `links_per_pair` those between two
    GPUs; where 0 is among them a pair need not be joined. `reduce_shares` are the parts of the all-reduce's floors
    that so many GPUs reach, under 0 those that are not joined. `matrix` is the site's own way from each GPU to
    each adapter, and its NUMA node.
    """

    gpu_count: int
    port_rate: Quantity = field(default_factory=lambda: Quantity(100, "Gb/s"))
    link_speed: Quantity = field(default_factory=lambda: Quantity(26.562, "GB/s"))
    host_power: Quantity = field(default_factory=lambda: Quantity(2000, "W"))
    power_rated: Quantity | None = None
    power_least: Quantity | None = None
    xid_window: float | None = None
    links: tuple[int, ...] = ()
    links_per_pair: tuple[int, ...] = ()
    reduce_shares: dict[int, float] = field(default_factory=dict)
    matrix: dict[tuple[str, str], str] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    today: date = field(default_factory=date.today)

    @property
    def slots(self) -> tuple[str, ...]:
        """The bus ids of the planned GPUs where the site lists them, as many as are planned; else none."""
        return tuple(self.tables.get("gpu.slots", ()))
