"""The small files, tables and lists that tell of the host: values, cut outputs, and words that are none."""

import subprocess

import pytest

from nodeready.facts import df, edac, host_files, limits, mounts, nvme_sysfs, processes, small_files, timedatectl
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs import board, host_state, storage

SXM = build("sxm")
CPU = "/sys/devices/system/cpu"


def files(*lines, end=True):
    return "".join(f"{line}\n" for line in (*lines, *(["end:"] if end else []))).encode()


def test_the_shell_prints_every_line_of_each_file_and_what_refuses_leaves_none(tmp_path):
    (tmp_path / "one").write_text("a:b\nc")
    (tmp_path / "two").write_text("")
    (tmp_path / "folder").mkdir()
    said = subprocess.run(
        ["/bin/sh", "-c", small_files.script(f"{tmp_path}/*", "/no/such", more="echo x:1; ")],
        capture_output=True,
        check=True,
    )
    assert said.stderr == b""
    found = small_files.parse(said.stdout)
    assert found.whole
    assert found.values == {f"{tmp_path}/one": ("a:b", "c"), "x": ("1",)}


def test_a_command_that_fails_leaves_no_closing_line():
    said = subprocess.run(["/bin/sh", "-c", small_files.closing("(echo x; false)")], capture_output=True)
    assert (said.stdout, said.returncode) == (b"x\n", 1)
    assert not small_files.is_whole(said.stdout)


