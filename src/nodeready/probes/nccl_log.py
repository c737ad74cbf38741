"""NCCL's own log: what it was told, how it reduced a message and what it complained of."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_READ = 16 << 20  # bytes
# loopback and sockets: a network, its plugins and its adapters have no part in a measurement inside the node
OURS = {
    "NCCL_SOCKET_IFNAME": "lo",
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_IB_DISABLE": "1",
    "NCCL_NET": "Socket",
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV,TUNING,NVLS",
}
NOT_HERE = ("NCCL_COMM_ID", "NCCL_NET_PLUGIN", "NCCL_DEBUG_FILE")
ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
PROTOCOLS = ("LL", "LL128", "SIMPLE")


class NcclLog:
    """NCCL's own log, kept in memory; `set_environment` has to come before NCCL is used first."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("nccl") if hasattr(os, "memfd_create") else -1

    def set_environment(self) -> None:
        """Let NCCL write here and keep to this node; all else that it is told stays as jobs get it."""
        for name in NOT_HERE:
            os.environ.pop(name, None)
        os.environ.update(OURS)
        if self.descriptor >= 0:
            os.environ["NCCL_DEBUG_FILE"] = f"/proc/self/fd/{self.descriptor}"

    def text(self) -> str:
        """All that was written."""
        if self.descriptor < 0:
            return ""
        return os.pread(self.descriptor, MOST_READ, 0).decode("utf-8", "replace")


def told_by_nccl(log: str, size: int) -> dict[str, Any]:
    """How a message of that many bytes was reduced, and what NCCL said of NVLS; null where it did not say.

    Rank 0 alone names the algorithm: by number from NCCL 2.20, by name from 2.24, before that not at all.
    `nvls_available` is the driver's word on multicast, which is not asked where NCCL_NVLS_ENABLE is 0: then there are
    0 channels.

    >>> told = told_by_nccl('''
    ... h:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring
    ... h:1:2 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)
    ... h:1:2 [0] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels
    ... h:1:2 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}''', 1024)
    >>> told["algorithm"], told["protocol"], told["nvls_channels"], told["nvls_available"], told["settings"]
    ('NVLS', 'SIMPLE', 16, True, {'NCCL_ALGO': 'Ring'})
    >>> told_by_nccl("[0] NCCL INFO 8589934592 Bytes -> Algo 1 proto 2 time 36547.1", 8589934592)["algorithm"]
    'RING'
    """
    chosen = re.findall(rf"(?:AllReduce: |INFO ){size} Bytes -> Algo (\w+) proto (\w+)", log)
    channels = re.findall(r"(\d+) nvls channels", log)
    support = re.findall(r"NVLS multicast support is (not )?available", log)
    settings = dict(re.findall(r"\b(NCCL_\w+) set by environment to (.*?)\.?$", log, re.MULTILINE))
    return {
        "algorithm": _words([algorithm for algorithm, _ in chosen], ALGORITHMS),
        "protocol": _words([protocol for _, protocol in chosen], PROTOCOLS),
        "nvls_channels": int(channels[-1]) if channels else None,
        "nvls_available": "not " not in support if support else None,
        "settings": {name: value for name, value in settings.items() if name not in OURS},
    }


def _words(found: Sequence[str], names: Sequence[str]) -> str | None:
    """Each word once; a number is the place of its name."""
    words = [names[int(word)] if word.isdigit() and int(word) < len(names) else word for word in found]
    return " and ".join(dict.fromkeys(words)) or None


def complaint_of_nccl(log: str) -> str:
    """The last warning in the log; empty where there is none."""
    warnings = re.findall(r"NCCL WARN (.+)", log)
    return warnings[-1].strip()[:200] if warnings else ""
