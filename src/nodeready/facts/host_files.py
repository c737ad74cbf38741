"""How the kernel of the host is set, and which machine the firmware names, from small files that any user can read."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts import small_files
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from nodeready.facts.small_files import SmallFiles

_CPU = "/sys/devices/system/cpu"
_GOVERNORS = f"{_CPU}/cpufreq/policy*/scaling_governor"
_KERNEL = "/proc/sys/kernel/osrelease"
_NUMA = "/proc/sys/kernel/numa_balancing"
_HUGEPAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_IPMI = "/sys/class/ipmi/ipmi*/dev"
_BMC = "smbios-bmc"
_BOOTED = "btime"
_DMI = "/sys/class/dmi/id"
BY_FIRMWARE = "by firmware"

HOST_FILES = command(
    "sh",
    "-c",
    small_files.script(
        _KERNEL,
        _NUMA,
        _HUGEPAGES,
        _CLOCK,
        f"{_CPU}/present",
        f"{_CPU}/online",
        _GOVERNORS,
        f"{_DMI}/sys_vendor",
        f"{_DMI}/product_name",
        f"{_DMI}/bios_version",
        _IPMI,
        "/proc/mdstat",
        # SMBIOS type 38 is the way to a BMC; the folder can be seen by all, its files by root
        more=f"for d in /sys/firmware/dmi/entries/38-*; do [ ! -d \"$d\" ] || echo '{_BMC}:yes'; done; "
        'while read -r k v _; do case $k in btime) echo "btime:$v" ;; esac; done 2>/dev/null </proc/stat; ',
    ),
    name="host-files",
    serves=("host.governor", "host.numa-balancing", "host.hugepages", "host.clocksource", "platform.kernel"),
)

_RELEASE = re.compile(r"([0-9]{1,4}\.[0-9]{1,4}(?:\.[0-9]{1,5})?).*")
_CHOSEN = re.compile(r".*\[([a-z]{1,20})\].*")
_ARRAY = re.compile(r"(md[0-9A-Za-z_]{1,30}) : (active|inactive)\b(.*)")
_MEMBERS = re.compile(r"\[([0-9]{1,4})/([0-9]{1,4})\] \[([U_]{1,400})\]")


class HostFiles(NamedTuple):
    """What the files say.

    `kernel` is the release without what a distribution appends. `governor` is the governor of all
    processors, several joined by commas, or `BY_FIRMWARE` where the kernel sets no clocks. `offline`
    is how many processors are there and not in use. `ipmi_device` tells whether the kernel has a way
    to a BMC, `bmc_named` whether the firmware names one. `boot_time` is in Unix time. `bad_arrays` are
    the md arrays that run short of a member, or do not run, in words.
    """

    kernel: Reading[str]
    numa_balancing: Reading[str]
    hugepages: Reading[str]
    clocksource: Reading[str]
    governor: Reading[str]
    offline: Reading[int]
    vendor: Reading[str]
    product: Reading[str]
    bios: Reading[str]
    ipmi_device: Reading[bool]
    bmc_named: Reading[bool]
    boot_time: Reading[int]
    bad_arrays: Reading[tuple[str, ...]]


def parse(data: bytes) -> HostFiles | Unknown:
    r"""The settings of a host; what a cut list no longer holds is unknown.

    >>> host = parse(b'''/proc/sys/kernel/osrelease:5.15.0-161-generic
    ... /sys/kernel/mm/transparent_hugepage/enabled:always [madvise] never
    ... /sys/devices/system/cpu/present:0-223
    ... /sys/devices/system/cpu/online:0-5,8-223
    ... end:
    ... ''')
    >>> host.kernel.value, host.hugepages.value, host.offline.value, host.governor.value
    ('5.15.0', 'madvise', 2, 'by firmware')
    """
    files = small_files.parse(data)
    if isinstance(files, Unknown):
        return files
    return HostFiles(
        kernel=_matched(files.one(_KERNEL), _RELEASE, "is no kernel release"),
        numa_balancing=files.one(_NUMA),
        hugepages=_matched(files.one(_HUGEPAGES), _CHOSEN, "marks no mode as chosen"),
        clocksource=files.one(_CLOCK),
        governor=_governor(files),
        offline=_offline(files),
        vendor=files.one(f"{_DMI}/sys_vendor"),
        product=files.one(f"{_DMI}/product_name"),
        bios=files.one(f"{_DMI}/bios_version"),
        ipmi_device=_is_there(files, _IPMI),
        bmc_named=_is_there(files, _BMC),
        boot_time=_seconds(files.one(_BOOTED)),
        bad_arrays=_bad_arrays(files),
    )


def _matched(text: Reading[str], pattern: re.Pattern[str], complaint: str) -> Reading[str]:
    if isinstance(text, Unknown):
        return text
    match = pattern.fullmatch(text.value)
    return Known(match[1]) if match else Unknown(f"{text.value[:80]!r} {complaint}")


def _cut() -> Unknown:
    return Unknown("the list was cut before its end")


def _is_there(files: SmallFiles, pattern: str) -> Reading[bool]:
    if files.matching(pattern):
        return Known(True)
    return Known(False) if files.whole else _cut()


def _seconds(text: Reading[str]) -> Reading[int]:
    if isinstance(text, Unknown):
        return text
    return Known(int(text.value)) if re.fullmatch("[0-9]{9,11}", text.value) else Unknown("btime is no time")


def _governor(files: SmallFiles) -> Reading[str]:
    if not files.whole:
        return _cut()
    said = Counter(lines[0].strip() for lines in files.matching(_GOVERNORS).values())
    if not said:
        # the list of processors shows that sysfs itself was there
        online = files.one(f"{_CPU}/online")
        return online if isinstance(online, Unknown) else Known(BY_FIRMWARE, note="the kernel scales no clocks")
    if "" in said:
        return Unknown("a scaling_governor is empty")
    note = ", ".join(f"{count} x {name}" for name, count in sorted(said.items()))
    return Known(", ".join(sorted(said)), note=note if len(said) > 1 else "")


def _offline(files: SmallFiles) -> Reading[int]:
    present, online = (files.one(f"{_CPU}/{which}") for which in ("present", "online"))
    if isinstance(present, Unknown):
        return present
    if isinstance(online, Unknown):
        return online
    there, used = _numbers(present.value), _numbers(online.value)
    if there is None or used is None:
        return Unknown(f"{present.value[:40]!r} or {online.value[:40]!r} is no list of processors")
    note = f"{len(there)} present, {len(used)} online"
    return Known(len(there - used), note=note)


def _numbers(text: str) -> set[int] | None:
    """The numbers of a list such as `0-55,112-167`."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
        if match is None:
            return None
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def _bad_arrays(files: SmallFiles) -> Reading[tuple[str, ...]]:
    """Without md there is no mdstat, and no array."""
    if not files.whole:
        return _cut()
    bad, name = [], ""
    for line in files.values.get("/proc/mdstat", ()):
        start, members = _ARRAY.match(line), _MEMBERS.search(line)
        if start:
            name = start[1]
            if start[2] == "inactive" or "(F)" in start[3]:
                bad.append(f"{name} {'is inactive' if start[2] == 'inactive' else 'has a failed member'}")
        elif members and name and ("_" in members[3] or members[1] != members[2]):
            bad.append(f"{name} runs on {members[2]} of {members[1]} members")
    return Known(tuple(dict.fromkeys(bad)))
