"""How the kernel of a simulated host is set, its limits, its clock and its processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.model import READ_AT_SECONDS, UPTIME
from nodeready.simulate.outputs.output import Output, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodeready.simulate.model import Node

_PROCESSES = 2417


def host_files(node: Node) -> Output:
    """Small files of /proc and /sys, each line behind its path."""
    host, machine, cpu = node.host, node.shape.machine, "/sys/devices/system/cpu"
    lines = [
        f"/proc/sys/kernel/osrelease:{node.os.kernel}",
        f"/proc/sys/kernel/numa_balancing:{host.numa_balancing}",
        f"/sys/kernel/mm/transparent_hugepage/enabled:{host.hugepages}",
        f"/sys/devices/system/clocksource/clocksource0/current_clocksource:{host.clocksource}",
        f"{cpu}/present:0-{machine.cpus - 1}",
        f"{cpu}/online:0-{machine.cpus - 1 - host.offline_cpus}",
    ]
    if not machine.virtual:
        numbers = sorted(range(machine.cpus), key=str)  # as the shell expands the pattern
        lines += [f"{cpu}/cpufreq/policy{number}/scaling_governor:{host.governor}" for number in numbers]
    lines += [
        f"/sys/class/dmi/id/sys_vendor:{machine.vendor}",
        f"/sys/class/dmi/id/product_name:{machine.model}",
        f"/sys/class/dmi/id/bios_version:{machine.bios.partition(' ')[0]}",
    ]
    if host.bmc:
        lines.append("/sys/class/ipmi/ipmi0/dev:236:0")
    lines += [f"/proc/mdstat:{line}" for line in host.mdstat]
    if host.bmc:
        lines.append("smbios-bmc:yes")
    return text(*lines, f"btime:{int(READ_AT_SECONDS - UPTIME)}", "end:")


def limits(node: Node) -> Output:
    """/proc/self/limits of a process that the gate's user starts."""
    host, threads = node.host, str(4 * node.mem_total_kib // 1024)
    rows = (
        ("Limit", "Soft Limit", "Hard Limit", "Units"),
        ("Max cpu time", "unlimited", "unlimited", "seconds"),
        ("Max file size", "unlimited", "unlimited", "bytes"),
        ("Max stack size", "8388608", "unlimited", "bytes"),
        ("Max core file size", "0", "unlimited", "bytes"),
        ("Max processes", threads, threads, "processes"),
        ("Max open files", "1024", host.open_files, "files"),
        ("Max locked memory", host.locked_memory, host.locked_memory, "bytes"),
        ("Max address space", "unlimited", "unlimited", "bytes"),
        ("Max nice priority", "0", "0", ""),
    )
    return text(*(f"{name:<25} {soft:<20} {hard:<20} {unit:<10}" for name, soft, hard, unit in rows))


def timedatectl(node: Node) -> Output:
    """`timedatectl show`."""
    return text(
        "Timezone=Etc/UTC",
        "LocalRTC=no",
        "CanNTP=yes",
        "NTP=yes",
        f"NTPSynchronized={'yes' if node.host.synchronised else 'no'}",
        "TimeUSec=Tue 2026-12-01 09:12:41 UTC",
        "RTCTimeUSec=Tue 2026-12-01 09:12:41 UTC",
    )


def processes(node: Node) -> Output:
    """The first look at processes that wait or are dead."""
    return text(*_rows(node, later=False), f"{_PROCESSES} processes")


def processes_later(node: Node) -> Output:
    """The second look, some seconds later."""
    return text(*_rows(node, later=True), f"{_PROCESSES - 2} processes")


def _rows(node: Node, *, later: bool) -> Iterator[str]:
    for process in node.host.processes:
        if process.stays or not later:
            age = process.age + (3 if later else 0)
            yield f"{process.pid} {process.parent} {process.state} {age} {process.name}"
