"""Nodes elsewhere: over a real sshd, podman and docker the same node gives the same findings."""

import os
import signal
import time
from pathlib import Path

import pytest
import sshd
from engines import Docker

from nodeready.simulate.write import simulate

FAULTS = [(), ("gpu-fell-off-the-bus",), ("row-remap-pending", "nvlink-link-down", "dmidecode-denied")]


def running(word):
    """The processes whose command line holds a word, other than this one."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line and state != "Z":
                found.append(int(folder.name))
    return found


def gone(word, seconds):
    end = time.monotonic() + seconds
    while running(word):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: "+".join(faults) or "healthy")
def test_the_same_node_gives_the_same_findings_by_every_way(
    faults, show, ssh_node, podman_node, docker_node, over, judge, tmp_path
):
    commands = show(*faults)
    simulate("sxm", tmp_path / "evidence", faults)
    found, _ = judge(tmp_path / "evidence", tier="quick")
    expected = {(f["key"], f["subject"]): (f["verdict"], f["observed"]) for f in found["findings"]}
    here = over("local://", env={"PATH": f"{commands}:{os.environ['PATH']}"})
    (name,) = here.results
    assert here.verdicts(name) == expected, here.out
    for host, spec, env, options in (
        ("node1", "ssh://node1", {}, ("--ssh-config", ssh_node.config)),
        ("nr-podman", "podman://nr-podman", podman_node.env, ()),
        ("nr-docker", "docker://nr-docker", docker_node.env, ()),
    ):
        run = over(spec, *options, env=env)
        assert run.verdicts(host) == expected, run.out
        assert run.rc == here.rc == found["exit_status"]


def test_several_hosts_are_judged_side_by_side_and_their_statuses_joined(show, ssh_node, podman_node, over):
    show("nvlink-link-down")
    hosts = "ssh://node1,podman://nr-podman,ssh://root@node2:1,ssh://nosuchhost.invalid"
    run = over(hosts, "--ssh-config", ssh_node.config, env=podman_node.env)
    assert run.rc == 1
    assert {host: found["exit_status"] for host, found in run.results.items()} == {
        "node1": 1,
        "nr-podman": 1,
        "node2": 10,
        "nosuchhost.invalid": 10,
    }
    assert "Connection refused" in run.out
    assert "Could not resolve hostname nosuchhost.invalid" in run.out
    assert run.out.rstrip().splitlines()[-1] == "4 HOSTS at tier quick: 2 rejected, 2 incomplete"
    assert all(found["coverage"]["judged"] == 0 for host, found in run.results.items() if host.startswith("nos"))


def test_a_part_of_the_checks_over_hosts_is_no_acceptance(show, ssh_node, over):
    show()
    run = over("ssh://node1,ssh://node2", "--ssh-config", ssh_node.config, "-k", "link_width")
    assert run.rc == 10
    assert all(found["subset"] for found in run.results.values())
    assert "subset: not an acceptance" in run.out.rstrip().splitlines()[-1]


@pytest.fixture
def slow(show, nodes):
    """A node on which `docker info` takes for ever; its command line holds a word to find it by."""
    commands = show("row-remap-failure")
    script = commands / "docker"
    before, word = script.read_text(), f"61.{os.getpid()}"
    script.write_text(f"#!/bin/sh\nexec sleep {word}\n")
    yield word
    script.write_text(before)


def test_an_sshd_that_dies_in_mid_run_leaves_the_node_incomplete_and_what_came_is_kept(target_path, slow, over):
    forced = f'ForceCommand PATH={target_path} exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    with sshd.Sshd(path=target_path, extra=forced) as up:

        def kill(_):
            end = time.monotonic() + 30
            while not running(slow) and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(1.5)
            up.kill()

        begin = time.monotonic()
        run = over("ssh://node1", "--ssh-config", up.config, meanwhile=kill)
        took = time.monotonic() - begin
        assert gone(slow, 15), "the probe still runs on the target"
    found = run.results["node1"]
    assert took < 60
    assert found["exit_status"] == run.rc == 1  # the failed row remap was recorded before
    verdicts = run.worst("node1")
    assert verdicts["platform.os"] == "pass"
    assert verdicts["health.row-remap-failure"] == "fail"
    assert verdicts["container.runtime"] == "unverified"
    reasons = {f["key"]: f["reason"] for f in found["findings"]}
    assert "connection was lost before the end" in reasons["container.runtime"]


def test_an_interrupt_ends_what_runs_on_all_hosts(slow, ssh_node, over):
    def interrupt(process):
        end = time.monotonic() + 30
        while len(running(slow)) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)

    run = over("ssh://node1,ssh://node2", "--ssh-config", ssh_node.config, meanwhile=interrupt)
    assert run.rc == 2, run.out
    assert gone(slow, 15)


TARGETS = {
    "a login banner and a profile that prints": "echo 'Welcome to the cluster!'; printf '\\033[1mhi'; ",
    "a slow shell profile": "sleep 4; ",
    "another locale": "export LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 LANGUAGE=de; ",
}


@pytest.mark.parametrize("before", TARGETS.values(), ids=TARGETS)
def test_an_odd_target_gives_the_right_answer(before, target_path, show, over, tmp_path):
    show()
    (tmp_path / "banner").write_text("*** authorised use only ***\n")
    script = tmp_path / "forced"
    script.write_text(f'{before}PATH={target_path} exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    with sshd.Sshd(extra=f"ForceCommand /bin/bash {script}\nBanner {tmp_path}/banner\n") as up:
        run = over("ssh://node1", "--ssh-config", up.config)
    assert run.rc == 0, run.out
    assert "ACCEPTED at tier quick on node1" in run.out


BARE = ("sh", "cat", "timeout", "base64", "date", "uname", "id", "tail", "tr", "cut", "sleep", "grep", "sed", "ls")
BARE += ("dirname", "readlink", "env")


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """A folder of the few programs that a target without Python has."""
    folder = tmp_path_factory.mktemp("bare")
    for name in BARE:
        program = next(p for p in (Path("/usr/bin", name), Path("/bin", name)) if p.exists())
        (folder / name).symlink_to(program)
    return folder


@pytest.mark.parametrize("fault", [(), ("row-remap-failure",)], ids=["healthy", "sick"])
def test_a_target_without_python_is_asked_by_its_shell(fault, nodes, bare, show, over):
    show(*fault)
    path = f"{nodes}/current:{bare}"
    with sshd.Sshd(extra=f'ForceCommand PATH={path} exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n') as up:
        run = over("ssh://node1", "--ssh-config", up.config)
    assert "no python3 of 3.9 or newer there" in run.out
    verdicts = run.worst("node1")
    assert verdicts["health.row-remap-failure"] == ("fail" if fault else "pass")
    assert run.rc == (1 if fault else 0), run.out


def test_a_container_of_busybox_alone_gets_a_plain_sentence(nodes, show, over, docker_node):
    assert isinstance(docker_node, Docker)
    show()
    docker_node.start("nr-bare", "/bin", (), system=False)
    run = over("docker://nr-bare", env=docker_node.env)
    assert run.rc == 1
    assert "no python3 of 3.9 or newer there" in run.out
    assert "nvidia-smi: command not found" in run.out
    gone_run = over("docker://nr-nobody", env=docker_node.env)
    assert gone_run.rc == 10
    assert "No such container: nr-nobody" in gone_run.out


def test_a_sudo_that_asks_for_a_password_costs_only_what_needs_root(target_path, show, nodes, over):
    show()
    nodes.chmod(0o755)
    for folder in (nodes, *nodes.parents):
        if folder != Path("/") and not folder.stat().st_mode & 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    forced = f"PATH={target_path} exec setpriv --reuid=65534 --regid=65534 --clear-groups"
    with sshd.Sshd(extra=f'ForceCommand {forced} /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n') as up:
        run = over("ssh://node1", "--ssh-config", up.config, "--sudo")
    assert run.rc in (0, 10)
    found = run.results["node1"]
    assert run.worst("node1")["health.row-remap-failure"] == "pass"
    (memory,) = [f for f in found["findings"] if f["key"] == "memory.installed"]
    assert "sudo: a password is required" in str(memory)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("node1",), "--hosts node1: say how to reach it, such as ssh://node1"),
        (("salt://node1",), "known ways are local://, ssh://"),
        (("ssh://a,ssh://a",), "names ssh://a twice"),
        (("ssh://a", "--evidence", "x"), "a node is asked, or its evidence is judged"),
        (("ssh://a", "--node-type", "auto"), "name what the remote node should be"),
        (("local://", "--ssh-config", "x"), "--ssh-config is for remote hosts"),
        (("ssh://a", "--connection", "ssh"), "write the connection before each host"),
        ((",",), "--hosts names no host"),
    ],
)
def test_what_cannot_be_carried_is_a_usage_error(options, sentence, over):
    run = over(*options)
    assert (run.rc, run.results) == (4, {})
    assert sentence in run.out


@pytest.fixture
def remote(ssh_node):
    """The node behind the sshd, to be asked probe by probe."""
    from nodeready.evidence.remote import RemoteNode
    from nodeready.evidence.transport import Transport, Way

    made = []

    def go(python="python3"):
        transport = Transport("ssh://node1", Way(ssh_config=str(ssh_node.config)), shared=True)
        made.append(RemoteNode("node1", transport, lambda _: None, (), python))
        return made[-1]

    yield go
    for node in made:
        node.close()


def test_a_load_probe_travels_as_text_and_runs_under_the_python_that_was_named(remote):
    import json
    import sys

    from nodeready.evidence.probe import Probe
    from nodeready.node.catalogue import script

    where = f"{script('matmul')}"
    probe = Probe("matmul", (sys.executable, where, "--device", "cpu", "--size", "64", "--seconds", "0.2"), deadline=60)
    node = remote(sys.executable)
    node.record([probe], budget=90)
    recording = node.recordings["matmul"]
    assert recording.rc == 0, recording
    (result, *_) = json.loads(recording.stdout)["results"]
    assert result["device"] == "cpu"
    assert result["tflops"] > 0
    assert recording.argv[:2] == (sys.executable, "matmul.py")


def test_what_loads_is_ended_when_the_connection_dies(target_path):
    import threading

    from nodeready.evidence.probe import Probe
    from nodeready.evidence.recording import Ended
    from nodeready.evidence.remote import RemoteNode
    from nodeready.evidence.transport import Transport, Way

    word = f"77.{os.getpid()}"
    with sshd.Sshd(path=target_path) as up:
        node = RemoteNode(
            "node1", Transport("ssh://node1", Way(ssh_config=str(up.config)), shared=True), lambda _: None
        )
        probes = [Probe("load", ("sh", "-c", f"trap '' TERM; sleep {word}; sleep {word}"), deadline=300, family="load")]
        asking = threading.Thread(target=node.record, args=(probes, 300))
        asking.start()
        end = time.monotonic() + 20
        while not running(word) and time.monotonic() < end:
            time.sleep(0.05)
        assert running(word)
        up.kill()
        asking.join(20)
        assert gone(word, 15)
        node.close()
    assert node.recordings["load"].ended is Ended.TRANSPORT_LOST
    assert "connection was lost" in node.recordings["load"].reason


def test_no_file_stays_on_the_target_and_no_connection_stays_open(show, ssh_node, over, tmp_path):
    show()
    places = [Path("/tmp"), Path("/run"), Path("/dev/shm"), Path.home()]
    before = {place: set(place.iterdir()) for place in places}
    run = over("ssh://node1", "--ssh-config", ssh_node.config, tier="acceptance")
    assert run.rc in (1, 10), run.out
    mine = ("nodeready", "nvml", "probe")
    for place in places:
        fresh = set(place.iterdir()) - before[place]
        assert not [path for path in fresh if any(word in path.name for word in mine)], place
    assert not running("ControlPath=/tmp/nodeready-")


def test_another_way_of_testinfras_is_carried_too(show, target_path, over, tmp_path):
    """kubectl as testinfra calls it; a control plane is not to be had, so the last step runs here."""
    show()
    stand_in = tmp_path / "kubectl"
    stand_in.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    stand_in.chmod(0o755)
    run = over("kubectl://gpu-pod?namespace=x", env={"PATH": f"{tmp_path}:{target_path}"})
    assert run.rc == 0, run.out
    assert "ACCEPTED at tier quick on gpu-pod" in run.out


def test_captures_of_several_hosts_are_made_at_once(show, ssh_node, tmp_path, judge, capsys):
    from nodeready.cli import main

    show("row-remap-failure")
    hosts = "ssh://node1,ssh://node2,ssh://node3:1"
    options = ["--ssh-config", str(ssh_node.config), "--out", str(tmp_path / "captures")]
    assert main(["collect", "--hosts", hosts, *options]) == 10
    assert "node3: " in capsys.readouterr().out
    made = sorted((tmp_path / "captures").iterdir())
    assert [path.name.partition("-2")[0] for path in made] == ["node1", "node2"]
    found, _ = judge(made[0], tier="quick")
    assert found["host"] == "node1"
    assert found["exit_status"] == 1
