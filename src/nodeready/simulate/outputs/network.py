"""The network: `ibstat`, `ip -j link`, and the speeds that the kernel gives its interfaces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.outputs.output import Output, not_installed, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Node, Port

# what a port that is not up prints as its rate
_RATE_WHEN_DOWN = 40
_SM_LID = 1
# the hardware address of the first port on board, as the kernel log has it too
_OWN = 0x5E10_0001


def ibstat(node: Node) -> Output | None:
    """`ibstat`: every port of every adapter; None on a node that has none and so no RDMA tools."""
    if "ibstat" in node.absent:
        return not_installed("ibstat")
    return text(*(line for port in node.ports for line in _block(port))) if node.ports else None


def _block(port: Port) -> tuple[str, ...]:
    infiniband = port.layer == "InfiniBand"
    return (
        f"CA '{port.rdma_name}'",
        f"\tCA type: {port.adapter.part}",
        "\tNumber of ports: 1",
        f"\tFirmware version: {port.adapter.firmware}",
        "\tHardware version: 0",
        f"\tNode GUID: 0x{port.guid:016x}",
        f"\tSystem image GUID: 0x{port.guid:016x}",
        "\tPort 1:",
        f"\t\tState: {port.state}",
        f"\t\tPhysical state: {port.physical}",
        f"\t\tRate: {port.rate if port.up else _RATE_WHEN_DOWN}",
        f"\t\tBase lid: {port.lid if port.up else 0}",
        "\t\tLMC: 0",
        f"\t\tSM lid: {_SM_LID if infiniband and port.up else 0}",
        f"\t\tCapability mask: {'0xa751e848' if infiniband else '0x00010000'}",
        f"\t\tPort GUID: 0x{port.guid:016x}",
        f"\t\tLink layer: {port.layer}",
    )


def ip_link(node: Node) -> Output:
    """`ip -j link`."""
    interfaces = [_interface("lo", "00:00:00:00:00:00", mtu=65536, state="UNKNOWN", kind="loopback")]
    if node.shape.virtual:
        interfaces.append(_interface("eth0", _mac(_OWN), state="UP"))
    else:
        interfaces += [
            _interface("eno8303", _mac(_OWN), state="UP"),
            _interface("eno8403", _mac(_OWN + 1), state="DOWN"),
        ]
    interfaces += [_of_port(port) for port in node.ports]
    if _has_bridge(node):
        interfaces += [
            _interface("docker0", "02:42:5e:11:8a:03", state="UP"),
            _interface("veth2f19ac1", "02:5e:4a:77:10:c2", state="UP"),
        ]
    numbered = [{"ifindex": number, **interface} for number, interface in enumerate(interfaces, 1)]
    return text(json.dumps(numbered, separators=(",", ":")))


def _of_port(port: Port) -> dict[str, Any]:
    state = "UP" if port.up else "DOWN"
    if port.layer != "InfiniBand":
        return _interface(port.interface, _mac(port.guid), mtu=9000, state=state)
    address = f"00:00:10:29:fe:80:00:00:00:00:00:00:{port.guid.to_bytes(8, 'big').hex(':')}"
    return _interface(port.interface, address, mtu=2044, state=state, kind="infiniband")


def _interface(name: str, address: str, *, mtu: int = 1500, state: str, kind: str = "ether") -> dict[str, Any]:
    flags = {
        "UP": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"],
        "DOWN": ["NO-CARRIER", "BROADCAST", "MULTICAST", "UP"],
        "UNKNOWN": ["LOOPBACK", "UP", "LOWER_UP"],
    }[state]
    broadcast = {"loopback": "00:00:00:00:00:00", "infiniband": "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00"}
    return {
        "ifname": name,
        "flags": flags,
        "mtu": mtu,
        "qdisc": "noqueue" if kind == "loopback" else "mq",
        "operstate": state,
        "linkmode": "DEFAULT",
        "group": "default",
        "txqlen": 1000,
        "link_type": kind,
        "address": address,
        "broadcast": broadcast.get(kind, "ff:ff:ff:ff:ff:ff"),
    }


def speeds(node: Node) -> Output:
    """The kernel's `speed` of each interface in Mb/s: -1 without a carrier, nothing where it refuses."""
    found: dict[str, str] = {"lo": ""}
    found |= {"eth0": "-1"} if node.shape.virtual else {"eno8303": "1000", "eno8403": "-1"}
    found |= {port.interface: str(port.rate * 1000) if port.up else "-1" for port in node.ports}
    found |= {"docker0": "10000", "veth2f19ac1": "10000"} if _has_bridge(node) else {}
    return text(*(f"{name}/speed:{found[name]}" for name in sorted(found)))


def _has_bridge(node: Node) -> bool:
    return node.engine.kind == "docker" and not node.engine.refusal


def _mac(number: int) -> str:
    """A locally administered hardware address."""
    return (0x0200_0000_0000 | number & 0xFF_FFFF_FFFF).to_bytes(6, "big").hex(":")
