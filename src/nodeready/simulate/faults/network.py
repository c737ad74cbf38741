"""What goes wrong with the network ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.adapters import CONNECTX_4_LX, CONNECTX_6_DX
from nodeready.simulate.build import port
from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, networked, nothing, on_node, together
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from nodeready.simulate.model import Node, Port
    from nodeready.simulate.shapes import Shape

_PORTS = "network.ports-active"
_NOTHING_WRITTEN = on_node(UNVERIFIED, "network.write-bandwidth")


def _down(at: Port, physical: str) -> None:
    at.state, at.physical = "Down", physical


def _lose_the_switch(node: Node) -> None:
    for at in node.ports:
        _down(at, "Polling")


def _lose_one(node: Node) -> None:
    _down(node.ports[-1], "Polling")


def _plug_fewer(node: Node) -> None:
    """Ports that the machine has and nobody uses."""
    for number, address in enumerate(("e1:00.0", "e1:00.1", "e2:00.0"), len(node.ports)):
        at = port(address, number, CONNECTX_6_DX, 1, node.stream("unused", address))
        _down(at, "Disabled")
        node.ports.append(at)


def _train_all_low(node: Node) -> None:
    for at in node.ports:
        at.rate = 56 if at.layer == "InfiniBand" else 25


def _train_one_low(node: Node) -> None:
    node.ports[0].rate = 200


def _plug_wrong(node: Node) -> None:
    for at in node.ports:
        bus = int(at.address[:2], 16)
        at.adapter, at.layer, at.rate, at.lid = CONNECTX_4_LX, "Ethernet", CONNECTX_4_LX.rate, 0
        at.interface = f"enp{bus}s0np0"


def _converge(node: Node) -> None:
    """The same adapters, set to Ethernet."""
    for at in node.ports:
        at.layer, at.lid = "Ethernet", 0
        at.interface = f"enp{int(at.address[:2], 16)}s0np0"


def _ethernet_alone(node: Node) -> None:
    node.ports = [at for at in node.ports if at.layer == "Ethernet"]
    node.absent |= {"ibstat", "ib_write_bw"}


def _has_frontend(shape: Shape) -> bool:
    return bool(shape.frontend)


def _lose_both_views(node: Node) -> None:
    node.absent.add("ibstat")
    silent = Output("".join(f"{at.interface}/speed:-1\n" for at in node.ports).encode())
    node.spoilers["sys/class/net-speed"] = lambda _: silent


FAULTS = (
    Fault(
        "ports-down",
        "No port for jobs has a link: their cables are plugged, and nobody answers at the far end.",
        _lose_the_switch,
        together(on_node(FAIL, _PORTS), _NOTHING_WRITTEN),
        case="G2",
        can_have=networked,
    ),
    Fault(
        "one-port-down",
        "One port of several has no link: the number that the baseline demands is met, and its twins have theirs.",
        _lose_one,
        on_node(ADVISORY, "network.twins"),
        case="G3",
        can_have=networked,
    ),
    Fault(
        "unused-ports-down",
        "The machine has ports that nobody uses, which are down: no fault.",
        _plug_fewer,
        nothing,
        can_have=networked,
    ),
    Fault(
        "no-port-at-rate",
        "All ports came up, each far below its rate.",
        _train_all_low,
        together(on_node(FAIL, _PORTS), _NOTHING_WRITTEN),
        case="G1",
        can_have=networked,
    ),
    Fault(
        "port-rate-low",
        "One port came up at half its rate: enough for a baseline that counts from 100 Gb/s on; its twins run faster.",
        _train_one_low,
        on_node(ADVISORY, "network.twins"),
        case="G1",
        can_have=networked,
    ),
    Fault(
        "wrong-adapters",
        "The machine was delivered with adapters of 25 Gb/s in all places.",
        _plug_wrong,
        together(on_node(FAIL, _PORTS), _NOTHING_WRITTEN),
        case="G5",
        can_have=networked,
    ),
    Fault(
        "roce-instead-of-infiniband",
        "The adapters are set to Ethernet, and all ports are up at their rate: no fault.",
        _converge,
        nothing,
        case="G5",
        can_have=networked,
    ),
    Fault(
        "ethernet-alone",
        "The node has one Ethernet port of 100 Gb/s and no RDMA tools: the kernel's own word is enough for its state.",
        _ethernet_alone,
        _NOTHING_WRITTEN,
        can_have=_has_frontend,
    ),
    Fault(
        "ports-untold",
        "There are no RDMA tools, and the kernel names no speed for any interface: the ports may be fine or not.",
        _lose_both_views,
        on_node(UNVERIFIED, _PORTS),
        can_have=networked,
    ),
)
