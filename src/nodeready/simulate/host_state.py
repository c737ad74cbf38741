"""The healthy host of a node: drives where its PCI bus has them, and what its machine is built with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.host_model import Drive, HostProcess, HostState, Supply
from nodeready.simulate.pci_tree import devices_at_boot

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

# supplies of a machine, and the watts of each
_SUPPLIES = {
    "PowerEdge XE9680": (6, 2800),
    "PowerEdge XE8640": (4, 2800),
    "PowerEdge R760xa": (2, 2800),
    "SYS-521GE-TNRT": (4, 2700),
    "PowerEdge XE7740": (8, 3200),
}
_FANS = 12


def host_of(node: Node) -> HostState:
    """The host as it should be; two processes that wait for a moment are no fault."""
    rng = node.stream("host")
    machine = node.shape.machine
    passing = [
        HostProcess(2104, 2, "D", 93_790, "jbd2/dm-0-8"),
        HostProcess(rng.randrange(20_000, 90_000), 4120, "D", 3, "tar", stays=False),
        HostProcess(rng.randrange(20_000, 90_000), 5210, "Z", 1, "sh", stays=False),
    ]
    if machine.virtual:
        return HostState(clocksource="kvm-clock", processes=passing, bmc=False)
    count, watts = _SUPPLIES[machine.model]
    buses = [device.bus_id for device in devices_at_boot(node) if device.class_code == "0108"]
    return HostState(
        processes=passing,
        drives=[
            Drive(f"nvme{number}", f"0000:{bus}", f"PHAC{rng.randrange(10**8):08d}", used=rng.randint(0, 2))
            for number, bus in enumerate(buses)
        ],
        supplies=[Supply(watts) for _ in range(count)],
        fans=[rng.randrange(6_840, 8_880, 120) for _ in range(_FANS)],
        inlet=rng.randint(20, 25),
    )
