"""Node types as data: which parts sit where in a healthy node of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodeready.simulate import machines, products

if TYPE_CHECKING:
    from nodeready.simulate.machines import Machine
    from nodeready.simulate.products import Product

NO_FABRIC = ("N/A", "N/A")
FABRIC = ("Completed", "Success")


@dataclass(frozen=True)
class Shape:
    """What a node type is made of.

    `places` are the PCI addresses where GPUs can sit, in order, of which `gpus` hold one unless the
    node is sized otherwise; the first half hangs off NUMA node 0. `module_ids` are what the GPUs call
    their places. `joined` is how many GPUs NVLink joins (0: none), by bridges unless they sit on one
    `board`. With `rails` each GPU has a 400 Gb/s InfiniBand port beside it; `frontend` is the PCI
    address of a 100 Gb/s Ethernet port, where there is one.
    """

    node_type: str
    product: Product
    machine: Machine
    gpus: int
    places: tuple[str, ...]
    module_ids: tuple[int, ...]
    joined: int
    board: bool = False
    nvswitch_buses: tuple[int, ...] = ()
    fabric: tuple[str, str] = NO_FABRIC
    rails: bool = False
    frontend: str = ""

    @property
    def fabric_manager(self) -> bool:
        """Whether the node has NVSwitches of its own, and so a service that trains them."""
        return bool(self.nvswitch_buses)

    @property
    def networked(self) -> bool:
        """Whether it has a port that jobs over several nodes could use."""
        return self.rails or bool(self.frontend)

    @property
    def virtual(self) -> bool:
        """Whether it is a guest that was handed a GPU."""
        return self.machine.virtual


_HGX_PLACES = tuple(f"{bus}:00.0" for bus in ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db"))
_HGX_MODULES = (2, 4, 1, 3, 7, 5, 8, 6)
_CARD_PLACES = tuple(f"{bus}:00.0" for bus in ("17", "27", "3a", "5a", "98", "a8", "b8", "d8"))

_ALL = (
    Shape(
        node_type="sxm",
        product=products.H100_SXM,
        machine=machines.XE9680,
        gpus=8,
        places=_HGX_PLACES,
        module_ids=_HGX_MODULES,
        joined=8,
        board=True,
        nvswitch_buses=(0x83, 0x84, 0x85, 0x86),
        fabric=FABRIC,
        rails=True,
        frontend="ab:00.0",
    ),
    Shape(
        node_type="sxm-4",
        product=products.H100_SXM,
        machine=machines.XE8640,
        gpus=4,
        places=("1b:00.0", "4e:00.0", "9b:00.0", "cb:00.0"),
        module_ids=(1, 2, 3, 4),
        joined=4,
        board=True,
        rails=True,
    ),
    Shape(
        node_type="sxm-1",
        product=products.H100_SXM,
        machine=machines.GUEST,
        gpus=1,
        places=("00:09.0",),
        module_ids=(7,),
        joined=1,
        board=True,
        fabric=FABRIC,
    ),
    Shape(
        node_type="pcie",
        product=products.H100_PCIE,
        machine=machines.SYS_521GE,
        gpus=1,
        places=_CARD_PLACES,
        module_ids=(4,) * 8,
        joined=0,
    ),
    Shape(
        node_type="nvl",
        product=products.H100_NVL,
        machine=machines.R760XA,
        gpus=2,
        places=("3a:00.0", "5a:00.0", "98:00.0", "b8:00.0"),
        module_ids=(4,) * 4,
        joined=2,
    ),
    Shape(
        node_type="h200-sxm",
        product=products.H200_SXM,
        machine=machines.XE9680_NOBLE,
        gpus=8,
        places=_HGX_PLACES,
        module_ids=_HGX_MODULES,
        joined=8,
        board=True,
        nvswitch_buses=(0x83, 0x84, 0x85, 0x86),
        fabric=FABRIC,
        rails=True,
        frontend="ab:00.0",
    ),
    Shape(
        node_type="h200-nvl",
        product=products.H200_NVL,
        machine=machines.XE7740,
        gpus=4,
        places=_HGX_PLACES,
        module_ids=(4,) * 8,
        joined=4,
        rails=True,
    ),
)
SHAPES: dict[str, Shape] = {shape.node_type: shape for shape in _ALL}
