import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.podman import PODMAN_INFO, Podman, parse
from nodeready.reading import Known, Unknown

READINGS = ("version", "runtime", "cgroup_version")
INFO = {
    "host": {
        "arch": "amd64",
        "buildahVersion": "1.39.0",
        "cgroupManager": "systemd",
        "cgroupVersion": "v2",
        "conmon": {"version": "conmon version 2.1.12"},
        "ociRuntime": {"name": "crun", "path": "/usr/bin/crun", "version": "crun version 1.19.1\ncommit: 3e32a70c"},
        "security": {"rootless": False},
    },
    "store": {"graphDriverName": "overlay"},
    "version": {"APIVersion": "5.4.0", "Version": "5.4.0"},
}


def of(info):
    return parse(json.dumps(info, indent=2).encode())


def test_probe_belongs_to_the_container_family():
    assert (PODMAN_INFO.name, PODMAN_INFO.family) == ("podman_info_--format_json", "container")


def test_the_engine_names_its_version_runtime_and_cgroups():
    found = of(INFO)
    assert [getattr(found, name).value for name in READINGS] == ["5.4.0", "crun", 2]
    assert of({**INFO, "host": {**INFO["host"], "cgroupVersion": "v1"}}).cgroup_version.value == 1


@pytest.mark.parametrize("value", [None, "", 3, "v3", "2", ["v2"]])
def test_a_cgroup_version_that_is_none_is_unknown(value):
    found = of({**INFO, "host": {**INFO["host"], "cgroupVersion": value}})
    assert found.cgroup_version.reason
    assert found.runtime.value == "crun"


@pytest.mark.parametrize("part", [None, [], "5.4.0", {}, {"Version": ""}, {"Version": 5}])
def test_a_version_that_is_none_is_unknown(part):
    found = of({**INFO, "version": part})
    assert isinstance(found.version, Unknown)
    assert found.runtime.value == "crun"


def test_every_prefix_says_the_same_or_nothing():
    data = (json.dumps(INFO, indent=2) + "\n").encode()
    for end in range(len(data) - 1):
        assert isinstance(parse(data[:end]), Unknown)
    assert isinstance(parse(data[:-1]).version, Known)


def test_configuration_files_are_not_the_engines_word(captures):
    files = sorted((captures / "container-runtime").iterdir())
    assert len(files) == 5
    for path in files:
        assert isinstance(parse(path.read_bytes()), Unknown), path.name


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{}",
        b"[]",
        b"5",
        b'{"host": null}',
        b'{"host": {"arch": "amd64"}, "version": {"Version": "5.4.0"}}',
        b"Cannot connect to Podman\n",
        b"{" * 100_000,
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_answer_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@given(st.binary(max_size=200))
def test_garbage_never_raises(noise):
    assert isinstance(parse(noise), (Podman, Unknown))
    assert isinstance(parse(b'{"host": {"ociRuntime": ' + noise + b"}}"), (Podman, Unknown))
