"""The RDMA adapters of a node in small files, asked twice: what they are, how ports came up, what they counted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from nodeready.evidence.probe import Probe, command
from nodeready.facts import small_files, uptime
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.text import lines
from nodeready.reading import Reading, Unknown

if TYPE_CHECKING:
    from nodeready.facts.small_files import SmallFiles

_RDMA, _NET = "/sys/class/infiniband", "/sys/class/net"
_PEERS = "/sys/kernel/mm/memory_peers/nv_mem"
# where any growth is a fault, and where only a fast one is
FATAL = ("local_link_integrity_errors", "excessive_buffer_overrun_errors", "rnr_nak_retry_err", "link_downed")
COUNTERS = (*FATAL, "symbol_error", "link_error_recovery", "roce_slow_restart")
_OF_HARDWARE = ("rnr_nak_retry_err", "roce_slow_restart")
_COUNTER_FILES = " ".join(f"{'hw_' * (name in _OF_HARDWARE)}counters/{name}" for name in COUNTERS)

# Counters are asked of ports that are up only: some firmwares log an error for every counter of a port that they
# keep to themselves. The shell reads the files itself.
_PORTS = (
    f'for p in {_RDMA}/*/ports/*; do s=; read -r s 2>/dev/null <"$p/state"; case $s in *ACTIVE*) '
    f'for c in {_COUNTER_FILES}; do v=; read -r v 2>/dev/null <"$p/$c" && printf \'%s:%s\\n\' "$p/$c" "$v"; done ;; '
    "esac; done; "
)
_PLACES = (
    f'for d in {_RDMA}/*/device {_NET}/*/device; do [ -e "$d" ] || continue; p=$(cd -P "$d" && pwd) && '
    'echo "$d:${p##*/}"; done; '
)


def _script() -> str:
    files = (
        *(f"{_RDMA}/*/{name}" for name in ("hca_type", "fw_ver", "board_id")),
        *(f"{_RDMA}/*/ports/*/{name}" for name in ("state", "phys_state", "rate", "link_layer")),
        f"{_NET}/*/mtu",
        f"{_NET}/*/carrier_down_count",
    )
    registered = f"[ ! -d {_PEERS} ] || echo {_PEERS}:yes; "
    return uptime.SCRIPT + small_files.script(*files, more=_PORTS + _PLACES + registered)


RDMA_FILES = command(
    "sh",
    "-c",
    _script(),
    name="rdma-files",
    family="network",
    serves=("network.twins", "network.firmware", "network.mtu", "network.errors", "network.flaps", "network.gpudirect"),
)
RDMA_FILES_LATER: Probe = command(
    "sh",
    "-c",
    f"{uptime.SCRIPT}{_PORTS}echo {small_files.END}",
    name="rdma-files-later",
    after=RDMA_FILES.name,
    family="network",
    serves=("network.errors",),
)

_PORT = re.compile(rf"{_RDMA}/([^/]{{1,64}})/ports/([0-9]{{1,3}})/(.{{1,80}})")
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9])?) Gb/sec.*")
_COUNT = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True)
class RdmaPort:
    """One port; `rate` in Gb/s is what the kernel says, also of a port that is down. Counters by their file's name."""

    adapter: str
    number: int
    state: str
    physical: str
    layer: str
    rate: float | None
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in `mlx5_0/1`."""
        return f"{self.adapter}/{self.number}"

    @property
    def active(self) -> bool:
        """Whether it carries traffic."""
        return self.state == "ACTIVE"


@dataclass(frozen=True)
class Adapter:
    """One adapter: its part, firmware and board, its PCI address, the interfaces on that address with their MTU."""

    name: str
    part: str
    firmware: str
    board: str
    bus_id: str
    ports: tuple[RdmaPort, ...]
    mtus: dict[str, int] = field(default_factory=dict)

    @property
    def is_up(self) -> bool:
        """Whether any of its ports carries traffic."""
        return any(port.active for port in self.ports)


class RdmaFiles(NamedTuple):
    """What the files say.

    `carrier_losses` are by network interface, for those that have a device of their own. `registered`
    tells whether the RDMA stack has taken the driver's memory as a peer's.
    """

    uptime: Reading[float]
    adapters: tuple[Adapter, ...]
    carrier_losses: dict[str, int]
    registered: bool

    @property
    def ports(self) -> tuple[RdmaPort, ...]:
        """The ports of all adapters."""
        return tuple(port for adapter in self.adapters for port in adapter.ports)


def parse(data: bytes) -> RdmaFiles | Unknown:
    r"""Adapters and ports; none where there are none, unknown where the list was cut or a port is without a state.

    >>> found = parse(b'''uptime:93841.27
    ... /sys/class/infiniband/mlx5_0/hca_type:MT4129
    ... /sys/class/infiniband/mlx5_0/fw_ver:28.43.2566
    ... /sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE
    ... /sys/class/infiniband/mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)
    ... /sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:1
    ... end:
    ... ''')
    >>> [(p.name, p.active, p.rate, p.counters) for p in found.ports], found.adapters[0].firmware
    ([('mlx5_0/1', True, 400.0, {'link_downed': 1})], '28.43.2566')
    """
    files = small_files.parse(data)
    if isinstance(files, Unknown):
        return files
    if not files.whole:
        return Unknown("the list was cut before its end")
    names = sorted({path.split("/")[4] for path in files.values if path.startswith(f"{_RDMA}/")})
    adapters = []
    for name in names:
        ports = _ports(files, name)
        if isinstance(ports, Unknown):
            return ports
        adapters.append(_adapter(files, name, ports))
    losses = {
        path.split("/")[4]: int(said[0])
        for path, said in files.matching(f"{_NET}/*/carrier_down_count").items()
        if _COUNT.fullmatch(said[0]) and f"{_NET}/{path.split('/')[4]}/device" in files.values
    }
    return RdmaFiles(
        uptime=uptime.read(lines(data)[:1]),
        adapters=tuple(adapters),
        carrier_losses=losses,
        registered=_PEERS in files.values,
    )


def parse_later(data: bytes) -> tuple[Reading[float], dict[str, dict[str, int]]] | Unknown:
    r"""The second sample: when it was taken, and the counters by port; unknown where it was cut.

    >>> parse_later(b"uptime:93845.27\n/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:1\nend:\n")[1]
    {'mlx5_0/1': {'link_downed': 1}}
    """
    files = small_files.parse(data)
    if isinstance(files, Unknown):
        return files
    if not files.whole:
        return Unknown("the list was cut before its end")
    found: dict[str, dict[str, int]] = {}
    for path, said in files.values.items():
        match = _PORT.fullmatch(path)
        if match and "counters/" in match[3] and _COUNT.fullmatch(said[0]):
            found.setdefault(f"{match[1]}/{int(match[2])}", {})[match[3].rpartition("/")[2]] = int(said[0])
    return uptime.read(lines(data)[:1]), found


def _adapter(files: SmallFiles, name: str, ports: tuple[RdmaPort, ...]) -> Adapter:
    def text(attribute: str) -> str:
        return files.values.get(f"{_RDMA}/{name}/{attribute}", ("",))[0].strip()

    bus_id = normal_bus_id(text("device")) or ""
    mtus = {
        interface: int(said[0])
        for path, said in files.matching(f"{_NET}/*/mtu").items()
        if bus_id
        and normal_bus_id(files.values.get(f"{_NET}/{(interface := path.split('/')[4])}/device", ("",))[0]) == bus_id
        and _COUNT.fullmatch(said[0])
    }
    return Adapter(name, text("hca_type"), text("fw_ver"), text("board_id"), bus_id, ports, mtus)


def _ports(files: SmallFiles, name: str) -> tuple[RdmaPort, ...] | Unknown:
    said: dict[int, dict[str, str]] = {}
    for path, value in files.values.items():
        match = _PORT.fullmatch(path)
        if match and match[1] == name:
            said.setdefault(int(match[2]), {})[match[3]] = value[0].strip()
    ports = []
    for number, values in sorted(said.items()):
        state = values.get("state", "").partition(": ")[2]
        if not state:
            return Unknown(f"the state of {name} port {number} reads {values.get('state', '')[:40]!r}")
        rate = _RATE.fullmatch(values.get("rate", ""))
        counters = {
            place.rpartition("/")[2]: int(value)
            for place, value in values.items()
            if "counters/" in place and _COUNT.fullmatch(value)
        }
        layer = values.get("link_layer", "")
        physical = values.get("phys_state", "").partition(": ")[2]
        ports.append(RdmaPort(name, number, state, physical, layer, float(rate[1]) if rate else None, counters))
    return tuple(ports)
