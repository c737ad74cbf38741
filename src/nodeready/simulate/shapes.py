"""Node types as data: which parts sit where in a healthy node of each."""

from __future__ import annotations

from dataclasses import dataclass

from nodeready.simulate.products import H100_SXM, Product


@dataclass(frozen=True)
class Shape:
    """What a node type is made of.

    `gpu_buses` are the PCI buses of the GPUs in bus-id order, `module_ids` their places on the board;
    the first half hangs off NUMA node 0. `dimms` are the number of slots and the GiB in each.
    """

    node_type: str
    product: Product
    gpu_buses: tuple[int, ...]
    module_ids: tuple[int, ...]
    nvswitch_buses: tuple[int, ...]
    dimms: tuple[int, int]
    fabric_manager: bool
    virtualization: str
    vendor: str
    model: str
    bios: str
    cpu: str
    cores: int
    driver: str
    cuda: str


SHAPES: dict[str, Shape] = {
    "sxm": Shape(
        node_type="sxm",
        product=H100_SXM,
        gpu_buses=(0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB),
        module_ids=(2, 4, 1, 3, 7, 5, 8, 6),
        nvswitch_buses=(0x83, 0x84, 0x85, 0x86),
        dimms=(32, 64),
        fabric_manager=True,
        virtualization="None",
        vendor="Dell Inc.",
        model="PowerEdge XE9680",
        bios="2.3.5 09/10/2024",
        cpu="Intel(R) Xeon(R) Platinum 8480+",
        cores=56,
        driver="580.105.08",
        cuda="13.0",
    ),
}
