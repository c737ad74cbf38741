"""The torch probe: with the real torch, without one, and with GPUs that do not work."""

import doctest
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeready.probes import torch_info

SCRIPT = Path(torch_info.__file__)
DOCUMENT = {"probe", "schema", "python", "torch", "cuda", "cudnn", "nccl", "arch_list", "devices", "visible", "error"}
DOCUMENT |= {"tensorflow"}


def ran(*python):
    argv = [sys.executable, *python, str(SCRIPT)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(torch_info) == (0, 1)


def test_a_cpu_build_is_told_as_one(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    run = ran()
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert document.keys() == DOCUMENT
    assert (document["probe"], document["schema"], document["visible"]) == ("torch", 1, "2,3")
    assert document["python"] == ".".join(map(str, sys.version_info[:3]))
    assert document["torch"].startswith("2.")
    assert document["cuda"] is document["cudnn"] is document["nccl"] is None
    assert (document["arch_list"], document["devices"]) == ([], [])
    assert document["error"] == "this torch is built without CUDA"


def test_a_python_without_torch_says_so_and_exits_3():
    run = ran("-S")
    document = json.loads(run.stdout)
    assert run.returncode == 3
    assert document.keys() == DOCUMENT
    assert document["torch"] is None
    assert document["error"] == "this Python has no torch: name one that has with --python"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (
            "raise ImportError('libcudart.so.12: no such file\\nmore')",
            "torch does not load: libcudart.so.12: no such file",
        ),
        ("import numpie", "torch does not load: No module named 'numpie'"),
        ("print('banner'); raise OSError('bad ELF')", "torch does not load: bad ELF"),
    ],
)
def test_a_torch_that_does_not_load_is_told_from_one_that_is_absent(tmp_path, monkeypatch, code, error):
    (tmp_path / "torch.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = ran()
    assert run.returncode == 3
    assert json.loads(run.stdout)["error"] == error


class DeferredError(Exception):
    pass


def fake_torch(count=2, broken=()):
    """A CUDA build of torch that sees `count` GPUs; on the broken ones no context can be made."""

    def ones(_, device):
        if device in broken:
            raise RuntimeError("CUDA error: uncorrectable ECC error encountered\nCompile with ...")
        return SimpleNamespace(item=lambda: 1.0)

    facts = SimpleNamespace(name="NVIDIA H100 80GB HBM3", major=9, minor=0, total_memory=85_045_477_376)
    cuda = SimpleNamespace(
        device_count=lambda: count, get_device_properties=lambda _: facts, DeferredCudaCallError=DeferredError
    )
    backends = SimpleNamespace(cuda=SimpleNamespace(is_built=lambda: True))
    return SimpleNamespace(cuda=cuda, backends=backends, ones=ones)


LISTED = [{"uuid": "GPU-a", "bus_id": "0000:1B:00.0"}, {"uuid": "GPU-b", "bus_id": "0000:43:00.0"}]


def test_one_sick_gpu_does_not_hide_the_others(monkeypatch):
    monkeypatch.setattr(torch_info, "cuda_devices", lambda: LISTED)
    devices, error = torch_info.devices_of(fake_torch(broken={"cuda:1"}))
    assert error is None
    assert devices[0] == {
        "index": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-a",
        "bus_id": "0000:1B:00.0",
        "capability": "9.0",
        "total_memory": 85_045_477_376,
        "error": None,
    }
    assert devices[1]["bus_id"] == "0000:43:00.0"
    assert devices[1]["error"] == "CUDA error: uncorrectable ECC error encountered"


def test_gpus_that_torch_counts_are_told_where_the_driver_lists_none(monkeypatch):
    def refuse():
        raise RuntimeError("cuInit: error 802 (system not yet initialized)")

    monkeypatch.setattr(torch_info, "cuda_devices", refuse)
    devices, error = torch_info.devices_of(fake_torch(broken={"cuda:0", "cuda:1"}))
    assert error == "cuInit: error 802 (system not yet initialized)"
    assert [d["bus_id"] for d in devices] == [None, None]
    assert all(d["error"] for d in devices)


def test_a_driver_that_shows_no_gpu_is_an_error(monkeypatch):
    monkeypatch.setattr(torch_info, "cuda_devices", list)
    assert torch_info.devices_of(fake_torch(count=0)) == ([], "the CUDA driver shows no GPU")


def test_the_driver_names_the_gpus_and_tells_its_error():
    def put(value):
        def answer(target, *_):
            getattr(target, "_obj", target).value = value
            return 0

        return answer

    def write_uuid(raw, _):
        raw._obj[:] = bytes(range(16))
        return 0

    driver = SimpleNamespace(
        cuInit=lambda _: 0,
        cuDeviceGetCount=put(1),
        cuDeviceGet=put(7),
        cuDeviceGetUuid_v2=write_uuid,
        cuDeviceGetPCIBusId=put(b"0000:1B:00.0"),
        cuGetErrorString=lambda _, text: put(b"system not yet initialized")(text),
    )
    listed = [{"uuid": "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", "bus_id": "0000:1B:00.0"}]
    assert torch_info.cuda_devices(driver) == listed
    driver.cuInit = lambda _: 802
    with pytest.raises(RuntimeError, match=r"cuInit: error 802 \(system not yet initialized\)"):
        torch_info.cuda_devices(driver)
