"""What the kernel log says of the GPUs since boot."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from nodeready.facts import kernel_log, pci_files
from nodeready.facts import xid as catalogue
from nodeready.facts.kernel_time import BOOT, Moment, moment
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from nodeready.facts.kernel_log import KernelLog, Xid
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

NAMED = 6
HOUR = 3600.0
# where the state behind an Xid is read from the GPU itself
_ALSO_SAID = {
    48: "health.ecc-uncorrected",
    63: "health.row-remap-pending",
    64: "health.row-remap-failure",
    154: "health.recovery-action",
}
READ_OF_REMAINS = 2**20  # bytes: a command that floods is not read to its end


class Kernel:
    """Xid errors, classed, and how far back the log reaches."""

    def __init__(self, sources: Sources, gpus: tuple[Gpu, ...]) -> None:
        self._sources = sources
        self._gpus = {gpu.bus_id: gpu for gpu in gpus if gpu.bus_id}

    @cached_property
    def _logs(self) -> list[tuple[str, KernelLog]]:
        """Every log that can be read, the one that reaches back to boot first."""
        found = [(name, log) for name, log in self._sources.kernel_logs if not isinstance(log, Unknown)]
        return sorted(found, key=lambda pair: pair[1].cut or not pair[1].starts_at_boot)

    @cached_property
    def _remains(self) -> list[tuple[str, KernelLog]]:
        """What a log command printed before it failed: its errors count, its silence proves nothing."""
        evidence, found = self._sources.documents.evidence, []
        for name, log in self._sources.kernel_logs:
            recording = evidence.get(name)
            if isinstance(log, Unknown) and recording is not None and recording.stdout:
                text = kernel_log.parse(recording.stdout[:READ_OF_REMAINS])
                if not isinstance(text, Unknown):
                    found.append((name, text))
        return found

    @property
    def hardware_xids(self) -> Reading[int]:
        """How many Xid errors of the hardware; 63 counts while its remap is pending or unknown."""
        return self._count("fatal")

    @property
    def warning_xids(self) -> Reading[int]:
        """How many Xid errors that are no fault by themselves."""
        return self._count("warning")

    def _count(self, wanted: str) -> Reading[int]:
        """The Xid errors of one weight over all logs; a log that cannot be read whole rules nothing out."""
        logs = [*self._logs, *self._remains]
        recent = [[xid for xid in log.xids if self._counts(xid.line, log)] for _, log in logs]
        xids = list({(xid.code, xid.bus_id, xid.text): xid for found in recent for xid in found}.values())
        if len(logs) == 1:
            xids = recent[0]
        kinds = catalogue.classify_all(xids)
        counted = [xid for xid, kind in zip(xids, kinds, strict=True) if self._weight(xid, kind) == wanted]
        parts = [self._words(xid, wanted) for xid in counted]
        if wanted == "fatal":
            parts += self._without_xid(logs, counted)
        return self._found(parts, "unreadable" in kinds)

    def _found(self, parts: list[str], unreadable: bool) -> Reading[int]:
        """How many were found; none only where the logs prove it."""
        names = tuple(name for name, _ in [*self._logs, *self._remains])
        if parts:
            return Known(len(parts), note=_listed(parts) + self._window_words("; "), recordings=names)
        doubt = self._doubt(unreadable)
        return Known(0, note=self._window_words(), recordings=names) if doubt is None else doubt

    def _counts(self, line: str, log: KernelLog) -> bool:
        """Whether a line is recent enough; one that tells no time always is, and so is all since boot by default."""
        hours = self._sources.terms.xid_window
        written, now = (moment(line), self._read_at(log)) if hours is not None else (None, None)
        if hours is None or written is None or now is None:
            return True
        age = written.before(now)
        return age is None or age <= hours * HOUR

    def _read_at(self, log: KernelLog) -> Moment | None:
        """When the log was read: at the earliest with its last line, by the uptime where that is known."""
        files = self._sources.documents.read(pci_files.PCI_FILES, pci_files.parse)
        if (
            log.ends is None
            or log.ends.clock != BOOT
            or isinstance(files, Unknown)
            or isinstance(files.uptime, Unknown)
        ):
            return log.ends
        return Moment(BOOT, max(log.ends.seconds, files.uptime.value))

    def _window_words(self, before: str = "") -> str:
        hours = self._sources.terms.xid_window
        return "" if hours is None else f"{before}counted: the last {hours:g} h"

    def _without_xid(self, logs: list[tuple[str, KernelLog]], counted: list[Xid]) -> list[str]:
        """Losses that left no Xid behind."""
        lost = dict.fromkeys(b for _, log in logs for b in log.fallen_off if not any(x.bus_id == b for x in counted))
        gone = [f"{self._place(bus_id)} fell off the bus, with no Xid" for bus_id in lost]
        if not counted and not gone and any(log.reset_required for _, log in logs):
            return ["a GPU waits for a reset (NV_ERR_RESET_REQUIRED), with no Xid"]
        return gone

    def _doubt(self, unreadable: bool) -> Unknown | None:
        """Why logs without errors do not prove that there were none."""
        refused = [log for _, log in self._sources.kernel_logs if isinstance(log, Unknown)]
        spoilt = [log for log in refused if not log.missing]
        logs = self._logs
        if spoilt or not logs:
            several = spoilt or refused
            return Unknown(
                "; ".join(log.reason for log in several),
                missing=not spoilt,
                recordings=tuple(name for log in several for name in log.recordings),
            )
        name, log = logs[0]
        cited = (name,)
        if unreadable:
            return Unknown("the kernel log holds an Xid line that cannot be read", recordings=cited)
        if log.cut:
            return Unknown(f"{name} stops in the middle of a line, what came after is unknown", recordings=cited)
        if log.starts_at_boot and not log.driver_seen:
            reason = f"{name} shows no NVIDIA driver since boot: it ends before, or is not this node's"
            return Unknown(reason, recordings=cited, causes=("driver.responds",))
        return None

    def _weight(self, xid: Xid, kind: str) -> str:
        if kind != "remap":
            return kind
        gpu = self._gpus.get(xid.bus_id or "")
        pending = gpu.health.row_remap_pending if gpu else None
        return "info" if isinstance(pending, Known) and pending.value == "No" else "fatal"

    def _words(self, xid: Xid, weight: str) -> str:
        kind = catalogue.kind_of(xid.code)
        said = catalogue.told(xid)
        parts = [f"Xid {xid.code} on {self._place(xid.bus_id)}: {kind.meaning}" + (f" ({said})" if said else "")]
        if kind.severity == "application" and weight == "warning":
            parts.append("an application's error, so often on one GPU maybe the hardware's")
        elsewhere = _ALSO_SAID.get(xid.code)
        if elsewhere and xid.bus_id in self._gpus:
            parts.append(f"see {elsewhere} of the same GPU")
        vendor = f" (NVIDIA: {kind.nvidia})" if kind.nvidia else ""
        return "; ".join([*parts, f"{catalogue.remedy(xid)}{vendor}"])

    @property
    def fatal_sxids(self) -> Reading[int]:
        """How many fatal errors of the NVSwitches."""
        return self._count_sxids("fatal")

    @property
    def warning_sxids(self) -> Reading[int]:
        """How many errors of the NVSwitches that are not fatal."""
        return self._count_sxids("warning")

    def _count_sxids(self, wanted: str) -> Reading[int]:
        logs = [*self._logs, *self._remains]
        classed = [
            pair
            for _, log in logs
            for pair in zip(log.sxids, catalogue.sxid_classes(log.sxids), strict=True)
            if self._counts(pair[0].line, log)
        ]
        kinds = list({(sxid.code, sxid.bus_id, sxid.text): (sxid, kind) for sxid, kind in classed}.values())
        counted = [sxid for sxid, kind in kinds if kind == wanted]
        parts = [f"SXid {s.code} on NVSwitch {s.bus_id or 'unnamed'}: {s.text}" for s in counted]
        return self._found(parts, any(kind == "unreadable" for _, kind in kinds))

    def _place(self, bus_id: str | None) -> str:
        gpu = self._gpus.get(bus_id or "")
        return f"{gpu.subject} ({bus_id})" if gpu else bus_id or "an unnamed GPU"

    @property
    def log_reaches_boot(self) -> Reading[bool]:
        """Whether the log's beginning is still there, or as much of it as counts."""
        logs = self._logs
        if not logs:
            doubt = self._doubt(unreadable=False)
            return Unknown("there is no kernel log") if doubt is None else doubt
        name, text = logs[0]
        hours = self._sources.terms.xid_window
        span = text.begins.before(text.ends) if text.begins and text.ends else None
        covered = "" if span is None else f"it covers {span / HOUR:.1f} h"
        if text.starts_at_boot or (hours is not None and span is not None and span >= hours * HOUR):
            return Known(True, note=covered, recordings=(name,))
        lost = "its first lines are from later than boot: older ones are lost"
        return Known(False, note="; ".join(filter(None, (lost, covered))), recordings=(name,))


def _listed(parts: list[str]) -> str:
    """What was found, each kind once with its number."""
    times = Counter(parts)
    unique = [part if number == 1 else f"{number} times {part}" for part, number in times.items()]
    return "; ".join(unique[:NAMED]) + (f"; and {len(unique) - NAMED} more" if len(unique) > NAMED else "")
