"""Container engines by a real podman (CDI) and a real dockerd, in every state that a node can have them in.

The GPUs are those of a simulated node: a script in the place of nvidia-smi lists them inside the container. It gets
there only by what is tried: a CDI specification, or the hook that docker calls for `--gpus`.
"""

import shutil
import socket
import stat
from pathlib import Path

import engines
import pytest

from nodeready import baseline
from nodeready.evidence.capture import Evidence
from nodeready.evidence.probe import Probe
from nodeready.evidence.recording import Recording
from nodeready.evidence.runner import run
from nodeready.facts import container_files, docker, other_engines, podman
from nodeready.facts.cdi import CDI_SPEC
from nodeready.gate import terms_of
from nodeready.load import container_probe
from nodeready.node import Node
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs
from nodeready.simulate.outputs.nvidia_smi import listing

CDI = Path("/etc/cdi")
IMAGE = "busybox:nodeready"
HOOK = """#!/bin/sh
# stands for nvidia-container-runtime-hook: brings nvidia-smi into the container that is about to start
[ "$1" = prestart ] || exit 0
state=$(cat); bundle=$(echo "$state" | sed 's/.*"bundle":"\\([^"]*\\)".*/\\1/')
root=$(sed 's/.*"root":{"path":"\\([^"]*\\)".*/\\1/' "$bundle/config.json")
mkdir -p "$root/bin"; cp {smi} "$root/bin/nvidia-smi"
"""


@pytest.fixture
def simulated():
    return build("sxm", 0, 2)


@pytest.fixture
def smi(tmp_path, simulated):
    """A folder with a script that lists the node's GPUs, or only the first."""

    def make(gpus):
        folder = tmp_path / f"smi{gpus}"
        folder.mkdir(exist_ok=True)
        said = listing(simulated.gpus[:gpus]).stdout.decode()
        script = folder / "nvidia-smi"
        script.write_text(f"#!/bin/sh\ncat <<'LIST'\n{said}LIST\n")
        script.chmod(0o755)
        return script

    return make


@pytest.fixture
def cdi():
    """A CDI specification in its place, which has to be free; gone afterwards."""
    if CDI.exists():
        raise FileExistsError(f"{CDI} is in use on this machine: the tests would write to it")
    CDI.mkdir()
    try:

        def write(script):
            inside = f"- containerPath: /usr/local/bin/nvidia-smi\n    hostPath: {script}\n    options: [ro, bind]\n"
            edits = f"containerEdits:\n  mounts:\n  {inside}"
            (CDI / "nvidia.yaml").write_text(
                f'cdiVersion: "0.5.0"\nkind: nvidia.com/gpu\ndevices:\n- name: all\n  containerEdits:\n    env:\n    - NR=1\n{edits}'
            )

        yield write
    finally:
        shutil.rmtree(CDI)


@pytest.fixture
def judged(simulated, monkeypatch):
    """The node with what these engines say now in the place of its own."""

    def go(environment, *probes):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        recordings = {
            name: Recording(name, rc=output.rc, stdout=output.stdout, stderr=output.stderr)
            for name, output in outputs(simulated).items()
            if not name.startswith(("docker", "podman", "ctr", "crictl", "container", "nvidia-ctk", "runc", "enroot"))
        }
        recordings |= {probe.name: run(probe) for probe in probes if isinstance(probe, Probe)}
        node = Node(Evidence("live", "here", recordings), terms_of(baseline.load("sxm", "", ["gpu.count=2"])))
        return node, recordings

    return go


@pytest.fixture
def in_podman(monkeypatch):
    with engines.Podman() as engine:
        for name, value in engine.env.items():
            monkeypatch.setenv(name, value)
        yield engine


def only(*names):
    """The engines that are there."""
    return lambda name: name in names


def test_podman_with_cdi_hands_out_the_gpus(judged, in_podman, cdi, smi):
    cdi(smi(2))
    container = container_probe("", only("podman"))
    node, recordings = judged(in_podman.env, podman.PODMAN_INFO, CDI_SPEC, container)
    assert node.container.engine.value == "podman"
    assert node.container.gpu_support.value is True
    assert recordings["container-gpus"].rc == 0, recordings["container-gpus"].stderr
    assert node.container.sees_all_gpus == Known(
        True, note="2 inside, 2 on the host", recordings=node.container.sees_all_gpus.recordings
    )


def test_podman_with_cdi_that_misses_a_gpu_is_caught(judged, in_podman, cdi, smi):
    cdi(smi(1))
    node, _ = judged(in_podman.env, podman.PODMAN_INFO, CDI_SPEC, container_probe("", only("podman")))
    seen = node.container.sees_all_gpus
    assert seen.value is False
    assert "1 inside, 2 on the host" in seen.note


