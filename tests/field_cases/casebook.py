"""All cases of this folder, each module under its own name."""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent


def load(name):
    """A module of this folder, under its own name: the others import it so."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


field_case, edits, host_proofs = load("field_case"), load("edits"), load("host_proofs")
SECTIONS = {path.stem: load(path.stem).CASES for path in sorted(HERE.glob("cases_*.py"))}
CASES = [case for cases in SECTIONS.values() for case in cases]
