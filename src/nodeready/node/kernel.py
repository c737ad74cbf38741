"""What the kernel log says of the GPUs since boot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.facts import xid as catalogue
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from nodeready.facts.kernel_log import KernelLog, Xid
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

NAMED = 6
# SXid codes that are fatal whatever the line says (Fabric Manager user guide)
ALWAYS_FATAL = frozenset({12020, 22003, 22011, *range(23001, 23018)})


class Kernel:
    """Xid errors, classed, and how far back the log reaches."""

    def __init__(self, sources: Sources, gpus: tuple[Gpu, ...]) -> None:
        self._sources = sources
        self._gpus = {gpu.bus_id: gpu for gpu in gpus if gpu.bus_id}

    @property
    def _log(self) -> tuple[str, KernelLog] | Unknown:
        """The log that reaches back to boot, else the first that is there."""
        found: list[tuple[str, KernelLog]] = []
        absent: list[Unknown] = []
        for name, log in self._sources.kernel_logs:
            if isinstance(log, Unknown):
                if not log.missing and not found:
                    return log
                absent.append(log)
            else:
                found.append((name, log))
        if not found:
            reasons = "; ".join(log.reason for log in absent)
            return Unknown(reasons, missing=True, recordings=tuple(r for log in absent for r in log.recordings))
        return next((pair for pair in found if pair[1].starts_at_boot and not pair[1].cut), found[0])

    @property
    def hardware_xids(self) -> Reading[int]:
        """How many Xid errors of the hardware; 63 counts while its remap is pending or unknown."""
        return self._count("fatal")

    @property
    def warning_xids(self) -> Reading[int]:
        """How many Xid errors that are no fault by themselves."""
        return self._count("warning")

    def _count(self, wanted: str) -> Reading[int]:
        log = self._log
        if isinstance(log, Unknown):
            return log
        name, text = log
        kinds = catalogue.classify_all(text.xids)
        counted = [xid for xid, kind in zip(text.xids, kinds, strict=True) if self._weight(xid, kind) == wanted]
        lost = [] if wanted != "fatal" else [b for b in text.fallen_off if not any(x.bus_id == b for x in counted)]
        reset = ["a GPU waits for a reset (NV_ERR_RESET_REQUIRED), with no Xid"]
        silent = reset if wanted == "fatal" and text.reset_required and not counted else []
        count = len(counted) + len(lost) + len(silent)
        if text.cut and not count:
            return Unknown(f"{name} stops in the middle of a line, what came after is unknown", recordings=(name,))
        gone = [f"{self._place(bus_id)} fell off the bus, with no Xid" for bus_id in lost]
        parts = [*(self._words(xid) for xid in counted), *gone, *silent]
        unique = list(dict.fromkeys(parts))
        note = "; ".join(unique[:NAMED]) + (f"; and {len(unique) - NAMED} more" if len(unique) > NAMED else "")
        return Known(count, note=note, recordings=(name,))

    def _weight(self, xid: Xid, kind: str) -> str:
        if kind != "remap":
            return kind
        gpu = self._gpus.get(xid.bus_id or "")
        pending = gpu.health.row_remap_pending if gpu else None
        return "info" if isinstance(pending, Known) and pending.value == "No" else "fatal"

    def _words(self, xid: Xid) -> str:
        kind = catalogue.CATALOGUE.get(xid.code)
        meaning = kind.meaning if kind else "not in the catalogue"
        return f"Xid {xid.code} on {self._place(xid.bus_id)}: {meaning}; {catalogue.remedy(xid)}"

    @property
    def fatal_sxids(self) -> Reading[int]:
        """How many fatal errors of the NVSwitches."""
        return self._count_sxids(fatal=True)

    @property
    def warning_sxids(self) -> Reading[int]:
        """How many errors of the NVSwitches that are not fatal."""
        return self._count_sxids(fatal=False)

    def _count_sxids(self, *, fatal: bool) -> Reading[int]:
        log = self._log
        if isinstance(log, Unknown):
            return log
        name, text = log
        counted = [s for s in text.sxids if (s.code in ALWAYS_FATAL or s.fatal is True) == fatal]
        if text.cut and not counted:
            return Unknown(f"{name} stops in the middle of a line, what came after is unknown", recordings=(name,))
        unique = list(dict.fromkeys(f"SXid {s.code} on NVSwitch {s.bus_id or 'unnamed'}: {s.text}" for s in counted))
        note = "; ".join(unique[:NAMED]) + (f"; and {len(unique) - NAMED} more" if len(unique) > NAMED else "")
        return Known(len(counted), note=note, recordings=(name,))

    def _place(self, bus_id: str | None) -> str:
        gpu = self._gpus.get(bus_id or "")
        return f"{gpu.subject} ({bus_id})" if gpu else bus_id or "an unnamed GPU"

    @property
    def log_reaches_boot(self) -> Reading[bool]:
        """Whether the log's beginning is still there."""
        log = self._log
        if isinstance(log, Unknown):
            return log
        name, text = log
        note = "" if text.starts_at_boot else "its first lines are from later than boot: older ones are lost"
        return Known(text.starts_at_boot, note=note, recordings=(name,))
