"""Xid errors count since boot, or over a declared window; a line without a time always counts."""

import pytest

from nodeready.baseline import BaselineError, load
from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.gate import terms_of
from nodeready.node import Node
from nodeready.node.terms import Terms

XID = "NVRM: Xid (PCI:0000:9b:00): {}, pid=1234, {}"
OFF = XID.format(79, "GPU has fallen off the bus.")
SINCE_BOOT = (
    "[    0.000000] Linux version 5.15.0-161-generic\n"
    "[   10.000000] nvidia: loading out-of-tree module\n"
    f"[ 1000.000000] {OFF}\n"
    "[90000.000000] usb 1-1: new device\n"
)
ISO = (
    "2026-11-28T09:00:00+0000 n kernel: Linux version 5.15.0-161-generic\n"
    "2026-11-28T09:00:09+0000 n kernel: NVRM: loading NVIDIA UNIX Open Kernel Module\n"
    f"2026-11-28T10:00:00+0000 n kernel: {OFF}\n"
    "2026-11-30T10:00:00+0000 n kernel: usb 1-1: new device\n"
)
SYSLOG = ISO.replace("2026-11-28T", "Nov 28 ").replace("2026-11-30T", "Nov 30 ").replace("+0000", "")


def kernel_of(log, window, name="dmesg", **more):
    recordings = {name: Recording(name, stdout=log.encode()), **more}
    return Node(Evidence("folder", "node", recordings), Terms(8, xid_window=window)).kernel


@pytest.mark.parametrize(
    ("log", "window", "count"),
    [
        (SINCE_BOOT, None, 1),
        (SINCE_BOOT, 25.0, 1),
        (SINCE_BOOT, 24.0, 0),
        (ISO, 49.0, 1),
        (ISO, 47.0, 0),
        (SYSLOG, 1.0, 1),
    ],
)
def test_what_is_older_than_the_window_does_not_count(log, window, count):
    found = kernel_of(log, window).hardware_xids
    assert found.value == count
    assert ("counted: the last" in found.note) is (window is not None)


def test_the_uptime_tells_how_old_the_last_line_is():
    fresh = SINCE_BOOT.replace("90000.0", "1001.0")
    assert kernel_of(fresh, 24.0).hardware_xids.value == 1
    files = b"uptime:90000.00\n/proc/cmdline:ro\nend:\n"
    assert kernel_of(fresh, 24.0, **{"pci-files": Recording("pci-files", stdout=files)}).hardware_xids.value == 0


def test_a_wrapped_log_that_covers_the_window_is_enough():
    wrapped = SINCE_BOOT.partition("\n")[2]
    assert kernel_of(wrapped, None).log_reaches_boot.value is False
    assert kernel_of(wrapped, 24.0).log_reaches_boot.value is True
    short = kernel_of(wrapped, 48.0).log_reaches_boot
    assert short.value is False
    assert "it covers 25.0 h" in short.note


@pytest.mark.parametrize(("text", "hours"), [("boot", None), ("24 h", 24.0), ("0.5 h", 0.5)])
def test_the_window_is_a_setting(text, hours):
    assert terms_of(load("sxm", "", [f"health.xid-window={text}"])).xid_window == hours


@pytest.mark.parametrize("text", ["24", "0 h", "-1 h", "yesterday"])
def test_a_window_that_is_none_is_refused(text):
    with pytest.raises(BaselineError, match=r"health\.xid-window"):
        terms_of(load("sxm", "", [f"health.xid-window={text}"]))


def test_equal_lines_are_counted_and_said_once():
    lines = "".join(f"[ {1000 + i}.000000] {XID.format(13, 'Graphics Exception: ESR 0x504730')}\n" for i in range(5))
    found = kernel_of(SINCE_BOOT.replace(OFF, "x") + lines, None).warning_xids
    assert found.value == 5
    assert "5 times Xid 13" in found.note
    assert "maybe the hardware's" in found.note
    assert found.note.count("Xid 13") == 1


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        (145, "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)", "RLW_RXPIPE Nonfatal, link 13"),
        (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)", "NETIR_LINK_EVT Fatal, link 0"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "Drain and Reset"),
        (79, "GPU has fallen off the bus.", "NVIDIA: RESTART_BM, then CONTACT_SUPPORT"),
    ],
)
def test_a_finding_says_what_the_line_says(code, text, words):
    kernel = kernel_of(SINCE_BOOT.replace(OFF, XID.format(code, text).replace("pid=1234, ", "")), None)
    assert words in kernel.hardware_xids.note + kernel.warning_xids.note
