"""What lines of the kernel log say of NVLinks that did not train, of network adapters, and of GPUDirect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.facts.kernel_host import HostEvent, said

if TYPE_CHECKING:
    from collections.abc import Iterable

NVLINK, ADAPTER, ADAPTER_WARNING, PEERMEM = "nvlink", "adapter", "adapter-warning", "peermem"

_MLX = r"mlx5_(?:core|ib) .{0,160}?"
_GAVE_UP = (
    r"(?:[Hh]ealth (?:compromised|issue observed)|device's health compromised|unrecoverable|assert_var\[0\]"
    r"|Fatal error [0-9]{1,3} detected|[Cc]ould not recover|leak of a command resource)"
)
_SUFFERS = (
    r"(?:Detected insufficient power on the PCIe slot|High temperature on sensors?|Port module event\[error\]"
    r"|Cable (?:error|is shorted|overheat)|[Pp]ort module .{0,60}[Hh]igh [Tt]emperature)"
)
_KINDS = {
    # the driver found a link dead while it trained it; no Xid follows
    NVLINK: r"NVRM: (?:GPU ?[0-9]{0,2} )?knvlink\w{3,60}: .{0,200}(?:[Ff]ailed|[Ee]rror)"
    r"|nvidia-nvlink: .{0,80}(?:link training failed|ALI Error)",
    ADAPTER: _MLX + _GAVE_UP,
    ADAPTER_WARNING: _MLX + _SUFFERS,
    PEERMEM: r"nvidia-peermem \w{1,60}:[0-9]{1,5} ERROR|could not insert 'nv_?peer_?mem'"
    r"|(?:nv_peer_mem|nvidia[_-]peermem).{0,60}(?:ib_register_peer_memory_client failed|Unknown symbol"
    r"|disagrees about version)",
}
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in _KINDS.items()}
_WORDS = ("nvlink", "mlx5_", "peer")
# what adapters answer that a checker asked for counters it may not read: made by the asking, not by a fault
_ASKED = "ACCESS_REG"


def link_events(text: Iterable[str]) -> tuple[HostEvent, ...]:
    """The events of a log's lines, in their order.

    >>> said = "NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!"
    >>> [event.kind for event in link_events([f"[   12.1] {said}", "mlx5_core 0000:1a:00.0: firmware version: 28.43"])]
    ['nvlink']
    """
    found = []
    for line in text:
        if not any(word in line for word in _WORDS) or "audit" in line or _ASKED in line:
            continue
        kind = next((kind for kind, pattern in _PATTERNS.items() if pattern.search(line)), "")
        if kind:
            found.append(HostEvent(kind, said(line)))
    return tuple(found)
