"""Drives and file systems that a node lives on."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nodeready.facts import df, host_files, mounts, nvme_health, nvme_sysfs
from nodeready.quantity import Quantity
from nodeready.reading import Known, Reading, Unknown, cite

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.facts.df import Space
    from nodeready.facts.mounts import Mount
    from nodeready.facts.nvme_health import Health
    from nodeready.facts.nvme_sysfs import Drive
    from nodeready.node.host import Host
    from nodeready.node.sources import Sources

NVME_CLASS = "0108"
# file systems that are written to by trade; what an image brings read-only is of another kind, or stands elsewhere
WRITTEN = ("ext3", "ext4", "xfs", "btrfs", "f2fs")
READ_ONLY_BY_DESIGN = ("/boot", "/usr", "/sysroot", "/snap", "/media", "/mnt", "/run/media", "/nix/store")
_NAMED = 4


class Storage:
    """Space, writability, and the drives' own health."""

    def __init__(self, sources: Sources, host: Host) -> None:
        self._sources, self._host = sources, host

    @property
    def free_space(self) -> Reading[Quantity]:
        """The share that is free on the fullest file system."""
        return self._least(lambda space: space.free)

    @property
    def free_inodes(self) -> Reading[Quantity]:
        """The share of inodes that is free where fewest are; a file system without a fixed number has enough."""
        return self._least(lambda space: Known(100.0) if space.unlimited else space.inodes_free)

    def _least(self, share: Callable[[Space], Reading[float]]) -> Reading[Quantity]:
        spaces = self._sources.documents.read(df.DF, df.parse)
        if isinstance(spaces, Unknown):
            return spaces
        found = []
        for space in spaces:
            reading = share(space)
            if isinstance(reading, Unknown):
                return cite(reading, df.DF.name)
            found.append((reading.value, space.mount))
        least, place = min(found)
        return Known(Quantity(least, "%"), note=place, recordings=(df.DF.name,))

    @property
    def read_only(self) -> Reading[int]:
        """Local file systems that can no longer be written to, wherever they are mounted."""
        found = self._sources.documents.read(mounts.MOUNTS, mounts.parse)
        if isinstance(found, Unknown):
            return found
        written = [m for m in found if m.kind in WRITTEN and (m.device.startswith("/dev/") or m.place == "/")]
        alive = {mount.device for mount in written if not mount.read_only}
        stuck: dict[str, Mount] = {}
        for mount in written:
            if mount.device not in alive and not _by_design(mount.place):
                stuck.setdefault(mount.device, mount)
        note = ", ".join(f"{mount.place} ({mount.device}, {mount.kind})" for mount in stuck.values())
        return Known(len(stuck), note=note, recordings=(mounts.MOUNTS.name,))

    @property
    def bad_arrays(self) -> Reading[int]:
        """Software arrays that run short of a member."""
        reading = self._host.setting("bad_arrays")
        if isinstance(reading, Unknown):
            return reading
        return Known(len(reading.value), note=", ".join(reading.value), recordings=(host_files.HOST_FILES.name,))

    @cached_property
    def _drives(self) -> tuple[Drive, ...] | Unknown:
        """The drives in this machine; one over a network is another's."""
        found = self._sources.documents.read(nvme_sysfs.NVME_SYSFS, nvme_sysfs.parse)
        if isinstance(found, Unknown):
            return found
        return tuple(d for d in found if isinstance(d.transport, Unknown) or d.transport.value == "pcie")

    @property
    def drives(self) -> Reading[int]:
        """NVMe drives that the kernel has and that work."""
        drives = self._drives
        if isinstance(drives, Unknown):
            return drives
        live = [drive for drive in drives if isinstance(drive.state, Known) and drive.state.value == "live"]
        models = sorted({drive.model.value.strip() for drive in live if isinstance(drive.model, Known)})
        return Known(len(live), note=", ".join(models), recordings=(nvme_sysfs.NVME_SYSFS.name,))

    @property
    def dead_drives(self) -> Reading[int]:
        """NVMe drives that stand on the PCI bus, or in the kernel's list, and do not work."""
        drives = self._drives
        if isinstance(drives, Unknown):
            return drives
        live = {d.bus_id for d in drives if isinstance(d.state, Known) and d.state.value == "live"}
        dead = [
            f"{drive.name} ({drive.bus_id}) is {drive.state.value if isinstance(drive.state, Known) else 'silent'}"
            for drive in drives
            if drive.bus_id not in live
        ]
        listed = next(((name, found) for name, found in self._sources.pci if not isinstance(found, Unknown)), None)
        recordings: tuple[str, ...] = (nvme_sysfs.NVME_SYSFS.name,)
        if listed is not None:
            name, listing = listed
            known = {drive.bus_id for drive in drives}
            on_bus = [device for device in listing.devices.values() if device.class_code == NVME_CLASS]
            dead += [f"the drive at {d.bus_id} has no driver" for d in on_bus if d.bus_id not in known]
            recordings = (*recordings, name)
        return Known(len(dead), note=_some(dead), recordings=recordings)

    @property
    def warning_drives(self) -> Reading[int]:
        """Drives that raise a warning of their own, or whose spare is at its threshold."""
        healths = self._healths("warning", "spare", "spare_threshold")
        if isinstance(healths, Unknown):
            return healths
        bad = []
        for name, health in healths.value.items():
            warning, spare, least = (_number(health, field) for field in ("warning", "spare", "spare_threshold"))
            if warning:
                bad.append(f"{name} raises critical warning 0x{warning:02x}")
            if spare <= least:
                bad.append(f"{name} has {spare} % spare, its threshold is {least} %")
        return Known(len(bad), note=_some(bad), recordings=healths.recordings)

    @property
    def wear(self) -> Reading[Quantity]:
        """How much of its life the most worn drive has used."""
        worst = self._worst("used")
        return worst.map(lambda used: Quantity(used, "%"))

    @property
    def media_errors(self) -> Reading[int]:
        """Media errors of the drive that has most."""
        return self._worst("media_errors")

    def _worst(self, field: str) -> Reading[int]:
        healths = self._healths(field)
        if isinstance(healths, Unknown):
            return healths
        if not healths.value:
            return Known(0, note="no NVMe drive", recordings=healths.recordings)
        name = max(healths.value, key=lambda drive: _number(healths.value[drive], field))
        return Known(_number(healths.value[name], field), note=name, recordings=healths.recordings)

    def _healths(self, *fields: str) -> Reading[dict[str, Health]]:
        """The health of every drive that the kernel has; unknown where one is missing or lacks a field."""
        probe = nvme_health.NVME_HEALTH
        found = self._sources.documents.read(probe, nvme_health.parse)
        if isinstance(found, Unknown):
            return found
        drives = self._drives
        names = set(found) | (set() if isinstance(drives, Unknown) else {drive.name for drive in drives})
        whole: dict[str, Health] = {}
        for name in sorted(names):
            health = found.get(name, Unknown("it is not in the list"))
            unknown = (
                health
                if isinstance(health, Unknown)
                else next((r for field in fields if isinstance(r := getattr(health, field), Unknown)), None)
            )
            if unknown is not None:
                return Unknown(f"{probe.name} on {name}: {unknown.reason}", recordings=(probe.name,))
            if not isinstance(health, Unknown):
                whole[name] = health
        return Known(whole, recordings=(probe.name,))


def _number(health: Health, field: str) -> int:
    value: int = getattr(health, field).value
    return value


def _by_design(place: str) -> bool:
    return any(place == known or place.startswith(f"{known}/") for known in READ_ONLY_BY_DESIGN)


def _some(words: list[str]) -> str:
    return ", ".join(words[:_NAMED]) + (f" and {len(words) - _NAMED} more" if len(words) > _NAMED else "")
