"""File systems and NVMe drives of a simulated node."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nodeready.simulate.outputs.output import Output, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.simulate.host_model import Drive
    from nodeready.simulate.model import Node

MODEL = "INTEL SSDPF2KX038T1"
_BYTES, _INODES = 940_000_000_000, 58_000_000
# what backs each place; two places on one file system are two rows of one device
_DEVICES = {"/": "/dev/mapper/vg0-root", "/var": "/dev/mapper/vg0-var", "/var/lib/docker": "/dev/mapper/vg0-var"}


def _mounted(node: Node) -> dict[str, str]:
    """The device of each place; a guest has one disk."""
    return dict.fromkeys(_DEVICES, "/dev/vda1") if node.shape.virtual else _DEVICES


def df(node: Node) -> Output:
    """Both tables of df, and the line that closes them; a place below a mount shows that mount."""
    host, devices = node.host, _mounted(node)
    places = ["/"] if node.shape.virtual else ["/", "/var"]
    lines = ["Filesystem              1-blocks         Used    Available Capacity Mounted on"]
    for place in (*places, places[-1]):
        free = _BYTES * host.free[place] // 100
        used = _BYTES - free
        lines.append(f"{devices[place]} {_BYTES:>14} {used:>12} {free:>12} {100 - host.free[place]:>7}% {place}")
    lines += ["inodes:", "Filesystem              Inodes   IUsed    IFree IUse% Mounted on"]
    for place in (*places, places[-1]):
        free = _INODES * host.inodes_free // 100
        share = 100 - host.inodes_free
        lines.append(f"{devices[place]} {_INODES:>9} {_INODES - free:>9} {free:>9} {share:>4}% {place}")
    return text(*lines, "end:")


def mounts(node: Node) -> Output:
    """/proc/mounts."""
    devices, host = _mounted(node), node.host
    boot = "/dev/vda15" if node.shape.virtual else "/dev/nvme0n1p1"

    def mode(place: str) -> str:
        return "ro" if place in host.read_only else "rw"

    lines = [
        "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0",
        "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0",
        "tmpfs /run tmpfs rw,nosuid,nodev,size=211342780k,mode=755,inode64 0 0",
        f"{devices['/']} / ext4 {mode('/')},relatime,errors=remount-ro 0 0",
        "/dev/loop0 /snap/core20/1891 squashfs ro,nodev,relatime,errors=continue 0 0",
        f"{boot} /boot/efi vfat rw,relatime,fmask=0077,dmask=0077 0 0",
    ]
    if not node.shape.virtual:
        lines.append(f"{devices['/var']} /var xfs {mode('/var')},relatime,attr2,inode64,logbufs=8,noquota 0 0")
        # a read-only view of a file system that is written elsewhere
        lines.append(f"{devices['/var']} /srv/images xfs ro,relatime,attr2,inode64,logbufs=8,noquota 0 0")
    return text(*lines)


def drives(node: Node) -> Output | None:
    """The drives that the kernel drives, each line behind its path."""
    if node.shape.virtual:
        return None
    fields: dict[str, Callable[[Drive], str]] = {
        "state": lambda drive: drive.state,
        "transport": lambda _: "pcie",
        "address": lambda drive: drive.bus_id,
        "model": lambda _: f"{MODEL:<40}",
        "serial": lambda drive: f"{drive.serial:<20}",
    }
    known = [drive for drive in node.host.drives if drive.driven]
    return text(
        *(f"/sys/class/nvme/{d.name}/{field}:{value(d)}" for field, value in fields.items() for d in known), "end:"
    )


def health(node: Node) -> Output | None:
    """`nvme smart-log -o json` of each drive, one after the other."""
    if node.shape.virtual:
        return None
    lines = []
    for drive in node.host.drives:
        if not drive.driven:
            continue
        log = {
            "critical_warning": drive.warning,
            "temperature": 308,
            "avail_spare": drive.spare,
            "spare_thresh": 10,
            "percent_used": drive.used,
            "endurance_grp_critical_warning_summary": 0,
            "data_units_read": 3_761_880,
            "data_units_written": 3_984_030,
            "power_cycles": 24,
            "power_on_hours": 712,
            "unsafe_shutdowns": 9,
            "media_errors": drive.media_errors,
            "num_err_log_entries": 0,
        }
        lines += [f"drive:/dev/{drive.name}", json.dumps(log, indent=2), "status:0"]
    return text(*lines, "end:")