def test_podman_without_cdi_starts_no_gpu_container(judged, in_podman):
    assert not CDI.exists(), "there is a CDI specification on this machine"
    node, recordings = judged(in_podman.env, podman.PODMAN_INFO, CDI_SPEC, container_probe("", only("podman")))
    assert recordings["container-gpus"].rc in (125, 126)
    assert b"nvidia.com/gpu=all" in recordings["container-gpus"].stderr
    assert isinstance(node.container.gpu_support, Unknown)
    assert isinstance(node.container.sees_all_gpus, Unknown)
    assert "container.runtime" in node.container.sees_all_gpus.causes


def test_podman_tells_its_runtime_and_its_cgroups(judged, in_podman):
    node, _ = judged(in_podman.env, podman.PODMAN_INFO, other_engines.RUNC)
    info = node.sources.documents.read(podman.PODMAN_INFO, podman.parse)
    assert (info.runtime.value, info.cgroup_manager.value) == ("runc", "cgroupfs")
    assert info.cgroup_version.value in (1, 2)
    # Debian's own build takes fixes over without a new number
    assert "distribution's own build" in node.container_parts.runc_is_safe.reason


def test_docker_without_the_toolkit(judged):
    with engines.Docker() as engine:
        node, recordings = judged(engine.env, docker.DOCKER_INFO, container_probe(IMAGE, only("docker")))
        assert (node.container.engine.value, node.container.gpu_support.value) == ("docker", False)
        info = node.sources.documents.read(docker.DOCKER_INFO, docker.parse)
        assert info.cgroup_driver.value in ("cgroupfs", "systemd")
        assert info.cgroup_version.value in (1, 2)
        assert b"could not select device driver" in recordings["container-gpus"].stderr
        assert isinstance(node.container.sees_all_gpus, Unknown)
        assert "container.runtime" in node.container.sees_all_gpus.causes


def test_docker_with_the_runtime_and_the_hook_hands_out_the_gpus(judged, smi, tmp_path):
    hook = tmp_path / "bin" / "nvidia-container-runtime-hook"
    hook.parent.mkdir()
    hook.write_text(HOOK.replace("{smi}", str(smi(2))))
    hook.chmod(0o755)
    with engines.Docker(("--add-runtime=nvidia=/usr/bin/runc",), str(hook.parent)) as engine:
        node, recordings = judged(engine.env, docker.DOCKER_INFO, container_probe(IMAGE, only("docker")))
        assert node.container.gpu_support.value is True
        assert recordings["container-gpus"].rc == 0, recordings["container-gpus"].stderr
        assert node.container.sees_all_gpus.value is True


def test_an_image_that_is_not_there_proves_nothing(judged):
    with engines.Docker(("--add-runtime=nvidia=/usr/bin/runc",)) as engine:
        node, _ = judged(engine.env, docker.DOCKER_INFO, container_probe("nobody/nothing:1", only("docker")))
        assert node.container.gpu_support.value is True
        assert isinstance(node.container.sees_all_gpus, Unknown)


def test_a_docker_that_is_down_is_unknown(judged, tmp_path):
    node, recordings = judged({"DOCKER_HOST": f"unix://{tmp_path}/no.sock"}, docker.DOCKER_INFO)
    assert recordings["docker_info"].rc != 0
    assert isinstance(node.container.engine, Unknown)
    assert isinstance(node.container.gpu_support, Unknown)


@pytest.mark.parametrize(("mode", "open_"), [(0o660, 0), (0o666, 1)])
def test_the_socket_of_a_real_daemon_and_who_may_write_to_it(judged, mode, open_):
    place = Path("/run/docker.sock")
    if place.exists():
        raise FileExistsError(f"{place}: a docker daemon runs on this machine already")
    with engines.Docker(("-H", f"unix://{place}")) as engine:
        try:
            place.chmod(mode)
            node, _ = judged(engine.env, container_files.CONTAINER_FILES)
            assert stat.S_IMODE(place.stat().st_mode) == mode
            assert node.container_parts.open_sockets.value == open_
        finally:
            place.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("family", "address", "reached"),
    [
        (socket.AF_INET, "127.0.0.1", 0),
        (socket.AF_INET, "0.0.0.0", 1),
        (socket.AF_INET6, "::1", 0),
        (socket.AF_INET6, "::", 1),
    ],
)
def test_what_listens_on_dockers_port(judged, family, address, reached):
    """A bare socket: a daemon that listens for everybody would be open for as long as the test runs."""
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, 2375))
        listener.listen(1)
        node, _ = judged({}, container_files.CONTAINER_FILES)
        assert node.container_parts.open_ports.value == reached
