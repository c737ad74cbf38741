"""The forms in which nvidia-smi's document may be there, first to last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeready.facts import nvidia_smi_csv, nvidia_smi_table, nvidia_smi_text, nvidia_smi_xml
from nodeready.facts.nvidia_smi_csv import CAPABILITY, QUERY_GPU
from nodeready.facts.nvidia_smi_table import TABLE
from nodeready.facts.nvidia_smi_text import SMI_TEXT
from nodeready.facts.nvidia_smi_xml import SMI_XML
from nodeready.reading import Unknown, explained_by

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nodeready.evidence.probe import Probe
    from nodeready.facts.nvidia_smi import Smi
    from nodeready.reading import Reading

_FULL = ((SMI_XML, nvidia_smi_xml.parse), (SMI_TEXT, nvidia_smi_text.parse))


def forms(recorded: Collection[str]) -> tuple[tuple[Probe, Callable[[bytes], Smi | Unknown]], ...]:
    """The two full documents, then the CSV, and the table where it stands alone: it rounds and adds up."""
    if QUERY_GPU.name in recorded:
        return (*_FULL, (QUERY_GPU, nvidia_smi_csv.parse))
    if TABLE.name in recorded and not any(probe.name in recorded for probe, _ in _FULL):
        return (*_FULL, (TABLE, nvidia_smi_table.parse))
    return _FULL


def capability(name: str, document: Smi | Unknown, bus_id: str | None) -> list[Reading[Any]]:
    """The compute capability, which of all forms the CSV alone may tell; no reading of any other form."""
    if name != QUERY_GPU.name:
        return []
    if isinstance(document, Unknown):
        return [explained_by(document, "driver.responds")]
    fields = document.gpus.get(bus_id or "")
    return [Unknown(f"{name} lists no GPU at {bus_id}") if fields is None else fields[CAPABILITY]]
