"""Memory errors that the host's controllers counted since boot, from EDAC's files; no root needed."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts import small_files
from nodeready.reading import Known, Reading, Unknown

_MC = "/sys/devices/system/edac/mc/mc*"

EDAC = command(
    "sh",
    "-c",
    small_files.script(
        f"{_MC}/mc_name",
        f"{_MC}/ue_count",
        f"{_MC}/ce_count",
        f"{_MC}/dimm*/dimm_label",
        f"{_MC}/dimm*/dimm_ue_count",
        f"{_MC}/dimm*/dimm_ce_count",
    ),
    name="edac",
    serves=("memory.errors",),
)

_COUNT = re.compile("[0-9]{1,12}")
_CONTROLLER = re.compile(r".*/mc/(mc[0-9]{1,4})/(ue_count|ce_count)")
_DIMM = re.compile(r"(.*/mc/mc[0-9]{1,4}/dimm[0-9]{1,4})/dimm_(ue|ce)_count")


class Errors(NamedTuple):
    """Uncorrected and corrected errors of all controllers; the note names the DIMMs that had some."""

    controllers: int
    uncorrected: Reading[int]
    corrected: Reading[int]


def parse(data: bytes) -> Errors | Unknown:
    r"""The counts of a whole list; unknown where it was cut, or no driver shows a controller.

    >>> found = parse(b'''/sys/devices/system/edac/mc/mc0/ue_count:0
    ... /sys/devices/system/edac/mc/mc0/ce_count:3
    ... /sys/devices/system/edac/mc/mc0/dimm0/dimm_label:CPU_SrcID#0_MC#0_Chan#0_DIMM#0
    ... /sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count:3
    ... end:
    ... ''')
    >>> found.uncorrected.value, found.corrected.value, found.corrected.note
    (0, 3, 'CPU_SrcID#0_MC#0_Chan#0_DIMM#0: 3')
    """
    files = small_files.parse(data)
    if isinstance(files, Unknown):
        return files
    if not files.whole:
        return Unknown("the list of memory controllers was cut before its end")
    counts: dict[str, dict[str, int]] = {"ue_count": {}, "ce_count": {}}
    for path, said in files.values.items():
        match = _CONTROLLER.fullmatch(path)
        if match:
            if _COUNT.fullmatch(said[0]) is None:
                return Unknown(f"{match[2]} of {match[1]} reads {said[0][:40]!r}")
            counts[match[2]][match[1]] = int(said[0])
    if not counts["ue_count"] or counts["ue_count"].keys() != counts["ce_count"].keys():
        return Unknown(
            "EDAC shows no memory controller: its driver for this processor is not loaded"
            if not any(counts.values())
            else "a memory controller lacks one of its two counts"
        )
    return Errors(
        controllers=len(counts["ue_count"]),
        uncorrected=_sum(files, counts["ue_count"], "ue"),
        corrected=_sum(files, counts["ce_count"], "ce"),
    )


def _sum(files: small_files.SmallFiles, counts: dict[str, int], kind: str) -> Reading[int]:
    named = []
    for path, said in files.values.items():
        match = _DIMM.fullmatch(path)
        if match and match[2] == kind and _COUNT.fullmatch(said[0]) and int(said[0]):
            label = files.one(f"{match[1]}/dimm_label")
            named.append(f"{label.value if isinstance(label, Known) else match[1].rpartition('/')[2]}: {int(said[0])}")
    return Known(sum(counts.values()), note=", ".join(named))
