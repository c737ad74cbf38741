"""Which ports the kernel's InfiniBand core knows and how they came up, from /sys/class/infiniband."""

from __future__ import annotations

import re

from nodeready.evidence.probe import command
from nodeready.facts.ibstat import IBSTAT, Port, Said, ports_of
from nodeready.facts.text import lines
from nodeready.reading import Unknown

# only what a port says of its link: some firmwares log an error for every counter that is read.
# The shell reads the files itself: no process for each, and one that refuses leaves a line without a value.
_SCRIPT = (
    "cd /sys/class/infiniband || exit; "
    "for f in */hca_type */fw_ver */ports/*/state */ports/*/phys_state */ports/*/rate */ports/*/link_layer; do "
    '[ -e "$f" ] || continue; v=; IFS= read -r v 2>/dev/null <"$f"; '
    'printf \'%s:%s\\n\' "$f" "$v"; done'
)

INFINIBAND_SYSFS = command(
    "sh",
    "-c",
    _SCRIPT,
    name="sys/class/infiniband",
    family="network",
    instead_of=IBSTAT.name,
    serves=("network.ports-active",),
)

_NUMBER = re.compile(r"[0-9]{1,3}")
_OF_ADAPTER = {"hca_type": "ca type", "fw_ver": "firmware version"}
_OF_PORT = {
    "state": "state",
    "phys_state": "physical state",
    "rate": "rate",
    "link_layer": "link layer",
    "lid": "base lid",
    "sm_lid": "sm lid",
}


def parse(data: bytes) -> tuple[Port, ...] | Unknown:
    r"""Every port of a flattened tree, in its order; unknown where there is not one.

    A line is `PATH:VALUE`, with or without a blank after the colon, where PATH ends in
    ADAPTER/ATTRIBUTE or ADAPTER/ports/NUMBER/ATTRIBUTE; other lines do not count. A last line without
    its newline is dropped. A tree cut between two ports can't be told from a whole one.

    >>> (port,) = parse(b'''mlx5_0/fw_ver:28.41.1000
    ... mlx5_0/ports/1/state:4: ACTIVE
    ... mlx5_0/ports/1/phys_state:5: LinkUp
    ... mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)
    ... ''')
    >>> port.adapter, port.state.value, port.physical_state.value, str(port.rate.value), port.firmware.value
    ('mlx5_0', 'Active', 'LinkUp', '400 Gb/s', '28.41.1000')
    """
    if not data.strip():
        return Unknown("/sys/class/infiniband lists no adapter")
    adapters: dict[str, Said] = {}
    ports: dict[tuple[str, int], Said] = {}
    for line in lines(data):
        path, colon, value = line.partition(":")
        parts = path.split("/")
        attribute = parts[-1]
        if not colon:
            continue
        if len(parts) >= 4 and parts[-3] == "ports" and attribute in _OF_PORT and _NUMBER.fullmatch(parts[-2]):
            adapters.setdefault(parts[-4], {})
            said = ports.setdefault((parts[-4], int(parts[-2])), {})
            said.setdefault(_OF_PORT[attribute], []).append(value.strip())
        elif len(parts) >= 2 and attribute in _OF_ADAPTER:
            said = adapters.setdefault(parts[-2], {})
            said.setdefault(_OF_ADAPTER[attribute], []).append(value.strip())
    return ports_of(adapters, ports)
