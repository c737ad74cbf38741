"""A node readiness suite for GPU servers: what was not measured is never a pass."""

__version__ = "2026.12.dev0"
