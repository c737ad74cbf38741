import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.cdi import CDI_LIST, CDI_SPEC, CDI_SPEC_RUN, parse, parse_spec
from nodeready.reading import Known, Unknown

NAMES = (
    "nvidia.com/gpu=0",
    "nvidia.com/gpu=1",
    "nvidia.com/gpu=GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691",
    "nvidia.com/gpu=1:0",
    "nvidia.com/gpu=all",
)
LIST = "".join(f"{name}\n" for name in NAMES).encode()
FOUND = (
    "INFO[0000] Found 5 CDI devices                          \n",
    'time="2026-07-02T03:07:26Z" level=info msg="Found 5 CDI devices"\n',
)
# the keys in the order of the alphabet, as versions up to 1.15 write them
SORTED = """---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - args:
    - nvidia-ctk
    - hook
    hookName: createContainer
    path: /usr/bin/nvidia-ctk
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0"
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
    additionalGids:
    - 44
  name: GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: all
kind: nvidia.com/gpu
"""
# the keys in the order of the specification, as later versions write them
ORDERED = """cdiVersion: 0.8.0
kind: nvidia.com/gpu
devices:
    - name: "0"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
              name: not-a-device
    - name: GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
    # the last one
    - name: 'all'  # every GPU
      containerEdits:
        env:
            - A=b
containerEdits:
    env:
        - NVIDIA_VISIBLE_DEVICES=void
    deviceNodes:
        - path: /dev/nvidiactl
"""
DECLARED = ("nvidia.com/gpu=0", "nvidia.com/gpu=GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691", "nvidia.com/gpu=all")
AS_JSON = json.dumps(
    {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": n.partition("=")[2]} for n in DECLARED]}
)
SPECS = (SORTED, ORDERED, AS_JSON)


def spec(text):
    return parse_spec(text.encode())


def test_probes():
    assert (CDI_LIST.name, CDI_LIST.family) == ("nvidia-ctk_cdi_list", "container")
    assert [probe.name for probe in (CDI_SPEC, CDI_SPEC_RUN)] == ["etc/cdi/nvidia.yaml", "var/run/cdi/nvidia.yaml"]
    assert {CDI_SPEC.instead_of, CDI_SPEC_RUN.instead_of} == {CDI_LIST.name}


def test_the_list_of_names():
    assert parse(LIST).value == NAMES


@pytest.mark.parametrize("found", FOUND)
def test_the_toolkits_own_count_is_checked(found):
    for data in (found.encode() + LIST, LIST + found.encode()):
        assert parse(data).value == NAMES
    for data in (found.encode() + LIST[: LIST.index(b"nvidia.com/gpu=all")], found.replace("5", "9").encode() + LIST):
        assert "devices and names" in parse(data).reason


def test_no_devices_are_known_only_by_the_toolkits_word():
    assert parse(b"INFO[0000] Found 0 CDI devices\n").value == ()
    assert isinstance(parse(b""), Unknown)


def test_every_prefix_of_a_list_is_its_beginning_or_nothing():
    for end in range(len(LIST)):
        found = parse(LIST[:end])
        if isinstance(found, Known):
            assert LIST[:end].endswith(b"\n")
            assert found.value == NAMES[: len(found.value)]
        else:
            assert found.reason
    counted = FOUND[0].encode() + LIST
    for end in range(len(counted)):
        assert isinstance(parse(counted[:end]), Unknown)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"nvidia.com/gpu=0",
        b"nvidia.com/gpu\n",
        b"gpu=0\n",
        b"no such command: cdi\n",
        b"\xff\n",
        b"nvidia.com/gpu=0 extra\n",
    ],
)
def test_what_lists_no_device_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@pytest.mark.parametrize("text", SPECS)
def test_a_specification_in_every_form(text):
    assert spec(text).value == DECLARED


@pytest.mark.parametrize("text", [SORTED, ORDERED, json.dumps(json.loads(AS_JSON), indent=4) + "\n"])
def test_every_prefix_of_a_specification_says_the_same_or_nothing(text):
    data = text.encode()
    known = 0
    for end in range(len(data) + 1):
        found = parse_spec(data[:end])
        if isinstance(found, Known):
            known += 1
            assert found.value == DECLARED
    assert known


