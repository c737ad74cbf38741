"""Transfers by perftest's ib_write_bw between two processes of one machine: started, watched, ended, and read."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST, CUDA, DMA_BUF = "host", "cuda", "cuda-dmabuf"
GRACE_SECONDS, TERM_SECONDS, KILL_SECONDS = 2.0, 1.0, 3.0
ENDING_SECONDS = GRACE_SECONDS + TERM_SECONDS + KILL_SECONDS
BYTES = 8 << 20  # large enough that the start of each message does not count
MARGIN = 1  # seconds at either end that do not count
_HERE = "127.0.0.1"
_ASK_SECONDS = 5.0
_LISTENS = "0A"
_MOST = 65536  # characters of a process's output that are looked at
_HEAD = re.compile(r"^\s*#bytes\s+#iterations\s+BW peak\[Gb/sec\]\s+BW average\[Gb/sec\]")
_ROW = re.compile(r"^\s*(\d{1,12})\s+(\d{1,15})\s+(\d{1,9}\.\d+)\s+(\d{1,9}\.\d+)\s+(\d{1,9}\.\d+)\s*$")
_WRONG = re.compile(
    r"n't |\b(not|fail\w*|unable|errors?|problems?|invalid|fault|no such|no available)\b", re.IGNORECASE
)
_NO_MATTER = re.compile(r"^\W*warning|inline", re.IGNORECASE)  # said of transfers that succeed, too
_LISTED = re.compile(r"CUDA device (\d+): PCIe address is ([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})")
_PICKED = re.compile(r"Picking device No\. (\d+)")


class Child:
    """A process in a session of its own, bound to some processors; what it prints goes to a file.

    It dies with this process, so that no server waits for ever for a client that never comes.
    """

    def __init__(self, argv: Sequence[str], cpus: set[int]) -> None:
        self.out = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process, which outlives this call
        libc = ctypes.CDLL(None)

        def prepare() -> None:
            libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            if cpus:
                os.sched_setaffinity(0, cpus)

        # all GPUs are counted where one is named by its place, so none may be hidden
        environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=subprocess.STDOUT,
            env={**environment, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "LC_ALL": "C"},
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509 - this process has a single thread
        )

    @property
    def gone(self) -> bool:
        """Whether it came to its end."""
        return self.process.poll() is not None

    def said(self) -> str:
        """What it printed so far; errors come first where it keeps its standard output back until its end."""
        return os.pread(self.out.fileno(), _MOST, 0).decode("utf-8", "replace")

    def signal(self, number: int) -> None:
        """Tell its whole session, which holds nothing else."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def end(children: Sequence[Child], grace: float = 0.0) -> list[Child]:
    """End the processes: by themselves within `grace` seconds, by TERM, by KILL; those left are abandoned."""
    left = [child for child in children if not child.gone]
    for number, limit in ((None, grace), (signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        until = time.monotonic() + limit
        for child in left:
            if number is not None:
                child.signal(number)
        while (left := [child for child in left if not child.gone]) and time.monotonic() < until:
            time.sleep(0.02)
    return left


@dataclass(frozen=True)
class Tool:
    """ib_write_bw at a path, its version and the options that its help names; `error` says why it cannot be used."""

    path: str
    version: str = ""
    options: frozenset[str] = frozenset()
    error: str = ""

    @classmethod
    def asked(cls, path: str) -> Tool:
        """What it says of itself; how it was built decides what its help names."""
        said = []
        for option in ("--version", "--help"):
            try:
                child = Child([path, option], set())
            except OSError as error:
                return cls(path, error=f"{path} does not run: {error.strerror}")
            if end([child], grace=_ASK_SECONDS):
                return cls(path, error=f"{path} {option} could not be killed and was abandoned")
            said.append(child.said())
        version = re.search(r"Version: *([0-9][0-9.]{0,20})", said[0])
        options = frozenset(re.findall(r"(?<![\w-])--[a-z][\w-]*", said[1]))
        strange = "" if "--report_gbits" in options else f"{path} does not know --report_gbits: {complaint(said[1])}"
        return cls(path, version[1] if version else "", options, strange)

    def offers(self, option: str) -> bool:
        """Whether its help names the option."""
        return option in self.options

    def argv(self, transfer: Transfer, seconds: int) -> list[str]:
        """The command line of the server of a transfer; with an address behind it, that of the client.

        Two queue pairs, since a single one does not fill the port on every adapter. Memory of the GPU comes
        before the way to register it: the other order is refused.
        """
        (device, number), (gpu, index) = transfer.port, transfer.gpu
        argv = [self.path, "-d", device, "-i", str(number), "-p", str(transfer.tcp), "-s", str(BYTES), "-q", "2"]
        argv += ["-D", str(seconds), "-f", str(MARGIN), "-F", "--report_gbits"]
        if transfer.memory != HOST:
            by_id = self.offers("--use_cuda_bus_id")
            argv.append(f"--use_cuda_bus_id={gpu}" if by_id else f"--use_cuda={index}")
        return [*argv, "--use_cuda_dmabuf"] if transfer.memory == DMA_BUF else argv

    @property
    def at_home(self) -> list[str]:
        """The option by which a server listens on this machine's own address alone, where there is one."""
        known = (f"{name}={_HERE}" for name in ("--bind_source_ip", "--source_ip") if self.offers(name))
        return list(known)[:1]


@dataclass
class Transfer:
    """One transfer through a port, (device, number), from one kind of memory to the same.

    `gpu` is a bus id and its place among all GPUs, `at_once` how many run side by side. After `run` either
    `figures` hold the rates, or `error` says why not; `hung` where its processes did not answer.
    """

    port: tuple[str, int]
    memory: str
    gpu: tuple[str | None, int]
    cpus: set[int]
    at_once: int = 1
    tcp: int = 0
    server: Child | None = None
    client: Child | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    hung: bool = False

    @property
    def children(self) -> list[Child]:
        """Its processes."""
        return [child for child in (self.server, self.client) if child is not None]

    @property
    def over(self) -> bool:
        """Whether nothing more will come: the client is gone, or the server before there was one."""
        last = self.client or self.server
        return last is None or last.gone

    def conclude(self, patience: float, *, overran: bool, abandoned: bool) -> None:
        """Read what its processes left behind."""
        said = [child.said() for child in self.children]
        if overran:
            doing = "the transfer" if self.client else "its server, which did not listen"
            how = "could not be killed and were abandoned" if abandoned else "were ended"
            self.error, self.hung = f"no answer within {patience:.0f} s of {doing}: its processes {how}", True
            return
        figures = rates(said[-1]) if self.client else None
        wrong = self._another_gpu(said) if figures else self._complaint(said)
        if wrong:
            self.error = wrong
        else:
            self.figures = figures or {}

    def _complaint(self, said: list[str]) -> str:
        both = zip(("server", "client"), map(complaint, said))  # noqa: B905 - strict came with Python 3.10
        who_of: dict[str, str] = {}
        for who, told in both:
            if told:
                who_of[told] = f"{who_of[told]} and {who}" if told in who_of else who
        status = self.children[-1].process.poll()
        told = "; ".join(f"{who}: {told}" for told, who in who_of.items())
        return told or f"ib_write_bw ended with exit status {status} and said no rate"

    def _another_gpu(self, said: list[str]) -> str:
        """Why the memory was that of another GPU than was meant, by what both processes listed."""
        bus_id = self.gpu[0] or ""
        for text in said if self.memory != HOST else ():
            listed, picked = dict(_LISTED.findall(text)), _PICKED.search(text)
            at = listed.get(picked[1]) if picked else None
            if at and at.lower() != bus_id.partition(":")[2].partition(".")[0].lower():
                return f"ib_write_bw took the memory of the GPU at {at}, not of {bus_id}"
        return ""


def complaint(said: str) -> str:
    r"""The first two lines that tell of a failure, in one; empty where none does.

    >>> complaint("****\nallocated GPU buffer\nCouldn't allocate MR\nfailed to create mr\nFailed to create MR\n")
    "Couldn't allocate MR, failed to create mr"
    """
    told = [line.strip(" *-\t") for line in said.splitlines() if _WRONG.search(line) and not _NO_MATTER.search(line)]
    return ", ".join(dict.fromkeys(told[:2]))[:200]


def rates(said: str) -> dict[str, Any] | None:
    r"""The figures that a client printed below its header, rates in Gb/s; None where there are none.

    A transfer of a given duration has no peak: it is printed as 0.00.

    >>> rates(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    ...       " 8388608    11766            0.00               394.82 \t\t     0.005883\n")
    {'gbits': 394.82, 'peak': None, 'bytes': 8388608, 'iterations': 11766}
    """
    lines = iter(said.splitlines())
    for line in lines:
        if _HEAD.match(line):
            break
    row = next((match for match in map(_ROW.match, lines) if match), None)
    if row is None or float(row[4]) == 0:
        return None
    return {"gbits": float(row[4]), "peak": float(row[3]) or None, "bytes": int(row[1]), "iterations": int(row[2])}


def free_ports(count: int) -> list[int]:
    """Numbers of TCP ports that nobody listens on, each another."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((_HERE, 0))
        return [one.getsockname()[1] for one in sockets]


def listening() -> set[int]:
    """The TCP ports on which somebody listens: a try to connect would be taken for the client."""
    found = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            rows = [line.split() for line in Path(name).read_text(encoding="ascii").splitlines()[1:]]
            found |= {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENS}
    return found


def run(transfers: Sequence[Transfer], tool: Tool, seconds: int, patience: float) -> None:
    """Run transfers side by side, for at most `patience` seconds and what ending takes."""
    until = time.monotonic() + patience
    for transfer, number in zip(transfers, free_ports(len(transfers))):  # noqa: B905 - as many as were asked for
        transfer.tcp = number
    overran: list[Transfer] = []
    try:
        for transfer in transfers:
            transfer.server = Child([*tool.argv(transfer, seconds), *tool.at_home], transfer.cpus)
        while waiting := [transfer for transfer in transfers if not transfer.over]:
            if time.monotonic() > until:
                overran = waiting
                break
            ready = listening()
            for transfer in waiting:
                if transfer.client is None and transfer.tcp in ready:
                    transfer.client = Child([*tool.argv(transfer, seconds), _HERE], transfer.cpus)
            time.sleep(0.05)
        # a server says what went wrong with it a moment after its client
        end([child for t in transfers if t not in overran for child in t.children], grace=GRACE_SECONDS)
    finally:
        abandoned = end([child for transfer in transfers for child in transfer.children])
    for transfer in transfers:
        lost = any(child in abandoned for child in transfer.children)
        transfer.conclude(patience, overran=transfer in overran, abandoned=lost)
        for child in transfer.children:
            child.out.close()
