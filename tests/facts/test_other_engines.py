"""CRI-O, containerd behind the Kubernetes socket, enroot, apptainer, runc; and the floors of the last."""

import json
import shutil
import subprocess
from datetime import date

import pytest

from nodeready.baseline import load
from nodeready.facts import container_support, other_engines
from nodeready.facts.other_engines import (
    parse_apptainer,
    parse_cri_info,
    parse_cri_version,
    parse_enroot,
    parse_runc,
)
from nodeready.reading import Known, Unknown

CRI = b"Version:  0.1.0\nRuntimeName:  containerd\nRuntimeVersion:  v2.1.4\nRuntimeApiVersion:  v1\n"
TABLE = load("sxm").tables["container-security"]
DAY = date(2026, 12, 1)


def test_the_engine_behind_the_kubernetes_socket():
    cri = parse_cri_version(CRI)
    assert (cri.engine.value, cri.version.value) == ("containerd", "2.1.4")
    for end in range(len(CRI)):
        found = parse_cri_version(CRI[:end])
        assert isinstance(found, Unknown) or found == cri


@pytest.mark.parametrize("data", [b"", b"FATA[0002] validate service connection: no such file\n", CRI * 2])
def test_no_engine_behind_it_is_unknown(data):
    assert isinstance(parse_cri_version(data), Unknown)


def info(**config):
    return json.dumps({"config": config}).encode()


def test_containerds_own_configuration():
    runtimes = {"runc": {"options": {"SystemdCgroup": False}}, "nvidia-cdi": {}}
    found = parse_cri_info(info(enableCDI=False, containerd={"runtimes": runtimes}))
    assert (found.runtimes, found.cdi, found.systemd_cgroup) == (("nvidia-cdi", "runc"), False, False)
    silent = parse_cri_info(info(containerd={"runtimes": {"runc": {}}}))
    assert (silent.cdi, silent.systemd_cgroup) == (None, None)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"config": {"sandboxImage": "pause"}}', b'{"config": {"containerd"', b"[]"]
)
def test_a_document_without_it_is_unknown(data):
    assert isinstance(parse_cri_info(data), Unknown)


@pytest.mark.parametrize(
    ("parse", "text", "version"),
    [
        (parse_enroot, b"3.5.0\n", "3.5.0"),
        (parse_apptainer, b"apptainer version 1.3.4\n", "1.3.4"),
        (parse_apptainer, b"singularity-ce version 4.1.3-focal\n", "4.1.3-focal"),
        (parse_runc, b"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev\n", "1.1.5+ds1"),
        (parse_runc, b"runc version 1.3.0-rc.1\n", "1.3.0-rc.1"),
    ],
)
def test_versions(parse, text, version):
    assert parse(text).value == version
    for end in range(text.index(b"\n") + 1):
        assert isinstance(parse(text[:end]), Unknown)
    assert isinstance(parse(b"Usage: nothing\n"), Unknown)


def test_the_runc_of_this_machine():
    assert shutil.which("runc"), "runc: this test needs Debian's runc"
    argv = other_engines.RUNC.argv
    out = subprocess.run(argv, capture_output=True, check=True, timeout=20).stdout
    assert parse_runc(out).value


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ("1.0.3", False),
        ("1.1.12", False),
        ("1.2.8", False),
        ("1.3.5", False),
        ("1.3.6", True),
        ("1.3.10", True),
        ("1.4.0-rc.3", False),
        ("1.4.3", True),
        ("1.5.0-rc.2", False),
        ("1.5.0-rc.3", True),
        ("1.5.0", True),
    ],
)
def test_floors_of_runc(version, safe):
    assert container_support.runc_meets_floor(version, TABLE, DAY).value is safe


@pytest.mark.parametrize("version", ["1.1.5+ds1", "1.1.12-0ubuntu2~22.04.1", "1.6.0", "2.0.0", "main"])
def test_what_the_table_cannot_tell_is_unknown(version):
    assert isinstance(container_support.runc_meets_floor(version, TABLE, DAY), Unknown)


@pytest.mark.parametrize(
    ("version", "safe"),
    [("1.16.1", False), ("1.19.0", False), ("1.19.1-rc.1", False), ("1.19.1", True), ("1.20.0", True)],
)
def test_floor_of_the_toolkit(version, safe):
    assert container_support.toolkit_meets_floor(version, TABLE, DAY) == Known(
        safe, note=f"{version}, fixed in 1.19.1 ({TABLE['toolkit']['why']})"
    )


@pytest.mark.parametrize("judge", [container_support.toolkit_meets_floor, container_support.runc_meets_floor])
def test_a_table_out_of_its_time_says_nothing(judge):
    assert "stale" in judge("1.3.6", TABLE, TABLE["valid_until"].replace(year=2028)).reason
    assert "can't tell" in judge("1.3.6", TABLE, date(2026, 1, 1)).reason
