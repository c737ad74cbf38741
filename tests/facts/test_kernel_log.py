import doctest
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts import kernel_log
from nodeready.facts.kernel_log import DMESG, JOURNAL, UNKNOWN_BUS, KernelLog, parse
from nodeready.reading import Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
PREFIXES = (
    "",
    "[   12.345678] ",
    "[470907.282230] ",
    "<3>[ 1137.356721] ",
    "[Thu Apr  4 18:03:56 2024] ",
    "kern  :err   : 2025-01-25T10:34:54,859532+00:00 ",
    "2025-01-25T10:34:54,859532+00:00 ",
    "3,3964,206764307,-;",
    "Jan 05 14:45:28 node1 kernel: ",
    "Jan  5 14:45:28 node1 kernel: [  123.456789] ",
    "2025-01-05T14:45:28+0000 node1 kernel: ",
)
BOOT = "[    0.000000] Linux version 5.15.0-117-generic (buildd@lcy02) #127-Ubuntu SMP\n"
QUIET = "[    1.234567] mce: CPU supports MCE\n[    1.300000] EDAC MC: Ver: 3.0.0\n"
HEALTHY = BOOT + QUIET


def log(*lines):
    found = parse("".join(f"{line}\n" for line in lines).encode())
    assert isinstance(found, KernelLog)
    return found


def test_the_example_in_the_docstring_holds():
    assert doctest.testmod(kernel_log) == (0, 2)


def test_the_journal_stands_in_for_dmesg():
    assert DMESG.name == "dmesg"
    assert DMESG.root_for
    assert JOURNAL.instead_of == DMESG.name
    assert JOURNAL.name == "journalctl_-k_-b_--no-pager_-o_short-iso"


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_xid_is_read_after_every_kind_of_prefix(prefix):
    line = f"{prefix}NVRM: Xid (PCI:0000:9b:00): 119, pid=4711, name=nvidia-smi, Timeout after 6s"
    (xid,) = log(line).xids
    assert (xid.code, xid.bus_id, xid.line) == (119, "0000:9b:00.0", line)
    assert xid.text == "pid=4711, name=nvidia-smi, Timeout after 6s"


@pytest.mark.parametrize(
    ("where", "bus_id"),
    [
        ("PCI:0000:9B:00", "0000:9b:00.0"),
        ("PCI:0019:01:00", "0019:01:00.0"),
        ("0000:03:00", "0000:03:00.0"),
        ("PCI:0000:9b:00 GPU-I:05", "0000:9b:00.0"),
        ("PCI:0000:10:1c", "0000:10:1c.0"),
        ("somewhere", None),
    ],
)
def test_the_bus_id_of_an_xid_is_normal_or_none(where, bus_id):
    (xid,) = log(f"NVRM: Xid ({where}): 31, pid='<unknown>', name=<unknown>, MMU Fault").xids
    assert (xid.code, xid.bus_id, xid.text) == (31, bus_id, "pid='<unknown>', name=<unknown>, MMU Fault")


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid : 32, pid=1",
        "NVRM: Xid (PCI:0000:66:00): abc",
        "NVRM: Xid (PCI:0000:66:00): " + "9" * 5000,
        "NVRM: Xid (PCI:0000:66:00): 79abc, pid=1",
        "NVRM: Xid (PCI:0000:66:00): 7 9, pid=1",
        "NVRM: Xid (PCI:0000:66:00): 7.9, pid=1",
        "NVRM: Xid (PCI:0000:66:00): 0x4f, pid=1",
        "NVRM: Xid (PCI:0000:66:00):",
        "NVRM: Xid (PCI:0000:66",
        "nvrm:xid",
    ],
)
def test_an_xid_whose_code_cannot_be_read_is_not_lost(line):
    (xid,) = log(line).xids
    assert (xid.code, xid.line) == (0, line)


def test_an_xid_whose_code_cannot_be_read_still_names_its_gpu():
    (xid,) = log("NVRM: Xid (PCI:0000:66:00): abc").xids
    assert (xid.code, xid.bus_id) == (0, "0000:66:00.0")


