"""What NVIDIA's own diagnostic found, where its output was handed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.facts import dcgm_diag
from nodeready.facts.dcgm_diag import DCGM_DIAG
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from nodeready.facts.dcgm_diag import DcgmDiag, TestResult
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

NAMED = 6


class Dcgm:
    """The results of `dcgmi diag`, counted by what they say; a test that was skipped has passed nothing."""

    def __init__(self, sources: Sources, gpus: tuple[Gpu, ...]) -> None:
        self._sources, self._gpus = sources, gpus

    @property
    def failed(self) -> Reading[int]:
        """How many tests failed; none only where every result could be read and at least one passed."""
        return self._count("fail")

    @property
    def warned(self) -> Reading[int]:
        """How many tests gave a warning."""
        return self._count("warn")

    @property
    def skipped(self) -> Reading[int]:
        """How many tests were skipped."""
        return self._count("skip")

    def _count(self, status: str) -> Reading[int]:
        found = self._sources.documents.read(DCGM_DIAG, dcgm_diag.parse)
        if isinstance(found, Unknown):
            return found
        cited = (DCGM_DIAG.name,)
        said = [self._words(found, result) for result in found.of(status)]
        if said:
            more = f"; and {len(said) - NAMED} more" if len(said) > NAMED else ""
            return Known(len(said), note="; ".join(said[:NAMED]) + more, recordings=cited)
        passed = len(found.of("pass"))
        if found.error or found.problems:
            return Unknown(f"{DCGM_DIAG.name}: {found.error or found.problems[0]}", recordings=cited)
        if not passed:
            skipped = len(found.of("skip"))
            return Unknown(f"no test of {DCGM_DIAG.name} passed: {skipped} were skipped", recordings=cited)
        return Known(0, note=f"{passed} passed", recordings=cited)

    def _words(self, found: DcgmDiag, result: TestResult) -> str:
        place = f" on {self._place(found, result.entity)}" if result.entity else ""
        return f"{result.name}{place}" + (f": {result.said}" if result.said else "")

    def _place(self, found: DcgmDiag, entity: str) -> str:
        """The entity by DCGM's number, and the GPU that it is where DCGM tells its serial number."""
        serial = found.serials.get(entity)
        for gpu in self._gpus if serial else ():
            mine = gpu.smi("serial")
            if isinstance(mine, Known) and mine.value == serial:
                return f"DCGM's {entity} ({gpu.subject}, {gpu.bus_id}, serial {serial})"
        return f"DCGM's {entity}" + (f" (serial {serial})" if serial else "")
