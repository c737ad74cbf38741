"""The NVML probe where the library or nvidia-ml-py is absent, old or odd."""

import importlib
import importlib.util
from pathlib import Path

import pytest

from nodeready.probes import nvml

spec = importlib.util.spec_from_file_location("fake_nvml_build", Path(__file__).parents[1] / "fake_nvml" / "build.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return fake.build(tmp_path_factory.getbasetemp() / "fake_nvml")


@pytest.fixture
def run(tmp_path, library):
    """Run the probe on a node of these GPUs: (document, process)."""

    def start(gpus=None, *arguments, python=(), env=None, **node):
        config = fake.write_config(tmp_path / "node.conf", gpus=gpus, **node)
        return fake.run_probe(library, config, *arguments, python=python, env=env)

    return start


def two(**changes):
    return [fake.h100(0, **changes), fake.h100(1)]


@pytest.fixture
def binding(tmp_path):
    """The real nvidia-ml-py with a change, in front of it on the path."""

    def make(change):
        real = importlib.util.find_spec("pynvml").origin
        (tmp_path / "pynvml.py").write_text(f"{Path(real).read_text()}\n{change}\n")
        return {"PYTHONPATH": str(tmp_path)}

    return make


def test_without_a_library_there_is_one_error_and_status_3(run, tmp_path):
    document, process = run(env={"LD_LIBRARY_PATH": ""})
    assert process.returncode == 3
    assert (document["error"], document["devices"]) == ("LIBRARY_NOT_FOUND", [])
    assert document["errors"]["nvmlInit"] == "LIBRARY_NOT_FOUND"
    assert "No such file" in document["errors"]["dlopen"]
    (tmp_path / "libnvidia-ml.so.1").touch()
    document, process = run(env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert (process.returncode, document["error"]) == (3, "LIBRARY_NOT_FOUND")
    assert "file too short" in document["errors"]["dlopen"]


def test_the_deprecated_package_is_named(run, tmp_path):
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml" / "__init__.py").write_text("from .nvml import *\n")
    document, process = run(env={"PYTHONPATH": str(tmp_path)})
    assert process.returncode == 3
    assert f"{tmp_path}/pynvml is not nvidia-ml-py's" in document["error"]
    assert "pip uninstall pynvml" in document["error"]


@pytest.mark.parametrize(
    ("code", "error"),
    [("import nosuch", "nvidia-ml-py does not load: No module named 'nosuch'"), ("NVMLError = 1", "uninstall pynvml")],
)
def test_a_binding_that_cannot_be_used_says_why(run, tmp_path, code, error):
    (tmp_path / "pynvml.py").write_text(code)
    document, process = run(env={"PYTHONPATH": str(tmp_path)})
    assert process.returncode == 3
    assert error in document["error"]


def test_a_python_without_a_binding_says_so(run):
    document, process = run(python=("-S", "-E"))
    assert (process.returncode, document["error"]) == (3, nvml.NO_BINDING)


def test_bytes_and_texts_are_the_same(run, binding):
    env = binding("nvmlDeviceGetSerial = lambda handle: b'1650624000000'")
    device = run(two(), env=env)[0]["devices"][0]
    assert (device["serial"], device["gsp_firmware"]) == ("1650624000000", "580.105.08")


def test_a_text_that_is_none_is_an_error_of_its_call(run, binding):
    env = binding("def nvmlDeviceGetSerial(handle): return b'\\xff\\xfe'.decode()")
    device = run(two(), env=env)[0]["devices"][0]
    assert device["errors"]["nvmlDeviceGetSerial"] == "answered with bytes that are no text"
    assert device["vbios"] == "96.00.99.00.01"


def test_a_call_that_the_binding_lacks_is_told_from_one_that_the_driver_lacks(run, binding):
    env = binding("del nvmlDeviceGetMarginTemperature, nvmlDeviceGetGpuFabricInfoV")
    lines = ["function-not-found nvmlDeviceGetMemoryInfo_v2"]
    device = run(two(), env=env, lines=lines)[0]["devices"][0]
    assert device["errors"]["nvmlDeviceGetMarginTemperature"] == "NOT_IN_BINDING"
    assert device["errors"]["nvmlDeviceGetMemoryInfo(v2)"] == "FUNCTION_NOT_FOUND"
    assert device["fabric"]["state"] == "Completed"


def test_a_symbol_that_the_library_does_not_export_is_the_drivers_lack(run, binding):
    env = binding("def nvmlDeviceGetSerial(handle): return _nvmlGetFunctionPointer('nvmlNoSuch')(handle)")
    assert run(two(), env=env)[0]["devices"][0]["errors"]["nvmlDeviceGetSerial"] == "FUNCTION_NOT_FOUND"


def test_structures_are_the_probes_own(run, binding):
    """Bindings up to 12.535 hold the fabric's structure with the wrong size."""
    env = binding("del c_nvmlGpuFabricInfo_t, c_nvmlGpuFabricInfo_v2_t, c_nvmlEccSramErrorStatus_v1_t")
    assert run(two(), env=env)[0]["devices"][0]["fabric"] == {"state": "Completed", "status": "Success"}


def test_a_crash_in_a_call_costs_one_gpu_and_is_named(run, binding):
    code = "def nvmlDeviceGetVbiosVersion(handle):\n import signal\n if nvmlDeviceGetMinorNumber(handle): return 'v'\n"
    document, _ = run(two(), env=binding(code + " os.kill(os.getpid(), signal.SIGSEGV)"))
    first, second = document["devices"]
    assert first["errors"] == {"nvmlDeviceGetVbiosVersion": "the process that asked was ended by SIGSEGV"}
    assert (first["serial"], second["vbios"]) == ("1650624000000", "v")


def test_an_exception_that_nobody_foresaw_is_told(run, binding):
    document, process = run(two(), env=binding("def nvmlDeviceGetVbiosVersion(handle): raise KeyError('odd')"))
    assert document["devices"][0]["errors"]["nvmlDeviceGetVbiosVersion"].endswith("ended: KeyError: 'odd'")
    assert "Traceback" in process.stderr


def test_a_count_that_cannot_be_starts_no_thousand_processes(run, binding):
    document, _ = run(two(), "--deadline", 4, env=binding("nvmlDeviceGetCount = lambda: 4294967295"))
    assert (document["device_count"], len(document["devices"])) == (4294967295, 64)


def test_the_words_of_errors_are_those_of_the_binding():
    pynvml = importlib.import_module("pynvml")
    names = {name: code for name, code in vars(pynvml).items() if name.startswith("NVML_ERROR_")}
    assert {f"NVML_ERROR_{nvml.error_name(code)}": code for code in names.values()} == names
