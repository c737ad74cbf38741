"""What the kernel log tells of links: NVLinks that did not train, network adapters, GPUDirect."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nodeready.facts.kernel_links import ADAPTER, ADAPTER_WARNING, NVLINK, PEERMEM
from nodeready.node.host_log import HostLog

if TYPE_CHECKING:
    from nodeready.facts.kernel_host import HostEvent
    from nodeready.reading import Reading


class LinkLog(HostLog):
    """The faults of links since boot, counted as the host's own are."""

    @cached_property
    def _events(self) -> list[HostEvent]:
        if len(self._logs) == 1:
            return list(self._logs[0][1].links)
        return list(dict.fromkeys(event for _, log in self._logs for event in log.links))

    @property
    def nvlink_faults(self) -> Reading[int]:
        """NVLinks that the driver found dead without an Xid."""
        return self._count(NVLINK)

    @property
    def adapter_faults(self) -> Reading[int]:
        """Network adapters whose firmware gave up."""
        return self._count(ADAPTER)

    @property
    def adapter_warnings(self) -> Reading[int]:
        """Adapters that are hot or short of power, and errors of GPUDirect."""
        return self._count(ADAPTER_WARNING, PEERMEM)
