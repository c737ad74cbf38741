"""The torch probe's document becomes readings; a CPU build is a defect, a sick GPU is its own unknown."""

import doctest
import json

import pytest

from nodeready.facts import torch_info
from nodeready.facts.torch_info import parse, torch_probe
from nodeready.probes import torch_info as probe
from nodeready.reading import Known, Unknown

GPU = {
    "index": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-1",
    "bus_id": "0000:1B:00.0",
    "capability": "9.0",
    "total_memory": 85_045_477_376,
    "error": None,
}


def document(**changes):
    whole = {
        "probe": "torch",
        "schema": 1,
        "python": "3.12.3",
        "torch": "2.7.0+cu126",
        "cuda": "12.6",
        "cudnn": "9.5.1",
    }
    more = {"nccl": "2.26.2", "arch_list": ["sm_80", "sm_90"], "devices": [GPU], "visible": None, "error": None}
    return json.dumps({**whole, **more, **changes}).encode()


def test_the_example_in_the_docstring_holds():
    assert doctest.testmod(torch_info) == (0, 3)


def test_a_healthy_environment_is_known_throughout():
    info = parse(document())
    assert (info.python.value, info.version.value, info.cuda.value) == ("3.12.3", "2.7.0+cu126", "12.6")
    assert (info.cudnn.value, info.nccl.value, info.arch_list.value) == ("9.5.1", "2.26.2", ("sm_80", "sm_90"))
    assert info.devices["0000:1b:00.0"].value == "9.0"
    assert info.names["0000:1b:00.0"].value == "NVIDIA H100 80GB HBM3"
    assert info.uuids["0000:1b:00.0"].value == "GPU-1"
    assert (info.visible, info.error, info.errors) == (None, "", {})


def test_a_cpu_build_is_a_defect_whatever_is_demanded():
    info = parse(document(cuda=None, arch_list=[], devices=[], error="this torch is built without CUDA"))
    assert info.cuda.defect == "this torch is built without CUDA"
    assert info.arch_list.value == ()
    assert isinstance(info.cudnn, Known)
    assert info.devices == {}


def test_without_torch_python_alone_is_known():
    info = parse(json.dumps({**probe_document(), "error": probe.NO_TORCH}).encode())
    assert info.python.value == "3.9.18"
    for reading in (info.version, info.cuda, info.cudnn, info.nccl, info.arch_list):
        assert reading.reason == "this Python has no torch: name one that has with --python"


def probe_document():
    names = ("torch", "cuda", "cudnn", "nccl", "visible", "error")
    return {"probe": "torch", "schema": 1, "python": "3.9.18", **dict.fromkeys(names), "arch_list": [], "devices": []}


@pytest.mark.parametrize(
    "version", ["2.5.0a0+e000cf0ad9.nv24.10", "1.14.0a0+44dac51c.nv23.01", "2.9.0.dev20250916+cu130", "2.13.0"]
)
def test_versions_of_builds_in_the_field_are_read(version):
    assert parse(document(torch=version)).version.value == version


@pytest.mark.parametrize("version", ["two", "", 2.7, None, "2.7 or so", "2"])
def test_a_version_that_is_none_makes_all_of_torch_unknown(version):
    info = parse(document(torch=version))
    assert info.version.reason.startswith("torch version reads ")
    assert isinstance(info.cuda, Unknown)
    assert isinstance(info.python, Known)


@pytest.mark.parametrize("field", ["cuda", "cudnn", "nccl", "python"])
def test_a_field_that_is_no_version_is_unknown(field):
    assert getattr(parse(document(**{field: "soon"})), field).reason == f'{field} version reads "soon", no version'


@pytest.mark.parametrize("archs", [None, "sm_90", [90], [""]])
def test_an_arch_list_that_is_none_is_unknown(archs):
    assert "no list of architectures" in parse(document(arch_list=archs)).arch_list.reason


def test_an_empty_arch_list_of_a_cuda_build_is_unknown():
    assert isinstance(parse(document(arch_list=[])).arch_list, Unknown)


def test_the_error_of_one_gpu_is_its_own():
    sick = {**GPU, "index": 1, "bus_id": "0000:43:00.0", "error": "CUDA error: uncorrectable ECC error encountered"}
    info = parse(document(devices=[GPU, sick]))
    assert info.devices["0000:1b:00.0"].value == "9.0"
    assert info.devices["0000:43:00.0"].reason == info.names["0000:43:00.0"].reason == sick["error"]
    assert info.errors == {"0000:43:00.0": sick["error"]}
    assert info.uuids["0000:43:00.0"].value == "GPU-1"


def test_the_errors_of_gpus_go_by_bus_id_or_number_and_none_is_lost():
    nameless = {**GPU, "index": 2, "bus_id": None, "error": 5}
    info = parse(document(devices=[GPU, nameless, {**GPU, "error": "one"}, {**GPU, "error": "two"}], error="no list"))
    assert info.errors == {"cuda:2": "error reads 5", "0000:1b:00.0": "one; two"}
    assert info.error == "no list"


@pytest.mark.parametrize("uuid", [None, "", 7])
def test_a_gpu_without_a_uuid_has_none(uuid):
    assert parse(document(devices=[{**GPU, "uuid": uuid}])).uuids["0000:1b:00.0"].reason.startswith("uuid reads ")


@pytest.mark.parametrize("capability", [None, 9.0, "nine", "9", ""])
def test_a_capability_that_is_none_is_unknown(capability):
    reading = parse(document(devices=[{**GPU, "capability": capability}])).devices["0000:1b:00.0"]
    assert reading.reason.startswith("compute capability reads ")


def test_a_gpu_without_a_bus_id_goes_by_its_number_and_one_without_either_is_dropped():
    nameless = {**GPU, "bus_id": None}
    info = parse(document(devices=[nameless, {**nameless, "index": -1}, {**nameless, "index": True}, None]))
    assert info.devices.keys() == {"cuda:0"}


def test_a_gpu_listed_twice_is_unknown():
    info = parse(document(devices=[GPU, {**GPU, "index": 1}]))
    assert info.devices["0000:1b:00.0"].reason == "torch lists 0000:1b:00.0 twice"
    assert info.uuids["0000:1b:00.0"].reason == "torch lists 0000:1b:00.0 twice"


def test_a_key_that_stands_twice_makes_the_document_unknown():
    data = document().replace(b'"capability": "9.0"', b'"capability": "8.0", "capability": "9.0"')
    assert parse(data).reason == 'the output of the torch probe holds the key "capability" twice'


@pytest.mark.parametrize("data", [b"", document()[:-2], b"{}", document(schema=2), document(probe="matmul")])
def test_what_is_not_the_whole_document_is_unknown(data):
    assert isinstance(parse(data), Unknown)


def test_the_probe_runs_under_the_python_of_the_jobs():
    made = torch_probe("/opt/jobs/bin/python", "/x/torch_info.py")
    assert (made.argv, made.name, made.deadline) == (("/opt/jobs/bin/python", "/x/torch_info.py"), "torch", 90)
    assert (made.tier, made.family, 3 in made.answers) == ("acceptance", "load", True)
