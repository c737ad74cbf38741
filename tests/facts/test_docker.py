import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.docker import DOCKER_INFO, Docker, parse
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
READINGS = ("server_version", "runtimes", "default_runtime", "cdi_devices")
CLIENT = """Client: Docker Engine - Community
 Version:    28.3.1
 Context:    default
 Debug Mode: false
 Plugins:
  buildx: Docker Buildx (Docker Inc.)
    Version:  v0.25.0
    Path:     /usr/libexec/docker/cli-plugins/docker-buildx

Server:
"""
DEVICES = """ Discovered Devices:
  cdi: nvidia.com/gpu=0
  cdi: nvidia.com/gpu=GPU-00000000-1111-2222-3333-444444444444
  cdi: nvidia.com/gpu=all
"""
ENGINE = f""" Containers: 2
  Running: 1
 Images: 7
 Server Version: 28.3.0
 Storage Driver: overlay2
  Backing Filesystem: extfs
 Plugins:
  Volume: local
  Log: awslogs fluentd
 CDI spec directories:
  /etc/cdi
  /var/run/cdi
{DEVICES} Swarm: inactive
 Runtimes: runc nvidia io.containerd.runc.v2
 Default Runtime: nvidia
 Init Binary: docker-init
 runc version: v1.2.5-0-g59923ef
 Security Options:
  seccomp
   Profile: builtin
 Kernel Version: 5.15.0-117-generic

"""
HEALTHY = (CLIENT + ENGINE).encode()


def test_probe_belongs_to_the_container_family():
    assert (DOCKER_INFO.name, DOCKER_INFO.family) == ("docker_info", "container")


def test_the_engine_names_its_version_runtimes_and_devices():
    found = parse(HEALTHY)
    assert found.server_version.value == "28.3.0"
    assert found.runtimes.value == ("io.containerd.runc.v2", "nvidia", "runc")
    assert found.default_runtime.value == "nvidia"
    assert found.cdi_devices.value == (
        "nvidia.com/gpu=0",
        "nvidia.com/gpu=GPU-00000000-1111-2222-3333-444444444444",
        "nvidia.com/gpu=all",
    )


def test_every_prefix_says_the_same_or_nothing():
    whole = parse(HEALTHY)
    known = dict.fromkeys(READINGS, 0)
    for end in range(len(HEALTHY)):
        found = parse(HEALTHY[:end])
        if isinstance(found, Unknown):
            assert found.reason
            continue
        for name in READINGS:
            reading = getattr(found, name)
            if isinstance(reading, Known):
                known[name] += 1
                assert reading.value == getattr(whole, name).value
            else:
                assert reading.reason
    assert all(known.values())


def test_versions_of_the_clients_plugins_do_not_count():
    found = parse((CLIENT + " Runtimes: runc\n").encode())
    assert isinstance(found.server_version, Unknown)
    assert found.runtimes.value == ("runc",)


@pytest.mark.parametrize(
    ("client", "server", "known"),
    [("28.3.1", "28.3.0", True), ("28.2.0", "29.4.0", True), ("28.3.1", "27.5.1", False), ("27.0.3", "28.3.0", False)],
)
def test_no_devices_are_none_only_where_this_docker_would_list_them(client, server, known):
    text = HEALTHY.decode().replace(DEVICES, "").replace("28.3.1", client).replace("28.3.0", server)
    reading = parse(text.encode()).cdi_devices
    assert isinstance(reading, Known) is known
    if known:
        assert reading.value == ()


def test_devices_of_another_source_are_not_cdi_devices():
    text = HEALTHY.decode().replace("  cdi: nvidia.com/gpu=0\n", "  other: nvidia.com/gpu=0\n")
    assert "nvidia.com/gpu=0" not in parse(text.encode()).cdi_devices.value


@pytest.mark.parametrize(
    "sentence",
    [
        "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "ERROR: permission denied while trying to connect to the docker API at unix:///var/run/docker.sock",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    ],
)
def test_an_engine_that_does_not_answer_is_unknown_with_its_sentence(sentence):
    for data in (f"{CLIENT}{sentence}\nerrors pretty printing info\n", f"{sentence}\n"):
        found = parse(data.encode())
        assert isinstance(found, Unknown)
        assert sentence in found.reason
        assert not found.missing


def test_two_different_answers_make_the_reading_unknown():
    found = parse(HEALTHY + HEALTHY.replace(b"Server Version: 28.3.0", b"Server Version: 20.10.1"))
    assert isinstance(found.server_version, Unknown)
    assert isinstance(found.cdi_devices, Unknown)


def test_an_older_docker_without_headings():
    found = parse(b"Containers: 0\n Running: 0\nServer Version: 17.09.0-ce\nRuntimes: runc\nDefault Runtime: runc\n")
    assert (found.server_version.value, found.runtimes.value) == ("17.09.0-ce", ("runc",))


def test_a_real_engine_that_does_not_know_nvidia():
    found = parse((CAPTURES / "container-runtime" / "07-docker-info-nvidia-missing.txt").read_bytes())
    assert found.runtimes.value == ("io.containerd.runc.v2", "runc")
    assert found.default_runtime.value == "runc"
    assert isinstance(found.server_version, Unknown)
    assert isinstance(found.cdi_devices, Unknown)


def test_configuration_files_are_not_the_engines_word():
    for number in ("01", "03", "04", "05"):
        (path,) = (CAPTURES / "container-runtime").glob(f"{number}-*")
        found = parse(path.read_bytes())
        assert isinstance(found, Unknown)
        assert found.reason


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        CLIENT.encode(),
        CLIENT[:-8].encode(),
        HEALTHY[:-2],
        b"host:\n  arch: amd64\nversion:\n",
        b"\xff\x00\n",
    ],
)
def test_what_is_no_answer_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@pytest.mark.parametrize("value", ["", "N/A"])
def test_an_empty_field_is_unknown(value):
    found = parse(f"Server:\n Server Version: {value}\n Runtimes: \n Default Runtime: {value}\n".encode())
    assert isinstance(found.server_version, Unknown)
    assert isinstance(found.runtimes, Unknown)
    assert isinstance(found.default_runtime, Unknown)


@given(st.binary(max_size=300), st.integers(0, len(HEALTHY)))
def test_garbage_never_raises(noise, at):
    for data in (noise + b"\n", HEALTHY[:at] + noise + HEALTHY[at:]):
        found = parse(data)
        assert isinstance(found, (Docker, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    data = b"Server:\n Runtimes: " + b"runc " * 600_000 + b"\n" + b" " * 3_000_000 + b"x\n" + b" a" * 1_000_000 + b"\n"
    assert set(parse(data).runtimes.value) == {"runc"}
    assert time.process_time() - started < 5
