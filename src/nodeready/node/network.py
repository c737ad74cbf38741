"""The node's network ports, by the RDMA stack and by the kernel's interfaces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.facts import ibstat, infiniband_sysfs, ip_link
from nodeready.reading import Known, Reading, Unknown, first_unknown

if TYPE_CHECKING:
    from nodeready.facts.ibstat import Port
    from nodeready.facts.ip_link import Interface
    from nodeready.node.sources import Sources
    from nodeready.quantity import Quantity

# interfaces that stand for others: counting them would count a port twice, or none at all
_VIRTUAL = re.compile(
    r"(lo|bond|team|br|docker|veth|virbr|vnet|cni|flannel|cali|tun|tap|dummy|vxlan|ib\d*\.)[\w.-]*|.*[.@:].*"
)


class Network:
    """Ports that carry traffic at the demanded rate."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def ports_at_rate(self) -> Reading[int]:
        """Active ports of at least the rate: RoCE ports stand in both lists, so the longer one counts."""
        rdma, ethernet = self._rdma(), self._ethernet()
        known = [reading for reading in (rdma, ethernet) if isinstance(reading, Known)]
        unknown = [reading for reading in (rdma, ethernet) if isinstance(reading, Unknown)]
        if not known:
            reason = "; ".join(reading.reason for reading in unknown)
            return Unknown(reason, recordings=tuple(r for reading in unknown for r in reading.recordings))
        best = max(known, key=lambda reading: reading.value)
        blind = [reading for reading in unknown if not reading.missing]
        if not blind:
            return best
        doubt = f"there may be more: {'; '.join(reading.reason for reading in blind)}"
        return Known(best.value, note=best.note, recordings=best.recordings, doubt=doubt)

    def _rdma(self) -> Reading[int]:
        """Active ports of InfiniBand or RoCE adapters."""
        forms = ((ibstat.IBSTAT, ibstat.parse), (infiniband_sysfs.INFINIBAND_SYSFS, infiniband_sysfs.parse))
        absent: list[Unknown] = []
        for probe, parse in forms:
            ports = self._sources.documents.read(probe, parse)
            if not isinstance(ports, Unknown):
                return self._counted(ports, probe.name)
            if not ports.missing:
                return ports
            absent.append(ports)
        return Unknown("; ".join(form.reason for form in absent), missing=True)

    def _counted(self, ports: tuple[Port, ...], name: str) -> Reading[int]:
        if any(isinstance(port.link_layer, Unknown) for port in ports):
            return Unknown(f"{name} stops in the middle of a port", recordings=(name,))
        up, doubtful = [], []
        for port in ports:
            where = f"{port.adapter}/{port.port}"
            if isinstance(port.state, Known) and port.state.value != "Active":
                continue
            if isinstance(port.physical_state, Known) and port.physical_state.value != "LinkUp":
                continue
            if first_unknown(port.state, port.physical_state, port.rate) is not None:
                doubtful.append(where)
            elif isinstance(port.rate, Known) and port.rate.value >= self._sources.terms.port_rate:
                up.append((where, port.rate.value))
        return self._summed(up, doubtful, name)

    def _ethernet(self) -> Reading[int]:
        """Interfaces that are up, with the speed that the kernel gives for them."""
        documents = self._sources.documents
        interfaces = documents.read(ip_link.IP_LINK, ip_link.parse)
        speeds = documents.read(ip_link.NET_SPEED, ip_link.parse_speeds)
        if isinstance(interfaces, Unknown):
            return interfaces
        if isinstance(speeds, Unknown):
            return speeds
        up, doubtful = [], []
        for interface in interfaces:
            if _VIRTUAL.fullmatch(interface.name) or not _is_up(interface):
                continue
            speed = speeds.get(interface.name)
            if speed is None or isinstance(speed, Unknown):
                doubtful.append(interface.name)
            elif speed.value >= self._sources.terms.port_rate:
                up.append((interface.name, speed.value))
        return self._summed(up, doubtful, ip_link.IP_LINK.name, ip_link.NET_SPEED.name)

    @staticmethod
    def _summed(up: list[tuple[str, Quantity]], doubtful: list[str], *names: str) -> Reading[int]:
        note = ", ".join(f"{where} {rate}" for where, rate in up)
        doubt = f"state or rate of {', '.join(doubtful)} is unknown" if doubtful else ""
        return Known(len(up), note=note, recordings=names, doubt=doubt)


def _is_up(interface: Interface) -> bool:
    return isinstance(interface.operstate, Known) and interface.operstate.value == "UP"
