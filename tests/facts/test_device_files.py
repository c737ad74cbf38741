"""The list of the driver's device files: a file that is no character device is none, and a cut list says nothing."""

import doctest
import subprocess

import pytest

from nodeready.facts import device_files
from nodeready.facts.device_files import DEVICE_FILES, DeviceFiles, parse
from nodeready.reading import Unknown

WHOLE = b"device:/dev/nvidia0\ndevice:/dev/nvidia1\ndevice:/dev/nvidia-uvm\ndevice:/dev/nvidiactl\nend:\n"


def test_the_examples_in_the_docstring_hold():
    assert doctest.testmod(device_files) == (0, 2)


def test_the_files_of_single_gpus_are_told_from_the_others():
    found = parse(WHOLE)
    assert found.names == {"nvidia0", "nvidia1", "nvidia-uvm", "nvidiactl"}
    assert found.gpus == {"nvidia0", "nvidia1"}


def test_a_driver_in_a_container_has_its_files_below_its_own_folder():
    inside = b"device:/run/nvidia/driver/dev/nvidia-uvm\n"
    assert parse(inside + WHOLE).names == parse(WHOLE).names
    assert parse(inside + b"end:\n").names == {"nvidia-uvm"}


def test_a_node_without_any_has_none():
    assert parse(b"end:\n") == DeviceFiles(frozenset())


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_list_that_was_cut_anywhere_says_nothing(length):
    assert isinstance(parse(WHOLE[:length]), Unknown)


@pytest.mark.parametrize(
    "line",
    [
        b"device:/dev/nvidia0 (deleted)",
        b"device:/home/me/nvidia-uvm",
        b"device:/dev/nvidia-caps/nvidia-cap1",
        b"device:",
        b"device:/dev/null",
        b"sh: 1: syntax error",
        b"\xff\xfe:/dev/nvidia0",
    ],
)
def test_a_line_that_the_probe_does_not_print_makes_the_list_unknown(line):
    assert isinstance(parse(line + b"\n" + WHOLE), Unknown)


def test_the_probe_lists_character_devices_alone_and_opens_none(tmp_path):
    (tmp_path / "nvidiactl").symlink_to("/dev/null")
    (tmp_path / "nvidia0").symlink_to("/dev/zero")
    (tmp_path / "nvidia-uvm").mkdir()  # what docker makes of a volume that is not there
    (tmp_path / "nvidia1").write_text("")
    (tmp_path / "nvidia2").symlink_to(tmp_path / "nowhere")
    shell, option, script = DEVICE_FILES.argv
    moved = script.replace("/dev/nvidia*", f"{tmp_path}/nvidia*", 1)
    assert moved != script
    done = subprocess.run([shell, option, moved], capture_output=True, timeout=10, check=True)
    assert done.stdout.decode().replace(str(tmp_path), "/dev") == "device:/dev/nvidia0\ndevice:/dev/nvidiactl\nend:\n"
    assert done.stderr == b""
