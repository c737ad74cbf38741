"""The drive-read probe, for real on files of this machine's disk, and with a made-up sysfs that describes them."""

import ast
import doctest
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from nodeready.evidence.script import runnable
from nodeready.facts.drive_read import parse
from nodeready.probes import drive_read, drive_reader
from nodeready.reading import Known

SCRIPT = Path(drive_read.__file__)
MIB = 1 << 20
QUICK = ("--seconds=0.5", "--deadline=30")
ENTRY = {"device", "drive", "bus_id", "model", "serial", "bytes", "link_gts", "link_width", "in_flight", "seconds"}
ENTRY |= {"others_before_gb_s", "others_during_gb_s", "gb_s", "p5", "cv", "blocks", "blank"}
ENTRY |= {"read_errno", "read_offset", "error"}


@pytest.fixture(scope="module")
def folder():
    """A place on a disk: what lies in memory may not be read past the page cache."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="nodeready-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def disk(folder):
    """Ten blocks and a bit; the second half holds zeros."""
    path = folder / "disk"
    path.write_bytes(os.urandom(5 * MIB) + bytes(5 * MIB) + b"end")
    return path


def run(*options):
    argv = [sys.executable, str(SCRIPT), *QUICK, *map(str, options)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def results(*options):
    ran = run(*options)
    assert (ran.returncode, ran.stderr) == (0, "")
    document = json.loads(ran.stdout)
    assert all(entry.keys() == ENTRY for entry in document["results"])
    assert len(parse(ran.stdout.encode()).drives) == len(document["results"])
    return document["results"]


class Sysfs:
    """A made-up sysfs and /dev, whose drives are files."""

    def __init__(self, folder, disk):
        self.sys, self.dev, self.disk = folder / "sys", folder / "dev", disk
        self.dev.mkdir()

    def write(self, at, **files):
        at.mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (at / name).write_text(f"{value}\n")
        return at

    def link(self, at, to):
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(to)

    def drive(self, number, *, speed="16.0 GT/s PCIe", above="32.0 GT/s PCIe", transport="pcie", state="live"):
        bus_id = f"0000:{0x10 + number:02x}:00.0"
        port = self.write(
            self.sys / f"devices/pci0000:00/0000:00:{number:02x}.0", max_link_speed=above, max_link_width=4
        )
        device = self.write(port / bus_id, max_link_speed=speed, max_link_width=4)
        self.link(self.sys / "bus/pci/devices" / bus_id, device)
        about = {"address": bus_id, "model": f"{'MODEL':<40}", "serial": f"S{number}", "state": state}
        drive = self.write(device / f"nvme/nvme{number}", transport=transport, **about)
        self.link(self.sys / f"class/nvme/nvme{number}", drive)
        return drive

    def disk_of(self, below, name, stat="0 0 0 0 0 0 0 0 0 0 0", device=None):
        at = self.write(below / name, size=self.disk.stat().st_size // 512, stat=stat)
        self.link(at / "device", device or below)
        self.link(self.sys / "block" / name, at)
        self.link(self.dev / name, self.disk)
        return at

    def results(self):
        return {entry["device"]: entry for entry in results(f"--sysfs={self.sys}", f"--dev={self.dev}")}


@pytest.fixture
def sysfs(tmp_path, disk):
    return Sysfs(tmp_path, disk)


def test_the_script_imports_the_standard_library_and_its_sibling_alone():
    for path in (SCRIPT, Path(drive_reader.__file__)):
        names = set()
        for entry in ast.walk(ast.parse(path.read_text())):
            if isinstance(entry, ast.Import):
                names |= {alias.name for alias in entry.names}
            elif isinstance(entry, ast.ImportFrom):
                names.add(entry.module)
        ours = {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}
        assert ours <= {"drive_reader", "nodeready.probes.drive_reader"}


def test_nothing_is_opened_for_writing():
    text = SCRIPT.read_text() + Path(drive_reader.__file__).read_text()
    assert text.count("os.open(") == 2  # the disk, and /dev/null for standard streams
    assert "os.O_RDONLY | os.O_DIRECT" in text
    assert not {"os.pwrite", "os.pwritev", "O_WRONLY", "O_CREAT", "O_TRUNC", "write_text", "write_bytes"} & set(
        text.split()
    )
    assert text.count("os.write(into,") == text.count("os.write(") == 1  # the figures, into the pipe


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(drive_reader).failed == doctest.testmod(drive_read).failed == 0


def test_a_file_on_a_disk_is_read(disk):
    before = disk.read_bytes(), disk.stat().st_mtime_ns
    (entry,) = results(f"--device={disk}")
    assert entry["error"] is None
    assert 0 < entry["p5"] <= entry["gb_s"] < 130
    assert entry["bytes"] == 10 * MIB + 3
    assert entry["blocks"] > 20  # in half a second each block was read several times, and half of them hold zeros
    assert 0.2 < entry["blank"] < 0.8
    assert (disk.read_bytes(), disk.stat().st_mtime_ns) == before


def test_one_block_is_enough_and_less_is_none(folder):
    for size, error in ((MIB, None), (MIB - 1, f"smaller than one block of {MIB} bytes")):
        path = folder / f"of-{size}"
        path.write_bytes(bytes(size))
        (entry,) = results(f"--device={path}")
        assert entry["error"] is error or entry["error"].endswith(error)
        assert (entry["blank"], entry["gb_s"] is None) == ((1.0, False) if error is None else (None, True))


def test_what_cannot_be_opened_costs_its_own_entry(folder, disk):
    missing, here, closed = results(f"--device={folder / 'none'}", f"--device={disk}", f"--device={folder}")
    assert missing["error"] == f"{folder / 'none'} cannot be opened for direct reads: No such file or directory"
    assert here["error"] is None
    assert closed["error"]
    assert missing["read_errno"] is closed["read_errno"] is None  # the drive was not asked


def test_places_are_spread_and_are_the_same_for_the_same_seed():
    def places(seed):
        reader = drive_reader.Reader(100, 10_000, random.Random(seed))
        found = reader.offsets()
        return [next(found) // MIB for _ in range(5_000)]

    first = places(1)
    assert first == places(1) != places(2)
    assert all(100 <= at < 10_100 for at in first)
    assert min(first) < 1_500
    assert max(first) > 8_500
    assert sum(b == a + 1 for a, b in itertools.pairwise(first)) > 4_500


def test_an_error_of_the_disk_is_told_with_its_number_and_place(disk, monkeypatch):
    def preadv(_, buffers, offset):
        if offset >= 3 * MIB:
            raise OSError(61, "No data available")
        return len(buffers[0])

    monkeypatch.setattr(drive_reader.os, "preadv", preadv)
    found = drive_reader.read_disk(str(disk), 0.5, 1)
    assert found["read_errno"] == "ENODATA"
    assert found["read_offset"] >= 3 * MIB
    assert found["error"] == f"read at byte {found['read_offset']}: No data available"
    assert "gb_s" not in found


def test_what_ends_early_is_asked_for_the_rest(disk, monkeypatch):
    """The kernel gives what came before a bad sector, and the error at the next read."""
    asked = []

    def preadv(_, buffers, offset):
        asked.append((offset, len(buffers[0])))
        if offset % MIB == 0:
            return 4096
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(drive_reader.os, "preadv", preadv)
    found = drive_reader.read_disk(str(disk), 0.5, 1)
    assert found["read_errno"] == "EIO"
    assert any(offset % MIB == 4096 and length == MIB - 4096 for offset, length in asked)


def test_a_disk_shorter_than_it_says_is_no_error_of_the_drive(disk, monkeypatch):
    monkeypatch.setattr(drive_reader.os, "preadv", lambda *_: 0)
    found = drive_reader.read_disk(str(disk), 0.5, 1)
    assert found["read_errno"] is None
    assert "it ends at byte" in found["error"]


def test_a_drive_that_does_not_answer_is_abandoned(disk, monkeypatch):
    monkeypatch.setattr(drive_reader.os, "preadv", lambda *_: time.sleep(60))
    begun = time.monotonic()
    assert drive_reader.in_child(str(disk), 0.5, 1, patience=1.0) == {"error": "it gave no answer in 1 s"}
    assert time.monotonic() - begun < 5


def test_a_reader_that_dies_is_told(disk, monkeypatch):
    monkeypatch.setattr(drive_reader, "read_disk", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    found = drive_reader.in_child(str(disk), 0.5, 1, patience=5.0)
    assert found == {"error": "its reader ended with wait status 9"}


def test_drives_are_found_with_what_their_link_could_be(sysfs):
    sysfs.disk_of(sysfs.drive(2), "nvme2n1")
    sysfs.disk_of(sysfs.drive(10, speed="32.0 GT/s PCIe", above="8.0 GT/s PCIe"), "nvme10n1")
    sysfs.disk_of(sysfs.drive(3, speed="Unknown", above="Unknown"), "nvme3n1")
    found = sysfs.results()
    assert list(found) == ["nvme2n1", "nvme3n1", "nvme10n1"]
    assert [(e["link_gts"], e["link_width"]) for e in found.values()] == [(16.0, 4), (None, 4), (8.0, 4)]
    entry = found["nvme2n1"]
    assert (entry["drive"], entry["bus_id"], entry["model"], entry["serial"]) == (
        "nvme2",
        "0000:12:00.0",
        "MODEL",
        "S2",
    )
    assert all(e["error"] is None and e["gb_s"] > 0 for e in found.values())


def test_drives_over_a_network_are_anothers_and_one_without_a_namespace_is_told(sysfs):
    sysfs.disk_of(sysfs.drive(0, transport="tcp"), "nvme0n1")
    sysfs.drive(1, state="dead")
    found = sysfs.results()
    assert list(found) == ["nvme1"]
    assert found["nvme1"]["error"] == "nvme1 shows no namespace, its state is dead"
    assert found["nvme1"]["bus_id"] == "0000:11:00.0"


def test_a_namespace_of_a_drive_with_two_ports_is_counted_at_its_hidden_way(sysfs):
    """With native multipath the disk hangs below a subsystem, and older kernels count at the way to it alone."""
    drive = sysfs.drive(1)
    subsystem = sysfs.write(sysfs.sys / "devices/virtual/nvme-subsystem/nvme-subsys0")
    sysfs.link(subsystem / "nvme1", drive)
    sysfs.disk_of(subsystem, "nvme0n1", "0 0 0 0 0 0 0 0 0 0 0")
    sysfs.disk_of(drive, "nvme0c1n1", "9 0 800 0 0 0 0 0 3 0 0")
    found = sysfs.results()
    assert list(found) == ["nvme0n1"]
    entry = found["nvme0n1"]
    assert (entry["drive"], entry["bus_id"], entry["in_flight"]) == ("nvme1", "0000:11:00.0", 3)


def test_what_others_do_is_told_from_the_kernels_counters(sysfs, monkeypatch):
    disk = sysfs.disk_of(sysfs.drive(0), "nvme0n1")
    (found,) = drive_read.namespaces(sysfs.sys, sysfs.dev)
    options = drive_read.parse_options(QUICK)
    rows = iter(["1 0 0 0 1 0 0 0 2 0 0", "1 0 100000 0 1 0 100000 0 1 0 0", "1 0 400000 0 1 0 150000 0 0 0 0"])
    plain = drive_read.Traffic.of

    def of(counters):
        (disk / "stat").write_text(next(rows))
        return plain(counters)

    def in_child(*_):
        time.sleep(0.2)
        return {"read_bytes": 200_000 * 512, "gb_s": 1.0}

    monkeypatch.setattr(drive_read.Traffic, "of", of)
    monkeypatch.setattr(drive_read, "in_child", in_child)
    entry = drive_read.measured(found, options, 30.0)
    assert (entry["in_flight"], entry["others_before_gb_s"]) == (1, round(200_000 * 512 / 0.25 / 1e9, 4))
    assert 0.05 < entry["others_during_gb_s"] <= 150_000 * 512 / 0.2 / 1e9
    assert "read_bytes" not in entry


def test_counters_that_miss_our_own_reads_tell_nothing_of_others(sysfs):
    sysfs.disk_of(sysfs.drive(0), "nvme0n1")
    entry = sysfs.results()["nvme0n1"]
    assert (entry["others_before_gb_s"], entry["others_during_gb_s"]) == (0.0, None)


def test_a_drive_that_has_no_turn_is_told(sysfs):
    sysfs.disk_of(sysfs.drive(0), "nvme0n1")
    (found,) = drive_read.namespaces(sysfs.sys, sysfs.dev)
    entry = drive_read.measured(found, drive_read.parse_options(QUICK), 0.6)
    assert entry["error"] == "the 30 s were over before its turn"


def test_a_node_without_drives_gives_an_empty_document(sysfs):
    assert sysfs.results() == {}


def test_as_it_travels_to_a_target_it_reads_all_the_same(disk, tmp_path):
    def text(name):
        path = SCRIPT.with_name(name)
        return path.read_text() if path.is_file() else None

    packed = tmp_path / "packed"
    packed.write_bytes(runnable(SCRIPT.name, text))
    argv = [sys.executable, "-IS", str(packed), *QUICK, f"--device={disk}"]
    ran = subprocess.run(argv, capture_output=True, timeout=60, check=False, cwd="/")
    (drive,) = parse(ran.stdout).drives.values()
    assert (ran.returncode, isinstance(drive.rate, Known)) == (0, True)


def test_nothing_is_left_beside_the_script(disk, tmp_path):
    for path in (SCRIPT, Path(drive_reader.__file__)):
        (tmp_path / path.name).write_text(path.read_text())
    argv = [sys.executable, str(tmp_path / SCRIPT.name), *QUICK, f"--device={disk}"]
    ran = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drive_read.py", "drive_reader.py"]


def test_an_interrupt_ends_the_reader_too(disk):
    argv = [sys.executable, str(SCRIPT), "--seconds=20", "--deadline=60", f"--device={disk}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as script:
        children = Path(f"/proc/{script.pid}/task/{script.pid}/children")
        until = time.monotonic() + 20
        while not (child := children.read_text().strip()) and time.monotonic() < until:
            time.sleep(0.05)
        script.terminate()
        assert script.wait(timeout=10) == 128 + signal.SIGTERM
    stat = Path(f"/proc/{child}/stat")
    while stat.exists() and ") Z " not in stat.read_text() and time.monotonic() < until:
        time.sleep(0.05)
    assert child
    assert not stat.exists() or ") Z " in stat.read_text()


@pytest.mark.parametrize(
    "options", [["--seconds=0"], ["--seconds=nan"], ["--deadline=2"], ["--deadline=inf"], ["--no"]]
)
def test_options_that_make_no_sense_exit_2(options):
    assert run(*options).returncode == 2
