"""Faults by layer: one or more for every way in which the gate can be tried."""

from __future__ import annotations

from nodeready.simulate.faults import (
    adapters,
    board,
    bus,
    bus_errors,
    compute,
    container,
    copies,
    diagnostic,
    dimms,
    drive_read,
    driver,
    engines,
    evidence,
    fabric,
    frameworks,
    gpu,
    health,
    host,
    host_state,
    kernel,
    memory,
    network,
    nvlink,
    pcie,
    power,
    rdma_write,
    reductions,
    remaps,
    setup,
    storage,
)
from nodeready.simulate.faults.fault import Expected, Fault
from nodeready.simulate.shapes import SHAPES

__all__ = ["Expected", "Fault", "faults"]

_LAYERS = (
    pcie,
    bus,
    bus_errors,
    host,
    host_state,
    dimms,
    storage,
    drive_read,
    board,
    driver,
    container,
    engines,
    gpu,
    health,
    remaps,
    setup,
    kernel,
    power,
    nvlink,
    fabric,
    network,
    adapters,
    rdma_write,
    reductions,
    frameworks,
    compute,
    memory,
    copies,
    diagnostic,
    evidence,
)


def faults(node_type: str) -> tuple[Fault, ...]:
    """The faults that a node of that type can have; none where the type cannot be simulated."""
    shape = SHAPES.get(node_type)
    if shape is None:
        return ()
    return tuple(fault for layer in _LAYERS for fault in layer.FAULTS if fault.can_have(shape))
