"""The NVLinks of one GPU and what it can do with its peers, from the nvml probe's entry of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodeready.facts import nvml_values as values
from nodeready.facts.nvlink import Link
from nodeready.facts.nvml_entry import Datum, absent, read, said, table
from nodeready.facts.probe_document import shown
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_LINKS = 64
_STATES = ("active", "inactive", "not-supported")
_SPEED = Datum("speed_gb_per_s", values.quantity("GB/s", 0.001, 10_000))


@dataclass(frozen=True)
class LinkErrors:
    """The error counters of one active NVLink, as Hopper counts them."""

    index: int
    replay: int
    recovery: int
    crc: int


def links(entry: dict[str, Any], mig: Reading[str], virtualization: Reading[str]) -> Reading[tuple[Link, ...]]:
    """The links that there are; an active one without a speed makes all of them unknown.

    A GPU whose links are not supported has none, unless MIG or a virtual GPU may be what hides them.
    """
    listed = _listed(entry)
    if isinstance(listed, Unknown):
        return listed
    if not listed.value:
        return _none(entry, mig, virtualization)
    found = []
    for index, link in listed.value.items():
        if link["state"] == "inactive":
            found.append(Link(index, None))
            continue
        speed = _of_link(entry, index, link, _SPEED)
        if isinstance(speed, Unknown):
            return speed
        found.append(Link(index, speed.value))
    return Known(tuple(found))


def link_errors(entry: dict[str, Any]) -> Reading[tuple[LinkErrors, ...]]:
    """The counters of every active link, unknown where one of them can't be read."""
    listed = _listed(entry)
    if isinstance(listed, Unknown):
        return listed
    found = []
    for index, link in listed.value.items():
        if link["state"] != "active":
            continue
        counters = []
        for name in ("replay_errors", "recovery_errors", "crc_flit_errors"):
            counter = _of_link(entry, index, link, Datum(name, values.count(10**15)))
            if isinstance(counter, Unknown):
                return counter
            counters.append(counter.value)
        found.append(LinkErrors(index, *counters))
    return Known(tuple(found))


def _listed(entry: dict[str, Any]) -> Reading[dict[int, dict[str, Any]]]:
    """The links that exist, by index, where their number is what NVML said."""
    count = read(entry, Datum("nvlink_count", values.count(_MOST_LINKS)))
    if isinstance(count, Unknown):
        return count
    if not isinstance(entry.get("nvlink"), list):
        return absent(entry, "nvlink")
    found: dict[int, dict[str, Any]] = {}
    for link in map(table, entry["nvlink"]):
        index, state = values.count(_MOST_LINKS)(link.get("index")), link.get("state")
        if index is None or index in found or state not in _STATES:
            return Unknown(f"an NVLink is listed as {shown(link)}")
        if state != "not-supported":
            found[index] = link
    if len(found) != count.value:
        return Unknown(f"NVML has {count.value} NVLinks and lists {len(found)}")
    return Known(found)


def _none(entry: dict[str, Any], mig: Reading[str], virtualization: Reading[str]) -> Reading[tuple[Link, ...]]:
    if table(entry.get("errors")).get("nvmlDeviceGetMigMode") != "NOT_SUPPORTED":
        if isinstance(mig, Unknown):
            return Unknown(f"NVLink is not supported, and whether MIG hides it is unknown: {mig.reason}")
        if mig.value != "Disabled":
            return Unknown("NVLink is not supported in MIG mode")
    if isinstance(virtualization, Known) and virtualization.value == "VGPU":
        return Unknown("NVLink is not supported on a virtual GPU")
    return Known((), note="NVLink is not supported on this GPU")


def _of_link(entry: dict[str, Any], index: int, link: dict[str, Any], datum: Datum) -> Reading[Any]:
    """A value of one link; what the first can't say the probe does not ask the others."""
    if link.get(datum.place) is not None:
        found = read(link, datum)
        return Unknown(f"of NVLink {index} {found.reason}") if isinstance(found, Unknown) else found
    unread = table(entry.get("unread"))
    silent = [key for key in unread if key.startswith("nvlink/") and key.endswith(f"/{datum.place}")]
    mine = f"nvlink/{index}/{datum.place}"
    why = absent(entry, mine if mine in silent or not silent else silent[0])
    return Unknown(f"{datum.place} of NVLink {index} is unknown: {why.reason}", missing=why.missing)


def pairs(entry: dict[str, Any], peers: Mapping[int, Reading[str]]) -> Reading[dict[str, str]]:
    """NVML's word for the NVLink path to each other GPU by bus id, unknown where one of them is.

    `peers` are the bus ids of all GPUs of the node by index.
    """
    found: dict[str, str] = {}
    if not isinstance(entry.get("p2p_nvlink"), dict):
        return absent(entry, "p2p_nvlink")
    for index, bus_id in peers.items():
        if index == entry.get("index"):
            continue
        label = f"nvmlDeviceGetP2PStatus({shown(entry.get('index'))}, {index})"
        word = values.name(entry["p2p_nvlink"].get(str(index)))
        if word is None or isinstance(bus_id, Unknown):
            return Unknown(f"{label}: {said(table(entry.get('errors')).get(label))}")
        found[bus_id.value] = word
    return Known(found)
