"""Where checks/ and baselines/ are: beside the sources, or inside the installed wheel."""

from __future__ import annotations

from pathlib import Path


def folder(name: str) -> Path:
    """The folder of that name; raises `FileNotFoundError` in a broken installation."""
    here = Path(__file__).resolve().parent
    for candidate in (here / "_shipped" / name, here.parents[1] / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"nodeready is installed without its {name}/ folder: install it again")
