"""What goes wrong when the ports are made to write: a slow one, one through which nothing goes, a tool that lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import recommended, required
from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, on_node

if TYPE_CHECKING:
    from nodeready.simulate.model import Node, Port
    from nodeready.simulate.shapes import Shape

_WRITE, _PROBE = "network.write-bandwidth", "rdma-write"
_NO_ANSWER = "client: Completion with error at client, Failed status 12: wr_id 0 syndrom 0x81"


def _rails(shape: Shape) -> bool:
    """Only a node with an adapter beside each GPU."""
    return shape.rails


def _second(node: Node) -> Port:
    return node.ports[1]


def _write_slowly(node: Node) -> None:
    node.links.write_shares[_second(node).rdma_name] = 0.5 * required(node, _WRITE)


def _lag(node: Node) -> None:
    between = (required(node, _WRITE) + recommended(node, _WRITE)) / 2
    node.links.write_shares[_second(node).rdma_name] = between


def _lose_the_transfer(node: Node) -> None:
    node.links.write_errors[_second(node).rdma_name] = _NO_ANSWER


def _install_no_tool(node: Node) -> None:
    node.absent.add("ib_write_bw")


def _install_plain_tool(node: Node) -> None:
    node.links.write_cuda = False


def _refuse_memory(node: Node) -> None:
    """All modules are in their place, and no adapter takes the memory."""
    node.links.dma_buf = False


def _cut(node: Node) -> None:
    node.spoilers[_PROBE] = lambda output: replace(output, stdout=output.stdout[: len(output.stdout) // 2])


FAULTS = (
    Fault(
        "port-writes-slowly",
        "One port is up at its rate and writes half of it: its adapter's PCIe link is not what it should be.",
        _write_slowly,
        on_node(FAIL, _WRITE),
        can_have=_rails,
    ),
    Fault(
        "port-lags",
        "One port writes less than its twins do, and enough to work.",
        _lag,
        on_node(ADVISORY, _WRITE),
        can_have=_rails,
    ),
    Fault(
        "port-carries-nothing",
        "One port is up, and its transfer got no answer: how fast it writes is not known.",
        _lose_the_transfer,
        on_node(UNVERIFIED, _WRITE),
        can_have=_rails,
    ),
    Fault(
        "perftest-missing",
        "There is no ib_write_bw on the node: what its ports write was not measured.",
        _install_no_tool,
        on_node(UNVERIFIED, _WRITE),
        can_have=_rails,
    ),
    Fault(
        "perftest-without-cuda",
        "The distribution's ib_write_bw knows no GPU: the ports wrote through host memory alone.",
        _install_plain_tool,
        on_node(UNVERIFIED, _WRITE),
        can_have=_rails,
    ),
    Fault(
        "gpu-memory-refused",
        "Modules and kernel are as GPUDirect wants them, and every adapter refuses the GPUs' memory all the same.",
        _refuse_memory,
        on_node(ADVISORY, _WRITE),
        can_have=_rails,
        case="G14",
    ),
    Fault(
        "rdma-write-result-cut",
        "The document of the transfers was cut on its way: nothing is known of any port's speed.",
        _cut,
        on_node(UNVERIFIED, _WRITE),
        can_have=_rails,
    ),
)