@pytest.mark.parametrize("start", ["NVRM: Xid", "NVRM:Xid", "NVRM:  Xid", "NVRM : Xid", "nvrm: xid", "NVRM:\tXID"])
@pytest.mark.parametrize(
    "rest",
    [
        " (PCI:0000:9b:00): 79, pid=1",
        " (PCI:0000:9b:00):79, pid=1",
        " (PCI:0000:9b:00): 79,pid=1",
        " (PCI:0000:9b:00): 79 , pid=1",
        " (PCI:0000:9b:00): 79; pid=1",
        " (PCI:0000:9b:00):  79 pid=1",
        "(PCI:0000:9b:00) : 79: pid=1",
        " (PCI:0000:9b:00): 079, pid=1",
    ],
)
def test_an_xid_spelled_otherwise_is_the_same_xid(start, rest):
    (xid,) = log(f"[ 1.0] {start}{rest}").xids
    assert (xid.code, xid.bus_id, xid.text) == (79, "0000:9b:00.0", "pid=1")


@pytest.mark.parametrize("end", ["", " ", "   ", ",", ";", " ;", ".", "\t", "\r"])
def test_a_line_that_ends_with_the_code_holds_it(end):
    assert [(x.code, x.text) for x in log(f"NVRM: Xid (PCI:0000:9b:00): 79{end}").xids] == [(79, "")]
    assert [s.code for s in log(f"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034{end}").sxids] == [20034]


def test_every_message_of_a_line_counts():
    first = "[ 1.0] NVRM: Xid (PCI:0000:9b:00): 31, pid=1, MMU Fault"
    line = f"{first}[ 2.0] NVRM: Xid (PCI:0000:a1:00): 79, pid=2 NVRM:Xid (PCI:0000:1b:00): 95,"
    found = log(line)
    assert [(x.code, x.bus_id, x.line) for x in found.xids] == [
        (31, "0000:9b:00.0", line),
        (79, "0000:a1:00.0", line),
        (95, "0000:1b:00.0", line),
    ]
    line = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 1"
    line += " nvidia-nvswitch1: SXid (PCI:0000:c2:00.0): 20034, Fatal, Link 2 NVRM: Xid (PCI:0000:9b:00): 74, x"
    found = log(line)
    assert [(s.code, s.bus_id, s.fatal) for s in found.sxids] == [
        (12028, "0000:c1:00.0", False),
        (20034, "0000:c2:00.0", True),
    ]
    assert [x.code for x in found.xids] == [74]


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ('audit: comm="NVRM: Xid (PCI:0000:9b:00): 79, x" exe="/x"', []),
        ('audit: exe="/x" comm="NVRM: Xid (PCI:0000:9b:00): 79"', []),
        ('audit: exe="/x" msg=NVRM: Xid (PCI:0000:9b:00): 79, x', [79]),
        ('audit: comm="NVRM: Xid (PCI:0000:9b:00): 31" NVRM: Xid (PCI:0000:9b:00): 79, x', [79]),
        ("[ 9.0] systemd: Can't open PID file [ 1843.3] NVRM: Xid (PCI:0000:9b:00): 79, x", [79]),
        ("audit: msg='NVRM: Xid (PCI:0000:9b:00): 79, x'", [79]),
    ],
)
def test_only_a_double_quoted_string_hides_an_error(line, codes):
    assert [xid.code for xid in log(line, *HEALTHY.splitlines()).xids] == codes
    switch = line.replace("NVRM: Xid", "nvidia-nvswitch0: SXid")
    assert [sxid.code for sxid in log(switch, *HEALTHY.splitlines()).sxids] == codes


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "said",
    [
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.161.07",
        "NVRM: GPU 0000:1b:00.0: RmInitAdapter failed! (0x22:0x56:762)",
        "nvidia: module license 'NVIDIA' taints kernel.",
        "nvidia: loading out-of-tree module taints kernel.",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
        "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  535.161.07",
        "nvidia-nvswitch2: open (major=510)",
        "nvidia 0000:1b:00.0: enabling device (0140 -> 0142)",
    ],
)
def test_a_line_of_the_driver_shows_it_at_work(prefix, said):
    assert log(*HEALTHY.splitlines(), f"{prefix}{said}", *QUIET.splitlines()).driver_seen


@pytest.mark.parametrize(
    "said",
    [
        "systemd[1]: Started NVIDIA Persistence Daemon.",
        "systemd[1]: nvidia-persistenced.service: Failed with result 'exit-code'.",
        'audit: type=1400 audit(1796022530.114:2): apparmor="STATUS" name="nvidia_modprobe"',
        'audit: comm="NVRM: Xid" exe="/x"',
        "pci 0000:1b:00.0: [10de:2330] type 00 class 0x030200",
        "usb 1-1: Product: nvidia",
        "Command line: modprobe.blacklist=nvidia-modeset nouveau.modeset=0",
    ],
)
def test_a_line_that_only_names_the_driver_does_not(said):
    assert not log(*HEALTHY.splitlines(), f"[ 9.0] {said}").driver_seen


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("text", "fatal"),
    [
        ("Fatal, Link 30 LTSSM Fault Up", True),
        ("Non-fatal, Link 61 egress non-posted PRIV error (First)", False),
        ("Data {0x00000001, 0x00000002}", None),
        ("Severity 1 Engine instance 61 Sub-engine instance 00", None),
    ],
)
def test_an_sxid_is_fatal_by_its_own_word(prefix, text, fatal):
    (sxid,) = log(f"{prefix}nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, {text}").sxids
    assert (sxid.code, sxid.bus_id, sxid.text, sxid.fatal) == (20034, "0000:c1:00.0", text, fatal)


