"""Which PCI devices the node has and how their links trained, from lspci in any of its forms."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.text import is_cut
from nodeready.reading import Known, Reading, Unknown

_LINKS = "link speed and width (the config space above 64 bytes)"
_SERVES = ("pcie.gpu-present", "pcie.gpu-link-generation", "pcie.gpu-link-width", "pcie.access-control")

LSPCI_VVV = command("lspci", "-vvv", family="pci", serves=_SERVES, root_for=_LINKS)
LSPCI_NN = command("lspci", "-nn", family="pci", serves=_SERVES[:1])
LSPCI_NNVVV = command("lspci", "-nnvvv", family="pci", serves=_SERVES, root_for=_LINKS)

_HEADER = re.compile(r"\n((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^:\n]+): ([^\n]*)")
_CLASS = re.compile(r"(.*?) ?\[([0-9a-f]{4})\]")
_IDS = re.compile(r"\[([0-9a-f]{4}:[0-9a-f]{4})\]")
_BARE_IDS = re.compile(r"(?:Device )?([0-9a-f]{4}:[0-9a-f]{4})")
_UNNAMED = re.compile(r"Device ([0-9a-f]{4})")
_REVISION = re.compile(r" \(rev ([0-9a-f]{2})\)")
_LINK = re.compile(r"(?:Port #[0-9]{1,3}, )?Speed ([^\s,]{1,20})(?: \([a-z]{1,20}\))?, Width ([^\s,]{1,20})")
_NUMBER = re.compile(r"[0-9]{1,4}")
_BELOW = re.compile(r"\n[ \t]+Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2}),")
_SLOT = re.compile(r"\n[ \t]+Slot #([0-9]{1,5}), PowerLimit")
_ACCESS = re.compile(r"ACSCtl:\s*((?:[A-Za-z]{1,20}[+-] ?){1,20})")

_GENERATIONS = {"2.5GT/s": 1, "5GT/s": 2, "8GT/s": 3, "16GT/s": 4, "32GT/s": 5, "64GT/s": 6}
_WIDTHS = {f"x{width}": width for width in (1, 2, 4, 8, 12, 16, 32)}
_VENDORS = {
    "NVIDIA Corporation": "10de",
    "Mellanox Technologies": "15b3",
    "Intel Corporation": "8086",
    "Broadcom / LSI": "1000",
    "Samsung Electronics Co Ltd": "144d",
    "Micron Technology Inc": "1344",
}
_VENDOR_NAMES = {number: name for name, number in _VENDORS.items()}
_NVIDIA = "NVIDIA Corporation"


class Device(NamedTuple):
    """One PCI function; `bus_id` is in normal form, `readable` false where its registers do not answer.

    `link_generation` and `link_width` are the link as it trained (LnkSta), the `_max` ones what the
    device itself can do (LnkCap). `vendor` is '' where the listing does not show it apart from the
    name. `below` is the number of the bus below a bridge, None for what is none, or where the listing is not
    verbose. `redirects` tells whether its access control (ACS) sends peers' requests up to the host, None
    where the device has no such control. `whole` is false for the device in whose text a
    cut listing stops.
    """

    bus_id: str
    class_name: str
    class_code: str | None
    vendor_device: Reading[str]
    vendor: str
    revision: str
    readable: bool
    link_generation: Reading[int]
    link_generation_max: Reading[int]
    link_width: Reading[int]
    link_width_max: Reading[int]
    numa_node: Reading[int]
    physical_slot: str
    below: int | None
    redirects: Reading[bool | None]
    whole: bool = True

    @property
    def is_nvidia(self) -> bool:
        """Whether NVIDIA made it."""
        return self.vendor == _NVIDIA

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU of NVIDIA."""
        drawing = self.class_code in ("0300", "0302") or self.class_name in (
            "3D controller",
            "VGA compatible controller",
        )
        return self.is_nvidia and drawing

    @property
    def is_nvswitch(self) -> bool:
        """Whether it is an NVSwitch: NVIDIA's only plain bridge."""
        return self.is_nvidia and (self.class_code == "0680" or self.class_name == "Bridge")


class Listing(NamedTuple):
    """All devices by bus id, in the order of the listing; `cut` where the listing visibly stops short."""

    devices: dict[str, Device]
    cut: bool


def parse(data: bytes) -> Listing | Unknown:
    """The devices of one listing; unknown where no line of it names a device.

    A listing with one line per device that was cut between two lines can't be told from a whole one.

    >>> listing = parse(b'''3b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
    ... 	LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM L1
    ... 	LnkSta:	Speed 16GT/s (downgraded), Width x16 (ok)
    ...
    ... ''')
    >>> gpu = listing.devices["0000:3b:00.0"]
    >>> gpu.vendor_device.value, gpu.link_generation.value, gpu.link_generation_max.value, gpu.link_width.value
    ('10de:2330', 4, 5, 16)
    """
    if not data.strip():
        return Unknown("lspci printed nothing")
    # one search over the whole text: a listing is close to a megabyte, most of it of no interest
    text = "\n" + data[: data.rfind(b"\n") + 1].decode("utf-8", "replace")
    headers = list(_HEADER.finditer(text))
    if not headers:
        return Unknown("no whole line of lspci's output names a device")
    ends = [header.start() for header in headers[1:]] + [len(text)]
    blocks = [text[header.end() : end] for header, end in zip(headers, ends, strict=True)]
    rest = data[data.rfind(b"\n") + 1 :]
    verbose = rest.startswith((b"\t", b" ")) or any("\n\t" in block or "\n " in block for block in blocks)
    # a verbose listing ends the text of each device with a blank line
    stops_inside = verbose and bool(text[text.rfind("\n", 0, -1) :].strip())
    devices: dict[str, Device] = {}
    for header, block in zip(headers, blocks, strict=True):
        whole = not (stops_inside and header is headers[-1])
        device = _device(header, block, verbose=verbose, whole=whole)
        twice = devices.get(device.bus_id)
        devices[device.bus_id] = _contradicted(twice, device) if twice else device
    return Listing(devices=devices, cut=is_cut(data) or stops_inside)


