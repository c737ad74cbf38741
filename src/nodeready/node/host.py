"""The host under the GPUs: processors, how its kernel is set, its clock, limits and processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeready.facts import host_files, limits, lscpu, meminfo, processes, timedatectl
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, cite, first_of

if TYPE_CHECKING:
    from nodeready.facts.host_files import HostFiles
    from nodeready.facts.processes import Process
    from nodeready.node.sources import Sources

ZOMBIE_AGE = 300  # seconds: a parent buries its children sooner
_NAMED = 4


class Host:
    """Settings and state of the host's own system."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def files(self) -> HostFiles | Unknown:
        """The small files that tell how the kernel is set."""
        return self._sources.documents.read(host_files.HOST_FILES, host_files.parse)

    def setting(self, field: str) -> Reading[Any]:
        """One of those settings."""
        files = self.files
        return files if isinstance(files, Unknown) else cite(getattr(files, field), host_files.HOST_FILES.name)

    def _cpu(self, field: str) -> Reading[Any]:
        """A field of lscpu, by either form."""
        forms: list[Reading[Any]] = []
        for probe in (lscpu.LSCPU, lscpu.LSCPU_TEXT):
            found = self._sources.documents.read(probe, lscpu.parse)
            forms.append(found if isinstance(found, Unknown) else cite(getattr(found, field), probe.name))
        return first_of(*forms)

    @property
    def sockets(self) -> Reading[int]:
        """Processors, by their sockets; the model is the note."""
        return self._with_model(self._cpu("sockets"))

    @property
    def cores(self) -> Reading[int]:
        """Cores of all sockets; the model is the note."""
        sockets, each = self._cpu("sockets"), self._cpu("cores_per_socket")
        if isinstance(sockets, Unknown):
            return sockets
        return self._with_model(each.map(lambda cores: cores * sockets.value))

    def _with_model(self, reading: Reading[int]) -> Reading[int]:
        model = self._cpu("model")
        if isinstance(reading, Unknown) or isinstance(model, Unknown):
            return reading
        return Known(reading.value, note=model.value, recordings=reading.recordings)

    @property
    def hypervisor(self) -> Reading[str]:
        """Who runs this machine as a guest, `none` on bare metal."""
        return self._cpu("hypervisor")

    @property
    def swap(self) -> Reading[Quantity]:
        """Swap space in use by the kernel, whether anything lies in it or not."""
        info = self._sources.documents.read(meminfo.MEMINFO, meminfo.parse)
        if isinstance(info, Unknown):
            return info
        return cite(info.swap, meminfo.MEMINFO.name).map(lambda size: size.to("GiB"))

    @property
    def clock_synchronised(self) -> Reading[bool]:
        """Whether the clock follows a time server."""
        found = self._sources.documents.read(timedatectl.TIMEDATECTL, timedatectl.parse)
        return cite(found, timedatectl.TIMEDATECTL.name)

    @property
    def locked_memory(self) -> Reading[Quantity]:
        """How much memory a process of the suite's user may lock; a job has what its own service gives."""
        return self._limit("locked_bytes").map(lambda size: Quantity(size / 2**30, "GiB"))

    @property
    def open_files(self) -> Reading[int]:
        """How many files a process of the suite's user may open."""
        return self._limit("open_files")

    def _limit(self, field: str) -> Reading[int]:
        found = self._sources.documents.read(limits.LIMITS, limits.parse)
        if isinstance(found, Unknown):
            return found
        reading: Reading[int] = cite(getattr(found, field), limits.LIMITS.name)
        if isinstance(reading, Unknown):
            return reading
        unlimited = reading.value == limits.UNLIMITED
        note = f"{'unlimited, ' if unlimited else ''}the suite's own limit; a job has that of its service"
        return Known(reading.value, note=note, recordings=reading.recordings)

    @property
    def stuck_processes(self) -> Reading[int]:
        """Processes that could not be interrupted at either of two looks, some seconds apart."""
        names = (processes.PROCESSES.name, processes.PROCESSES_LATER.name)
        first, second = (
            self._sources.documents.read(probe, processes.parse)
            for probe in (processes.PROCESSES, processes.PROCESSES_LATER)
        )
        if isinstance(first, Unknown):
            return first
        if isinstance(second, Unknown):
            return second
        before = {process.pid for process in first if process.state == "D"}
        stuck = [p for p in second if p.state == "D" and p.pid in before and not p.is_kernel_thread]
        return Known(len(stuck), note=_named(stuck), recordings=names)

    @property
    def zombies(self) -> Reading[int]:
        """Processes that are dead for minutes and that no parent has buried."""
        found = self._sources.documents.read(processes.PROCESSES, processes.parse)
        if isinstance(found, Unknown):
            return found
        dead = [process for process in found if process.state == "Z" and process.age >= ZOMBIE_AGE]
        return Known(len(dead), note=_named(dead), recordings=(processes.PROCESSES.name,))


def _named(found: list[Process]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(f"{process.name} ({process.pid})" for process in found[:_NAMED]) + more
