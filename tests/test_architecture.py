"""Arrows point one way, rooms are small, and checks never skip."""

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import nodeready

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "nodeready").rglob("*.py"))
CORE = ("reading", "quantity", "verdict", "expectation")

# what a package or module may import of nodeready
ALLOWED = {
    "reading": set(),
    "quantity": set(),
    "verdict": set(),
    "expectation": {"quantity", "reading", "verdict"},
    "overlay": {"expectation", "quantity"},
    "baseline": {"overlay", "setting", "shipped", "expectation"},
    "setting": {"overlay", "expectation", "quantity", "baseline"},
    "plan": {"baseline", "verdict", "expectation"},
    "check": {"shipped", "reading"},
    "evidence": {"evidence"},
    "facts": {"facts", "reading", "quantity", "evidence"},
    "render": {"render"},
    "probes": {"probes"},
    "node": {"node", "facts", "reading", "quantity", "evidence", "probes"},
    "simulate": {"simulate", "quantity", "baseline", "overlay"},
    "earlier": set(),
    "difference": set(),
    "site_overlay": {"baseline", "engine", "expectation", "node", "quantity", "reading", "render"},
    "engine": {"expectation", "plan", "reading", "verdict", "check", "node"},
}


def imports(path):
    for entry in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(entry, ast.Import):
            names = [alias.name for alias in entry.names]
        elif isinstance(entry, ast.ImportFrom) and entry.module:
            names = [entry.module, *(f"{entry.module}.{alias.name}" for alias in entry.names)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "nodeready" and len(parts) > 1:
                yield parts[1]
            elif parts[0] != "nodeready":
                yield f"!{parts[0]}"


def room(path):
    return path.relative_to(ROOT / "src" / "nodeready").with_suffix("").parts[0]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows(path):
    allowed = ALLOWED.get(room(path))
    if allowed is None:
        return
    rooms = {room(p) for p in SOURCES}
    used = {name for name in imports(path) if not name.startswith("!") and name in rooms}
    assert used <= allowed, f"{path.name} imports {used - allowed}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_imports_have_their_place(path):
    outside = {name[1:] for name in imports(path) if name.startswith("!")}
    assert path.name == "pytest_plugin.py" or not {"pytest", "_pytest"} & outside
    assert room(path) == "probes" or not {"torch", "pynvml", "numpy"} & outside
    if room(path) == "facts":
        assert not {"os", "subprocess", "socket", "pathlib", "io"} & outside, "facts do no I/O"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_are_small(path):
    # the nvml probe stands alone: parent, worker and all its questions travel as one text
    most = 800 if path.name == "nvml.py" and room(path) == "probes" else 360 if room(path) == "probes" else 330
    assert len(path.read_text().splitlines()) <= most


@pytest.mark.parametrize("path", sorted((ROOT / "checks").glob("*.py")), ids=lambda p: p.name)
def test_checks_never_skip(path):
    assert not {"skip", "xfail", "importorskip"} & {
        getattr(n, "attr", "") for n in ast.walk(ast.parse(path.read_text()))
    }
    assert f"test_{path.stem.removeprefix('test_')}" == path.stem


def modules():
    for found in pkgutil.walk_packages(nodeready.__path__, "nodeready."):
        if not found.name.startswith(("nodeready.probes.", "nodeready.pytest_plugin", "nodeready._shipped")):
            yield found.name


@pytest.mark.parametrize("name", sorted(modules()))
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.parametrize("path", sorted((ROOT / "src/nodeready/facts").glob("*.py")), ids=lambda p: p.name)
def test_parsers_take_bytes_and_show_a_sample(path):
    functions = [
        n for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef) and n.name.startswith("parse")
    ]
    for function in functions:
        first = function.args.args[0]
        assert ast.unparse(first.annotation) == "bytes"
    if functions:
        assert ">>>" in path.read_text()
