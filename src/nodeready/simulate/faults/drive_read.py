"""What goes wrong when the drives are made to read: one is slow, in use, fails, or may not be opened."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import recommended, required
from nodeready.simulate.faults.fault import ADVISORY, FAIL, UNVERIFIED, Fault, bare_metal, logged, nothing, on_node

if TYPE_CHECKING:
    from nodeready.simulate.host_model import Drive
    from nodeready.simulate.model import Node

_READ = "storage.read-rate"


def _second(node: Node) -> Drive:
    return node.host.drives[1]


def _read_slowly(node: Node) -> None:
    _second(node).read_share = 0.5 * required(node, _READ)


def _lag(node: Node) -> None:
    _second(node).read_share = (required(node, _READ) + recommended(node, _READ)) / 2


def _share_a_drive(node: Node) -> None:
    _read_slowly(node)
    _second(node).others = 5.12


def _use_a_fast_drive(node: Node) -> None:
    _second(node).others = 0.31


def _fail_to_read(node: Node) -> None:
    _second(node).bad_at = 3_298_534_883_328
    logged(node, "I/O error, dev nvme1n1, sector 6442450944 op 0x0:(READ) flags 0x80700 phys_seg 16 prio class 2")


def _open_no_drive(node: Node) -> None:
    node.host.drives_open = False


def _cut_the_reads(node: Node) -> None:
    node.spoilers["drive-read"] = lambda output: replace(output, stdout=output.stdout[: len(output.stdout) // 2])


FAULTS = (
    Fault(
        "drive-reads-slowly",
        "A drive calls itself healthy, and reads an eighth of what its link carries.",
        _read_slowly,
        on_node(FAIL, _READ),
        can_have=bare_metal,
    ),
    Fault(
        "drive-reads-below-its-twins",
        "A drive reads a third of what its link carries: it works, and holds up what loads data.",
        _lag,
        on_node(ADVISORY, _READ),
        can_have=bare_metal,
    ),
    Fault(
        "drive-fails-to-read",
        "A drive gives an input/output error instead of data.",
        _fail_to_read,
        on_node(FAIL, _READ, "storage.errors"),
        can_have=bare_metal,
    ),
    Fault(
        "slow-drive-in-use",
        "A drive reads slowly while somebody else reads it at 5 GB/s: what it can do is not known.",
        _share_a_drive,
        on_node(UNVERIFIED, _READ),
        can_have=bare_metal,
    ),
    Fault(
        "fast-drive-in-use",
        "Somebody else writes to a drive, and it reads fast all the same: no fault.",
        _use_a_fast_drive,
        nothing,
        can_have=bare_metal,
    ),
    Fault(
        "drives-not-opened",
        "A plain user may not open the drives: how fast they read was not measured.",
        _open_no_drive,
        on_node(UNVERIFIED, _READ),
        can_have=bare_metal,
    ),
    Fault(
        "drive-read-result-cut",
        "The document of the reads was cut on its way: nothing is known of any drive's speed.",
        _cut_the_reads,
        on_node(UNVERIFIED, _READ),
        can_have=bare_metal,
    ),
)
