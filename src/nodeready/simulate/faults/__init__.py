"""Faults by layer: one or more for every way in which the gate can be tried."""

from __future__ import annotations

from nodeready.simulate.faults import (
    compute,
    container,
    driver,
    evidence,
    gpu,
    health,
    host,
    kernel,
    network,
    nvlink,
    pcie,
    power,
)
from nodeready.simulate.faults.fault import Expected, Fault
from nodeready.simulate.shapes import SHAPES

__all__ = ["Expected", "Fault", "faults"]

_LAYERS = (pcie, host, driver, container, gpu, health, kernel, power, nvlink, network, compute, evidence)


def faults(node_type: str) -> tuple[Fault, ...]:
    """The faults that a node of that type can have; none where the type cannot be simulated."""
    shape = SHAPES.get(node_type)
    if shape is None:
        return ()
    return tuple(fault for layer in _LAYERS for fault in layer.FAULTS if fault.can_have(shape))
