"""What goes wrong with supplies, fans, inlet air, and the BMC that tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import required
from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    bare_metal,
    on_node,
    on_victim,
    together,
    victim,
)
from nodeready.simulate.outputs.output import Output, not_installed

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_SDR, _SEL = "ipmitool_sdr_elist", "ipmitool_sel_elist"
_BY_SENSORS = ("power.supplies", "thermal.fans", "thermal.inlet")
_DIMM_EVENT = ("Memory ECC Uncorr Err", "Uncorrectable ECC (DIMM A3)", "Asserted")


def _no_bmc(node: Node) -> None:
    node.host.bmc = False


def _no_ipmitool(node: Node) -> None:
    node.spoilers[_SDR] = node.spoilers[_SEL] = lambda _: not_installed("ipmitool")


def _silence_the_bmc(node: Node) -> None:
    said = b"Get Device ID command failed\nUnable to open SDR for reading\n"
    node.spoilers[_SDR] = node.spoilers[_SEL] = lambda _: Output(b"", 1, said)


def _pull_a_cord(node: Node) -> None:
    node.host.supplies[-1].fault = "Power Supply AC lost"
    node.host.redundancy = "Redundancy Lost"
    name = f"Power Supply PS{len(node.host.supplies)} Status"
    node.host.events.append(("12/01/2026", "04:11:09", name, "Power Supply AC lost", "Asserted"))


def _pull_a_supply(node: Node) -> None:
    node.host.supplies[-1].present = False
    node.host.redundancy = "Redundancy Degraded"
    _refit(node)


def _refit(node: Node) -> None:
    """Supplies so large that what is left of them is still enough for all GPUs."""
    for supply in node.host.supplies:
        supply.watts = max(supply.watts, 3600)


def _fit_small_supplies(node: Node) -> None:
    need = required(node, "power.supply-rating") * len(node.gpus) + 2000
    for supply in node.host.supplies:
        supply.watts = int(0.8 * need / len(node.host.supplies))


def _hide_the_rating(node: Node) -> None:
    node.host.supplies[0].watts = 0


def _stop_a_fan(node: Node) -> None:
    node.host.fans[4] = 0


def _warm_the_aisle(node: Node) -> None:
    node.host.inlet = 39


def _note_a_dimm(node: Node) -> None:
    node.host.events.append(("12/01/2026", "03:20:44", *_DIMM_EVENT))


def _note_a_dimm_long_ago(node: Node) -> None:
    node.host.events.append(("10/09/2026", "03:20:44", *_DIMM_EVENT))


def _lose_the_log(node: Node) -> None:
    node.spoilers[_SEL] = lambda _: Output(b"Get SEL Info command failed\n", 1)


def _garble_the_log(node: Node) -> None:
    node.spoilers[_SEL] = lambda _: Output(b"Info: SEL allocation unavailable\n")


def _heat_memory(node: Node) -> None:
    victim(node).memory_temperature = 91


FAULTS = (
    Fault(
        "no-bmc",
        "The board has no BMC: supplies, fans and inlet air are known to nobody, and the answer says so.",
        _no_bmc,
        together(on_node(UNVERIFIED, *_BY_SENSORS, "bmc.events"), on_node(ADVISORY, "bmc.responds")),
        can_have=bare_metal,
    ),
    Fault(
        "ipmitool-missing",
        "The image has neither ipmitool nor freeipmi: the BMC is there and was not asked.",
        _no_ipmitool,
        on_node(UNVERIFIED, *_BY_SENSORS, "bmc.events", "bmc.responds"),
        can_have=bare_metal,
    ),
    Fault(
        "bmc-silent",
        "The BMC hangs: it no longer answers the host.",
        _silence_the_bmc,
        on_node(UNVERIFIED, *_BY_SENSORS, "bmc.events", "bmc.responds"),
        can_have=bare_metal,
    ),
    Fault(
        "supply-without-input",
        "One power supply has lost its feed: the sensor, the redundancy and the BMC's log tell of one fault.",
        _pull_a_cord,
        on_node(FAIL, "power.supplies"),
        case="F18",
        can_have=bare_metal,
    ),
    Fault(
        "supply-missing",
        "One bay is empty: the supplies that are left are well and enough, and no longer redundant.",
        _pull_a_supply,
        on_node(ADVISORY, "power.supplies"),
        can_have=bare_metal,
    ),
    Fault(
        "supplies-too-small",
        "Supplies of a smaller server were fitted: together they cannot feed all GPUs at once.",
        _fit_small_supplies,
        on_node(FAIL, "power.supply-rating"),
        can_have=bare_metal,
    ),
    Fault(
        "supply-rating-unknown",
        "The firmware does not say what one of the supplies is rated for.",
        _hide_the_rating,
        on_node(UNVERIFIED, "power.supply-rating"),
        can_have=bare_metal,
    ),
    Fault(
        "fan-stopped",
        "One fan stands still.",
        _stop_a_fan,
        on_node(FAIL, "thermal.fans"),
        case="F17",
        can_have=bare_metal,
    ),
    Fault(
        "inlet-warm",
        "The node breathes air of 39 degrees.",
        _warm_the_aisle,
        on_node(ADVISORY, "thermal.inlet"),
        case="F9",
        can_have=bare_metal,
    ),
    Fault(
        "bmc-event-memory",
        "Since this boot the BMC noted an uncorrectable memory error.",
        _note_a_dimm,
        on_node(FAIL, "bmc.events"),
        case="A14",
        can_have=bare_metal,
    ),
    Fault(
        "bmc-event-old",
        "The BMC's log still holds a memory error of two months ago: somebody should have a look and clear it.",
        _note_a_dimm_long_ago,
        on_node(ADVISORY, "bmc.events"),
        can_have=bare_metal,
    ),
    Fault(
        "bmc-log-unread",
        "The BMC tells its sensors and refuses its log.",
        _lose_the_log,
        on_node(UNVERIFIED, "bmc.events"),
        can_have=bare_metal,
    ),
    Fault(
        "bmc-log-garbled",
        "Where the BMC's log should stand there is a line of something else.",
        _garble_the_log,
        on_node(UNVERIFIED, "bmc.events"),
        can_have=bare_metal,
    ),
    Fault(
        "memory-hot",
        "The memory of one GPU is 91 degrees warm while the GPU idles at an ordinary temperature.",
        _heat_memory,
        on_victim(ADVISORY, "thermal.memory"),
        case="F17",
    ),
)
