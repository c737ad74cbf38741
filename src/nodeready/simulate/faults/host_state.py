"""What goes wrong with how a host is set, and with its processes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.faults.fault import ADVISORY, UNVERIFIED, Fault, bare_metal, logged, nothing, on_node
from nodeready.simulate.host_model import HostProcess
from nodeready.simulate.outputs.output import Output, not_installed

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

BY_FILES = (
    *("host.cpu", "host.governor", "host.clocksource", "host.numa-balancing", "host.hugepages"),
    *("platform.kernel", "storage.raid"),
)


def _park_processors(node: Node) -> None:
    node.host.offline_cpus = 8


def _save_power(node: Node) -> None:
    node.host.governor = "powersave"


def _lose_the_tsc(node: Node) -> None:
    node.host.clocksource = "hpet"


def _balance(node: Node) -> None:
    node.host.numa_balancing = "1"


def _force_hugepages(node: Node) -> None:
    node.host.hugepages = "[always] madvise never"


def _swap(node: Node) -> None:
    node.host.swap_kib = 8 * 2**20


def _drift(node: Node) -> None:
    node.host.synchronised = False


def _limit_locked_memory(node: Node) -> None:
    node.host.locked_memory = "8388608"


def _limit_files(node: Node) -> None:
    node.host.open_files = "4096"


def _hang_a_process(node: Node) -> None:
    node.host.processes.append(HostProcess(620_917, 1, "D", 5_400, "cache_mgr"))


def _leave_zombies(node: Node) -> None:
    node.host.processes += [HostProcess(31_000 + number, 4120, "Z", 40_000, "sh") for number in range(40)]


def _bury_late(node: Node) -> None:
    node.host.processes += [HostProcess(31_000 + number, 4120, "Z", 12, "sh") for number in range(40)]


def _log_a_hang(node: Node) -> None:
    logged(
        node,
        "INFO: task cache_mgr_event:620917 blocked for more than 120 seconds.",
        "      Tainted: P           OE     5.15.0-161-generic #171-Ubuntu",
        '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
    )


def _keep_an_old_kernel(node: Node) -> None:
    node.os = replace(node.os, kernel="4.18.0-553.el8_10.x86_64")


def _become_a_guest(node: Node) -> None:
    node.host.hypervisor = "KVM"


def _cut(node: Node, name: str) -> None:
    node.spoilers[name] = lambda output: replace(output, stdout=output.stdout[: output.stdout.rindex(b"\n", 0, -1) + 1])


def _forget_the_files(node: Node) -> None:
    node.spoilers["host-files"] = lambda _: None


def _forget_the_limits(node: Node) -> None:
    node.spoilers["proc/self/limits"] = lambda _: None


def _cut_the_processes(node: Node) -> None:
    _cut(node, "processes")


def _cut_meminfo(node: Node) -> None:
    """Up to MemFree and some: the total is whole, the swap is not in it any more."""
    node.spoilers["proc/meminfo"] = lambda output: replace(
        output, stdout=output.stdout[: output.stdout.index(b"SwapCached:")]
    )


def _run_without_systemd(node: Node) -> None:
    said = "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
    node.spoilers["timedatectl_show"] = lambda _: Output(b"", 1, said.encode())


def _take_lscpu_away(node: Node) -> None:
    node.spoilers["lscpu_-J"] = lambda _: not_installed("lscpu")


FAULTS = (
    Fault(
        "processors-offline",
        "Eight processors were taken offline for an experiment and never brought back.",
        _park_processors,
        on_node(ADVISORY, "host.cpu"),
    ),
    Fault(
        "governor-powersave",
        "The image came with the governor that saves power.",
        _save_power,
        on_node(ADVISORY, "host.governor"),
        can_have=bare_metal,
    ),
    Fault(
        "clocksource-hpet",
        "The kernel found the time stamp counter unstable at boot and fell back to a slow clock.",
        _lose_the_tsc,
        on_node(ADVISORY, "host.clocksource"),
    ),
    Fault(
        "numa-balancing-on",
        "Automatic NUMA balancing is on, as the distribution ships it.",
        _balance,
        on_node(ADVISORY, "host.numa-balancing"),
    ),
    Fault(
        "hugepages-always",
        "Transparent hugepages are forced on every process.",
        _force_hugepages,
        on_node(ADVISORY, "host.hugepages"),
    ),
    Fault("swap-on", "The installer set up 8 GiB of swap.", _swap, on_node(ADVISORY, "host.swap")),
    Fault(
        "clock-not-synchronised",
        "No time server can be reached from this node's network.",
        _drift,
        on_node(ADVISORY, "host.time-sync"),
    ),
    Fault(
        "memlock-low",
        "A process may lock 8 MiB only: RDMA registers no buffer. A node without RDMA does not mind.",
        _limit_locked_memory,
        lambda node: on_node(ADVISORY, "host.limits")(node) if node.shape.networked else (),
    ),
    Fault(
        "open-files-low",
        "A process may open 4096 files at most.",
        _limit_files,
        on_node(ADVISORY, "host.limits"),
    ),
    Fault(
        "process-stuck",
        "A process has been hanging in the kernel for an hour and a half, and no signal ends it.",
        _hang_a_process,
        on_node(ADVISORY, "host.processes"),
        case="B5",
    ),
    Fault(
        "zombies",
        "A broken service leaves dead processes behind, forty so far.",
        _leave_zombies,
        on_node(ADVISORY, "host.processes"),
    ),
    Fault(
        "zombies-young",
        "Forty processes died seconds ago and are about to be buried: no fault.",
        _bury_late,
        nothing,
    ),
    Fault(
        "hung-task",
        "The kernel log tells of a task that was blocked for two minutes.",
        _log_a_hang,
        on_node(ADVISORY, "host.hangs"),
        case="B5",
    ),
    Fault(
        "kernel-old",
        "The node was booted into the kernel of a distribution two generations back.",
        _keep_an_old_kernel,
        on_node(ADVISORY, "platform.kernel", "network.gpudirect", "network.write-bandwidth"),
    ),
    Fault(
        "unexpected-hypervisor",
        "What was ordered as a bare machine turns out to be a guest.",
        _become_a_guest,
        on_node(ADVISORY, "platform.hypervisor"),
        can_have=bare_metal,
    ),
    Fault(
        "host-files-missing",
        "The evidence holds none of the small files that tell how the kernel is set.",
        _forget_the_files,
        on_node(UNVERIFIED, *BY_FILES, "network.gpudirect"),
    ),
    Fault(
        "limits-missing",
        "The evidence does not hold the limits of a process.",
        _forget_the_limits,
        on_node(UNVERIFIED, "host.limits"),
    ),
    Fault(
        "processes-cut",
        "The list of processes was cut before its closing line.",
        _cut_the_processes,
        on_node(UNVERIFIED, "host.processes"),
    ),
    Fault(
        "meminfo-cut",
        "The kernel's account of memory was cut behind the total: swap is not known.",
        _cut_meminfo,
        on_node(UNVERIFIED, "host.swap"),
    ),
    Fault(
        "without-systemd",
        "The suite runs in a container without systemd: whether the clock is synchronised it cannot tell.",
        _run_without_systemd,
        on_node(UNVERIFIED, "host.time-sync"),
    ),
    Fault(
        "lscpu-missing",
        "The image has no lscpu: neither sockets nor a hypervisor are known.",
        _take_lscpu_away,
        on_node(UNVERIFIED, "platform.hypervisor", "memory.dimms"),
    ),
)