@pytest.mark.parametrize("name", ['"0"', "'0'", "0", "gpu0", '"1:0"', "0  # comment"])
def test_names_in_every_quoting(name):
    text = ORDERED.replace('"0"', name)
    assert spec(text).value[0] == f"nvidia.com/gpu={name.split('  #')[0].strip(chr(34) + chr(39))}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    - name: "0"\n', "    - name: |\n"),
        ('    - name: "0"\n', "    - name: *anchor\n"),
        ('    - name: "0"\n', "    - name: &a 0\n"),
        ('    - name: "0"\n', "    - {name: 0}\n"),
        ('    - name: "0"\n', '    - name: "a\\n"\n'),
        ('    - name: "0"\n', "    - name: [0]\n"),
        ('    - name: "0"\n', "    - name:\n"),
        ('    - name: "0"\n', "    - name: a b\n"),
        ('    - name: "0"\n', "    - other: 0\n"),
        ('    - name: "0"\n', '    - name: "0"\n      name: "1"\n'),
        ('    - name: "0"\n', '    - name: "all"\n'),
        ('    - name: "0"\n', '\t- name: "0"\n'),
        ('    - name: "0"\n', '   - name: "0"\n    - name: "1"\n'),
        ('    - name: "0"\n', "    - other: 0\n  a   name: 5\n"),
        ("kind: nvidia.com/gpu\n", ""),
        ("kind: nvidia.com/gpu\n", "kind: gpu\n"),
        ("kind: nvidia.com/gpu\n", "kind: [nvidia.com/gpu]\n"),
        ("kind: nvidia.com/gpu\n", "kind:\n"),
        ("kind: nvidia.com/gpu\n", "kind: nvidia.com/gpu\nkind: nvidia.com/gpu\n"),
        ("devices:\n", "devices: []\n"),
        ("devices:\n", "devices: &all\n"),
        ("cdiVersion: 0.8.0\n", "%YAML 1.2\ncdiVersion: 0.8.0\n"),
        ("cdiVersion: 0.8.0\n", "cdiVersion: 0.8.0\n...\n"),
    ],
)
def test_what_is_not_in_the_plain_form_is_unknown(old, new):
    assert old in ORDERED
    found = spec(ORDERED.replace(old, new, 1))
    assert isinstance(found, Unknown)
    assert found.reason


def test_a_specification_that_ends_with_its_devices_could_be_cut():
    assert "could be cut" in spec(ORDERED[: ORDERED.index("containerEdits:\n    env:\n        - NVIDIA")]).reason


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        '{"kind": "nvidia.com/gpu"}',
        '{"kind": 5, "devices": []}',
        '{"kind": "gpu", "devices": []}',
        '{"kind": "nvidia.com/gpu", "devices": {}}',
        '{"kind": "nvidia.com/gpu", "devices": [5]}',
        '{"kind": "nvidia.com/gpu", "devices": [{"name": 0}]}',
        '{"kind": "nvidia.com/gpu", "devices": [{"name": ""}]}',
        '{"kind": "nvidia.com/gpu", "devices": [{"name": "0"}, {"name": "0"}]}',
        '{"a": ' * 50_000,
    ],
)
def test_a_json_document_that_is_no_specification_is_unknown(text):
    found = spec(text)
    assert isinstance(found, Unknown)
    assert found.reason


def test_configuration_files_are_no_specification(captures):
    for path in sorted((captures / "container-runtime").iterdir()):
        for parser in (parse, parse_spec):
            assert isinstance(parser(path.read_bytes()), Unknown), path.name


@given(st.binary(max_size=200), st.integers(0, len(ORDERED)))
def test_garbage_never_raises(noise, at):
    for text in (SORTED.encode(), ORDERED.encode(), AS_JSON.encode()):
        assert isinstance(parse_spec(text[:at] + noise + text[at:]), (Known, Unknown))
    assert isinstance(parse_spec(noise), (Known, Unknown))
    assert isinstance(parse(LIST[:at] + noise + LIST[at:]), (Known, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    for line in (
        b"a" * 3_000_000,
        b" " * 3_000_000 + b"x",
        b"Found " * 500_000,
        b"a/b=" * 500_000,
        b"    - name: " + b"a " * 1_000_000,
    ):
        assert isinstance(parse(LIST + line + b"\n"), Known)
        assert isinstance(parse_spec(ORDERED.encode() + b"    " + line + b"\n"), Known)
    assert time.process_time() - started < 5
