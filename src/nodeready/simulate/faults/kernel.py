"""What the kernel log says, and where it says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    BY_LOG,
    FAIL,
    UNVERIFIED,
    Fault,
    has_nvswitch,
    logged,
    nothing,
    on_node,
    on_victim,
    together,
    victim,
    xid,
)
from nodeready.simulate.model import INACTIVE
from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.shapes import Shape

_ILLEGAL = "Graphics Exception: ESR 0x504730=0x20000e 0x504734=0x0 0x504728=0xc81eb60 0x50472c=0x1174"
_UNCONTAINED = "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"
_DATA = "Data {0x000001c0, 0x00bd5c8a, 0x00000500, 0x00000064, 0x00000000, 0x40008000, 0x5a001100, 0x00000000}"
_JOURNAL = "journalctl_-k_-b_--no-pager_-o_short-iso"


def _stall_the_gsp(node: Node) -> None:
    place = victim(node).place
    text = f"Timeout after 6s of waiting for RPC response from GPU{place} GSP! Expected function 103 (GSP_RM_ALLOC)"
    xid(node, victim(node), 119, f"{text} (0x2081 0x4).", "pid=2024380, name=nvidia-smi")


def _contain(node: Node) -> None:
    xid(node, victim(node), 94, "Contained: L2 (0x0,0x0). RST: No, D-RST: No", "pid=41873, name=python3")


def _flood(node: Node) -> None:
    gpu = victim(node)
    for job in range(4):
        address = f"PCI:{gpu.bus_id[:-2]}"
        line = f"NVRM: Xid ({address}): 95, pid={41873 + job}, name=python3, {_UNCONTAINED}"
        logged(node, *[line] * 250)


def _break_a_link(node: Node) -> None:
    gpu = victim(node)
    gpu.links[2] = INACTIVE
    xid(node, gpu, 74, "NVLink: fatal error detected on link 2(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)")


def _crash_once(node: Node) -> None:
    xid(node, victim(node), 13, _ILLEGAL, "pid=52210, name=python3")


def _crash_often(node: Node) -> None:
    for pid in (52210, 58112, 60734):
        xid(node, victim(node), 13, _ILLEGAL, f"pid={pid}, name=python3")


def _tear_down(node: Node) -> None:
    for channel in range(40):
        xid(node, victim(node), 45, f"Ch {channel:08x}", "pid=52210, name=python3")


def _recover(node: Node) -> None:
    xid(node, victim(node), 154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")


def _switch(node: Node) -> str:
    return f"0000:{node.shape.nvswitch_buses[0]:02x}:00.0"


def _fail_a_switch_port(node: Node) -> None:
    where = f"nvidia-nvswitch0: SXid (PCI:{_switch(node)}): 20034"
    logged(
        node,
        f"{where}, Fatal, Link 30 LTSSM Fault Up (First)",
        f"{where}, Severity 1 Engine instance 30",
        f"{where}, {_DATA}",
    )
    _break_a_link(node)


def _note_a_switch_error(node: Node) -> None:
    where = f"nvidia-nvswitch0: SXid (PCI:{_switch(node)}): 12028"
    logged(node, f"{where}, Non-fatal, Link 61 egress non-posted PRIV error (First)")


def _linked(shape: Shape) -> bool:
    return shape.joined > 0


def _peermem(node: Node) -> None:
    said = "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing"
    logged(node, *[said] * 6)


def _wrap(node: Node) -> None:
    def without_boot(output: Output) -> Output:
        lines = output.stdout.split(b"\n")
        return replace(output, stdout=b"\n".join(lines[len(lines) // 2 :]))

    node.spoilers["dmesg"] = without_boot


def _cut(node: Node) -> None:
    node.spoilers["dmesg"] = lambda output: replace(output, stdout=output.stdout[:-20])


def _empty(node: Node) -> None:
    node.spoilers["dmesg"] = lambda _: Output(b"")


def _refuse_dmesg(node: Node) -> None:
    refusal = Output(b"", 1, b"dmesg: read kernel buffer failed: Operation not permitted\n")
    node.spoilers["dmesg"] = lambda _: refusal


def _refuse(node: Node) -> None:
    _refuse_dmesg(node)
    denied = b"No journal files were opened due to insufficient permissions.\n"
    node.journal = True
    node.spoilers[_JOURNAL] = lambda _: Output(b"", 1, denied)


def _leave_the_journal(node: Node) -> None:
    _refuse_dmesg(node)
    node.journal = True


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
        "xid-95-flood",
        "One GPU's memory error that nothing contained filled the log with a thousand equal lines.",
        _flood,
        on_node(FAIL, "health.xid"),
        case="E13",
    ),
    Fault(
        "xid-74",
        "A link of one GPU failed for good: it is down, and the kernel log holds Xid 74.",
        _break_a_link,
        together(
            on_victim(FAIL, "nvlink.links-active"),
            on_node(FAIL, "health.xid"),
            on_victim(UNVERIFIED, "nvlink.peers"),
        ),
        can_have=_linked,
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
        "application-xid-45-flood",
        "A job was torn down channel by channel on one GPU: no fault, and so often worth a look.",
        _tear_down,
        on_node(ADVISORY, "health.xid"),
        case="E9",
    ),
    Fault(
        "xid-154-recovered",
        "The driver reports that a GPU needs no reset any more, which was done since boot: no fault.",
        _recover,
        nothing,
        case="E18",
    ),
    Fault(
        "sxid-fatal",
        "A port of an NVSwitch failed for good, and the GPU behind it lost that link.",
        _fail_a_switch_port,
        together(
            on_node(FAIL, "health.sxid", "health.xid"),
            on_victim(FAIL, "nvlink.links-active"),
            on_victim(UNVERIFIED, "nvlink.peers"),
        ),
        case="D13",
        can_have=has_nvswitch,
    ),
    Fault(
        "sxid-nonfatal",
        "An NVSwitch reported an error that it calls non-fatal itself.",
        _note_a_switch_error,
        on_node(ADVISORY, "health.sxid"),
        case="D13",
        can_have=has_nvswitch,
    ),
    Fault(
        "peermem-noise",
        "The peer memory module complains of jobs that ended without saying so: no part is broken, GPUDirect may be.",
        _peermem,
        on_node(ADVISORY, "network.log"),
        case="G12",
    ),
    Fault(
        "kernel-log-wrapped",
        "The kernel's ring buffer no longer holds the boot: older errors would be gone.",
        _wrap,
        on_node(ADVISORY, "health.xid"),
        case="E15",
    ),
    Fault(
        "journal-instead-of-dmesg",
        "dmesg is for root only, and the journal holds the same log for the gate's user: no fault.",
        _leave_the_journal,
        nothing,
        case="E15",
    ),
    Fault(
        "kernel-log-denied",
        "The gate ran as a plain user, and kernel log and journal are for root only.",
        _refuse,
        on_node(UNVERIFIED, "health.xid", "health.sxid", *BY_LOG),
        case="E19",
    ),
    Fault(
        "kernel-log-empty",
        "The ring buffer was cleared: not even the boot is in it.",
        _empty,
        on_node(UNVERIFIED, "health.xid", "health.sxid", *BY_LOG),
        case="E16",
    ),
    Fault(
        "kernel-log-cut",
        "The kernel log stops in the middle of a line: an error could have stood there.",
        _cut,
        on_node(UNVERIFIED, "health.xid", "health.sxid", *BY_LOG),
    ),
)
