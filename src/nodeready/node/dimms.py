"""The DIMMs one by one, and the errors that their controllers counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nodeready.facts import dmidecode, edac
from nodeready.reading import Known, Reading, Unknown, cite

if TYPE_CHECKING:
    from nodeready.facts.dmidecode import Dimm
    from nodeready.facts.edac import Errors
    from nodeready.node.host import Host
    from nodeready.node.sources import Sources

_NAMED = 4


class Dimms:
    """Whether the memory is filled evenly with DIMMs that are alike; no site's order is needed to tell."""

    def __init__(self, sources: Sources, host: Host) -> None:
        self._sources, self._host = sources, host

    @property
    def _filled(self) -> Reading[list[Dimm]]:
        """The slots that hold a DIMM."""
        name = dmidecode.DMI_MEMORY.name
        memory = self._sources.documents.read(dmidecode.DMI_MEMORY, dmidecode.parse)
        if isinstance(memory, Unknown):
            return memory
        if isinstance(memory.installed, Unknown):
            return cite(memory.installed, name)
        filled = [dimm for dimm in memory.dimms if isinstance(dimm.size, Known) and dimm.size.value.value > 0]
        empty = [dimm.locator for dimm in memory.dimms if dimm not in filled]
        note = f"empty: {_some(empty)}" if empty else ""
        return Known(filled, note=note, recordings=(name,))

    @property
    def count(self) -> Reading[int]:
        """How many slots hold a DIMM; the empty ones are the note."""
        return self._filled.map(len)

    @property
    def uneven(self) -> Reading[int]:
        """How many DIMMs are left over when they are shared out evenly to the sockets."""
        filled, sockets = self._filled, self._host.sockets
        if isinstance(filled, Unknown):
            return filled
        if isinstance(sockets, Unknown):
            return sockets
        note = f"{len(filled.value)} DIMMs on {sockets.value} sockets" + (f"; {filled.note}" if filled.note else "")
        return Known(len(filled.value) % sockets.value, note=note, recordings=(*filled.recordings, *sockets.recordings))

    @property
    def sizes(self) -> Reading[int]:
        """How many different sizes there are."""
        return self._kinds("size")

    @property
    def speeds(self) -> Reading[int]:
        """How many different speeds the DIMMs run at."""
        return self._kinds("configured_speed")

    def _kinds(self, field: str) -> Reading[int]:
        filled = self._filled
        if isinstance(filled, Unknown):
            return filled
        values = {dimm.locator: getattr(dimm, field) for dimm in filled.value}
        unknown = next((value for value in values.values() if isinstance(value, Unknown)), None)
        if unknown is not None or not values:
            return cite(Unknown("no slot holds a DIMM") if unknown is None else unknown, *filled.recordings)
        kinds = Counter(str(value.value) for value in values.values())
        common = kinds.most_common(1)[0][0]
        odd = [f"{place} {value.value}" for place, value in values.items() if str(value.value) != common]
        note = f"{_some(odd)}, the others {common}" if odd else common
        return Known(len(kinds), note=note, recordings=filled.recordings)

    @property
    def slowest(self) -> Reading[int]:
        """The lowest speed that a DIMM runs at, in MT/s; what it is made for is the note."""
        filled = self._filled
        if isinstance(filled, Unknown):
            return filled
        speeds = [(dimm.configured_speed, dimm.speed, dimm.locator) for dimm in filled.value]
        unknown = next((speed for speed, _, _ in speeds if isinstance(speed, Unknown)), None)
        if unknown is not None or not speeds:
            return cite(Unknown("no slot holds a DIMM") if unknown is None else unknown, *filled.recordings)
        speed, rated, place = min(speeds, key=lambda row: row[0].value)
        made_for = f", made for {rated.value}" if isinstance(rated, Known) else ""
        return Known(speed.value, note=f"{place}{made_for}", recordings=filled.recordings)

    @property
    def errors_uncorrected(self) -> Reading[int]:
        """Errors since boot that no code could mend."""
        errors = self._errors
        return errors if isinstance(errors, Unknown) else cite(errors.uncorrected, edac.EDAC.name)

    @property
    def errors_corrected(self) -> Reading[int]:
        """Errors since boot that were mended; the DIMMs are named."""
        errors = self._errors
        return errors if isinstance(errors, Unknown) else cite(errors.corrected, edac.EDAC.name)

    @property
    def _errors(self) -> Errors | Unknown:
        return self._sources.documents.read(edac.EDAC, edac.parse)


def _some(words: list[str]) -> str:
    return ", ".join(words[:_NAMED]) + (f" and {len(words) - _NAMED} more" if len(words) > _NAMED else "")
