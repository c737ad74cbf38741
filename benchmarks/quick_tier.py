"""What the quick tier costs of its own: against a pytest run of as many empty items with the same plugins.

Run from the project's root: `.venv/bin/python benchmarks/quick_tier.py [--rounds 7]`. All figures are medians of
runs taken in turn. "fixed" is what a run costs with no item at all, above pytest with the same plugins and no item;
"per finding" is the rest, above as many empty items, divided by the findings.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EMPTY_ITEMS = """
import pytest

@pytest.fixture
def gpu(request):
    return request.param

@pytest.mark.parametrize("gpu", range({count}), indirect=True)
def test_empty(gpu):
    pass
"""


def timed(command, cwd):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, check=False, env={**env, "PYTHONPYCACHEPREFIX": str(cwd / "bytecode")}
    )
    return time.perf_counter() - begin, done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    python, bin_dir = sys.executable, Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        node, reports = work / "node", work / "reports"
        subprocess.run([bin_dir / "nodeready", "simulate", "sxm", "--out", node], check=True, capture_output=True)
        gate = [
            python,
            "-m",
            "pytest",
            ROOT / "checks",
            f"--rootdir={ROOT}",
            "-p",
            "no:cacheprovider",
            "--import-mode=importlib",
        ]
        gate += ["--node-type=sxm", f"--evidence={node}", f"--report-dir={reports}"]
        _, first = timed([*gate, "--tier=quick"], work)
        if first.returncode:
            sys.exit(first.stdout.decode()[-2000:])
        results = json.loads(max(reports.glob("node/2*/results.json")).read_text())
        findings = len(results["findings"])
        items = len({(f["check"], f["subject"]) for f in results["findings"]})
        for folder, count in (("empty", items), ("bare", 1)):
            (work / folder).mkdir()
            (work / folder / "test_empty.py").write_text(EMPTY_ITEMS.format(count=count))
        html = ["--self-contained-html", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
        commands = {
            "quick tier": [*gate, "--tier=quick"],
            f"{items} empty items": [python, "-m", "pytest", "empty", f"--html={work / 'a.html'}", *html],
            "1 empty item": [python, "-m", "pytest", "bare", f"--html={work / 'b.html'}", *html],
            "quick tier, 1 item": [*gate, "--tier=quick", "-k", "test_installed_memory"],
            "nodeready judge": [
                bin_dir / "nodeready",
                "judge",
                node,
                "--node-type=sxm",
                "--tier=quick",
                f"--report-dir={reports}",
            ],
            "python -c pass": [python, "-c", "pass"],
        }
        seconds = {label: [] for label in commands}
        for _ in range(rounds):
            for label, command in commands.items():
                seconds[label].append(timed(command, work)[0])
        median = {label: statistics.median(values) for label, values in seconds.items()}
        for label, value in median.items():
            print(
                f"{label:24} {value:7.3f} s   (min {min(seconds[label]):.3f}, max {max(seconds[label]):.3f}, {rounds} rounds)"
            )
        fixed = median["quick tier, 1 item"] - median["1 empty item"]
        above = median["quick tier"] - median[f"{items} empty items"]
        print(f"findings {findings}, items {items}")
        print(f"quick tier above the empty run: {above:.3f} s = {1000 * above / findings:.2f} ms per finding in all")
        print(
            f"  of which fixed {fixed:.3f} s (aim: below 0.3), the rest {1000 * (above - fixed) / findings:.2f} ms per finding (aim: 1.5)"
        )
        print(
            f"nodeready judge: {median['nodeready judge']:.3f} s (aim: below 0.5), {median['nodeready judge'] / median['python -c pass']:.0f} x an empty Python"
        )


if __name__ == "__main__":
    main()
