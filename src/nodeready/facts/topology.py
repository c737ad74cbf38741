"""How GPUs and NICs are connected to each other, from `nvidia-smi topo -m`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from nodeready.evidence.probe import command
from nodeready.facts.text import lines
from nodeready.reading import Known, Reading, Unknown

TOPO = command("nvidia-smi", "topo", "-m", family="nvidia")

_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_GPU = re.compile(r"GPU[0-9]{1,4}")
_CONNECTION = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|NV[0-9]{1,3}|N/A")
_NIC = re.compile(r"(NIC[0-9]{1,4}): (\S{1,64})")
_NODE = re.compile(r"[0-9]{1,4}")
_CPU, _NUMA = "CPU Affinity", "NUMA Affinity"


@dataclass(frozen=True)
class Topology:
    """The matrix of one node.

    `devices` are the columns in order, `links` what whole rows say by (row, column): `NV18`, `PIX`,
    `SYS`, ..., `X` for a device and itself. `cpu_affinity` and `numa_node` (the one whose memory is
    near) are there for each GPU with a whole row; `nics` maps `NIC0` to `mlx5_0` as far as the legend
    goes.
    """

    devices: tuple[str, ...]
    links: dict[tuple[str, str], str]
    cpu_affinity: dict[str, Reading[str]]
    numa_node: dict[str, Reading[int]]
    nics: dict[str, str]

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs among the devices."""
        return tuple(device for device in self.devices if _GPU.fullmatch(device))

    def link(self, one: str, other: str) -> Reading[str]:
        """How two devices are connected; unknown where no whole row says so, or two rows differ."""
        said = {self.links[pair] for pair in ((one, other), (other, one)) if pair in self.links}
        if not said:
            return Unknown(f"no whole row of nvidia-smi topo -m connects {one} and {other}")
        if len(said) > 1:
            return Unknown(f"nvidia-smi topo -m connects {one} and {other} by {' and by '.join(sorted(said))}")
        return Known(said.pop())


def parse(data: bytes) -> Topology | Unknown:
    r"""The matrix of one output; unknown where it has no heading, or two, or lists a device twice.

    A row that is cut, or holds a word that is no connection, is left out, and so is an `N/A`.

    >>> topology = parse(b'''\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
    ... GPU0\t X \tNV18\t0-55,112-167\t0\t\tN/A
    ... GPU1\tNV18\t X \t0-55,112-167\t0\t\tN/A
    ... ''')
    >>> topology.gpus, topology.link("GPU0", "GPU1").value, topology.numa_node["GPU0"].value
    (('GPU0', 'GPU1'), 'NV18', 0)
    """
    if not data.strip():
        return Unknown("nvidia-smi topo -m printed nothing")
    text = [_ANSI.sub("", line) for line in lines(data)]
    headings = [number for number, line in enumerate(text) if _CPU in line and _GPU.match(line.strip())]
    if len(headings) != 1:
        first = next((line.strip() for line in text if line.strip()), "")
        return Unknown(f"nvidia-smi topo -m has {len(headings)} headings of a matrix, not one: {first[:200]!r}")
    heading = text[headings[0]]
    devices = tuple(heading.partition(_CPU)[0].split())
    if len(set(devices)) < len(devices):
        return Unknown("the heading of nvidia-smi topo -m names a device twice")
    rows = [row for row in map(_row, text[headings[0] + 1 :]) if row[0] in devices]
    labels = [label for label, _ in rows]
    if len(set(labels)) < len(labels):
        return Unknown("nvidia-smi topo -m lists a device twice")
    return _topology(devices, heading, dict(rows), text)


def _row(line: str) -> tuple[str, str]:
    """The label of a row and the rest of it, with its tabs."""
    label = next(iter(line.split(maxsplit=1)), "")
    return label, line.lstrip()[len(label) :]


def _topology(devices: tuple[str, ...], heading: str, rows: dict[str, str], text: list[str]) -> Topology:
    links: dict[tuple[str, str], str] = {}
    cpu_affinity: dict[str, Reading[str]] = {}
    numa_node: dict[str, Reading[int]] = {}
    for label, rest in rows.items():
        said = rest.split()[: len(devices)]
        if len(said) < len(devices) or not all(_CONNECTION.fullmatch(each) for each in said):
            continue
        links.update({(label, device): each for device, each in zip(devices, said, strict=True) if each != "N/A"})
        if _GPU.fullmatch(label):
            near = _affinities(heading, rest, len(devices))
            cpu_affinity[label] = _affinity(near, _CPU, label)
            numa_node[label] = _numa_node(near, label)
    nics = {match[1]: match[2] for line in text if (match := _NIC.fullmatch(line.strip()))}
    return Topology(devices, links, cpu_affinity, numa_node, nics)


def _affinities(heading: str, rest: str, count: int) -> dict[str, str]:
    """What stands after the connections, by column; nothing where columns and cells can't be matched.

    An empty cell shows only between tabs. The last column of a tabbed row stands one tab too far.
    """
    columns = [column for column in (_CPU, _NUMA, "GPU NUMA ID") if column in heading]
    cells = [cell.strip() for cell in rest.split("\t")[count + 1 :]] if "\t" in rest else rest.split()[count:]
    if "\t" not in rest and len(cells) != len(columns):
        return {}
    return dict(zip(columns, cells, strict=False))


def _affinity(near: dict[str, str], column: str, label: str) -> Reading[str]:
    value = near.get(column, "")
    if not value or value == "N/A":
        return Unknown(f"nvidia-smi topo -m gives no {column} of {label}")
    return Known(value)


def _numa_node(near: dict[str, str], label: str) -> Reading[int]:
    text = _affinity(near, _NUMA, label)
    if isinstance(text, Unknown):
        return text
    if _NODE.fullmatch(text.value) is None:
        return Unknown(f"{_NUMA} of {label} reads {text.value[:80]!r}, not one node")
    return Known(int(text.value))
