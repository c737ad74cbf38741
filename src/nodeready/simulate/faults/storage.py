"""What goes wrong with drives and with file systems."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    bare_metal,
    logged,
    nothing,
    on_node,
    together,
)
from nodeready.simulate.outputs.output import Output, no_such_file

if TYPE_CHECKING:
    from nodeready.simulate.host_model import Drive
    from nodeready.simulate.model import Node

_NO_TOOL = Output(b"", 127, b"neither nvme-cli nor smartctl is installed\n")


def _fill(node: Node) -> None:
    node.host.free["/"] = 2


def _nearly_fill(node: Node) -> None:
    node.host.free["/"] = 7


def _use_up_inodes(node: Node) -> None:
    node.host.inodes_free = 0


def _hang_df(node: Node) -> None:
    node.spoilers["df"] = lambda output: replace(output, stdout=output.stdout[: output.stdout.index(b"inodes:")])


def _remount(node: Node) -> None:
    node.host.read_only.add("/")
    logged(
        node,
        "EXT4-fs error (device dm-0): ext4_journal_check_start:83: comm systemd-journal: Detected aborted journal",
        "EXT4-fs (dm-0): Remounting filesystem read-only",
    )


def _mount_read_only(node: Node) -> None:
    node.host.read_only.add("/")


def _lose_mounts(node: Node) -> None:
    node.spoilers["proc/mounts"] = lambda _: no_such_file("/proc/mounts")


def _fail_to_write(node: Node) -> None:
    logged(
        node,
        "blk_update_request: I/O error, dev nvme1n1, sector 6442712256 op 0x1:(WRITE) flags 0x1000 phys_seg 8",
        "XFS (dm-1): log I/O error -5",
    )


def _reset_a_drive(node: Node) -> None:
    logged(node, "nvme nvme1: I/O 412 QID 9 timeout, aborting", "nvme nvme1: resetting controller")


def _second(node: Node) -> Drive:
    return node.host.drives[1]


def _lose_a_drive(node: Node) -> None:
    _second(node).driven = False


def _kill_a_drive(node: Node) -> None:
    _second(node).state = "dead"


def _cut_drives(node: Node) -> None:
    node.spoilers["nvme-drives"] = lambda output: replace(output, stdout=output.stdout.replace(b"end:\n", b""))


def _use_up_spare(node: Node) -> None:
    _second(node).spare = 0


def _warn(node: Node) -> None:
    _second(node).warning = 4


def _wear(node: Node) -> None:
    _second(node).used = 38


def _damage_media(node: Node) -> None:
    _second(node).media_errors = 12


def _hide_health(node: Node) -> None:
    node.spoilers["nvme-health"] = lambda _: _NO_TOOL


def _degrade_array(node: Node) -> None:
    node.host.mdstat = (
        "Personalities : [raid1]",
        "md0 : active raid1 nvme1n1p2[1]",
        "      937560064 blocks super 1.2 [2/1] [_U]",
        "unused devices: <none>",
    )


def _build_array(node: Node) -> None:
    node.host.mdstat = (
        "Personalities : [raid1]",
        "md0 : active raid1 nvme1n1p2[1] nvme0n1p2[0]",
        "      937560064 blocks super 1.2 [2/2] [UU]",
        "      bitmap: 2/7 pages [8KB], 65536KB chunk",
        "unused devices: <none>",
    )


FAULTS = (
    Fault(
        "disk-full",
        "Logs of a scheduled diagnosis filled the root file system but for 2 %.",
        _fill,
        on_node(FAIL, "storage.space"),
        case="H21",
    ),
    Fault(
        "disk-filling",
        "The root file system has 7 % left.",
        _nearly_fill,
        on_node(ADVISORY, "storage.space"),
        case="H21",
    ),
    Fault(
        "inodes-used-up",
        "There is space left and no inode: millions of small files.",
        _use_up_inodes,
        on_node(FAIL, "storage.space"),
    ),
    Fault(
        "df-cut",
        "A file system did not answer and the list of free space ends before its second table.",
        _hang_df,
        on_node(UNVERIFIED, "storage.space"),
        case="H22",
    ),
    Fault(
        "root-remounted-read-only",
        "The drive below the root file system failed, and the kernel allows no writing any more.",
        _remount,
        on_node(FAIL, "storage.read-only", "storage.errors"),
        case="H22",
    ),
    Fault(
        "root-read-only",
        "The root file system is read-only, and the kernel log no longer tells why.",
        _mount_read_only,
        on_node(FAIL, "storage.read-only"),
    ),
    Fault(
        "mounts-missing",
        "The evidence does not hold the list of mounts.",
        _lose_mounts,
        on_node(UNVERIFIED, "storage.read-only"),
    ),
    Fault(
        "drive-write-errors",
        "A drive refused writes, and the file system above it noticed.",
        _fail_to_write,
        on_node(FAIL, "storage.errors"),
    ),
    Fault(
        "drive-reset",
        "A drive answered late, and the kernel reset it.",
        _reset_a_drive,
        on_node(ADVISORY, "storage.errors"),
        case="H23",
    ),
    Fault(
        "drive-without-driver",
        "A drive is on the bus, and the kernel gave it up.",
        _lose_a_drive,
        on_node(FAIL, "storage.drives"),
        case="H23",
        can_have=bare_metal,
    ),
    Fault(
        "drive-dead",
        "A drive is in the kernel's list, and dead: how fast it reads cannot be known.",
        _kill_a_drive,
        together(on_node(FAIL, "storage.drives"), on_node(UNVERIFIED, "storage.read-rate")),
        case="H23",
        can_have=bare_metal,
    ),
    Fault(
        "drive-list-cut",
        "The list of drives was cut before its end.",
        _cut_drives,
        on_node(UNVERIFIED, "storage.drives"),
        can_have=bare_metal,
    ),
    Fault(
        "drive-spare-used-up",
        "A drive has no spare blocks left, while its overall state still says passed.",
        _use_up_spare,
        on_node(FAIL, "storage.health"),
        can_have=bare_metal,
    ),
    Fault(
        "drive-warning",
        "A drive raises a critical warning: its reliability is degraded.",
        _warn,
        on_node(FAIL, "storage.health"),
        can_have=bare_metal,
    ),
    Fault(
        "drive-worn",
        "A drive of a new node has used 38 % of its life: it is not new.",
        _wear,
        on_node(ADVISORY, "storage.health"),
        can_have=bare_metal,
    ),
    Fault(
        "drive-media-errors",
        "A drive could not read back what was written to it.",
        _damage_media,
        on_node(FAIL, "storage.health"),
        can_have=bare_metal,
    ),
    Fault(
        "drive-health-unread",
        "Neither nvme-cli nor smartctl is installed: what the drives say of themselves is not known.",
        _hide_health,
        on_node(UNVERIFIED, "storage.health"),
        can_have=bare_metal,
    ),
    Fault(
        "array-degraded",
        "A mirror runs on one of its two drives.",
        _degrade_array,
        on_node(FAIL, "storage.raid"),
    ),
    Fault(
        "array-whole",
        "The system is on a mirror, and both of its drives are in it: no fault.",
        _build_array,
        nothing,
    ),
)
