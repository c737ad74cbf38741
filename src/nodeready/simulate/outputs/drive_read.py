"""The document of the drive-read probe: how fast each NVMe drive reads, and what it says where it does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.model import READ_AT_SECONDS
from nodeready.simulate.outputs.output import Output
from nodeready.simulate.outputs.storage import MODEL

if TYPE_CHECKING:
    from nodeready.simulate.host_model import Drive
    from nodeready.simulate.model import Node

_BLOCK, _BYTES, _SECONDS = 1 << 20, 3_840_755_982_336, 2.0
_GTS, _WIDTH = 16.0, 4
_CARRIES = _GTS * _WIDTH / 8 * 128 / 130  # GB/s
_FIGURES = ("seconds", "gb_s", "p5", "cv", "blocks", "blank", "read_errno", "read_offset")


def document(node: Node) -> Output | None:
    """What the probe prints; None in a virtual machine, where it is not run."""
    if node.shape.virtual:
        return None
    known = [drive for drive in node.host.drives if drive.driven]
    about = {
        "probe": "drive-read",
        "schema": 1,
        "python": node.torch.python,
        "started": READ_AT_SECONDS,
        "seed": 1,
        "block_bytes": _BLOCK,
        "threads": 8,
        "seconds": round(2.6 * len(known), 3),
        "results": [_entry(node, drive) for drive in known],
        "error": None,
    }
    return Output(f"{json.dumps(about)}\n".encode())


def _entry(node: Node, drive: Drive) -> dict[str, Any]:
    live = drive.state == "live"
    entry = {
        "device": f"{drive.name}n1" if live else drive.name,
        "drive": drive.name,
        "bus_id": drive.bus_id,
        "model": MODEL,
        "serial": drive.serial,
        "bytes": _BYTES if live else None,
        "link_gts": _GTS,
        "link_width": _WIDTH,
        "in_flight": 0 if live else None,
        "others_before_gb_s": drive.others if live else None,
        "others_during_gb_s": drive.others if live else None,
        **dict.fromkeys(_FIGURES),
        "error": None,
    }
    if not live:
        return {**entry, "error": f"{drive.name} shows no namespace, its state is {drive.state}"}
    if not node.host.drives_open:
        nothing = {"others_during_gb_s": None}
        return {
            **entry,
            **nothing,
            "error": f"/dev/{drive.name}n1 cannot be opened for direct reads: Permission denied",
        }
    if drive.bad_at is not None:
        words = f"read at byte {drive.bad_at}: Input/output error"
        return {**entry, "seconds": 0.38, "read_errno": "EIO", "read_offset": drive.bad_at, "error": words}
    return {**entry, **_figures(node, drive)}


def _figures(node: Node, drive: Drive) -> dict[str, Any]:
    rng = node.stream("drive-read", drive.name)
    usual = rng.uniform(0.81, 0.87)
    rate = _CARRIES * (usual if drive.read_share is None else drive.read_share)
    return {
        "seconds": 2.254,
        "gb_s": round(rate, 4),
        "p5": round(rate * rng.uniform(0.97, 0.99), 4),
        "cv": round(rng.uniform(0.004, 0.015), 4),
        "blocks": int(rate * 1e9 * (_SECONDS + 0.25) / _BLOCK),
        "blank": round(rng.uniform(0.2, 0.5), 3),  # a new drive holds little
    }
