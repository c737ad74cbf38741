"""GPUs over a reload, runc and sockets, by engine."""

import json

import pytest

from nodeready.evidence.recording import Recording
from nodeready.reading import Unknown
from nodeready.simulate.build import build
from nodeready.simulate.model import Engine


def with_engine(kind, version="1.0", **below):
    node = build("sxm", 0, 2)
    node.engine = Engine(kind, version, ("io.containerd.runc.v2", "nvidia", "runc"))
    for name, value in below.items():
        setattr(node.below, name, value)
    return node


@pytest.mark.parametrize(
    ("kind", "below", "cdi", "kept"),
    [
        ("docker", {}, False, True),
        ("docker", {"linked": False}, False, False),
        ("docker", {"linked": False, "cgroup_driver": "cgroupfs"}, False, True),
        ("podman", {"linked": False}, False, False),
        ("podman", {"linked": False}, True, True),
        ("cri-o", {"linked": False, "cri": ("cri-o", "1.33.4")}, True, True),
        ("containerd", {"linked": False, "cri": ("containerd", "v2.1.4")}, False, False),
        ("containerd", {"linked": False, "cri": ("containerd", "v2.1.4"), "cgroup_driver": "cgroupfs"}, False, True),
        ("enroot", {"linked": False}, False, True),
        ("apptainer", {"linked": False}, False, True),
    ],
)
def test_who_keeps_the_gpus_when_systemd_reloads(node_of, kind, below, cdi, kept):
    node = with_engine(kind, **below)
    node.engine.cdi = cdi
    assert node_of(node).container_parts.survives_reload.value is kept


def test_one_link_too_few_is_no_link_for_that_gpu(node_of):
    node = with_engine("docker")
    data = b"cgroup:there\nlink:195:0\nlink:195:255\ndevice:nvidia0\ndevice:nvidia1\nend:\n"
    assert node_of(node, {"container-files": data}).container_parts.survives_reload.value is False


def test_an_engine_that_does_not_tell_its_cgroups_is_unknown(node_of):
    node = with_engine("containerd", linked=False)
    assert isinstance(node_of(node).container_parts.survives_reload, Unknown)


def test_no_device_file_is_the_drivers_matter(node_of):
    found = node_of(with_engine("docker"), {"container-files": b"cgroup:there\nend:\n"}).container_parts
    assert found.survives_reload.causes == ("driver.responds",)
    assert found.cgroup_version.value == 1
    assert isinstance(node_of(changes={"container-files": b"end:\n"}).container_parts.cgroup_version, Unknown)


def test_podman_with_crun_needs_no_runc(node_of):
    node = with_engine("podman", "5.4.2", runc="1.0.3")
    found = node_of(node).container_parts.runc_is_safe
    assert (found.value, found.note) == (True, "podman uses crun")


def test_docker_tells_its_runc_where_none_is_on_the_path(node_of):
    node = build("sxm", 0, 1)
    node.below.runc = "1.3.2"
    made = node_of(node, {"runc_--version": None})
    assert made.container_parts.runc_is_safe.value is False
    made.evidence.recordings["runc_--version"] = Recording("runc_--version", rc=127, stderr=b"runc: not found\n")
    assert made.container_parts.runc_is_safe.value is False


@pytest.mark.parametrize(
    ("config", "supported"),
    [
        ({"containerd": {"runtimes": {"nvidia": {}}}}, True),
        ({"containerd": {"runtimes": {"nvidia-cdi": {}}}}, True),
        ({"containerd": {"runtimes": {"runc": {}}}, "enableCDI": False}, False),
        ({"containerd": {"runtimes": {"runc": {}}}}, None),
        ({}, None),
    ],
)
def test_containerd_is_judged_by_the_configuration_it_has_read(node_of, config, supported):
    node = with_engine("containerd", cri=("containerd", "v2.1.4"))
    found = node_of(node, {"crictl_info": json.dumps({"config": config}).encode()}).container.gpu_support
    assert isinstance(found, Unknown) if supported is None else found.value is supported


def test_an_engine_that_kubernetes_names_and_nobody_knows_is_no_engine_of_the_list(node_of):
    node = with_engine("cri-o", cri=("kata", "3.1.0"))
    assert node_of(node).container.engine.value == "kata"
