"""What the NVMe drives read under load: the slowest by its share of what its link carries, and those that failed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.facts import drive_read, nvme_sysfs
from nodeready.node.catalogue import DRIVE_READ
from nodeready.reading import Known, Reading, Unknown, explained_by

if TYPE_CHECKING:
    from nodeready.facts.drive_read import DriveRead, ReadDrive
    from nodeready.node.sources import Sources

_NAMED = 4
_NAME = DRIVE_READ.name


class DriveRates:
    """The drive-read probe's word on the drives in this machine."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def share(self) -> Reading[float]:
        """What the slowest drive read, as a part of what its link carries at most.

        Drives that gave no figure are the other reading's matter; of one that did the link must be known. In doubt
        where others used the drive; where others were slow beyond doubt, the slowest of them is the ceiling.
        """
        drives = self._drives()
        if isinstance(drives, Unknown):
            return drives
        shares = {
            drive.name: round(drive.rate.value / drive.link.value, 3)
            for drive in drives.value
            if isinstance(drive.rate, Known) and isinstance(drive.link, Known)
        }
        if not shares:
            return _silent(drives.value, "rate", "link")
        measured = {drive.name: drive for drive in drives.value if drive.name in shares}
        unjudged = [
            drive for drive in drives.value if isinstance(drive.rate, Known) and isinstance(drive.link, Unknown)
        ]
        if unjudged:
            slowest = measured[min(shares, key=lambda name: shares[name])]
            gap = _silent(unjudged, "link")
            return replace(gap, reason=f"{gap.reason}; of the others the slowest: {_told(slowest)}")
        beyond = [measured[name] for name, share in shares.items() if share > 1]
        if beyond:
            return Unknown(f"{_told(beyond[0])}: the measurement is at fault", recordings=(_NAME,))
        worst = min(shares, key=lambda name: shares[name])
        sure = [shares[name] for name, drive in measured.items() if not _doubt(drive)]
        doubt = _doubt(measured[worst])
        others = f", the slowest of {len(shares)}" if len(shares) > 1 else ""
        return Known(
            shares[worst],
            note=f"{_told(measured[worst])}{others}",
            recordings=(_NAME,),
            doubt=doubt,
            ceiling=min(sure) if doubt and sure else None,
        )

    @property
    def failed(self) -> Reading[int]:
        """Drives that gave an error instead of data; unknown where none did, and one was not read."""
        drives = self._drives()
        if isinstance(drives, Unknown):
            return drives
        bad = [f"{_called(drive)}: {drive.failed}" for drive in drives.value if drive.failed]
        if bad:
            return Known(len(bad), note=_some(bad), recordings=(_NAME,))
        if any(isinstance(drive.rate, Unknown) for drive in drives.value):
            return _silent(drives.value, "rate")
        found = self._sources.documents.read(nvme_sysfs.NVME_SYSFS, nvme_sysfs.parse)
        listed = () if isinstance(found, Unknown) else found
        # by its place: with several ways to a drive, namespaces are numbered otherwise than drives
        read = {drive.bus_id for drive in drives.value}
        local = [d for d in listed if isinstance(d.transport, Known) and d.transport.value == "pcie"]
        left_out = [drive.name for drive in local if drive.bus_id not in read]
        if left_out:
            reason = f"{_some(left_out)} {'were' if len(left_out) > 1 else 'was'} not read"
            return Unknown(reason, recordings=(_NAME, nvme_sysfs.NVME_SYSFS.name))
        return Known(0, note=f"{len(drives.value)} read", recordings=(_NAME,))

    def _drives(self) -> Reading[list[ReadDrive]]:
        found: DriveRead | Unknown = self._sources.documents.read(DRIVE_READ, drive_read.parse)
        if isinstance(found, Unknown):
            return explained_by(found, "driver.responds")  # no load is run where the driver does not answer
        if found.unplaced:
            reason = f"{found.unplaced} entries of {_NAME} do not say of which drive"
            return Unknown(reason, recordings=(_NAME,))
        if not found.drives:
            return Unknown("there was no NVMe drive to read", recordings=(_NAME,), causes=("storage.drives",))
        return Known(list(found.drives.values()), recordings=(_NAME,))


def _silent(drives: list[ReadDrive], *fields: str) -> Unknown:
    """Why there are no figures, drive by drive; one that is not there to be read explains itself elsewhere."""
    reasons = [
        f"{_called(drive)}: {gap.reason}"
        for drive in drives
        if (gap := next((r for f in fields if isinstance(r := getattr(drive, f), Unknown)), None)) is not None
    ]
    return Unknown(_some(reasons, 2, "; "), recordings=(_NAME,), causes=("storage.drives",))


def _doubt(drive: ReadDrive) -> str:
    if isinstance(drive.busy, Unknown):
        return f"whether others used it is not known: {drive.busy.reason}"
    return drive.busy.value


def _called(drive: ReadDrive) -> str:
    about = ", ".join(part for part in (drive.model, f"at {drive.bus_id}" if drive.bus_id else "") if part)
    return f"{drive.name} ({about})" if about else drive.name


def _told(drive: ReadDrive) -> str:
    rate, link = (f"{r.value:.3g}" if isinstance(r, Known) else "?" for r in (drive.rate, drive.link))
    blank = f", {drive.blank:.0%} of it blank" if drive.blank >= 0.01 else ""
    return f"{_called(drive)} read {rate} of {link} GB/s that its link carries{blank}"


def _some(words: list[str], named: int = _NAMED, between: str = ", ") -> str:
    more = f"{between}and {len(words) - named} more" if len(words) > named else ""
    return between.join(words[:named]) + more
