"""What the quick tier costs of its own, above a pytest run of as many empty items with the same plugins.

Run from the project's root: `.venv/bin/python benchmarks/quick_tier.py [--rounds 7]`. All runs are taken in turn and the
medians compared. A node of one GPU and one of eight give two points: the slope between them is the cost per finding,
what is left at no finding is fixed.
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


def timed(command, work):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(work / "bytecode")
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, env=env)
    if done.returncode:
        sys.exit(f"{command} exited {done.returncode}\n{done.stdout.decode()[-3000:]}{done.stderr.decode()[-2000:]}")
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    python, nodeready = sys.executable, Path(sys.executable).parent / "nodeready"
    plain = [python, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    commands, findings = {"python -c pass": [python, "-c", "pass"]}, {}
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for gpus in (1, 8):
            node, reports = work / f"node{gpus}", work / f"reports{gpus}"
            sized = ["--set", f"gpu.count={gpus}"]
            subprocess.run([nodeready, "simulate", "sxm", "--out", node, *sized], check=True, capture_output=True)
            gate = ["--node-type=sxm", f"--evidence={node}", f"--report-dir={reports}", "--tier=quick", *sized]
            commands[f"quick tier, {gpus} GPU"] = [*plain, "checks/", *gate]
            timed(commands[f"quick tier, {gpus} GPU"], work)
            found = json.loads(next(reports.glob("*/2*/results.json")).read_text())["findings"]
            findings[gpus] = len(found)
            items = len({(f["check"], f["subject"]) for f in found})
            empty = work / f"test_empty{gpus}.py"
            empty.write_text(EMPTY_ITEMS.format(count=items))
            html = [f"--html={work}/empty.html", "--self-contained-html", f"--rootdir={work}"]
            commands[f"empty run, {gpus} GPU"] = [*plain, empty, *html]
            commands[f"nodeready judge, {gpus} GPU"] = [
                nodeready,
                "judge",
                node,
                "--node-type=sxm",
                "--tier=quick",
                f"--report-dir={reports}",
                *sized,
            ]
        seconds = {label: [] for label in commands}
        for _ in range(rounds):
            for label, command in commands.items():
                seconds[label].append(timed(command, work))
    median = {label: statistics.median(values) for label, values in seconds.items()}
    for label, value in median.items():
        print(
            f"{label:24} {value:7.3f} s   (min {min(seconds[label]):.3f}, max {max(seconds[label]):.3f}, {rounds} rounds)"
        )
    for what in ("quick tier", "nodeready judge"):
        above = {
            g: median[f"{what}, {g} GPU"] - (median[f"empty run, {g} GPU"] if what == "quick tier" else 0)
            for g in (1, 8)
        }
        slope = (above[8] - above[1]) / (findings[8] - findings[1])
        fixed = above[1] - slope * findings[1]
        base = "above the empty run" if what == "quick tier" else "in all"
        print(
            f"{what}: {findings[8]} findings, {above[8]:.3f} s {base}: fixed {fixed:.3f} s, {1000 * slope:.2f} ms per finding"
        )
    print(
        "aims: quick tier fixed below 0.3 s and 1.5 ms per finding above the empty run; nodeready judge below 1 s in all"
    )


if __name__ == "__main__":
    main()
