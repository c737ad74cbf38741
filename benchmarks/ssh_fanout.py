"""What a quick gate over ssh costs per host, as a ratio to a bare `ssh HOST true` of the same run.

    python benchmarks/ssh_fanout.py [--hosts 64] [--dead 10] [--ssh-config FILE --name NAME ...]

Without --ssh-config it starts an sshd of its own in a network namespace (root, Debian's openssh-server), whose
sessions find a simulated sxm node, so all that is measured is the suite, ssh and the machine under it. It prints
the median of a bare `ssh true`, the seconds per host of the whole command, their ratio (the aim is below 3 with
one host at a time waiting for nobody), and what dead and hanging hosts add.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "real"))

USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HANGING = "192.0.2."  # documentation addresses: nobody answers


def gate(hosts: list[str], config: Path, reports: str) -> tuple[float, int, str]:
    """Wall seconds, exit status and last line of one `pytest checks/` over the hosts."""
    command = [sys.executable, "-m", "pytest", "checks/", "-q", "-p", "no:cacheprovider", "--node-type", "sxm"]
    command += ["--tier", "quick", "--ssh-config", str(config), "--report-dir", reports, "--hosts", ",".join(hosts)]
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return time.perf_counter() - begin, done.returncode, (done.stdout.rstrip().splitlines() or [done.stderr])[-1]


def bare(config: Path, names: list[str], at_once: int) -> tuple[float, float]:
    """Median seconds of one `ssh NAME true`, and the wall seconds of all of them, so many at once."""

    def one(name: str) -> float:
        begin = time.perf_counter()
        subprocess.run(("ssh", "-F", str(config), "-o", "BatchMode=yes", name, "true"), capture_output=True, check=True)
        return time.perf_counter() - begin

    begin = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        took = list(pool.map(one, names))
    return statistics.median(took), time.perf_counter() - begin


def measure(config: Path, names: list[str], dead: int) -> None:
    """Print the figures of one run."""
    single, _ = bare(config, names[:8], 1)
    _, together = bare(config, names, len(names))
    specs = [f"ssh://{name}" for name in names]
    with tempfile.TemporaryDirectory() as reports:
        empty, _, _ = gate(["ssh://" + names[0], "local://"], config, reports)
        whole, status, last = gate(specs, config, reports)
        lost = [f"ssh://root@{HANGING}{n + 1}" for n in range(dead // 2)]
        lost += [f"ssh://{name}:1" for name in names[len(names) - (dead - len(lost)) :]]  # refused
        sick, sick_status, sick_last = gate(specs[: len(specs) - len(lost)] + lost, config, reports)
    count = len(names)
    print(f"bare `ssh true`, one after the other: {single * 1000:.0f} ms each; {count} at once: {together:.2f} s")
    print(f"quick gate over {count} hosts: {whole:.2f} s, {whole / count * 1000:.0f} ms a host (exit {status})")
    print(f"  {last}")
    print(f"ratio to bare ssh, a host: {whole / count / single:.2f} one by one, {whole / together:.2f} all at once")
    print(f"two hosts, one of them this machine: {empty:.2f} s")
    print(f"with {len(lost)} that are dead or hang: {sick:.2f} s, {sick - whole:+.2f} s (exit {sick_status})")
    print(f"  {sick_last}")


def main() -> None:
    """Read the options, start what is missing, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--dead", type=int, default=10)
    parser.add_argument("--ssh-config", type=Path)
    parser.add_argument("--name", action="append", default=[])
    options = parser.parse_args()
    if options.ssh_config:
        measure(options.ssh_config, options.name, options.dead)
        return
    import sshd

    from nodeready.node.catalogue import PROBES
    from nodeready.simulate.write import simulate_commands

    with tempfile.TemporaryDirectory() as folder:
        simulate_commands("sxm", Path(folder, "node"), PROBES)
        path = f"{folder}/node:{USUAL}"
        forced = f'ForceCommand PATH={path} exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
        with sshd.Sshd(path=path, extra=forced) as up:
            measure(up.config, [f"node{n + 1}" for n in range(options.hosts)], options.dead)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main()
