"""Nodes that are reached over a real sshd, a real podman and a real docker."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nodeready.node.catalogue import PROBES
from nodeready.simulate.write import simulate_commands

sys.path.insert(0, str(Path(__file__).parent))

import engines
import sshd

ROOT = Path(__file__).resolve().parents[2]
USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture(scope="session")
def nodes(tmp_path_factory):
    """A folder of simulated nodes' commands; `current` leads to the one that targets show."""
    return Path(tmp_path_factory.mktemp("nodes"))


@pytest.fixture(scope="session")
def show(nodes):
    """Let the targets be a node of these faults; made once each."""

    def go(*faults, node_type="sxm"):
        name = "+".join((node_type, *faults))
        if not (nodes / name).exists():
            simulate_commands(node_type, nodes / name, PROBES, faults)
        beside = nodes / ".current"
        beside.unlink(missing_ok=True)
        beside.symlink_to(name)
        beside.replace(nodes / "current")
        return nodes / name

    go()
    return go


@pytest.fixture(scope="session")
def target_path(nodes, show):
    """The PATH of the targets."""
    return f"{nodes}/current:{USUAL}"


@pytest.fixture(scope="session")
def ssh_node(target_path):
    """An sshd whose sessions find the shown node; any name that begins with `node` leads to it."""
    forced = f'ForceCommand PATH={target_path} exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    with sshd.Sshd(path=target_path, extra=forced) as up:
        yield up


@pytest.fixture(scope="session")
def podman_node(nodes, target_path):
    with engines.Podman() as podman:
        podman.start("nr-podman", target_path, (str(nodes),))
        yield podman


@pytest.fixture(scope="session")
def docker_node(nodes, target_path):
    with engines.Docker() as docker:
        docker.start("nr-docker", target_path, (str(nodes),))
        yield docker


class Run:
    """A `pytest checks/` over hosts: exit status, output, and the results by host."""

    def __init__(self, process, reports):
        self.rc, self.out = process.returncode, process.stdout + process.stderr
        self.results = {
            path.parent.parent.name: json.loads(path.read_text())
            for path in sorted(reports.glob("*/*/results.json"))
            if path.parent.name != "latest"
        }

    def verdicts(self, host):
        return {(f["key"], f["subject"]): (f["verdict"], f["observed"]) for f in self.results[host]["findings"]}

    def worst(self, host):
        """The worst verdict of each key over its subjects."""
        order = ("fail", "unverified", "advisory", "pass", "not-applicable")
        found = self.results[host]["findings"]
        return {
            key: min((f["verdict"] for f in found if f["key"] == key), key=order.index)
            for key in {f["key"] for f in found}
        }


@pytest.fixture
def over(tmp_path, plain_environment):
    """Run the gate over hosts; `meanwhile` is called with the running process."""

    def go(hosts, *arguments, env=None, meanwhile=None, tier="quick", timeout=120):
        reports = tmp_path / f"reports{len(list(tmp_path.glob('reports*')))}"
        command = [sys.executable, "-m", "pytest", "checks/", "-p", "no:cacheprovider", "--node-type", "sxm"]
        command += ["--tier", tier, "--hosts", hosts, "--report-dir", str(reports), *map(str, arguments)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**plain_environment, **(env or {})},
            start_new_session=True,
        ) as process:
            try:
                if meanwhile:
                    meanwhile(process)
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return Run(subprocess.CompletedProcess(command, process.returncode, out, err), reports)

    return go