def test_an_sxid_whose_code_cannot_be_read_is_not_lost():
    (sxid,) = log("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): garbled, Fatal").sxids
    assert (sxid.code, sxid.fatal) == (0, None)


@pytest.mark.parametrize(
    "lines",
    [
        ["[ 1.0] NVRM: GPU 0000:18:00.0: GPU has fallen off the bus."],
        [
            "[ 1.0] NVRM: The NVIDIA GPU 0000:18:00.0",
            "               NVRM: (PCI ID: 10de:2330) installed in this system has",
            "               NVRM: fallen off the bus and is not responding to commands.",
        ],
        [
            "Feb 14 05:03:43 node1 kernel: NVRM: The NVIDIA GPU 0000:18:00.0",
            "Feb 14 05:03:43 node1 kernel: mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link ACTIVE",
            "Feb 14 05:03:43 node1 kernel: NVRM: (PCI ID: 10de:2330) installed in this system has",
            "Feb 14 05:03:43 node1 kernel: NVRM: fallen off the bus and is not responding to commands.",
        ],
        [
            "NVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:2330) installed in this",
            "NVRM: system has fallen off the bus and is not responding to commands.",
        ],
        ["[ 1.0] NVRM: Xid (PCI:0000:9b:00): 31, pid=1 [ 1.1] nvrm: GPU 0000:18:00.0: GPU has Fallen off the bus."],
        [r"3,39,2067,-;NVRM: The NVIDIA GPU 0000:18:00.0\x0aNVRM: (PCI ID: 10de:2330)\x0aNVRM: has fallen off the bus"],
    ],
)
def test_a_gpu_that_fell_off_the_bus_is_named(lines):
    assert log(*lines).fallen_off == ("0000:18:00.0",)


def test_a_lost_gpu_of_an_xid_is_not_lost_twice():
    assert log("NVRM:Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.").fallen_off == ()


def test_a_lost_gpu_whose_name_is_not_in_the_log_is_not_lost_again():
    assert log("NVRM: fallen off the bus and is not responding to commands.").fallen_off == (UNKNOWN_BUS,)


def test_a_gpu_named_long_before_is_not_the_lost_one():
    lines = ["NVRM: The NVIDIA GPU 0000:18:00.0", *QUIET.splitlines() * 10, "NVRM: fallen off the bus and is not"]
    assert log(*lines).fallen_off == (UNKNOWN_BUS,)


def test_a_gpu_that_is_only_named_is_not_lost():
    found = log("NVRM: GPU at PCI:0000:a1:00: GPU-0a1b2c3d", "NVRM: GPU Board Serial Number: 1")
    assert found.fallen_off == ()


def test_a_refused_gpu_needs_a_reset():
    assert log("[ 1.0] NVRM: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x62)").reset_required
    assert not log(*HEALTHY.splitlines()).reset_required


@pytest.mark.parametrize("prefix", PREFIXES[1:])
def test_a_log_that_begins_with_the_boot_says_so(prefix):
    assert log(f"{prefix}Linux version 5.15.0-117-generic", *QUIET.splitlines()).starts_at_boot
    assert log("[    0.000000] microcode: updated early", *QUIET.splitlines()).starts_at_boot
    assert not log(*QUIET.splitlines()).starts_at_boot
    assert not log(*QUIET.splitlines() * 20, f"{prefix}Linux version 5.15.0-117-generic").starts_at_boot


def test_nothing_is_deduplicated():
    assert len(log(*["NVRM: Xid (PCI:0000:9b:00): 95, pid=1, Uncontained"] * 1000).xids) == 1000


def test_a_quiet_log_is_known():
    found = parse(HEALTHY.encode())
    assert (found.xids, found.sxids, found.fallen_off, found.reset_required) == ((), (), (), False)
    assert (found.cut, found.starts_at_boot, found.line_count, found.driver_seen) == (False, True, 3, False)


