"""Links and engines of a node that does not exist: what they counted, and what stands beside them, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

# seconds between the two samples of counters
BETWEEN = 4.0


@dataclass
class LinkState:
    """What NVLinks and ports counted, and how the fabric is put together.

    `counted` and `growth` are (replays, recoveries, CRC errors) by the place of a GPU and the number of
    its link: before the first sample, and between the two. `paired` is how many NVLinks lead from one
    place to another where it is not as usual, `silent` ordered pairs without peer access. `lost_switches`
    are numbers of NVSwitches that are gone from the bus. Of ports, by their RDMA name: `port_counters`
    before the first sample, `port_growth` between the two, `mtus` of interfaces that are not as usual.
    `peermem` is None where the driver decides whether it is loaded; `registered` is false where the RDMA
    stack has not taken it, `dma_buf` where the driver cannot hand out memory so. Under load, by RDMA name:
    `write_shares` are what a port writes as a part of its rate where that is not as usual, `write_errors` what
    ib_write_bw says instead; it knows GPUs' memory where `write_cuda`. `untimed` samples do not say when they were
    taken.
    """

    counted: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    growth: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    paired: dict[frozenset[int], int] = field(default_factory=dict)
    silent: set[tuple[int, int]] = field(default_factory=set)
    lost_switches: set[int] = field(default_factory=set)
    port_counters: dict[str, dict[str, int]] = field(default_factory=dict)
    port_growth: dict[str, dict[str, int]] = field(default_factory=dict)
    mtus: dict[str, int] = field(default_factory=dict)
    peermem: bool | None = None
    registered: bool = True
    dma_buf: bool = True
    write_shares: dict[str, float] = field(default_factory=dict)
    write_errors: dict[str, str] = field(default_factory=dict)
    write_cuda: bool = True
    untimed: bool = False


@dataclass
class EngineState:
    """What a container engine rests on.

    `socket_mode` is that of the engine's socket, `listening` the addresses of port 2375 as /proc/net/tcp
    writes them. `linked` tells whether /dev/char leads to the driver's device files. `cri` is what
    answers at the socket of Kubernetes, with its version; `cri_runtimes` are containerd's there.
    `hook` tells whether enroot has the hook that brings GPUs in.
    """

    socket_mode: str = "660"
    listening: tuple[str, ...] = ()
    linked: bool = True
    cgroup: int = 2
    cgroup_driver: str = "systemd"
    runc: str = "1.3.6"
    cri: tuple[str, str] | None = None
    cri_runtimes: tuple[str, ...] = ("nvidia", "runc")
    hook: bool = True
