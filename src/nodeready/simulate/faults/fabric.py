"""What goes wrong with the NVLink fabric beyond single links: switches, growing errors, pairs, health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.copies import by_links
from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    has_nvswitch,
    logged,
    nothing,
    on_every_gpu,
    on_node,
    on_victim,
    rows,
    subject,
    victim,
)
from nodeready.simulate.outputs.smi_field import NOT_AVAILABLE

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node
    from nodeready.simulate.shapes import Shape

_ERRORS, _PEERS, _HEALTH = "nvlink.errors", "nvlink.peers", "nvlink.fabric-health"
_LINK = 3


def _linked(shape: Shape) -> bool:
    return shape.joined > 0


def _joins_all(shape: Shape) -> bool:
    """A board joins every pair of its GPUs."""
    return shape.board and shape.joined > 1


def _bridged(shape: Shape) -> bool:
    return shape.joined > 1 and not shape.board


def _has_fabric(shape: Shape) -> bool:
    return shape.fabric[0] != NOT_AVAILABLE


def _other(node: Node) -> Gpu:
    """A GPU that the fault does not befall."""
    return next(gpu for gpu in node.gpus if gpu is not victim(node))


def _lose_a_switch(node: Node) -> None:
    node.links.lost_switches.add(2)


def _replay(node: Node) -> None:
    node.links.growth[victim(node).place, _LINK] = (4, 1, 0)


def _storm(node: Node) -> None:
    node.links.growth[victim(node).place, _LINK] = (0, 0, 1200)


def _drizzle(node: Node) -> None:
    node.links.growth[victim(node).place, _LINK] = (0, 0, 8)


def _remember(node: Node) -> None:
    for gpu in node.gpus:
        node.links.counted[gpu.place, _LINK] = (14, 2, 31)


def _reset(node: Node) -> None:
    node.links.counted[victim(node).place, _LINK] = (14, 2, 31)
    node.links.growth[victim(node).place, _LINK] = (-14, -2, -31)


def _ask_once(node: Node) -> None:
    _remember(node)
    node.spoilers["nvidia-smi_nvlink_-e-later"] = lambda _: None


def _ask_never(node: Node) -> None:
    for name in ("nvidia-smi_nvlink_-e", "nvidia-smi_nvlink_-e-later"):
        node.spoilers[name] = lambda _: None


def _part(node: Node) -> None:
    node.links.paired[frozenset((victim(node).place, _other(node).place))] = 0


def _cross(node: Node) -> None:
    node.links.paired[frozenset((victim(node).place, _other(node).place))] = 4


def _both(node: Node) -> tuple[Expected, ...]:
    return rows(FAIL, _PEERS, on=(subject(victim(node)), subject(_other(node))))


def _refuse(node: Node) -> None:
    node.links.silent.add((victim(node).place, _other(node).place))


def _untold(node: Node) -> None:
    node.spoilers["nvidia-smi_topo_-p2p_r"] = lambda _: None


def _degrade(node: Node) -> None:
    victim(node).printed["fabric/health/bandwidth"] = "Degraded"


def _hide_health(node: Node) -> None:
    victim(node).printed["fabric/health/bandwidth"] = "Unknown Error"


def _fail_to_train(node: Node) -> None:
    lost = "knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!"
    logged(node, f"NVRM: {lost}")


FAULTS = (
    Fault(
        "nvswitch-missing",
        "One of the board's NVSwitches does not answer on the bus.",
        _lose_a_switch,
        on_node(FAIL, "nvlink.switches"),
        can_have=has_nvswitch,
    ),
    Fault(
        "nvlink-replays-grow",
        "One link replays and retrains while nobody uses it.",
        _replay,
        on_victim(FAIL, _ERRORS),
        case="D6",
        can_have=_linked,
    ),
    Fault(
        "nvlink-crc-storm",
        "One link counts hundreds of CRC errors a second.",
        _storm,
        on_victim(FAIL, _ERRORS),
        case="D6",
        can_have=_linked,
    ),
    Fault(
        "nvlink-crc-drizzle",
        "One link counts two CRC errors a second: it works, and will be seen again.",
        _drizzle,
        on_victim(ADVISORY, _ERRORS),
        can_have=_linked,
    ),
    Fault(
        "nvlink-old-errors",
        "All GPUs have some errors from the time when their links were trained, and no new ones: no fault.",
        _remember,
        nothing,
        case="D14",
        can_have=_linked,
    ),
    Fault(
        "nvlink-counters-reset",
        "Somebody reset the counters of one GPU between the two samples.",
        _reset,
        on_victim(UNVERIFIED, _ERRORS),
        can_have=_linked,
    ),
    Fault(
        "nvlink-errors-asked-once",
        "There are old errors and one sample: whether they still grow is not known.",
        _ask_once,
        on_every_gpu(UNVERIFIED, _ERRORS),
        case="D14",
        can_have=_linked,
    ),
    Fault(
        "nvlink-errors-not-asked",
        "Nobody recorded the error counters of the links.",
        _ask_never,
        on_every_gpu(UNVERIFIED, _ERRORS),
        can_have=_linked,
    ),
    Fault(
        "pair-not-joined",
        "All links are up, and two GPUs of the board reach each other over PCIe only.",
        _part,
        _both,
        can_have=_joins_all,
    ),
    Fault(
        "bridges-across",
        "All links of the cards are up, and one bridge in three leads to a card of another pair.",
        _cross,
        lambda node: (*_both(node), *by_links(node, 4, victim(node), _other(node))),
        can_have=_bridged,
    ),
    Fault(
        "peer-access-refused",
        "One GPU cannot read the memory of another of the board; the other way works.",
        _refuse,
        on_victim(FAIL, _PEERS, "nvlink.bandwidth"),
        can_have=_joins_all,
    ),
    Fault(
        "peer-access-untold",
        "Nobody recorded which GPUs can read each other's memory.",
        _untold,
        on_every_gpu(UNVERIFIED, _PEERS),
        can_have=_joins_all,
    ),
    Fault(
        "fabric-bandwidth-degraded",
        "The fabric is complete and successful, and says that one GPU has less bandwidth than it should.",
        _degrade,
        on_victim(FAIL, _HEALTH),
        case="C5",
        can_have=_has_fabric,
    ),
    Fault(
        "fabric-health-unreadable",
        "The driver answers Unknown Error where the health of the fabric should stand.",
        _hide_health,
        on_victim(UNVERIFIED, _HEALTH),
        can_have=_has_fabric,
    ),
    Fault(
        "nvlink-training-fault",
        "At boot the driver found a link dead while it trained it, and wrote a line without an Xid.",
        _fail_to_train,
        on_node(FAIL, "nvlink.log"),
        case="D12",
    ),
)
