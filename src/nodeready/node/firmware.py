"""Firmware of one GPU: its system processor's, and the InfoROM."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.facts import nvidia_smi_text, nvidia_smi_xml
from nodeready.facts.bus_id import normal_bus_id
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from nodeready.node.driver import Driver
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

_WARNING = re.compile(rb"infoROM is corrupted at gpu ([0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7])", re.IGNORECASE)
_REFUSAL = "corrupted inforom"


class Firmware:
    """What a GPU runs and remembers by itself."""

    def __init__(self, sources: Sources, gpu: Gpu, driver: Driver) -> None:
        self._sources, self._gpu, self._driver = sources, gpu, driver

    @property
    def gsp_matches_driver(self) -> Reading[bool]:
        """Whether the firmware of the GPU's system processor is of exactly the driver's version."""
        mine, driver = self._gpu.smi("gsp_firmware"), self._driver.version
        if isinstance(mine, Unknown):
            return mine
        if isinstance(driver, Unknown):
            return driver
        note = f"firmware {mine.value}, driver {driver.value}"
        return Known(mine.value == driver.value, note=note, recordings=mine.recordings)

    @property
    def inforom(self) -> Reading[str]:
        """`readable`, or `corrupted` by the driver's word; a warning counts whatever the exit status was."""
        warned = self._warned_of()
        if warned:
            return Known("corrupted", note="nvidia-smi warns of it", recordings=warned)
        image = self._gpu.smi("inforom_image")
        if isinstance(image, Unknown):
            if _REFUSAL in image.reason.lower():
                return Known("corrupted", note=image.reason, recordings=image.recordings)
            return image
        return Known("readable", note=f"image {image.value}", recordings=image.recordings)

    def _warned_of(self) -> tuple[str, ...]:
        """The recordings of nvidia-smi that warn of this GPU's InfoROM."""
        found = []
        for probe in (nvidia_smi_xml.SMI_XML, nvidia_smi_text.SMI_TEXT):
            recording = self._sources.documents.evidence.get(probe.name)
            if recording is None or b"nfoROM" not in recording.stdout + recording.stderr:
                continue
            named = _WARNING.findall(recording.stdout + b"\n" + recording.stderr)
            if self._gpu.bus_id in {normal_bus_id(bus_id.decode("ascii")) for bus_id in named}:
                found.append(probe.name)
        return tuple(found)