@pytest.mark.parametrize(
    ("probe", "parse"),
    [
        (host_files.HOST_FILES, host_files.parse),
        (nvme_sysfs.NVME_SYSFS, nvme_sysfs.parse),
        (df.DF, df.parse),
        (mounts.MOUNTS, mounts.parse),
        (limits.LIMITS, limits.parse),
        (processes.PROCESSES, processes.parse),
        (processes.PROCESSES_LATER, processes.parse),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_this_machine_answers_in_the_form_that_is_read(probe, parse):
    said = subprocess.run(probe.argv, capture_output=True, check=True, timeout=20)
    found = parse(said.stdout)
    assert not isinstance(found, Unknown), found.reason


def test_governors_are_told_apart_and_firmware_is_a_word_of_its_own():
    at = f"{CPU}/cpufreq/policy"
    online = f"{CPU}/online:0-1"

    def governor(*lines, end=True):
        return host_files.parse(files(*lines, end=end)).governor

    assert governor(f"{at}0/scaling_governor:performance", f"{at}1/scaling_governor:performance").value == "performance"
    mixed = governor(f"{at}0/scaling_governor:performance", f"{at}1/scaling_governor:powersave")
    assert (mixed.value, mixed.note) == ("performance, powersave", "1 x performance, 1 x powersave")
    assert governor(online).value == host_files.BY_FIRMWARE
    assert isinstance(governor(online, end=False), Unknown)
    assert isinstance(governor("/proc/sys/kernel/osrelease:5.15.0"), Unknown)
    assert isinstance(governor(f"{at}0/scaling_governor:"), Unknown)


@pytest.mark.parametrize(
    ("present", "online", "offline"), [("0-223", "0-223", 0), ("0-7", "0,2-7", 1), ("0-7", "x", None), ("", "0", None)]
)
def test_offline_processors_are_counted(present, online, offline):
    reading = host_files.parse(files(f"{CPU}/present:{present}", f"{CPU}/online:{online}")).offline
    assert (reading.value if isinstance(reading, Known) else None) == offline


@pytest.mark.parametrize(
    ("lines", "bad"),
    [
        ((), ()),
        (("md0 : active raid1 b[1] a[0]", "      93 blocks [2/2] [UU]"), ()),
        (("md0 : active raid1 b[1]", "      93 blocks [2/1] [_U]"), ("md0 runs on 1 of 2 members",)),
        (("md1 : active raid1 b[1] a[0](F)", "      93 blocks [2/2] [UU]"), ("md1 has a failed member",)),
        (("md2 : inactive sdb1[0](S)", "      93 blocks"), ("md2 is inactive",)),
        (("md3 : active raid0 b[1] a[0]", "      93 blocks super 1.2 512k chunks"), ()),
    ],
)
def test_arrays_that_run_short_are_named(lines, bad):
    found = host_files.parse(files("btime:1796022520", *(f"/proc/mdstat:{line}" for line in lines)))
    assert found.bad_arrays.value == bad


def test_memory_errors_name_their_dimm_and_no_driver_is_unknown():
    node = build("sxm")
    node.host.corrected = 7
    found = edac.parse(board.edac(node).stdout)
    assert (found.controllers, found.uncorrected.value, found.corrected.value) == (8, 0, 7)
    assert found.corrected.note == "CPU_SrcID#0_MC#2_Chan#0_DIMM#0: 7"
    assert "driver" in edac.parse(files("x:1")).reason
    half = files("/sys/devices/system/edac/mc/mc0/ue_count:0")
    assert "lacks" in edac.parse(half).reason
    assert "reads" in edac.parse(files("/sys/devices/system/edac/mc/mc0/ue_count:-1")).reason


@pytest.mark.parametrize(
    ("output", "parse"),
    [
        (board.edac(SXM), edac.parse),
        (storage.drives(SXM), nvme_sysfs.parse),
        (storage.df(SXM), df.parse),
        (host_state.processes(SXM), processes.parse),
    ],
)
def test_a_list_that_was_cut_anywhere_is_unknown(output, parse):
    assert not isinstance(parse(output.stdout), Unknown)
    for cut in range(0, len(output.stdout) - 1, 7):
        assert isinstance(parse(output.stdout[:cut]), Unknown), cut


def test_shares_count_what_root_keeps_as_neither_used_nor_free():
    head = "Filesystem 1-blocks Used Available Capacity Mounted on\n"
    table = f"{head}/dev/sda1 1000 450 450 50% /\ninodes:\n{head}/dev/sda1 {{}} /\nend:\n"
    (root,) = df.parse(table.format("100 99 1 99%").encode())
    assert (root.free.value, root.inodes_free.value, root.unlimited) == (50.0, 1.0, False)
    (btrfs,) = df.parse(table.format("0 0 0 -").encode())
    assert btrfs.unlimited
    assert isinstance(btrfs.inodes_free, Unknown)
    (empty,) = df.parse(table.replace("1000 450 450", "0 0 0").format("100 99 1 99%").encode())
    assert isinstance(empty.free, Unknown)


def test_mounts_need_a_root_and_whole_lines():
    assert isinstance(mounts.parse(b"proc /proc proc rw 0 0\n"), Unknown)
    assert isinstance(mounts.parse(b"/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /va"), Unknown)
    assert isinstance(mounts.parse(b"/dev/sda1 / ext4 rw 0 0\nwhat is this\n"), Unknown)
    found = mounts.parse(b"/dev/sda1 / ext4 rw,errors=remount-ro 0 0\n/dev/sdb1 /var xfs ro,relatime 0 0\n")
    assert [mount.read_only for mount in found] == [False, True]


@pytest.mark.parametrize("said", [b"", b"NTP=yes\n", b"NTPSynchronized=maybe\n", b"NTPSynchronized=yes"])
def test_a_clock_of_which_nothing_is_said_is_unknown(said):
    assert isinstance(timedatectl.parse(said), Unknown)


def test_hard_limits_decide_and_a_missing_row_is_unknown():
    found = limits.parse(b"Max open files            1024                 4096                 files     \n")
    assert found.open_files.value == 4096
    assert isinstance(found.locked_bytes, Unknown)
    assert isinstance(limits.parse(b"nothing\n"), Unknown)


def test_processes_without_a_count_or_in_words_are_unknown():
    assert processes.parse(b"2417 processes\n") == ()
    for said in (b"", b"0 processes\n", b"12 1 D 5 cat\n", b"who knows\n9 processes\n"):
        assert isinstance(processes.parse(said), Unknown)
