import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.lsmod import LSMOD, LSMOD_TEXT, Modules, parse
from nodeready.reading import Known, Unknown

PROC = b"""nvidia_uvm 4919296 4 - Live 0xffffffffc1a00000 (POE)
nvidia_drm 126976 0 - Live 0xffffffffc0e00000 (POE)
nvidia_modeset 1605632 1 nvidia_drm, Live 0xffffffffc0b00000 (POE)
nvidia 11534336 49 nvidia_uvm,nvidia_modeset, Live 0xffffffffc0a00000 (POE)
gdrdrv 40960 0 - Loading 0x0000000000000000 (OE)
nf_tables 372736 0 - Unloading 0x0000000000000000
ipv6 700416 90 [permanent], Live 0x0000000000000000
autofs4 57344 2 - Live 0x0000000000000000
"""
TEXT = b"""Module                  Size  Used by
nvidia_uvm           4919296  4
nvidia_modeset       1605632  0
nvidia              11534336  49 nvidia_uvm,nvidia_modeset
ipv6                  700416  90 [permanent]
stuck                  16384  -2
autofs4                57344  2
"""


def test_the_command_stands_in_for_the_file():
    assert (LSMOD.name, LSMOD.is_file) == ("proc/modules", True)
    assert (LSMOD_TEXT.name, LSMOD_TEXT.instead_of) == ("lsmod", LSMOD.name)


@pytest.mark.parametrize("data", [PROC, TEXT])
def test_loaded_modules(data):
    found = parse(data)
    assert not found.gaps
    for name in ("nvidia", "nvidia_uvm", "nvidia-uvm", "nvidia_modeset", "ipv6", "autofs4"):
        assert found.loaded(name).value is True
    for name in ("nouveau", "nvidia_peermem", "nvidia-peermem", "nvidia_fs", "Module"):
        assert found.loaded(name).value is False


def test_a_module_on_its_way_is_not_loaded():
    found = parse(PROC)
    assert found.loaded("gdrdrv").value is False
    assert found.loaded("nf_tables").value is False


@pytest.mark.parametrize("data", [PROC, TEXT])
def test_a_prefix_never_knows_a_module_that_the_whole_does_not(data):
    whole = parse(data)
    for end in range(len(data)):
        found = parse(data[:end])
        if isinstance(found, Unknown):
            continue
        assert found.names <= whole.names
        for name in ("nvidia", "autofs4", "nouveau"):
            reading = found.loaded(name)
            if isinstance(reading, Known) and reading.value:
                assert name in whole.names
            # what is absent is known to be absent only where a line ends
            assert isinstance(reading, Known) or name not in found.names
            if not data[:end].endswith(b"\n") and name not in found.names:
                assert isinstance(reading, Unknown)


def test_a_filtered_list_does_not_know_what_is_absent():
    found = parse(b"nvidia              11534336  49 nvidia_uvm,nvidia_modeset\n")
    assert found.loaded("nvidia").value is True
    assert found.loaded("nouveau").reason == (
        "nouveau is not listed, but the list is not whole: it names nvidia_modeset as a user and does not list it"
    )


def test_a_list_with_strange_lines_does_not_know_what_is_absent():
    found = parse(PROC + b"lsmod: read error\n")
    assert found.loaded("nvidia").value is True
    assert "can't be read" in found.loaded("nouveau").reason


def test_a_real_node_without_uvm(captures):
    data = (captures / "kernel-misc" / "01-lsmod-nvidia.txt").read_bytes()
    found = parse(data)
    assert not found.gaps
    assert len(found.names) == data.count(b"\n") - 1
    assert [found.loaded(name).value for name in ("nvidia", "nvidia_drm", "ib_core", "mlx4_core")] == [True] * 4
    assert [found.loaded(name).value for name in ("nvidia_uvm", "nvidia_peermem", "nouveau")] == [False] * 3


def test_every_capture_of_the_folder_is_tested(captures):
    assert len(list((captures / "kernel-misc").iterdir())) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"Module                  Size  Used by\n",
        b"lsmod: not found\n",
        b"nvidia 1 1",
        b"\xff\xfe\n",
        b"a b c\n",
    ],
)
def test_what_lists_no_module_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@given(st.binary(max_size=200), st.integers(0, len(PROC)))
def test_garbage_never_raises(noise, at):
    for data in (noise + b"\n", PROC[:at] + noise + PROC[at:]):
        assert isinstance(parse(data), (Modules, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    found = parse(PROC + b"x 1 1 " + b"a," * 1_000_000 + b" Live\n" + b"x " * 1_000_000 + b"\n")
    assert found.loaded("nvidia").value
    assert time.process_time() - started < 5
