"""How the PCIe links of GPUs, adapters and drives trained, and of the ports above them, from sysfs; no root needed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.text import lines, word
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

# the real path of a device holds those of the ports above it, nearest last. A port above several devices is
# printed once. The shell reads the files itself: hundreds of devices, and no process for each.
_SCRIPT = (
    "cd /sys/bus/pci/devices || exit; seen=' '; for d in *; do "
    'v=; c=; IFS= read -r v 2>/dev/null <"$d/vendor"; IFS= read -r c 2>/dev/null <"$d/class"; '
    "case $v:$c in 0x10de:*|*:0x02*|*:0x0108*) ;; *) continue ;; esac; "
    'p=$(cd -P "$d" && pwd); g=; IFS= read -r g 2>/dev/null <"$d/iommu_group/type"; '
    '[ -e "$d/iommu_group" ] || g=none; [ -z "$g" ] || printf \'%s/iommu_group/type:%s\\n\' "$p" "$g"; '
    'while [ -e "$p/vendor" ]; do '
    'case $seen in *" $p "*) break ;; esac; seen="$seen$p "; '
    "for a in vendor device class current_link_speed current_link_width max_link_speed max_link_width numa_node; do "
    '[ -e "$p/$a" ] || continue; v=; IFS= read -r v 2>/dev/null <"$p/$a"; '
    'printf \'%s/%s:%s\\n\' "$p" "$a" "$v"; done; p=${p%/*}; done; done'
)

PCI_LINKS = command(
    "sh",
    "-c",
    _SCRIPT,
    name="sys/bus/pci/links",
    family="pci",
    serves=(
        "pcie.gpu-present",
        "pcie.gpu-link-generation",
        "pcie.gpu-link-width",
        "pcie.gpu-bridges",
        "pcie.adapter-links",
        "pcie.drive-links",
        "pcie.numa-node",
        "pcie.iommu",
    ),
)

_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_ROOT_BUS = re.compile(r"pci[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}")
_LINE = re.compile(rf"(?:(.*)/)?({_BUS_ID.pattern})/([a-z_]{{1,40}}(?:/type)?):(.*)")
_ATTRIBUTES = frozenset(
    (
        "vendor",
        "device",
        "class",
        "current_link_speed",
        "current_link_width",
        "max_link_speed",
        "max_link_width",
        "numa_node",
        "iommu_group/type",
    )
)
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s(?: PCIe)?")
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
# 0 is a link that is down, 63 and 255 a device that does not answer
_WIDTHS = {str(width): width for width in (1, 2, 4, 8, 12, 16, 32)}
_ALL_ONES = {"63", "255"}
_ID = re.compile(r"0x([0-9a-f]{4})")
_CLASS = re.compile(r"0x([0-9a-f]{4})[0-9a-f]{2}")
_NODE = re.compile(r"[0-9]{1,4}")

_Said = dict[str, set[str]]


class PciLink(NamedTuple):
    """The link of one device to the port above it.

    `generation` and `width` are the link as it is now (an idle GPU may have slowed it down), the
    `_max` ones what this end can do. `vendor_device` is such as `10de:2330`, `class_code` such as
    `0302`. `above` is the bus id of the port above, unknown where the paths do not tell or none is;
    `on_root_bus` where none is. It `answers` unless its registers read all ones. `numa_node` is unknown
    where the firmware names none, which is `numa_unnamed` in so many words. `iommu` is how the IOMMU treats
    the device: `identity`, `DMA`, `DMA-FQ`, or `none` where it is in no group of the IOMMU.
    """

    generation: Reading[int]
    generation_max: Reading[int]
    width: Reading[int]
    width_max: Reading[int]
    vendor_device: Reading[str]
    class_code: Reading[str]
    numa_node: Reading[int]
    above: Reading[str]
    numa_unnamed: bool
    iommu: Reading[str]
    on_root_bus: bool
    answers: bool


def parse(data: bytes) -> dict[str, PciLink] | Unknown:
    r"""The link of each device by bus id, from lines `PATH/BUS-ID/ATTRIBUTE:VALUE`.

    Unknown where no whole line is of that form; a last line without its newline is dropped. An output
    cut between two devices can't be told from a whole one.

    >>> links = parse(b'''/sys/devices/pci0000:37/0000:37:01.0/0000:3b:00.0/current_link_speed:32.0 GT/s PCIe
    ... /sys/devices/pci0000:37/0000:37:01.0/0000:3b:00.0/current_link_width:16
    ... ''')
    >>> gpu = links["0000:3b:00.0"]
    >>> gpu.generation.value, gpu.width.value, gpu.above.value, gpu.width_max.reason
    (5, 16, '0000:37:01.0', 'the output has no max_link_width of 0000:3b:00.0')
    """
    if not data.strip():
        return Unknown("sysfs lists no device of NVIDIA on the PCI bus")
    devices: dict[str, _Said] = {}
    parents: dict[str, set[str]] = {}
    for line in lines(data):
        match = _LINE.fullmatch(line)
        if match and match[3] in _ATTRIBUTES:
            bus_id = normal_bus_id(match[2]) or match[2]
            devices.setdefault(bus_id, {}).setdefault(match[3], set()).add(match[4].strip())
            parents.setdefault(bus_id, set()).add((match[1] or "").rpartition("/")[2])
    if not devices:
        return Unknown("no whole line of it names a PCI device")
    return {bus_id: _link(bus_id, said, parents[bus_id]) for bus_id, said in devices.items()}


def from_tree(files: Mapping[str, bytes]) -> dict[str, PciLink] | Unknown:
    r"""The link of each device by bus id, from the files of a copied tree: path -> content.

    A path ends in BUS-ID/ATTRIBUTE, as in `sys/bus/pci/devices/0000:3b:00.0/current_link_width`; other
    files do not count. A file without its newline was cut, and its reading is unknown.

    >>> links = from_tree({"sys/bus/pci/devices/0000:3b:00.0/current_link_width": b"16\n"})
    >>> links["0000:3b:00.0"].width.value, links["0000:3b:00.0"].above.reason
    (16, 'the path of 0000:3b:00.0 does not tell what is above it')
    """
    flat = [f"{path}:{next(iter(lines(data)), '')}\n" for path, data in files.items() if "\n" not in path]
    found = parse("".join(flat).encode())
    return Unknown("no file of the tree belongs to a PCI device") if isinstance(found, Unknown) else found


def _link(bus_id: str, said: _Said, parents: set[str]) -> PciLink:
    def text(attribute: str) -> Reading[str]:
        values = said.get(attribute, set())
        if len(values) > 1:
            return Unknown(f"{attribute} of {bus_id} is given twice, with different values")
        return word(next(iter(values), None), f"{attribute} of {bus_id}")

    vendor, device = _matched(text("vendor"), _ID), _matched(text("device"), _ID)
    return PciLink(
        generation=_generation(text("current_link_speed")),
        generation_max=_generation(text("max_link_speed")),
        width=_width(text("current_link_width")),
        width_max=_width(text("max_link_width")),
        vendor_device=vendor if isinstance(vendor, Unknown) else device.map(lambda part: f"{vendor.value}:{part}"),
        class_code=_matched(text("class"), _CLASS),
        numa_node=_numa_node(text("numa_node")),
        above=_above(bus_id, parents),
        numa_unnamed=said.get("numa_node") == {"-1"},
        iommu=text("iommu_group/type"),
        answers=not said.get("current_link_width", set()) & _ALL_ONES,
        on_root_bus=bool(parents) and all(_ROOT_BUS.fullmatch(parent) for parent in parents),
    )


def _matched(text: Reading[str], pattern: re.Pattern[str]) -> Reading[str]:
    if isinstance(text, Unknown):
        return text
    match = pattern.fullmatch(text.value)
    return Known(match[1]) if match else Unknown(f"{text.value[:80]!r} is no PCI id or class")


def _generation(text: Reading[str]) -> Reading[int]:
    if isinstance(text, Unknown):
        return text
    match = _SPEED.fullmatch(text.value)
    generation = _GENERATIONS.get(float(match[1])) if match else None
    return Known(generation) if generation else Unknown(f"{text.value[:80]!r} is no link speed")


def _width(text: Reading[str]) -> Reading[int]:
    if isinstance(text, Unknown):
        return text
    width = _WIDTHS.get(text.value)
    return Known(width) if width else Unknown(f"{text.value[:80]!r} is no link width")


def _numa_node(text: Reading[str]) -> Reading[int]:
    if isinstance(text, Unknown):
        return text
    if _NODE.fullmatch(text.value) is None:
        return Unknown(f"the firmware names no NUMA node ({text.value[:80]})")
    return Known(int(text.value))


def _above(bus_id: str, parents: set[str]) -> Reading[str]:
    ports = {normal_bus_id(parent) or parent for parent in parents if _BUS_ID.fullmatch(parent)}
    if len(ports) > 1:
        return Unknown(f"{bus_id} is below two ports: {', '.join(sorted(ports))}")
    if ports:
        return Known(ports.pop())
    if any(_ROOT_BUS.fullmatch(parent) for parent in parents):
        return Unknown(f"{bus_id} is on a root bus: no port is above it")
    return Unknown(f"the path of {bus_id} does not tell what is above it")


_GPU_CLASSES = ("0300", "0302")


def is_gpu(link: PciLink) -> bool:
    """Whether the kernel shows an NVIDIA GPU there."""
    vendor, kind = link.vendor_device, link.class_code
    nvidia = isinstance(vendor, Known) and vendor.value.startswith("10de:")
    return nvidia and isinstance(kind, Known) and kind.value in _GPU_CLASSES
