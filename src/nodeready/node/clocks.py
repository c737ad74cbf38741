"""Whether somebody before set the clocks of a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.reading import Known, Reading, Unknown, first_unknown

if TYPE_CHECKING:
    from nodeready.node.gpus import Gpu

_CLOCKS = {
    "SM": ("application_clock", "application_clock_default"),
    "memory": ("application_memory_clock", "application_memory_clock_default"),
}


def application_clocks(gpu: Gpu) -> Reading[str]:
    """`default`, or the clocks that are set otherwise.

    Drivers from 590 on print no application clocks any more; there the event decides by which such a
    setting holds the clocks down.
    """
    readings = {word: (gpu.smi(now), gpu.smi(default)) for word, (now, default) in _CLOCKS.items()}
    changed, cited = [], []
    for word, (now, default) in readings.items():
        if isinstance(now, Known) and isinstance(default, Known):
            cited += [*now.recordings]
            if now.value != default.value:
                changed.append(f"{word} {now.value} instead of {default.value}")
    recordings = tuple(dict.fromkeys(cited))
    if changed:
        return Known(", ".join(changed), recordings=recordings)
    unknown = first_unknown(*(reading for pair in readings.values() for reading in pair))
    if unknown is None:
        return Known("default", recordings=recordings)
    held = gpu.smi("event_application_clocks", volatile=True)
    if isinstance(held, Unknown) or "deprecated" not in unknown.reason:
        return unknown
    note = "told by the clock event: this driver prints no application clocks"
    return Known("held down" if held.value else "default", note=note, recordings=held.recordings)
