import doctest
import os
from pathlib import Path

import pytest

from nodeready.facts import xid as catalogue
from nodeready.facts.kernel_log import SXid, Xid, parse
from nodeready.facts.xid import CATALOGUE, classify, classify_all, kind_of, remedy, sxid_class, sxid_classes

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
FATAL = (
    {46, 48, 54, 62, 64, 74, 79, 92, 94, 95, 109, 110, 119, 120, 136, 140, 143}
    | set(range(144, 151))
    | {155, 156, 158, 167, 171, 172}
)
APPLICATION = {8, 11, 13, 25, 31, 32, 37, 38, 43, 44, 45, 60, 66, 67, 68, 69, 80, 82, 83, 84, 85, 86}


def xid(code, text="", bus_id="0000:9b:00.0"):
    return Xid(code=code, bus_id=bus_id, text=text, line=f"NVRM: Xid (PCI:{bus_id}): {code}, {text}")


def sxid(code, fatal=None, text="", bus_id="0000:c1:00.0"):
    return SXid(code=code, bus_id=bus_id, text=text, fatal=fatal, line=f"SXid (PCI:{bus_id}): {code}, {text}")


def test_the_example_in_the_docstring_holds():
    assert doctest.testmod(catalogue) == (0, 4)


@pytest.mark.parametrize(("code", "told"), [(79, "RESTART_BM, then CONTACT_SUPPORT"), (95, "RESET_GPU"), (167, "")])
def test_the_vendors_own_buckets_are_kept(code, told):
    assert CATALOGUE[code].nvidia == told


def test_every_listed_code_but_the_newest_has_a_bucket():
    assert {code for code, kind in CATALOGUE.items() if not kind.nvidia} == {154, *range(162, 173)}


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


@pytest.mark.parametrize("code", [1, 51, 500, -1])
def test_a_code_that_is_not_in_the_catalogue_is_a_warning_and_says_so(code):
    assert classify(xid(code)) == "warning"
    assert kind_of(code).meaning == "not in the catalogue"
    assert remedy(xid(code))


def test_a_code_that_could_not_be_read_is_neither_a_warning_nor_an_error():
    assert classify(xid(0, "Uncontained")) == "unreadable"
    assert classify_all([xid(0)] * 3) == ("unreadable",) * 3
    assert "could not be read" in remedy(xid(0))


@pytest.mark.parametrize("code", [12020, 22003, 22011, 23001, 23010, 23017])
def test_some_switch_errors_are_fatal_whatever_they_say(code):
    assert {sxid_class(sxid(code, fatal)) for fatal in (True, False, None)} == {"fatal"}


@pytest.mark.parametrize(
    "code",
    [11001, 11004, 11018, 11020, 12001, 12027, 12032, 14017, 15013, 19054, 19070, 19084, 20034, 22012, 24004, 24007],
)
def test_a_switch_error_that_can_be_fatal_is_milder_only_by_its_own_word(code):
    assert [sxid_class(sxid(code, fatal)) for fatal in (True, False, None)] == ["fatal", "warning", "fatal"]


@pytest.mark.parametrize("code", [12028, 11012, 11017, 12021, 12033, 19049, 20001, 23018, 24003, 24008, 28006, 99999])
def test_any_other_switch_error_is_fatal_only_by_its_own_word(code):
    assert [sxid_class(sxid(code, fatal)) for fatal in (True, False, None)] == ["fatal", "warning", "warning"]


def test_a_switch_error_whose_code_could_not_be_read_is_unreadable():
    assert {sxid_class(sxid(0, fatal)) for fatal in (True, False, None)} == {"unreadable"}


@pytest.mark.parametrize(("word", "weight"), [("Fatal", "fatal"), ("Non-fatal", "warning")])
def test_details_of_a_switch_error_weigh_as_it_does(word, weight):
    where = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034"
    texts = (
        f"{where}, {word}, Link 30 LTSSM Fault Up",
        f"{where}, Severity 1 Engine instance 30",
        f"{where}, Data {{0x1}}",
    )
    log = parse("".join(f"{text}\n" for text in texts).encode())
    assert sxid_classes(log.sxids) == (weight,) * 3


def test_details_without_their_error_weigh_by_their_code():
    data = sxid(20034, text="Data {0x1}")
    other = sxid(20034, text="Data {0x1}", bus_id="0000:c2:00.0")
    mild = sxid(20034, fatal=False, text="Non-fatal, Link 1")
    assert sxid_classes([data]) == ("fatal",)
    assert sxid_classes([mild, other, data]) == ("warning", "fatal", "warning")
    assert sxid_classes([mild, sxid(12028), data]) == ("warning", "warning", "fatal")
    assert sxid_classes([mild, sxid(20034, text="Link 2 LTSSM Fault Up")]) == ("warning", "fatal")


def test_the_switch_error_of_a_real_log_is_a_warning():
    log = parse((CAPTURES / "dmesg" / "19-sxid-12028-iso.txt").read_bytes())
    assert sxid_classes(log.sxids) == ("warning",)


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
