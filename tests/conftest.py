"""What the tests share: the captures of real nodes, and runs of the gate in process and as a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# the day of the first baselines: dated tables would go stale under the tests
os.environ["SOURCE_DATE_EPOCH"] = "1796083200"

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", ROOT / "../shared/captures")).resolve()


def pytest_terminal_summary(terminalreporter):
    if not (CAPTURES / "INDEX.md").is_file():
        terminalreporter.write_line(f"NO CAPTURES at {CAPTURES}: the tests on real outputs did not run", red=True)


@pytest.fixture(scope="session")
def captures():
    assert (CAPTURES / "INDEX.md").is_file(), f"no captures at {CAPTURES}: set NODEREADY_CAPTURES"
    return CAPTURES


@pytest.fixture
def judge(tmp_path):
    """Judge evidence in process and give back (results, findings by (key, subject))."""
    from nodeready import results
    from nodeready.check import load_checks
    from nodeready.gate import Gate, Request

    checks = load_checks()

    def run(evidence, node_type="sxm", **options):
        gate = Gate.open(
            Request(node_type=node_type, evidence=str(evidence), report_dir=str(tmp_path / "reports"), **options)
        )
        gate.make_folder()
        judging = gate.gather(lambda _: None)
        judging.run_all(checks)
        found = results.build(gate, judging)
        return found, {(f["key"], f["subject"]): f for f in found["findings"]}

    return run


@pytest.fixture(scope="session")
def plain_environment(tmp_path_factory):
    """The environment of a run: byte code is kept, as on an operator's machine, but out of the tree."""
    env = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
    }
    return {**env, "PYTHONPYCACHEPREFIX": str(tmp_path_factory.mktemp("bytecode"))}


@pytest.fixture
def gate_run(tmp_path, plain_environment):
    """Run `pytest checks/` as a process from the project's root: (process, results or None)."""

    def run(*arguments, cwd=ROOT, env=None, first=("checks/",)):
        reports = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        process = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                *first,
                "-p",
                "no:cacheprovider",
                "--report-dir",
                str(reports),
                *map(str, arguments),
            ],
            capture_output=True,
            text=True,
            cwd=cwd,
            env={**plain_environment, **(env or {})},
            timeout=300,
        )
        found = [p for p in reports.glob("*/*/results.json") if p.parent.name != "latest"]
        return process, json.loads(found[0].read_text()) if found else None

    return run


@pytest.fixture
def folder_of(tmp_path):
    """An evidence folder of some files: name -> text or bytes."""

    def make(files, name="evidence"):
        folder = tmp_path / name
        for file_name, content in files.items():
            path = folder / file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    return make


@pytest.fixture(scope="session")
def healthy(tmp_path_factory):
    """The evidence folder of a healthy simulated sxm node; not to be changed."""
    from nodeready.simulate.write import simulate

    folder = tmp_path_factory.mktemp("simulated") / "node"
    simulate("sxm", folder, [], {}, 0)
    return folder


@pytest.fixture(scope="session")
def healthy_files(healthy):
    """Its files: name -> bytes."""
    return {p.relative_to(healthy).as_posix(): p.read_bytes() for p in sorted(healthy.rglob("*")) if p.is_file()}
