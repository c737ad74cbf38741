"""The host of a node that does not exist: how its kernel is set, its drives, supplies and fans, as values."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Drive:
    """One NVMe drive; `driven` is false where the kernel gave it up, the spare and what is used are in percent.

    `read_share` is what it reads of what its link carries, None for what such a drive does; `others` is what other
    processes move meanwhile, in GB/s, and `bad_at` the byte that it cannot read.
    """

    name: str
    bus_id: str
    serial: str
    state: str = "live"
    driven: bool = True
    warning: int = 0
    spare: int = 100
    used: int = 1
    media_errors: int = 0
    read_share: float | None = None
    others: float = 0.0002
    bad_at: int | None = None


@dataclass
class Supply:
    """One power supply of so many watts; `fault` is what the BMC says of it beside its presence."""

    watts: int
    present: bool = True
    fault: str = ""


@dataclass(frozen=True)
class HostProcess:
    """A process in state D or Z, with its age in seconds; one that `stays` is there at the second look too."""

    pid: int
    parent: int
    state: str
    age: int
    name: str
    stays: bool = True


@dataclass
class HostState:
    """All of it, healthy until a fault changes it.

    `free` and `inodes_free` are shares in percent of each file system. `corrected` and `uncorrected` are
    what the memory controllers counted, None where no driver counts. `drives_open` is false where a plain
    user asks, who may not open them. `bmc` is false where the board has none, `events` are further lines of
    its log: day, clock, sensor, what it says, asserted or not.
    """

    offline_cpus: int = 0
    governor: str = "performance"
    clocksource: str = "tsc"
    numa_balancing: str = "0"
    hugepages: str = "always [madvise] never"
    hypervisor: str = ""
    swap_kib: int = 0
    synchronised: bool = True
    locked_memory: str = "unlimited"
    open_files: str = "1048576"
    processes: list[HostProcess] = field(default_factory=list)
    uncorrected: int | None = 0
    corrected: int = 0
    free: dict[str, int] = field(default_factory=lambda: {"/": 68, "/var": 81})
    inodes_free: int = 97
    read_only: set[str] = field(default_factory=set)
    mdstat: tuple[str, ...] = ()
    drives: list[Drive] = field(default_factory=list)
    drives_open: bool = True
    bmc: bool = True
    supplies: list[Supply] = field(default_factory=list)
    redundancy: str = "Fully Redundant"
    fans: list[int] = field(default_factory=list)
    inlet: int = 23
    events: list[tuple[str, str, str, str, str]] = field(default_factory=list)
