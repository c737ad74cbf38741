"""`dcgmi diag -j` of a simulated node, as DCGM 4 prints it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nodeready.simulate.outputs.output import Output

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_GROUP = {"entity_group": "GPU", "entity_group_id": 1}
_FAILED = 226
_WARNING = "GPU {0} failed its own test of memory: run a field diagnostic on the GPU."


def dcgm(node: Node) -> Output | None:
    """The document where somebody ran the diagnostic; one GPU's tests end as the node says, all others pass."""
    if not node.diagnostic:
        return None
    victim = len(node.gpus) // 2
    tests = [_test(name, said, victim, len(node.gpus)) for name, said in node.diagnostic.items()]
    entities = [
        {"device_id": gpu.product.device, "entity_id": place, "serial_num": gpu.serial}
        for place, gpu in enumerate(node.gpus)
    ]
    document = {
        "DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]},
        "entity_groups": [{**_GROUP, "entities": entities}],
        "metadata": {"Driver Version Detected": node.driver.library, "version": "4.4.2"},
    }
    failed = "Fail" in node.diagnostic.values()
    return Output(json.dumps(document, indent=3).encode() + b"\n", rc=_FAILED if failed else 0)


def _test(name: str, said: str, victim: int, gpus: int) -> dict[str, Any]:
    results = []
    for place in range(gpus):
        result: dict[str, Any] = {**_GROUP, "entity_id": place, "status": said if place == victim else "Pass"}
        if result["status"] == "Fail":
            warning = {"error_category": 1, "error_id": 38, "error_severity": 2, "warning": _WARNING.format(place)}
            result["warnings"] = [warning]
        results.append(result)
    return {"name": name, "results": results, "test_summary": {"status": said}}
