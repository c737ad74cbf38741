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
    `port_rate` on and a link is slow below `link_speed`. `tables` are the dated tables of driver
    branches and security floors, looked at as of `today`.
    """

    gpu_count: int
    port_rate: Quantity = field(default_factory=lambda: Quantity(100, "Gb/s"))
    link_speed: Quantity = field(default_factory=lambda: Quantity(26.562, "GB/s"))
    power_rated: Quantity | None = None
    power_least: Quantity | None = None
    tables: dict[str, Any] = field(default_factory=dict)
    today: date = field(default_factory=date.today)
