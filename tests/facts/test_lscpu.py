import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.lscpu import BARE_METAL, LSCPU, LSCPU_TEXT, Cpu, parse
from nodeready.reading import Known, Unknown

READINGS = (
    "model",
    "sockets",
    "cores_per_socket",
    "threads_per_core",
    "logical_cpus",
    "numa_nodes",
    "virtualization",
    "hypervisor",
)
FIELDS = {
    "Architecture": "x86_64",
    "CPU op-mode(s)": "32-bit, 64-bit",
    "CPU(s)": "224",
    "On-line CPU(s) list": "0-223",
    "Vendor ID": "GenuineIntel",
    "Model name": "Intel(R) Xeon(R) Platinum 8480C",
    "BIOS Model name": "Intel(R) Xeon(R) Platinum 8480C",
    "Thread(s) per core": "2",
    "Core(s) per socket": "56",
    "Socket(s)": "2",
    "Flags": "fpu vme de pse",
    "Virtualization": "VT-x",
    "L1d cache": "5.3 MiB (112 instances)",
    "NUMA node(s)": "2",
    "NUMA node0 CPU(s)": "0-55,112-167",
    "Vulnerability Mds": "Not affected",
}


def as_text(fields):
    return "".join(f"{key + ':':36}{value}\n" for key, value in fields.items()).encode()


def as_json(fields):
    return json.dumps(
        {"lscpu": [{"field": f"{key}:", "data": value} for key, value in fields.items()]}, indent=3
    ).encode()


GUEST = {**FIELDS, "Hypervisor vendor": "KVM", "Virtualization type": "full"}
GUEST = {
    key: GUEST[key] for key in (*list(FIELDS)[:12], "Hypervisor vendor", "Virtualization type", *list(FIELDS)[12:])
}
FORMS = (as_text, as_json)


def values(cpu):
    return [getattr(cpu, name).value for name in READINGS]


def test_the_text_stands_in_for_json():
    assert (LSCPU.name, LSCPU_TEXT.name, LSCPU_TEXT.instead_of) == ("lscpu_-J", "lscpu", LSCPU.name)


@pytest.mark.parametrize("form", FORMS)
def test_a_node_without_a_hypervisor(form):
    cpu = parse(form(FIELDS))
    assert values(cpu) == ["Intel(R) Xeon(R) Platinum 8480C", 2, 56, 2, 224, 2, "VT-x", BARE_METAL]
    assert cpu.hypervisor.note


@pytest.mark.parametrize("form", FORMS)
def test_a_guest_names_its_hypervisor(form):
    assert parse(form(GUEST)).hypervisor.value == "KVM"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", ["", "-", "two", "-1", "0", "2.0", "9" * 5000])
def test_a_count_that_is_none_is_unknown(form, value):
    cpu = parse(form({**FIELDS, "Socket(s)": value}))
    assert isinstance(cpu.sockets, Unknown)
    assert cpu.cores_per_socket.value == 56


@pytest.mark.parametrize("form", FORMS)
def test_a_field_that_is_absent_is_unknown(form):
    cpu = parse(form({key: value for key, value in FIELDS.items() if key not in ("Virtualization", "Model name")}))
    assert isinstance(cpu.virtualization, Unknown)
    assert isinstance(cpu.model, Unknown)


def test_two_kinds_of_processor_are_no_model():
    cpu = parse(as_text(FIELDS) + b"Model name: Cortex-A55\n")
    assert "several values" in cpu.model.reason
    assert cpu.sockets.value == 2


def test_nested_fields_and_missing_data():
    rows = [
        {"field": "Architecture:", "data": "x86_64", "children": [{"field": "CPU op-mode(s):", "data": "64-bit"}]},
        {"field": "CPU(s):", "data": "8"},
        {
            "field": "Vendor ID:",
            "data": "AuthenticAMD",
            "children": [{"field": "Model name:", "data": "EPYC", "children": [{"field": "Socket(s):", "data": "1"}]}],
        },
        {"field": "NUMA:", "data": None, "children": [{"field": "NUMA node(s):", "data": "4"}]},
        "strange",
        {"field": 5, "data": []},
    ]
    cpu = parse(json.dumps({"lscpu": rows}).encode())
    assert (cpu.model.value, cpu.sockets.value, cpu.numa_nodes.value, cpu.logical_cpus.value) == ("EPYC", 1, 4, 8)


@pytest.mark.parametrize("fields", [FIELDS, GUEST])
@pytest.mark.parametrize("form", FORMS)
def test_every_prefix_says_the_same_or_nothing(form, fields):
    data = form(fields)
    whole = parse(data)
    known = 0
    for end in range(len(data)):
        found = parse(data[:end])
        for name in READINGS if isinstance(found, Cpu) else ():
            reading = getattr(found, name)
            if isinstance(reading, Known):
                known += 1
                assert reading.value == getattr(whole, name).value
    assert known or form is as_json


def test_a_real_guest_with_indented_fields(captures):
    data = (captures / "lscpu" / "01-lscpu-insights.txt").read_bytes()
    assert values(parse(data)) == ["Intel Core Processor (Haswell, no TSX, IBRS)", 2, 1, 1, 2, 1, "VT-x", "KVM"]
    for end in range(len(data)):
        found = parse(data[:end])
        if isinstance(found, Cpu) and isinstance(found.hypervisor, Known):
            assert found.hypervisor.value == "KVM"


def section(path, title):
    """One output of a file that holds many, each below its title and above a rule."""
    text = path.read_bytes()
    start = text.index(f"\n7. {title}\n".encode()) + len(f"\n7. {title}\n")
    return text[start : text.index(b"\n-----", start) + 1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01-l40sx8-sys_info.txt", ["AMD EPYC 9254 24-Core Processor", 10, 4, 2, 80, 2, "AMD-V", "KVM"]),
        ("02-rtx4090x2-sys_info-dmidecode.txt", ["Intel(R) Xeon(R) w7-2495X", 1, 24, 2, 48, 1, "VT-x", BARE_METAL]),
    ],
)
def test_real_servers(captures, name, expected):
    assert values(parse(section(captures / "sys-info" / name, "lscpu"))) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{}",
        b'{"lscpu": []}',
        b'{"lscpu": 5}',
        b'{"lscpu"',
        b"{" * 100_000,
        b"bash: lscpu: not found\n",
        b"\xff\n",
    ],
)
def test_what_is_no_output_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@given(st.binary(max_size=200), st.integers(0, 700))
def test_garbage_never_raises(noise, at):
    for data in (noise, as_text(GUEST)[:at] + noise + as_text(GUEST)[at:], b'{"lscpu": [' + noise + b"]}"):
        assert isinstance(parse(data), (Cpu, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    long = (
        as_text(FIELDS) + b"Flags:" + b" avx" * 1_000_000 + b"\n" + b"a:" * 1_000_000 + b"\n" + b" " * 3_000_000 + b"\n"
    )
    assert parse(long).sockets.value == 2
    assert time.process_time() - started < 5
