"""What a node's readings are taken by: how many slots are planned, and the baseline's settings and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from nodeready.quantity import Quantity


@dataclass(frozen=True)
class Terms:
    """The terms of one judgement.

    A port counts from `port_rate` on and a link is slow below `link_speed`. `tables` are the dated
    tables of driver branches and security floors, looked at as of `today`.
    """

    gpu_count: int
    port_rate: Quantity = field(default_factory=lambda: Quantity(100, "Gb/s"))
    link_speed: Quantity = field(default_factory=lambda: Quantity(26.562, "GB/s"))
    tables: dict[str, Any] = field(default_factory=dict)
    today: date = field(default_factory=date.today)
