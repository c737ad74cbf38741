"""What stands in a driver's way: known bad versions, variables, modules; and firmware that is another's."""

from datetime import date

import pytest

from nodeready.baseline import load
from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.node import Node
from nodeready.node.terms import Terms
from nodeready.reading import Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs

TABLES = load("sxm").tables
ON = date(2026, 12, 1)


def node_of(changes=None, node_type="sxm", driver="580", today=ON):
    simulated = build(node_type, 0, None, driver)
    found = {n: Recording(n, rc=o.rc, stdout=o.stdout, stderr=o.stderr) for n, o in outputs(simulated).items()}
    for name, change in (changes or {}).items():
        if change is None:
            found.pop(name, None)
        else:
            found[name] = change if isinstance(change, Recording) else Recording(name, stdout=change)
    return Node(Evidence("folder", "node", found), Terms(len(simulated.gpus), tables=TABLES, today=today))


@pytest.mark.parametrize(
    ("driver", "node_type", "word"),
    [
        ("580", "sxm", "none"),
        ("535.129.03", "sxm", "suspected"),
        ("535.129.03", "h200-sxm", "known"),
        ("535.216.01", "h200-nvl", "known"),
        ("535.216.03", "h200-sxm", "none"),
        ("535.104.12", "sxm", "none"),
    ],
)
def test_known_bad_versions_of_the_shipped_table(driver, node_type, word):
    found = node_of(node_type=node_type, driver=driver).driver_parts.known_problems
    assert found.value == word
    assert bool(found.note) is (word != "none")


def test_a_stale_table_forgets_no_problem_and_clears_no_version():
    later = date(2028, 1, 1)
    assert node_of(driver="535.129.03", today=later).driver_parts.known_problems.value == "suspected"
    assert "stale" in node_of(today=later).driver_parts.known_problems.reason


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (b"end\n", "none"),
        (b"process:CUDA_HOME=/usr/local/cuda\nend\n", "none"),
        (b"process:CUDA_LAUNCH_BLOCKING=0\nend\n", "none"),
        (b"process:CUDA_LAUNCH_BLOCKING=1\nend\n", "CUDA_LAUNCH_BLOCKING"),
        (b'file:NVIDIA_TF32_OVERRIDE="0"\nend\n', "NVIDIA_TF32_OVERRIDE"),
        (b"process:NCCL_NVLS_ENABLE=0\nprocess:NCCL_P2P_DISABLE=1\nend\n", "NCCL_NVLS_ENABLE, NCCL_P2P_DISABLE"),
        (b"process:CUDA_INJECTION64_PATH=/opt/tool.so\nend\n", "CUDA_INJECTION64_PATH"),
    ],
)
def test_variables_that_harm_are_named(said, word):
    assert node_of({"environment": said}).driver_parts.harmful_environment.value == word


def test_every_harmful_variable_has_a_reason_and_a_source():
    sources = load("sxm").sources
    for name, row in TABLES["harmful-environment"].items():
        assert row["why"], name
        assert row["source"] in sources, name


@pytest.mark.parametrize(
    ("modules", "missing", "nouveau"),
    [
        (b"nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n", "none", False),
        (b"nvidia 1 0 - Live 0x0\nnouveau 1 0 - Live 0x0\n", "nvidia_uvm", True),
    ],
)
def test_modules(modules, missing, nouveau):
    parts = node_of({"proc/modules": modules, "torch": None}).driver_parts
    assert parts.missing_modules.value == missing
    assert parts.nouveau.value is nouveau


def test_uvm_that_a_cuda_program_loaded_is_not_missing():
    parts = node_of({"proc/modules": b"nvidia 1 0 - Live 0x0\n"}).driver_parts
    assert (parts.missing_modules.value, "first CUDA program" in parts.missing_modules.note) == ("none", True)


def test_without_the_module_the_driver_is_the_cause():
    found = node_of({"proc/modules": b"overlay 1 0 - Live 0x0\n"}).driver_parts.missing_modules
    assert isinstance(found, Unknown)
    assert found.causes == ("driver.responds",)


@pytest.mark.parametrize("rc", [0, 14])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_warning_of_nvidia_smi_names_the_gpu_whose_inforom_is_corrupted(rc, stream):
    text = outputs(build("sxm"))["nvidia-smi_-q"].stdout
    warning = b"WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n"
    warned = {"stdout": text + warning} if stream == "stdout" else {"stdout": text, "stderr": warning}
    node = node_of({"nvidia-smi_-q": Recording("nvidia-smi_-q", rc=rc, **warned)})
    assert [gpu.firmware.inforom.value for gpu in node.gpus] == ["readable", "corrupted", *["readable"] * 6]


@pytest.mark.parametrize(("said", "word"), [(b"CC status: ON\n", "ON"), (b"CC Status : OFF\n", "OFF")])
def test_confidential_computing(said, word):
    assert node_of({"nvidia-smi_conf-compute_-f": said}).driver_parts.confidential_computing.value == word


def _silent(status, lines, modules=b"ext4 917504 1 - Live 0xffffffffc0a00000\n"):
    """A node whose nvidia-smi exits with a status, with these lines in its kernel log."""
    failed = {name: Recording(name, rc=status, stdout=b"no\n") for name in ("nvidia-smi_-q_-x", "nvidia-smi_-q")}
    log = b"".join(b"[   99.%06d] %s\n" % (number, line) for number, line in enumerate(lines))
    return node_of({**failed, "dmesg": b"[    0.000000] Linux version 6.8.0\n" + log, "proc/modules": modules})


def test_the_kernel_s_word_on_the_refused_module_is_quoted_as_the_cause():
    found = _silent(9, [b"PKCS#7 signature not signed with a trusted key", b"Loading of unsigned module is rejected"])
    responds = found.driver.responds
    assert responds.value is False
    assert responds.note.endswith(
        "the kernel log says: PKCS#7 signature not signed with a trusted key; Loading of unsigned module is rejected"
    )
    assert responds.recordings == ("nvidia-smi_-q_-x", "dmesg")


@pytest.mark.parametrize("status", [15, 18])
def test_the_kernel_s_word_on_another_module_explains_no_other_error(status):
    assert "kernel log" not in _silent(status, [b"Loading of unsigned module is rejected"]).driver.responds.note


def test_a_loaded_driver_was_not_refused():
    loaded = b"nvidia 11534336 0 - Live 0xffffffffc0a00000\n"
    assert "kernel log" not in _silent(9, [b"Loading of unsigned module is rejected"], loaded).driver.responds.note
    assert "kernel log" not in _silent(9, [b"usb 1-1: new device"]).driver.responds.note
