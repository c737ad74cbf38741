"""A driver that a container installed is found, and one that is on PATH is left alone."""

import os
import stat

import pytest

from nodeready.evidence import driver_root, runner
from nodeready.evidence.probe import command

SAYS = '#!/bin/sh\necho "$LD_LIBRARY_PATH" "$@"\n'


def put(folder):
    folder.mkdir(parents=True)
    tool = folder / "nvidia-smi"
    tool.write_text(SAYS)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return folder


def test_a_tool_on_path_needs_no_way(tmp_path):
    path = str(put(tmp_path / "bin"))
    assert driver_root.way_to("nvidia-smi", path, as_root=True, root=str(tmp_path), folders=(str(tmp_path),)) == ()


def test_only_root_goes_below_the_drivers_root(tmp_path):
    put(tmp_path / "usr" / "bin")
    for as_root, way in ((True, ("chroot", str(tmp_path))), (False, ())):
        assert driver_root.way_to("nvidia-smi", "", as_root=as_root, root=str(tmp_path), folders=()) == way
    assert driver_root.way_to("lspci", "", as_root=True, root=str(tmp_path), folders=()) == ()


def test_a_tool_of_an_installer_runs_with_its_libraries(tmp_path, monkeypatch):
    put(tmp_path / "nvidia" / "bin")
    folder = str(tmp_path / "nvidia")
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setattr(driver_root.way_to, "__kwdefaults__", {"root": "/nonexistent", "folders": (folder,)})
    monkeypatch.setenv("PATH", f"{empty}{os.pathsep}/usr/bin{os.pathsep}/bin")
    found = runner.run(command("nvidia-smi", "-L"))
    assert found.stdout.decode() == f"{folder}/lib64 -L\n"
    assert found.argv[0] == "env"


@pytest.mark.parametrize("program", ["nvidia-smi", "nv-fabricmanager"])
def test_nothing_anywhere_is_nothing(program):
    assert driver_root.way_to(program, "", as_root=True, root="/nonexistent", folders=()) == ()
