"""Jinja2 environments whose compiled templates are kept where Python keeps its own byte code."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(folder: Path, **options: Any) -> Environment:
    """The templates of a folder; compiling them anew would take longer than filling them."""
    from jinja2 import Environment, FileSystemLoader

    return Environment(loader=FileSystemLoader(folder), bytecode_cache=_byte_code_cache(), **options)  # noqa: S701 - the caller says how to escape


def _byte_code_cache() -> Any:
    from jinja2 import BytecodeCache

    place = Path(importlib.util.cache_from_source(__file__)).parent

    class BesidePython(BytecodeCache):
        """Python's rules: nothing is written where it may not be, and a cache that cannot be read is none."""

        def _path(self, bucket: Any) -> Path:
            return place / f"{bucket.key}.{sys.implementation.cache_tag}.jinja"

        def load_bytecode(self, bucket: Any) -> None:
            try:
                with self._path(bucket).open("rb") as handle:
                    bucket.load_bytecode(handle)
            except OSError:
                bucket.reset()

        def dump_bytecode(self, bucket: Any) -> None:
            if sys.dont_write_bytecode:
                return
            path = self._path(bucket)
            beside = path.with_name(f"{path.name}.{os.getpid()}")
            try:
                place.mkdir(parents=True, exist_ok=True)
                with beside.open("wb") as handle:
                    bucket.write_bytecode(handle)
                beside.replace(path)
            except OSError:
                return

    return BesidePython()
