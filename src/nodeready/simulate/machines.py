"""Host machines as data: who built them, their processors, memory and operating system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Distribution:
    """An operating system as installed; `inactive` is systemctl's exit status for a unit that it does not know."""

    pretty: str
    version: str
    codename: str
    kernel: str
    inactive: int


FOCAL = Distribution("Ubuntu 20.04.6 LTS", "20.04", "Focal Fossa", "5.15.0-139-generic", 3)
JAMMY = Distribution("Ubuntu 22.04.5 LTS", "22.04", "Jammy Jellyfish", "5.15.0-161-generic", 3)
NOBLE = Distribution("Ubuntu 24.04.3 LTS", "24.04", "Noble Numbat", "6.8.0-87-generic", 4)


@dataclass(frozen=True)
class Machine:
    """What GPUs are put into.

    `cores` are those of one socket, each with two threads. `dimms` are the number of slots and the
    GiB in each. `subsystem` is the vendor and id that its own network chip carries. A `virtual` one is
    a guest of QEMU.
    """

    vendor: str
    model: str
    bios: str
    cpu: str
    sockets: int
    cores: int
    dimms: tuple[int, int]
    os: Distribution
    subsystem: tuple[str, str] = ("", "")
    virtual: bool = False

    @property
    def cpus(self) -> int:
        """Logical processors."""
        return self.sockets * self.cores * 2


_DELL = ("Dell", "1028:0a6b")

XE9680 = Machine(
    vendor="Dell Inc.",
    model="PowerEdge XE9680",
    bios="2.3.5 09/10/2024",
    cpu="Intel(R) Xeon(R) Platinum 8480+",
    sockets=2,
    cores=56,
    dimms=(32, 64),
    os=JAMMY,
    subsystem=_DELL,
)
XE9680_NOBLE = Machine(
    vendor="Dell Inc.",
    model="PowerEdge XE9680",
    bios="2.7.4 04/02/2026",
    cpu="Intel(R) Xeon(R) Platinum 8568Y+",
    sockets=2,
    cores=48,
    dimms=(32, 64),
    os=NOBLE,
    subsystem=_DELL,
)
XE8640 = Machine(
    vendor="Dell Inc.",
    model="PowerEdge XE8640",
    bios="2.2.7 03/29/2024",
    cpu="Intel(R) Xeon(R) Platinum 8470",
    sockets=2,
    cores=52,
    dimms=(32, 32),
    os=JAMMY,
    subsystem=_DELL,
)
R760XA = Machine(
    vendor="Dell Inc.",
    model="PowerEdge R760xa",
    bios="2.1.5 05/13/2024",
    cpu="Intel(R) Xeon(R) Gold 6448Y",
    sockets=2,
    cores=32,
    dimms=(32, 32),
    os=JAMMY,
    subsystem=_DELL,
)
SYS_521GE = Machine(
    vendor="Supermicro",
    model="SYS-521GE-TNRT",
    bios="2.5 05/29/2025",
    cpu="Intel(R) Xeon(R) Platinum 8468",
    sockets=2,
    cores=48,
    dimms=(32, 32),
    os=JAMMY,
    subsystem=("Super Micro Computer Inc", "15d9:1b0b"),
)
XE7740 = Machine(
    vendor="Dell Inc.",
    model="PowerEdge XE7740",
    bios="1.4.1 11/20/2025",
    cpu="Intel(R) Xeon(R) 6767P",
    sockets=2,
    cores=64,
    dimms=(32, 64),
    os=NOBLE,
    subsystem=_DELL,
)
GUEST = Machine(
    vendor="QEMU",
    model="Standard PC (Q35 + ICH9, 2009)",
    bios="edk2-20240524-5.el9 05/24/2024",
    cpu="Intel(R) Xeon(R) Platinum 8480+",
    sockets=1,
    cores=13,
    dimms=(15, 16),
    os=JAMMY,
    virtual=True,
)
