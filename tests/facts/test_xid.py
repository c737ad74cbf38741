import os
from pathlib import Path

import pytest

from nodeready.facts.kernel_log import Xid, parse
from nodeready.facts.xid import CATALOGUE, classify, classify_all, kind_of, remedy

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
FATAL = (
    {46, 48, 54, 62, 64, 74, 79, 92, 94, 95, 109, 110, 119, 120, 136, 140, 143}
    | set(range(144, 151))
    | {155, 156, 158, 167, 171, 172}
)
APPLICATION = {8, 11, 13, 25, 31, 32, 37, 38, 43, 44, 45, 60, 66, 67, 68, 69, 80, 82, 83, 84, 85, 86}


def xid(code, text="", bus_id="0000:9b:00.0"):
    return Xid(code=code, bus_id=bus_id, text=text, line=f"NVRM: Xid (PCI:{bus_id}): {code}, {text}")


def test_every_entry_says_what_it_is_and_what_to_do():
    for code, kind in CATALOGUE.items():
        assert kind.mnemonic == kind.mnemonic.upper(), code
        assert kind.meaning, code
        assert kind.next_step.endswith("."), code
        assert kind.severity in {"fatal", "warning", "application", "info", "remap"}, code


def test_the_catalogue_holds_each_code_once_and_in_order():
    assert list(CATALOGUE) == sorted(CATALOGUE)
    assert len({kind.mnemonic for kind in CATALOGUE.values()}) == len(CATALOGUE) == 109


@pytest.mark.parametrize("code", sorted(FATAL))
def test_errors_of_the_hardware_are_fatal(code):
    assert classify(xid(code, "anything")) == "fatal"


@pytest.mark.parametrize("code", sorted(APPLICATION))
def test_errors_of_an_application_are_its_own(code):
    assert classify(xid(code, "pid=1, name=python3")) == "application"


@pytest.mark.parametrize("code", [121, 137, 160, 161])
def test_errors_that_ask_for_an_eye_are_warnings(code):
    assert classify(xid(code)) == "warning"


def test_a_row_remap_weighs_by_the_state_of_the_remap():
    assert classify(xid(63, "Row Remapper: New row marked for remapping, reset gpu to activate.")) == "remap"


@pytest.mark.parametrize("code", [0, 1, 51, 500, -1])
def test_a_code_that_is_not_in_the_catalogue_is_a_warning_and_says_so(code):
    assert classify(xid(code)) == "warning"
    assert kind_of(code).meaning == "not in the catalogue"
    assert remedy(xid(code))


@pytest.mark.parametrize("code", range(144, 151))
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001)", "warning"),
        ("RLW_SRC_TRACK Non-fatal XC0 i0", "warning"),
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 00", "fatal"),
        ("NETIR_LINK_EVT XC0 i0 Link 00", "fatal"),
        ("Nonfatal, then Fatal", "fatal"),
        ("", "fatal"),
    ],
)
def test_the_newer_nvlink_errors_say_themselves_how_they_weigh(code, text, expected):
    assert classify(xid(code, text)) == expected
    assert remedy(xid(code, text))


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "fatal", "reset the GPU"),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "fatal", "reboot"),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)", "fatal", "reboot"),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "fatal", "Drain"),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "info", "No action"),
        ("GPU recovery action changed from 0x0 (None)", "fatal", "reset"),
        ("", "fatal", "reset"),
    ],
)
def test_a_changed_recovery_action_goes_by_its_own_text(text, expected, words):
    assert classify(xid(154, text)) == expected
    assert words in remedy(xid(154, text))


def test_an_application_error_that_repeats_on_one_gpu_points_at_the_gpu():
    twice = [xid(31), xid(31)]
    elsewhere = [xid(31, bus_id="0000:3b:00.0"), xid(13)]
    assert set(classify_all([*twice, *elsewhere])) == {"application"}
    assert classify_all([*twice, *elsewhere, xid(31)]) == (
        "warning",
        "warning",
        "application",
        "application",
        "warning",
    )


def test_power_smoothing_that_came_back_is_no_warning():
    assert classify_all([xid(163), xid(162)]) == ("info", "info")
    assert classify_all([xid(163), xid(162, bus_id="0000:3b:00.0")]) == ("warning", "info")
    assert classify_all([xid(162), xid(163)]) == ("info", "warning")


def test_real_lines_weigh_as_the_captures_say():
    log = parse((CAPTURES / "dmesg" / "23-xid144-149-subcodes.txt").read_bytes())
    assert classify_all(log.xids) == ("warning", "fatal", "fatal", "fatal", "warning", "fatal")
    (remapped,) = parse((CAPTURES / "dmesg" / "11-stas00-compute_accelerator_nvidia_debug-1.txt").read_bytes()).xids
    assert classify(remapped) == "remap"
