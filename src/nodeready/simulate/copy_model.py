"""How fast a node that does not exist copies: healthy rates by product and link, and what faults make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.model import INACTIVE

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node

# GB/s of a copy within a GPU's memory, read and written, by PCI id; measured, or 0.9 of the memory's own rate
_MEMORY = {
    "2330": 2950.0,
    "2324": 2950.0,
    "2331": 1860.0,
    "2322": 1860.0,
    "2321": 3560.0,
    "233a": 3560.0,
    "2335": 4300.0,
    "233b": 4300.0,
    "20b2": 1760.0,
}
# GB/s to and from pinned memory over 16 lanes, by generation
_HOST = {1: (3.2, 3.2), 2: (6.4, 6.4), 3: (12.9, 13.1), 4: (25.9, 26.3), 5: (55.43, 55.06)}
OF_LINKS = 0.8282  # what a copy reaches of its links' own speed: 396 of 18 x 26.562
_OVER_PCIE = 0.72  # of a copy between GPUs through their root ports, against one to the host
_THROUGH_THE_HOST = 0.41  # where they have no access to each other, and it is copied twice


def loaded_generation(node: Node, gpu: Gpu) -> int:
    """The generation that a link runs at under load: one that sleeps wakes up."""
    asleep = gpu.printed.get("performance_state", "P0") != "P0"
    awake = min(gpu.link.max_generation, gpu.link.port_generation) if asleep else gpu.link.generation
    return node.copies.dropped.get(gpu.place, awake)


def memory_rate(node: Node, gpu: Gpu) -> float:
    """GB/s within its memory, each byte read and written."""
    return _MEMORY[gpu.product.device] * node.copies.memory.get(gpu.place, 1.0)


def host_rates(node: Node, gpu: Gpu) -> tuple[float, float]:
    """GB/s from and to the host's memory."""
    part = gpu.link.width / 16 * node.copies.host.get(gpu.place, 1.0)
    to_device, to_host = _HOST[loaded_generation(node, gpu)]
    return to_device * part, to_host * part


def links_between(node: Node, gpu: Gpu, other: Gpu) -> int:
    """How many NVLinks join two GPUs; 0 where none does."""
    shape = node.shape
    active = min(sum(link != INACTIVE for link in each.links) for each in (gpu, other))
    neighbours = shape.joined and gpu.place // shape.joined == other.place // shape.joined
    paired = node.links.paired.get(frozenset((gpu.place, other.place)))
    if paired is not None:
        return paired
    if not (neighbours and active):
        return 0
    return active if shape.nvswitch_buses else active // (shape.joined - 1)


def has_access(node: Node, gpu: Gpu, other: Gpu) -> bool:
    """Whether a GPU reaches the memory of another by itself."""
    return (gpu.place, other.place) not in node.links.silent


def pair_rate(node: Node, gpu: Gpu, other: Gpu) -> float:
    """GB/s from one GPU to another."""
    links = links_between(node, gpu, other)
    by_host = min(host_rates(node, gpu)[1], host_rates(node, other)[0])
    rate = by_host * _OVER_PCIE
    if links:
        rate = links * min(_speed(each) for each in (gpu, other)) * OF_LINKS
    if not has_access(node, gpu, other):
        rate = by_host * _THROUGH_THE_HOST
    return rate * node.copies.pairs.get((gpu.place, other.place), 1.0)


def _speed(gpu: Gpu) -> float:
    """GB/s of one of its links, on the average of those that are up."""
    up = [float(link.split()[0]) for link in gpu.links if link != INACTIVE]
    return sum(up) / len(up)
