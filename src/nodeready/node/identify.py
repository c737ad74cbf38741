"""Which node type a node looks like, by its PCI ids."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from nodeready.facts.pci_sysfs import is_gpu
from nodeready.node.sources import Sources
from nodeready.node.terms import Terms
from nodeready.reading import Known, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nodeready.evidence.capture import Evidence

NVSWITCH = "10de:22a3"
_MOST = 64


def ids_of_evidence(evidence: Evidence) -> list[str]:
    """The ids of all GPUs and NVSwitches that the evidence lists: by the bus, else by the driver."""
    sources = Sources(evidence, Terms(_MOST))
    for _, listing in sources.pci:
        if not isinstance(listing, Unknown):
            devices = [d for d in listing.devices.values() if d.is_gpu or d.is_nvswitch]
            ids = [d.vendor_device.value for d in devices if isinstance(d.vendor_device, Known)]
            if ids:
                return ids
    if not isinstance(sources.sysfs, Unknown):
        named = [(link, link.vendor_device) for link in sources.sysfs.values()]
        ids = [
            reading.value
            for link, reading in named
            if isinstance(reading, Known) and (is_gpu(link) or reading.value == NVSWITCH)
        ]
        if ids:
            return ids
    for _, document in sources.smi:
        if not isinstance(document, Unknown):
            found = [fields["device_id"] for fields in document.gpus.values()]
            return [reading.value for reading in found if isinstance(reading, Known)]
    return []


def ids_of_machine(root: Path = Path("/sys/bus/pci/devices")) -> list[str]:
    """The ids of this machine's NVIDIA GPUs and NVSwitches; the kernel keeps them, no device is asked."""
    ids = []
    for device in sorted(root.glob("*")):
        try:
            vendor, product, kind = ((device / name).read_text().strip() for name in ("vendor", "device", "class"))
        except OSError:
            continue
        if vendor == "0x10de" and kind[:4] in ("0x03", "0x06"):
            ids.append(f"10de:{product.removeprefix('0x')}")
    return ids


def node_type_of(ids: Iterable[str], known: Mapping[str, tuple[frozenset[str], int]]) -> str | None:
    """The node type whose product most GPUs are, and whose size fits; None where no type knows them.

    `known` gives the products and the number of GPUs of each node type. Of several types with one
    product, NVSwitches tell the largest; else the smallest that holds all GPUs found.

    >>> types = {"sxm": (frozenset({"10de:2330"}), 8), "sxm-1": (frozenset({"10de:2330"}), 1)}
    >>> node_type_of(["10de:2330"], types), node_type_of(["10de:2330"] * 7, types)
    ('sxm-1', 'sxm')
    >>> node_type_of(["10de:2330", "10de:22a3"], types)
    'sxm'
    """
    counted = Counter(ids)
    switches = counted.pop(NVSWITCH, 0)
    for product, _ in counted.most_common():
        fitting = sorted((size, name) for name, (products, size) in known.items() if product in products)
        if not fitting:
            continue
        if switches:
            return fitting[-1][1]
        enough = [name for size, name in fitting if size >= counted[product]]
        return enough[0] if enough else fitting[-1][1]
    return None
