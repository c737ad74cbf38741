"""What failures look like from a layer above: so that a finding can name its cause."""

from __future__ import annotations

# without these CUDA starts on no GPU
STARTS_CUDA = ("driver.responds", "driver.device-files")
FABRIC = ("nvlink.fabric-manager", "nvlink.fabric-state")


def waits_for_fabric(error: str) -> bool:
    """Whether CUDA refused because the fabric is not up: error 802."""
    return "802" in error or "not yet initialized" in error