def _device(header: re.Match[str], block: str, *, verbose: bool, whole: bool) -> Device:
    kind = header[2]
    coded = _CLASS.fullmatch(kind) or re.fullmatch("()([0-9a-f]{4})", kind)
    revision = _REVISION.search(header[3])
    vendor_device, vendor = _identity(header[3].split(" (rev ")[0].split(" (prog-if ")[0].strip())
    readable = (revision is None or revision[1] != "ff") and "!!! Unknown header type" not in block
    if not readable:
        reason: Unknown | None = Unknown("the device does not answer: its registers read all ones (rev ff)")
    elif not whole:
        reason = Unknown("the output of lspci was cut inside this device")
    else:
        reason = None
    generation, width = _link(block, "LnkSta:", reason, verbose=verbose)
    generation_max, width_max = _link(block, "LnkCap:", reason, verbose=verbose)
    numa_node = _NUMBER.fullmatch(_field(block, "NUMA node:"))
    below, slot = _BELOW.search(block), _SLOT.search(block)
    return Device(
        bus_id=normal_bus_id(header[1]) or header[1],
        class_name=coded[1] if coded else kind,
        class_code=coded[2] if coded else None,
        vendor_device=vendor_device,
        vendor=vendor,
        revision=revision[1] if revision else "",
        readable=readable,
        link_generation=generation,
        link_generation_max=generation_max,
        link_width=width,
        link_width_max=width_max,
        numa_node=Known(int(numa_node[0])) if numa_node else Unknown("lspci names no NUMA node of this device"),
        physical_slot=_field(block, "Physical Slot:") or (slot[1] if slot and slot[1] != "0" else ""),
        below=int(below[1], 16) if below else None,
        redirects=reason if reason is not None else _redirects(block, verbose=verbose),
        whole=whole,
    )


def _identity(name: str) -> tuple[Reading[str], str]:
    """Vendor and device id, and the vendor's name where the listing shows it."""
    vendor = next((known for known in _VENDORS if name.startswith(known)), "")
    ids = _IDS.fullmatch(name[-11:]) or _BARE_IDS.fullmatch(name)
    if ids:
        return Known(ids[1]), _VENDOR_NAMES.get(ids[1][:4], vendor)
    unnamed = _UNNAMED.fullmatch(name[len(vendor) :].strip())
    if unnamed and vendor:
        return Known(f"{_VENDORS[vendor]}:{unnamed[1]}"), vendor
    # a listing without -nn does not print the id at all, so another form may be asked
    return Unknown("the name comes from pci.ids", missing=True), vendor


def _link(block: str, field: str, reason: Unknown | None, *, verbose: bool) -> tuple[Reading[int], Reading[int]]:
    """Generation and width of one of the link's registers."""
    if reason is not None:
        return reason, reason
    found = set()
    at = block.find(field)
    while at >= 0:
        start = at + len(field)
        match = _LINK.match(block[start : start + 120].lstrip())
        found.add((match[1], match[2]) if match else ("", ""))
        at = block.find(field, start)
    if len(found) > 1:
        several = Unknown(f"lspci shows several {field} of this device that differ")
        return several, several
    if not found:
        absent = _no_link(block, verbose=verbose)
        return absent, absent
    speed, width = found.pop()
    generation: Reading[int] = Unknown(f"lspci gives the speed of {field} as {speed!r}")
    lanes: Reading[int] = Unknown(f"lspci gives the width of {field} as {width!r}")
    if speed in _GENERATIONS:
        generation = Known(_GENERATIONS[speed])
    if width in _WIDTHS:
        lanes = Known(_WIDTHS[width])
    return generation, lanes


def _no_link(block: str, *, verbose: bool) -> Unknown:
    if "<access denied>" in block:
        return Unknown("lspci needs root for this", missing=True)
    if not verbose:
        return Unknown("this form of lspci shows no links", missing=True)
    return Unknown("lspci shows no link of this device")


def _redirects(block: str, *, verbose: bool) -> Reading[bool | None]:
    """Whether one of the device's access controls redirects requests or their completions."""
    controls = _ACCESS.findall(block)
    if not controls:
        shown = verbose and "<access denied>" not in block
        return Known(None) if shown else _no_link(block, verbose=verbose)
    return Known(any("ReqRedir+" in control or "CmpltRedir+" in control for control in controls))


def _field(block: str, name: str) -> str:
    """What follows a name on its line, '' where it is not there."""
    at = block.find(name)
    return block[at + len(name) :].partition("\n")[0].strip()[:80] if at >= 0 else ""


def _contradicted(one: Device, other: Device) -> Device:
    twice = Unknown(f"lspci lists {one.bus_id} twice")
    return other._replace(
        vendor_device=twice,
        readable=one.readable and other.readable,
        link_generation=twice,
        link_generation_max=twice,
        link_width=twice,
        link_width_max=twice,
        numa_node=twice,
        redirects=twice,
    )
