"""What the kernel log says, and where it says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, nothing, on_node, victim, xid
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_ILLEGAL = "Graphics Exception: ESR 0x504730=0x20000e 0x504734=0x0 0x504728=0xc81eb60 0x50472c=0x1174"


def _stall_the_gsp(node: Node) -> None:
    place = victim(node).place
    text = f"Timeout after 6s of waiting for RPC response from GPU{place} GSP! Expected function 103 (GSP_RM_ALLOC)"
    xid(node, victim(node), 119, f"{text} (0x2081 0x4).", "pid=2024380, name=nvidia-smi")


def _contain(node: Node) -> None:
    xid(node, victim(node), 94, "Contained: L2 (0x0,0x0). RST: No, D-RST: No", "pid=41873, name=python3")


def _crash_once(node: Node) -> None:
    xid(node, victim(node), 13, _ILLEGAL, "pid=52210, name=python3")


def _crash_often(node: Node) -> None:
    for pid in (52210, 58112, 60734):
        xid(node, victim(node), 13, _ILLEGAL, f"pid={pid}, name=python3")


def _wrap(node: Node) -> None:
    def without_boot(output: Output) -> Output:
        return replace(output, stdout=b"\n".join(output.stdout.split(b"\n")[60:]))

    node.spoilers["dmesg"] = without_boot


def _refuse(node: Node) -> None:
    refusal = Output(b"", 1, b"dmesg: read kernel buffer failed: Operation not permitted\n")
    node.spoilers["dmesg"] = lambda _: refusal


FAULTS = (
    Fault(
        "xid-119",
        "One GPU's system processor did not answer the driver for six seconds.",
        _stall_the_gsp,
        on_node(FAIL, "health.xid"),
    ),
    Fault(
        "xid-94",
        "A memory error of one GPU ended one job; the driver contained it.",
        _contain,
        on_node(FAIL, "health.xid"),
    ),
    Fault(
        "application-xid-13-once",
        "A user's kernel went wrong once: the application's error, no fault of the node.",
        _crash_once,
        nothing,
        case="E10",
    ),
    Fault(
        "application-xid-13-often",
        "The same GPU crashes one job after the other: the application's error no longer.",
        _crash_often,
        on_node(ADVISORY, "health.xid"),
        case="E10",
    ),
    Fault(
        "kernel-log-wrapped",
        "The kernel's ring buffer no longer holds the boot: older errors would be gone.",
        _wrap,
        on_node(ADVISORY, "health.xid"),
        case="E15",
    ),
    Fault(
        "kernel-log-denied",
        "The gate ran as a plain user, and the kernel log is for root only.",
        _refuse,
        on_node(UNVERIFIED, "health.xid"),
        case="E19",
    ),
)