def test_the_last_line_without_its_newline_is_left_out_and_said_to_be():
    lines = (HEALTHY + "[ 9.0] NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n").encode()
    whole = parse(lines)
    start = len(HEALTHY)
    assert len(whole.xids) == 1
    for end in range(start + 1, len(lines)):
        found = parse(lines[:end])
        assert found.cut
        assert found.xids == ()
        assert found.line_count == 3


def test_every_prefix_has_a_beginning_of_the_errors():
    data = (CAPTURES / "dmesg" / "23-xid144-149-subcodes.txt").read_bytes()
    whole = parse(data)
    for end in range(len(data)):
        found = parse(data[:end])
        if isinstance(found, KernelLog):
            assert found.xids == whole.xids[: len(found.xids)]
            assert found.cut is (not data[:end].endswith(b"\n"))
        else:
            assert found.reason


def test_every_real_log_is_read():
    files = sorted((CAPTURES / "dmesg").iterdir())
    assert files
    seen = {}
    for path in files:
        data = path.read_bytes()
        found = parse(data)
        assert isinstance(found, KernelLog), path.name
        assert found.line_count == data.count(b"\n")
        assert found.cut is not data.endswith(b"\n")
        seen[path.name[:2]] = found
    erring = {
        number
        for number, found in seen.items()
        if found.xids or found.sxids or found.fallen_off or found.reset_required
    }
    assert erring == {"01", "11", "17", "19", "21", "23"}
    assert {(x.code, x.bus_id) for x in seen["01"].xids} == {(119, "0000:9b:00.0")}
    assert [(x.code, x.bus_id) for x in seen["11"].xids] == [(63, "0000:10:1c.0")]
    assert [(x.code, x.bus_id) for x in seen["17"].xids] == [(79, "0000:a1:00.0")]
    assert seen["17"].fallen_off == ("0000:a1:00.0",)
    assert [(s.code, s.bus_id, s.fatal) for s in seen["19"].sxids] == [(12028, "0000:84:00.0", None)]
    assert seen["21"].reset_required
    assert [x.code for x in seen["23"].xids] == [144, 149, 149, 149, 145, 94]
    assert not any(found.starts_at_boot for found in seen.values())
    assert {number for number, found in seen.items() if found.driver_seen} >= {"01", "03", "05", "11", "17", "19"}


def test_other_real_files_are_no_kernel_log():
    for name in ("kernel-misc/01-lsmod-nvidia.txt", "fabricmanager/02-fm-log-2.txt", "meminfo/01-sichek-meminfo.txt"):
        found = parse((CAPTURES / name).read_bytes())
        assert isinstance(found, Unknown), name
        assert not found.missing


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"[    1.0] half a line", "no whole line"),
        (b"dmesg: read kernel buffer failed: Operation not permitted\n", "Operation not permitted"),
        (b"-- No entries --\n", "No entries"),
        (b"\xff\xfe\x00\n" * 50, "kernel log"),
        (HEALTHY.encode("utf-16"), "kernel log"),
    ],
)
def test_what_is_no_log_is_unknown(data, words):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert words in found.reason
    assert not found.missing


def test_damaged_bytes_do_not_hide_an_error():
    found = parse(b"\xff\x00\xfe\n" * 9 + b"\x00\xff NVRM: Xid (PCI:0000:9b:00): 79, \xff\x00\r\n")
    assert [(x.code, x.bus_id) for x in found.xids] == [(79, "0000:9b:00.0")]


@given(st.binary(max_size=300), st.integers(0, len(HEALTHY)))
def test_garbage_never_raises(noise, at):
    text = HEALTHY.encode()
    for data in (noise, text[:at] + noise + text[at:], b"NVRM: Xid (" + noise + b"\n", b"SXid (" + noise + b"\n"):
        assert isinstance(parse(data), (KernelLog, Unknown))


@pytest.mark.parametrize(
    "line",
    [
        b"NVRM: Xid (" * 100_000,
        b"NVRM: GPU " * 100_000,
        b"SXid (PCI:" * 100_000,
        b" " * 4_000_000 + b"NVRM",
        b"NVRM: Xid (a): 1, " * 60_000,
        b"NVRM: Xid (a)" + b" " * 2_000_000,
        b"NVRM: Xid (a): 1" + b" " * 2_000_000 + b"2",
        b'nvidia-nvlink "' * 60_000,
    ],
)
def test_lines_of_megabytes_take_linear_time(line):
    started = time.process_time()
    found = parse(HEALTHY.encode() + line + b"\n" + line)
    assert isinstance(found, KernelLog)
    assert found.line_count == 4
    assert time.process_time() - started < 5
