"""`nvidia-smi -q` in both forms: real outputs of fourteen drivers, cut, edited and made up."""

from __future__ import annotations

import doctest
import itertools
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts import bus_id, nvidia_smi_text, nvidia_smi_values, nvidia_smi_xml, query_gpu
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.nvidia_smi import FIELDS, PROCESS, RESET_STATUS, Smi
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
FOLDERS = ("nvidia-smi-q-xml", "nvidia-smi-q", "nvidia-smi-q-excerpt")

REMAPPER = ("pending", "failure", "corrected", "uncorrected", "banks_low", "banks_none")
MIG_ON = {"gpu_util", *(f"row_remap_{part}" for part in REMAPPER)}
# what only some drivers print, or print a value for
LATER = {"channel_repair_pending", "tpc_repair_pending", "unrepairable_memory"} | {
    name for name in FIELDS if name.startswith(("fabric_health_", "application_"))
}
NO_FABRIC = {"fabric_state", "fabric_status"}
NO_MIG = {"mig_current", "mig_pending"}
NO_MARGIN = {"margin", "margin_slowdown", "margin_shutdown"}
NO_REMAP = MIG_ON - {"gpu_util"}
ECC_COUNTS = {name for name in FIELDS if re.match(r"ecc_[sd]ram", name)}
NO_SRAM = {"sram_threshold_exceeded"} | {name for name in ECC_COUNTS if "sram" in name}
DEPRECATED = "Requested functionality has been deprecated"
NO_HISTOGRAM = {"row_remap_banks_low", "row_remap_banks_none"}
LOST = (
    {"memory_total", "memory_used", "power_draw", "sm_clock", "temperature", "margin", "gpu_util"}
    | ECC_COUNTS | NO_REMAP | NO_FABRIC
)  # fmt: skip

# file: driver, CUDA, GPUs attached (None: unknown), GPU blocks, fields unknown on some GPU
WHOLE = {
    "nvidia-smi-q-xml/01-h100-hw.txt": ("580.105.08", "13.0", 8, 8, set()),
    "nvidia-smi-q-xml/02-b200-hw.txt": ("580.105.08", "13.0", 8, 8, set()),
    "nvidia-smi-q-xml/04-gb300-hw.txt": ("580.173.02", "13.0", 4, 4, set()),
    "nvidia-smi-q-xml/06-l40s-hw.txt": ("595.91.07", "13.2", 1, 1, NO_FABRIC | NO_MIG | {"memory_temperature"}),
    "nvidia-smi-q-xml/07-MOCK-gb200-ecc-injected.txt": (
        "580.65.06", "13.0", 2, 2,
        NO_SRAM | NO_HISTOGRAM | {"gpu_part", "recovery_action", "virtualization"}),
    "nvidia-smi-q-xml/09-MOCK-gb200-lost.txt": (
        "580.65.06", "13.0", 2, 2, LOST | NO_SRAM | {"gpu_part", "recovery_action", "virtualization"}),
    "nvidia-smi-q-xml/10-MOCK-gb200-throttle-counters.txt": (
        "580.65.06", "13.0", 2, 2, {"gpu_part", "recovery_action"}),
    "nvidia-smi-q-xml/11-a100-sxm4-v12.txt": (
        "535.54.03", "12.2", None, 1, NO_FABRIC | NO_MARGIN | MIG_ON | {"sram_threshold_exceeded"}),
    "nvidia-smi-q/01-h100-590-idle.txt": ("590.48.01", "13.1", 1, 1, set()),
    "nvidia-smi-q/03-h100-mig-590-idle.txt": ("590.48.01", "13.1", 1, 1, MIG_ON),
    "nvidia-smi-q/05-h200-590-idle.txt": ("590.48.01", "13.1", 1, 1, set()),
    "nvidia-smi-q/08-h200-mig-590-load.txt": ("590.48.01", "13.1", 1, 1, MIG_ON),
    "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt": ("535.161.08", "12.2", 8, 8, set()),
    "nvidia-smi-q/12-a10-535-remap-uncorrectable-pending.txt": (
        "535.129.03", "12.2", 1, 1,
        NO_FABRIC | NO_MARGIN | NO_MIG | {"memory_temperature", "recovery_action", "sram_threshold_exceeded"}),
    "nvidia-smi-q/13-rtx4090x8-535-addressing-unknown-error.txt": (
        "535.154.05", "12.2", 8, 8,
        NO_FABRIC | NO_MIG | NO_SRAM | ECC_COUNTS
        | {"board_part", "serial", "gsp_firmware", "memory_temperature", "recovery_action"}),
    "nvidia-smi-q/14-titanv-560.txt": (
        "560.35.03", "12.6", 1, 1,
        NO_FABRIC | NO_MIG | NO_MARGIN | NO_REMAP | NO_SRAM | ECC_COUNTS
        | {"ecc_mode_current", "ecc_mode_pending", "gsp_firmware", "recovery_action"}),
    "nvidia-smi-q/16-h100nvlx2.txt": ("550.54.14", "12.4", 2, 2, NO_FABRIC),
    "nvidia-smi-q/18-gh200.txt": ("550.127.05", "12.4", 1, 1, NO_FABRIC | {"bar1_total"}),
    "nvidia-smi-q/20-a100x8-460-azure.txt": (
        "460.32.03", "11.2", 8, 8,
        NO_FABRIC | NO_MARGIN
        | {"board_part", "gsp_firmware", "link_gen_device_max", "recovery_action", "sram_threshold_exceeded"}),
    "nvidia-smi-q/21-l40sx8-gpu_info.txt": (
        "555.42.06", "12.5", None, 8, NO_FABRIC | NO_MIG | {"memory_temperature", "recovery_action"}),
}  # fmt: skip
NO_GPU = (
    "nvidia-smi-q-excerpt/03-stas00-compute_accelerator_nvidia_debug-4.txt",
    "nvidia-smi-q-excerpt/04-stas00-compute_accelerator_nvidia_debug-5.txt",
    "nvidia-smi-q-excerpt/07-remapped-uncorrectable4-pending.txt",
)
CUT = (
    "nvidia-smi-q/11-h100-535-truncated-unknown-keys.txt",
    "nvidia-smi-q-excerpt/01-stas00-compute_accelerator_nvidia_debug-2.txt",
    "nvidia-smi-q-excerpt/05-azure-bad_nvsmi8_output.txt",
)


def raw(name):
    return (CAPTURES / name).read_bytes()


def parse(data):
    return (nvidia_smi_xml if b"<nvidia_smi_log" in data else nvidia_smi_text).parse(data)


def read(name):
    smi = parse(raw(name))
    assert isinstance(smi, Smi)
    return smi


def values(smi, field):
    return [gpu[field].value for gpu in smi.gpus.values()]


def said(reading):
    """A reading in a form that can be compared: its value and note, None where it is unknown."""
    return (reading.value, reading.note) if isinstance(reading, Known) else None


def reasons(smi, field):
    return [gpu[field].reason for gpu in smi.gpus.values() if isinstance(gpu[field], Unknown)]


def degrees(*numbers):
    return [Quantity(number, "degC") for number in numbers]


# Real outputs


def test_every_capture_is_accounted_for():
    files = {f"{folder}/{path.name}" for folder in FOLDERS for path in (CAPTURES / folder).iterdir()}
    assert files == {*WHOLE, *NO_GPU, *CUT}


@pytest.mark.parametrize("name", WHOLE)
def test_a_real_document_is_read_whole(name):
    driver, cuda, attached, held, unknown = WHOLE[name]
    smi = read(name)
    assert (smi.driver_version.value, smi.cuda_version.value) == (driver, cuda)
    assert said(smi.attached) == ((attached, "") if attached else None)
    assert len(smi.gpus) == held
    for gpu in smi.gpus.values():
        assert list(gpu) == list(FIELDS)
        assert all(reading.reason for reading in gpu.values() if isinstance(reading, Unknown))
    found = {field for gpu in smi.gpus.values() for field, reading in gpu.items() if said(reading) is None}
    assert found - LATER == unknown


# file: channel repair, TPC repair, unrepairable memory, application clock: values, None where unknown
PRINTED_LATER = {
    "nvidia-smi-q-xml/01-h100-hw.txt": ("No", "No", None, "1980 MHz"),
    "nvidia-smi-q-xml/04-gb300-hw.txt": ("No", "No", "No", "2070 MHz"),
    "nvidia-smi-q/01-h100-590-idle.txt": ("No", "No", "No", None),
    "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt": (None, None, None, "1980 MHz"),
    "nvidia-smi-q/16-h100nvlx2.txt": (None, None, None, "1785 MHz"),
}


@pytest.mark.parametrize("name", PRINTED_LATER)
def test_what_only_some_drivers_print(name):
    fields = ("channel_repair_pending", "tpc_repair_pending", "unrepairable_memory", "application_clock")
    for gpu in read(name).gpus.values():
        told = tuple(str(gpu[f].value) if isinstance(gpu[f], Known) else None for f in fields)
        assert told == PRINTED_LATER[name]
        assert said(gpu["application_clock"]) == said(gpu["application_clock_default"])


def test_eight_healthy_h100():
    smi = read("nvidia-smi-q-xml/01-h100-hw.txt")
    slots = ("53", "64", "75", "86", "97", "a8", "b9", "ca")
    assert list(smi.gpus) == [f"0000:{slot}:00.0" for slot in slots]
    assert smi.complaint == ""
    assert values(smi, "margin") == degrees(58, 56, 57, 55, 55, 58, 56, 57)
    assert values(smi, "replay_counter") == [150, 144, 174, 158, 145, 172, 162, 106]
    assert values(smi, "minor") == list(range(8))
    first = {field: reading.value for field, reading in smi.gpus["0000:53:00.0"].items() if field not in LATER}
    assert first == {
        "product_name": "NVIDIA H100 80GB HBM3", "product_brand": "NVIDIA",
        "device_id": "10de:2330", "subsystem_id": "10de:16c1",
        "serial": "8585255331954", "uuid": "GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691", "minor": 0,
        "vbios": "96.00.99.00.01", "board_part": "692-2G520-0200-000", "gpu_part": "2330-885-A1",
        "inforom_image": "G520.0200.00.05", "bar1_total": Quantity(131072, "MiB"),
        "row_remap_banks_low": 0, "row_remap_banks_none": 0, "event_application_clocks": False,
        "memory_clock_max": Quantity(2619, "MHz"),
        "persistence": "Enabled", "mig_current": "Disabled", "mig_pending": "Disabled", "performance_state": "P0",
        "link_gen_current": 5, "link_gen_max": 5, "link_gen_device_max": 5,
        "link_width_current": 16, "link_width_max": 16, "replay_counter": 150,
        "memory_total": Quantity(81559, "MiB"), "memory_used": Quantity(0, "MiB"),
        "compute_mode": "Default", "gpu_util": 0, "ecc_mode_current": "Enabled", "ecc_mode_pending": "Enabled",
        **dict.fromkeys(ECC_COUNTS, 0), "sram_threshold_exceeded": "No",
        "row_remap_pending": "No", "row_remap_failure": "No", "row_remap_corrected": 0, "row_remap_uncorrected": 0,
        "recovery_action": "None", "event_hw_slowdown": False, "event_hw_thermal": False, "event_power_brake": False,
        "event_sw_thermal": False, "event_sw_power_cap": False, "event_idle": True,
        "power_limit": Quantity(700, "W"), "power_limit_default": Quantity(700, "W"),
        "power_limit_max": Quantity(700, "W"), "power_draw": Quantity(68.57, "W"),
        "temperature": Quantity(29, "degC"), "margin": Quantity(58, "degC"),
        "margin_slowdown": Quantity(-2, "degC"), "margin_shutdown": Quantity(-8, "degC"),
        "memory_temperature": Quantity(37, "degC"), "sm_clock": Quantity(345, "MHz"),
        "sm_clock_max": Quantity(1980, "MHz"), "fabric_state": "Completed", "fabric_status": "Success",
        "gsp_firmware": "580.105.08", "virtualization": "Pass-Through", "processes": (),
    }  # fmt: skip


def test_the_power_brake_of_all_eight_is_seen():
    smi = read("nvidia-smi-q/09-h100x8-535-powerbrake-all.txt")
    assert values(smi, "event_power_brake") == [True] * 8
    assert values(smi, "event_hw_slowdown") == [True] * 8
    assert values(smi, "event_hw_thermal") == [False] * 8
    assert values(smi, "sm_clock") == [Quantity(86, "MHz")] * 8
    assert values(smi, "sm_clock_max") == [Quantity(1980, "MHz")] * 8
    assert {gpu["recovery_action"].note for gpu in smi.gpus.values()} == {
        "driver without recovery action: by its reset status"
    }


def test_a_truncated_document_keeps_what_it_has():
    smi = read("nvidia-smi-q/11-h100-535-truncated-unknown-keys.txt")
    assert smi.attached.reason == (
        "the header says 8 GPUs, the document holds 1; the document is cut in GPU 00000000:53:00.0"
    )
    gpu = smi.gpus["0000:53:00.0"]
    assert (gpu["replay_counter"].value, gpu["event_sw_thermal"].value) == (120, False)
    for field in ("event_hw_slowdown", "event_hw_thermal", "event_power_brake", "margin", "recovery_action"):
        assert gpu[field].reason.startswith("the document is cut and has no ")


def test_a_pending_remap_is_seen():
    gpu = read("nvidia-smi-q/12-a10-535-remap-uncorrectable-pending.txt").gpus["0000:07:00.0"]
    assert (gpu["row_remap_pending"].value, gpu["row_remap_uncorrected"].value) == ("Yes", 4)
    assert gpu["ecc_sram_uncorrected_aggregate"].value == 0
    excerpt = read("nvidia-smi-q-excerpt/01-stas00-compute_accelerator_nvidia_debug-2.txt").gpus["0000:10:1c.0"]
    assert (excerpt["row_remap_pending"].value, excerpt["ecc_dram_corrected_volatile"].value) == ("Yes", 177)


def test_an_unknown_error_hides_nothing_else():
    smi = read("nvidia-smi-q/13-rtx4090x8-535-addressing-unknown-error.txt")
    assert set(values(smi, "product_name")) == {"NVIDIA GeForce RTX 4090"}
    busy = {bus: gpu["processes"].value for bus, gpu in smi.gpus.items() if gpu["processes"].value}
    assert busy == {
        "0000:01:00.0": ((2180559, "C", "/opt/conda/bin/python"),),
        "0000:61:00.0": ((2163744, "C", "/opt/conda/bin/python"),),
        "0000:e1:00.0": ((2177496, "C", "/opt/conda/bin/python"),),
    }


def test_processes_are_listed():
    titan = read("nvidia-smi-q/14-titanv-560.txt").gpus["0000:01:00.0"]
    assert titan["processes"].value == (
        (100607, "G", "/usr/lib/xorg/Xorg"),
        (100838, "G", "/usr/bin/gnome-shell"),
        (101815, "G", "/opt/test"),
    )


def test_nvl_cards_at_310_watts():
    smi = read("nvidia-smi-q/16-h100nvlx2.txt")
    assert values(smi, "power_limit") == [Quantity(310, "W")] * 2
    assert values(smi, "power_limit_max") == [Quantity(400, "W")] * 2
    assert reasons(smi, "fabric_state") == ["Fabric/State reads 'N/A'"] * 2


def test_the_enforced_limit_is_the_gpus_own():
    gpu = read("nvidia-smi-q/18-gh200.txt").gpus["0000:dd:00.0"]  # module: 1000 W
    assert gpu["power_limit"].value == Quantity(700, "W")
    assert gpu["power_limit_default"].value == Quantity(900, "W")
    assert (gpu["ecc_dram_uncorrected_aggregate"].value, gpu["row_remap_uncorrected"].value) == (1, 1)
    assert gpu["link_width_current"].value == 1
    gb300 = read("nvidia-smi-q-xml/04-gb300-hw.txt")  # module: 2900 W
    assert values(gb300, "power_limit") == [Quantity(1400, "W")] * 4


def test_an_old_driver_prints_other_names():
    smi = read("nvidia-smi-q/20-a100x8-460-azure.txt")
    assert list(smi.gpus)[:2] == ["0001:00:00.0", "0002:00:00.0"]
    assert values(smi, "power_limit") == [Quantity(400, "W")] * 8
    assert values(smi, "event_hw_slowdown") == [False] * 8
    assert values(smi, "ecc_mode_current") == ["Enabled"] * 8
    assert values(smi, "gpu_util") == [0] * 8
    assert set(reasons(smi, "recovery_action")) == {"the document has no GPU Reset Status/Reset Required"}


def test_a_header_that_counts_other_gpus_is_not_believed():
    smi = read("nvidia-smi-q/21-l40sx8-gpu_info.txt")
    assert smi.attached.reason == "the header says 10 GPUs, the document holds 8"
    assert smi.complaint == "nvidia-smi -q -i 0,1,2,3,4,5,6,7"
    assert values(smi, "link_gen_current") == [1] * 8
    assert values(smi, "link_gen_max") == [4] * 8


def test_mig_devices_are_not_the_gpu():
    a100 = read("nvidia-smi-q-xml/11-a100-sxm4-v12.txt").gpus["0000:01:00.0"]
    assert (a100["mig_current"].value, a100["memory_total"].value) == ("Enabled", Quantity(81920, "MiB"))
    assert a100["row_remap_pending"].reason == "remapped_rows reads 'N/A'"
    assert a100["recovery_action"].value == "None"
    h200 = read("nvidia-smi-q/08-h200-mig-590-load.txt").gpus["0000:83:00.0"]
    assert (h200["memory_total"].value, h200["memory_used"].value) == (Quantity(143771, "MiB"), Quantity(16959, "MiB"))
    assert [process[:2] for process in h200["processes"].value][:2] == [(12249, "C"), (12250, "C")]


def test_a_lost_gpu_leaves_the_other_readable():
    smi = read("nvidia-smi-q-xml/09-MOCK-gb200-lost.txt")
    well, lost = smi.gpus["0000:0a:00.0"], smi.gpus["0000:0b:00.0"]
    assert (well["row_remap_failure"].value, well["ecc_dram_uncorrected_volatile"].value) == ("Yes", 5)
    assert lost["row_remap_failure"].reason == "remapped_rows reads 'GPU is lost'"
    assert all(said(lost[field]) is None for field in LOST)


@pytest.mark.parametrize("name", NO_GPU)
def test_an_excerpt_without_a_gpu_is_no_document(name):
    smi = nvidia_smi_text.parse(raw(name))
    assert isinstance(smi, Unknown)
    assert smi.reason.startswith("not an nvidia-smi document: ")
    assert smi.missing is False


def test_an_excerpt_with_its_middle_left_out_counts_no_gpus():
    smi = read("nvidia-smi-q-excerpt/05-azure-bad_nvsmi8_output.txt")
    assert smi.attached.reason == "the document is cut in GPU 00000008:00:00.0"
    assert list(smi.gpus) == [f"000{n}:00:00.0" for n in range(1, 9)]


# Edited outputs


def edited(name, gpu, *edits):
    """The document with texts replaced in the block of one GPU, each of which must be there once."""
    head, *blocks = re.split(rb"(?m)^(?=[ \t]*<gpu id=|GPU 0)", raw(name))
    for old, new in edits:
        assert blocks[gpu].count(old) == 1
        blocks[gpu] = blocks[gpu].replace(old, new)
    return b"".join([head, *blocks])


@pytest.mark.parametrize(
    ("name", "edits", "expected"),
    [
        (
            "nvidia-smi-q-xml/01-h100-hw.txt",
            [
                (b"<remapped_row_pending>No<", b"<remapped_row_pending>Yes<"),
                (b"<gpu_temp_tlimit>55 C<", b"<gpu_temp_tlimit>-3 C<"),
                (b"<current_link_width>16x<", b"<current_link_width>8x<"),
                (b"<gpu_recovery_action>None<", b"<gpu_recovery_action>Reset<"),
                (b"<sm_clock>345 MHz</sm_clock>\n\t\t\t<mem_clock>2619 MHz</mem_clock>\n\t\t\t<video_clock>765",
                 b"<sm_clock>ERR!</sm_clock>\n\t\t\t<mem_clock>2619 MHz</mem_clock>\n\t\t\t<video_clock>765"),
                (b"<state>Completed<", b"<state>In Progress<"),
            ],
            {
                "row_remap_pending": "Yes", "margin": Quantity(-3, "degC"), "link_width_current": 8,
                "recovery_action": "Reset", "sm_clock": None, "fabric_state": "In Progress",
            },
        ),
        (
            "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt",
            [
                (b"HW Thermal Slowdown           : Not Active", b"HW Thermal Slowdown           : Active"),
                (b"Reset Required                    : No", b"Reset Required                    : Yes"),
                (b"Remapping Failure Occurred        : No", b"Remapping Failure Occurred        : Yes"),
                (b"Product Name                          : NVIDIA H100", b"Product Name : a : b"),
                (b"Performance State                     : P0", b"Performance State     : Unknown Error"),
            ],
            {
                "event_hw_thermal": True, "recovery_action": "Reset Required", "row_remap_failure": "Yes",
                "product_name": "a : b 80GB HBM3", "performance_state": None,
            },
        ),
    ],
)  # fmt: skip
def test_one_sick_gpu_among_eight(name, edits, expected):
    healthy, sick = read(name), parse(edited(name, 4, *edits))
    assert list(sick.gpus) == list(healthy.gpus)
    assert sick.attached.value == 8
    for position, bus in enumerate(healthy.gpus):
        for field in FIELDS:
            if position == 4 and field in expected:
                assert (said(sick.gpus[bus][field]) or (None,))[0] == expected[field]
            else:
                assert said(sick.gpus[bus][field]) == said(healthy.gpus[bus][field])


@pytest.mark.parametrize("name", ["nvidia-smi-q-xml/01-h100-hw.txt", "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt"])
def test_a_gpu_that_is_there_twice_has_no_reading(name):
    first = next(iter(read(name).gpus))
    third = list(read(name).gpus)[2]
    smi = parse(raw(name).replace(third[5:].upper().encode(), first[5:].upper().encode()))
    assert len(smi.gpus) == 7
    assert smi.attached.reason == f"GPU {first} is in the document twice"
    assert all(reading.reason == smi.attached.reason for reading in smi.gpus[first].values())
    assert said(smi.gpus[list(smi.gpus)[1]]["margin"])


@pytest.mark.parametrize("name", ["nvidia-smi-q-xml/01-h100-hw.txt", "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt"])
def test_what_is_no_part_of_the_document_is_a_complaint(name):
    line = "Unable to determine the device handle for GPU0000:A1:00.0: Unknown Error"
    whole = raw(name)
    last = re.split(rb"(?m)^(?=[ \t]*<gpu id=|GPU 0)", whole)[-1]
    for data in (line.encode() + b"\n" + whole, whole.replace(last, line.encode() + b"\n" + last)):
        smi = parse(data)
        assert smi.complaint == line
        assert (smi.attached.value, len(smi.gpus)) == (8, 8)
        assert said(smi.gpus[list(smi.gpus)[6]]["processes"]) == ((), "")
    assert isinstance(parse(line.encode() + b"\n"), Unknown)
    assert line in parse(line.encode() + b"\n").reason


def test_a_line_at_the_margin_ends_the_block():
    text = raw("nvidia-smi-q/16-h100nvlx2.txt").replace(b"    Remapped Rows\n", b"Killed\n    Remapped Rows\n", 1)
    smi = nvidia_smi_text.parse(text)
    broken, whole = smi.gpus.values()
    assert smi.complaint == "Killed"
    assert broken["ecc_dram_uncorrected_aggregate"].value == 0
    assert broken["row_remap_pending"].reason == "the document is cut and has no Remapped Rows/Pending"
    assert said(broken["recovery_action"]) is None  # it could have been in what is missing
    assert whole["row_remap_pending"].value == "No"


def test_a_gap_in_a_section_does_not_lend_lines_to_it():
    text = raw("nvidia-smi-q/01-h100-590-idle.txt")
    start = text.index(b"        Total                                          : 81559")
    end = text.index(b"        Total                                          : 131072")
    gpu = nvidia_smi_text.parse(text[:start] + b"        [...]\n" + text[end:]).gpus["0000:00:09.0"]
    assert said(gpu["memory_total"]) is None
    assert said(gpu["memory_used"]) is None
    assert gpu["compute_mode"].value == "Default"


def test_a_list_of_processes_needs_an_end():
    text = raw("nvidia-smi-q/14-titanv-560.txt")
    listed = text[: text.index(b"    Capabilities")]
    for data, known in ((listed, False), (listed + b"\n", True), (listed + b"Killed\n\n", False), (text, True)):
        assert (said(nvidia_smi_text.parse(data).gpus["0000:01:00.0"]["processes"]) is not None) is known
    strange = text.replace(b"Process ID                        : 100838", b"Process ID                        : N/A")
    assert "pid 'N/A'" in nvidia_smi_text.parse(strange).gpus["0000:01:00.0"]["processes"].reason


def test_processes_of_the_xml_form():
    entry = b"""<process_info><gpu_instance_id>N/A</gpu_instance_id><pid>%b</pid><type>C</type>
        <process_name>python &lt;a : b&gt;</process_name><used_memory>4 MiB</used_memory></process_info>"""
    name = "nvidia-smi-q-xml/11-a100-sxm4-v12.txt"
    empty = b"<processes />"

    def processes(section):
        return parse(edited(name, 0, (empty, section)) if section != empty else raw(name)).gpus["0000:01:00.0"][
            "processes"
        ]

    two = b"<processes>" + entry % b"17" + entry % b"18" + b"</processes>"
    assert processes(two).value == ((17, "C", "python <a : b>"), (18, "C", "python <a : b>"))
    assert processes(b"<processes>\n  None\n</processes>").value == ()
    assert "pid 'N/A'" in processes(b"<processes>" + entry % b"N/A" + b"</processes>").reason
    assert processes(b"<processes>N/A</processes>").reason == "processes reads 'N/A'"
    assert processes(b"").reason == "the document has no processes"


# Made-up documents: every path of the table, one at a time


def xml_of(lines, attached=1):
    body = ""
    for path, text in lines:
        *sections, leaf = path.split("/")
        body += "".join(f"<{tag}>" for tag in sections) + f"<{leaf}>{text}</{leaf}>"
        body += "".join(f"</{tag}>" for tag in reversed(sections))
    gpu = f'<gpu id="00000000:19:00.0">{body}</gpu>' * attached
    return f"<nvidia_smi_log><attached_gpus>{attached}</attached_gpus>{gpu}</nvidia_smi_log>".encode()


def text_of(lines, end="    Processes : None\n"):
    body = ""
    for path, text in lines:
        *sections, leaf = path.split("/")
        body += "".join(f"{'    ' * (depth + 1)}{name}\n" for depth, name in enumerate(sections))
        body += f"{'    ' * (len(sections) + 1)}{leaf:<40} : {text}\n"
    return f"Attached GPUs : 1\nGPU 00000000:19:00.0\n{body}{end}".encode()


FORMS = {"xml": xml_of, "text": text_of}
SAMPLES = [
    "Yes", "Enabled", "Active", "3", "16x", "P2", "0x233010DE", "7 %", "7 MiB", "7.5 W", "7 MHz", "-7 C", "7 bank(s)",
    "GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691", "Some Word",
]  # fmt: skip


def sample(field):
    return next(text for text in SAMPLES if field.convert(text) is not None)


PATHS = [
    (form, name, path)
    for form in FORMS
    for name, field in FIELDS.items()
    if name != "processes"
    for path in getattr(field, form)
]


@pytest.mark.parametrize(("form", "name", "path"), PATHS)
def test_a_field_is_read_from_its_path_and_from_no_other(form, name, path):
    text = sample(FIELDS[name])
    lines = [(part, text) for part in path.split(" + ")]
    gpu = parse(FORMS[form](lines)).gpus["0000:19:00.0"]
    value = FIELDS[name].convert(text)
    assert gpu[name].value == (value * len(lines) if len(lines) > 1 else value)
    assert [other for other in FIELDS if said(gpu[other]) and other not in {name, "processes"}] == []
    outside = [(f"{'module' if form == 'xml' else 'MIG Device'}/{part}", text) for part, text in lines]
    assert said(parse(FORMS[form](outside)).gpus["0000:19:00.0"][name]) is None


@pytest.mark.parametrize(("form", "name", "path"), PATHS)
def test_a_word_that_is_no_value_is_unknown(form, name, path):
    for text in ("N/A", "Unknown Error", "ERR!", "", "GPU is lost", "[Not Supported]", "[Unknown Error]", DEPRECATED):
        gpu = parse(FORMS[form]([(part, text) for part in path.split(" + ")])).gpus["0000:19:00.0"]
        assert gpu[name].reason == f"{path.split(' + ')[0]} reads {text!r}"


@pytest.mark.parametrize(("form", "name", "path"), PATHS)
def test_a_text_of_any_length_is_a_short_reason(form, name, path):
    def said_of(length):
        return parse(FORMS[form]([(part, "9" * length) for part in path.split(" + ")])).gpus["0000:19:00.0"][name]

    assert len(said_of(5000).reason) < 250
    if FIELDS[name].convert("Some Word"):
        assert said_of(900).value == "9" * 900
    else:
        assert len(said_of(900).reason) < 250


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("status", "action", "expected"),
    [
        (("No", "No"), None, "None"),
        (("Yes", "No"), None, "Reset Required"),
        (("No", "Yes"), None, "Drain and Reset Recommended"),
        (("Yes", "N/A"), None, "Reset Required"),
        (("No", "N/A"), None, None),
        (("N/A", "N/A"), None, None),
        (("No", None), None, None),
        ((None, None), None, None),
        (("No", "No"), "Reset", "Reset"),
        (("Yes", "Yes"), "None", "None"),
        (("No", "No"), "N/A", None),
    ],
)
def test_the_recovery_action_or_the_reset_status(form, status, action, expected):
    lines = [(getattr(f, form)[0], text) for f, text in zip(RESET_STATUS.values(), status, strict=True) if text]
    lines += [(getattr(FIELDS["recovery_action"], form)[0], action)] if action else []
    reading = parse(FORMS[form](lines)).gpus["0000:19:00.0"]["recovery_action"]
    note = "" if action else "driver without recovery action: by its reset status"
    assert said(reading) == ((expected, note) if expected else None)


@pytest.mark.parametrize("form", FORMS)
def test_a_sum_needs_all_of_its_parts(form):
    name = "ecc_sram_uncorrected_aggregate"
    parity, secded = getattr(FIELDS[name], form)[0].split(" + ")
    for texts, expected in ((("2", "3"), 5), (("2", "N/A"), None), (("N/A", "3"), None), (("2", None), None)):
        lines = [(path, text) for path, text in zip((parity, secded), texts, strict=True) if text]
        reading = parse(FORMS[form](lines)).gpus["0000:19:00.0"][name]
        assert (said(reading) or (None,))[0] == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_is_printed_twice_must_agree(form):
    path = getattr(FIELDS["margin"], form)[0]
    for second, known in (("58 C", True), ("9 C", False)):
        gpu = parse(FORMS[form]([(path, "58 C"), (path, second)])).gpus["0000:19:00.0"]
        assert (said(gpu["margin"]) is not None) is known


@pytest.mark.parametrize("id_", ["", "N/A", "19"])
def test_a_gpu_without_a_bus_id_is_counted_and_not_read(id_):
    smi = nvidia_smi_xml.parse(xml_of([], attached=2).replace(b"00000000:19:00.0", id_.encode(), 1))
    assert list(smi.gpus) == ["0000:19:00.0"]
    assert smi.attached.reason == f"a GPU goes by {id_!r}, which is no bus id"


def test_both_forms_read_the_same_fields():
    assert all(field.xml and field.text for field in FIELDS.values())
    assert all(len(places) == 4 for places in PROCESS.values())
    assert list(read("nvidia-smi-q/01-h100-590-idle.txt").gpus["0000:00:09.0"]) == list(
        read("nvidia-smi-q-xml/01-h100-hw.txt").gpus["0000:53:00.0"]
    )


@pytest.mark.parametrize(
    ("convert", "good", "bad"),
    [
        (nvidia_smi_values.pci_id, "233010DE", ["0x2330", "233010DG", "233010DE0"]),
        (nvidia_smi_values.lanes, "8x", ["0x", "16", "x16", "17x"]),
        (nvidia_smi_values.generation, "6", ["0", "10", "-1", "\u0665"]),
        (nvidia_smi_values.count, "0", ["-1", "1.0", "1 000", "\u0661", "9" * 19]),
        (nvidia_smi_values.percent, "100 %", ["-1 %", "1.5 %", "1 W", "%"]),
        (nvidia_smi_values.quantity("W"), "700.00 W", ["-1 W", "+1 W", "700W", "700.00 mW", "nan W", "1e3 W"]),
        (nvidia_smi_values.quantity("C", "degC"), "-8 C", ["8 F", "8C", "- 8 C", "inf C"]),
        (nvidia_smi_values.performance_state, "P8", ["P", "8", "P100"]),
        (nvidia_smi_values.uuid, "GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691", ["GPU-", "MIG-6065b0d7"]),
        (nvidia_smi_values.version, "580.105.08", ["580", "580.", "580.105.08-beta", "N"]),
        (nvidia_smi_values.active, "Not Active", ["active", "Yes", ""]),
        (nvidia_smi_values.name, "[N]", ["None", "Insufficient Permissions", "[Insufficient Permissions]", "Timeout"]),
    ],
)
def test_a_converter_knows_its_own_words_only(convert, good, bad):
    assert convert(good) is not None
    assert [text for text in bad if convert(text) is not None] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00000000:53:00.0", "0000:53:00.0"),
        ("0000:53:00", "0000:53:00.0"),
        ("53:00.0", "0000:53:00.0"),
        ("GPU0000:A1:00.0", "0000:a1:00.0"),
        ("GPU 00000000:A1:00.0", "0000:a1:00.0"),
        ("PCI:0000:0f:00", "0000:0f:00.0"),
        ("0008:06:00.0", "0008:06:00.0"),
        ("00010000:06:00.0", "10000:06:00.0"),
        (" 0000:10:1C.0\n", "0000:10:1c.0"),
        ("53:00", None),
        ("0000:53:00.8", None),
        ("0000:53:00.0: Unknown Error", None),
        ("", None),
        ("GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691", None),
    ],
)
def test_a_bus_id_has_one_spelling(text, expected):
    assert normal_bus_id(text) == expected


# The law: a prefix of a document gives each reading the same value, or none


def assert_prefix(whole, part):
    if isinstance(part, Unknown):
        return
    for field in ("driver_version", "cuda_version", "attached"):
        assert said(getattr(part, field)) in (None, said(getattr(whole, field)))
    for bus, gpu in part.gpus.items():
        for field in FIELDS:
            assert said(gpu[field]) in (None, said(whole.gpus[bus][field])), (bus, field)


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-smi-q/08-h200-mig-590-load.txt",
        "nvidia-smi-q/12-a10-535-remap-uncorrectable-pending.txt",
        "nvidia-smi-q/14-titanv-560.txt",
        "nvidia-smi-q/16-h100nvlx2.txt",
        "nvidia-smi-q-excerpt/05-azure-bad_nvsmi8_output.txt",
        "nvidia-smi-q-xml/06-l40s-hw.txt",
        "nvidia-smi-q-xml/11-a100-sxm4-v12.txt",
    ],
)
def test_a_prefix_says_nothing_else_at_any_line(name):
    lines = raw(name).splitlines(keepends=True)
    whole = parse(raw(name))
    for cut in itertools.accumulate(lines[:-1], initial=b""):
        assert_prefix(whole, parse(cut))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_prefix_says_nothing_else_at_any_byte(data):
    name = data.draw(st.sampled_from(sorted(name for name in (*WHOLE, *CUT) if "02-b200" not in name)))
    document = raw(name)
    cut = data.draw(st.integers(0, len(document)))
    assert_prefix(parse(document), parse(document[:cut]))


def test_a_prefix_of_a_driver_with_both_recovery_forms_says_nothing_else():
    lines = [(field.text[0], "No") for field in RESET_STATUS.values()] + [("GPU Recovery Action", "Reset")]
    document = text_of(lines)
    whole = nvidia_smi_text.parse(document)
    assert whole.gpus["0000:19:00.0"]["recovery_action"].value == "Reset"
    for cut in range(len(document)):
        assert_prefix(whole, nvidia_smi_text.parse(document[:cut]))


def test_a_cut_xml_document_says_where():
    document = raw("nvidia-smi-q-xml/06-l40s-hw.txt")
    cut = document[: document.index(b"<remapped_rows>")]
    line = len(cut.splitlines())
    smi = nvidia_smi_xml.parse(cut)
    assert smi.reason == f"the XML is cut or not well formed at line {line}: no element found"
    assert smi.missing is False


# What is no document at all


@pytest.mark.parametrize("parser", [nvidia_smi_xml, nvidia_smi_text, query_gpu], ids=["xml", "text", "csv"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n\n",
        b"\x00",
        b"\x00" * 1000 + b"\n",
        b"\xff\xfe<\x00?\x00x\x00m\x00l\x00",
        b"x" * 1_000_000,
        b"x" * 1_000_000 + b"\n",
        b" : " * 300_000 + b"\n",
        b"No devices were found\n",
        b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        b"<html><body>502</body></html>",
        b"<?xml version='1.0' encoding='no-such'?><html/>",
    ],
)
def test_what_is_no_document_is_unknown(parser, data):
    smi = parser.parse(data)
    assert isinstance(smi, Unknown)
    assert smi.reason
    assert len(smi.reason) < 300
    assert smi.missing is False


def test_text_is_no_xml_and_xml_is_no_text():
    assert isinstance(nvidia_smi_xml.parse(raw("nvidia-smi-q/01-h100-590-idle.txt")), Unknown)
    assert isinstance(nvidia_smi_text.parse(raw("nvidia-smi-q-xml/01-h100-hw.txt")), Unknown)


@pytest.mark.parametrize(
    ("doctype", "text"),
    [
        ('<!DOCTYPE nvidia_smi_log [<!ENTITY a "7"><!ENTITY b "&a;&a;&a;&a;">]>', "&b;"),
        ('<!DOCTYPE nvidia_smi_log [<!ENTITY a SYSTEM "file:///etc/hostname">]>', "&a;"),
        ('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd" [<!ATTLIST gpu id CDATA "00000000:53:00.0">]>', "7"),
        ('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">', "7&lost;"),
        ("", "7&lost;"),
    ],
)
def test_entities_are_refused(doctype, text):
    plain = xml_of([("minor_number", text)])
    smi = nvidia_smi_xml.parse(doctype.encode() + plain)
    assert isinstance(smi, Unknown)
    assert "declares" in smi.reason or "undefined entity" in smi.reason


def test_a_billion_laughs_end_at_once():
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 40))
    document = f'<!DOCTYPE nvidia_smi_log [<!ENTITY l0 "ha">{laughs}]><nvidia_smi_log>&l39;</nvidia_smi_log>'
    assert nvidia_smi_xml.parse(document.encode()).reason == (
        "not an nvidia-smi document: its DOCTYPE declares things of its own"
    )


def test_depth_costs_nothing():
    deep = b"<a>" * 200_000 + b"</a>" * 200_000
    for tag in (b"clocks", b"supported_clocks"):
        inside = deep.replace(b"a>", tag + b">") if tag == b"supported_clocks" else deep
        smi = nvidia_smi_xml.parse(xml_of([]).replace(b"</gpu>", inside + b"<minor_number>3</minor_number></gpu>"))
        assert smi.gpus["0000:19:00.0"]["minor"].value == 3
    stairs = "".join(f"{' ' * depth}{'k' * 500}\n" for depth in range(4, 1500))
    assert nvidia_smi_text.parse(text_of([]).replace(b"    Proc", stairs.encode() + b"    Proc")).attached.value == 1


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_make_a_parser_raise(data):
    for parser in (nvidia_smi_xml.parse, nvidia_smi_text.parse, query_gpu.parse):
        assert isinstance(parser(data), (Smi, Unknown, dict))
    assert isinstance(nvidia_smi_xml.parse(b"<nvidia_smi_log>" + data), (Smi, Unknown))
    assert isinstance(nvidia_smi_text.parse(b"GPU 00000000:19:00.0\n    " + data + b"\n"), (Smi, Unknown))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_damaged_document_makes_no_parser_raise(data):
    names = ["nvidia-smi-q/14-titanv-560.txt", "nvidia-smi-q-xml/06-l40s-hw.txt", "nvidia-smi-q/16-h100nvlx2.txt"]
    document = raw(data.draw(st.sampled_from(names)))
    start = data.draw(st.integers(0, len(document)))
    end = data.draw(st.integers(start, min(len(document), start + 400)))
    smi = parse(document[:start] + data.draw(st.binary(max_size=20)) + document[end:])
    assert isinstance(smi, (Smi, Unknown))
    if isinstance(smi, Smi):
        assert all(list(gpu) == list(FIELDS) for gpu in smi.gpus.values())


# Compute capability


@pytest.mark.parametrize("number", ["01-h100-590-idle", "04-h100-mig-590-load", "05-h200-590-idle"])
def test_compute_capability_of_real_nodes(number):
    read_ = query_gpu.parse(raw(f"query-gpu-csv/{number}.txt"))
    assert [reading.value for reading in read_.values()] == ["9.0"]


def test_compute_capability_of_each_gpu():
    table = b"""pci.bus_id, compute_cap
00000000:19:00.0, 9.0
Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error
00000000:4C:00.0, [N/A]
00000000:5D:00.0, 9
00000000:9B:00.0, 9.0
00000000:9B:00.0, 9.0
00000000:BB:00.0, 9.0, 9.0
00000000:CB:00.0, 9.0"""
    read_ = query_gpu.parse(table)
    assert {bus: said(reading) for bus, reading in read_.items()} == {
        "0000:19:00.0": ("9.0", ""),
        "0000:4c:00.0": None,
        "0000:5d:00.0": None,
        "0000:9b:00.0": None,
    }


def test_compute_capability_needs_its_header():
    rows = b"00000000:19:00.0, 9.0\n00000000:3B:00.0, 9.0\n"
    assert query_gpu.parse(rows).reason.startswith("not a table of pci.bus_id and compute_cap")
    assert query_gpu.parse(b"pci.bus_id, compute_cap\n").reason.startswith("no row names a GPU")
    assert isinstance(query_gpu.parse(raw("query-gpu-csv/10-rtx2080ti-unknown-error-field.txt")), Unknown)


def test_the_probes():
    xml, text = nvidia_smi_xml.SMI_XML, nvidia_smi_text.SMI_TEXT
    assert (xml.name, xml.argv, xml.family) == ("nvidia-smi_-q_-x", ("nvidia-smi", "-q", "-x"), "nvidia")
    assert (text.name, text.instead_of, text.family) == ("nvidia-smi_-q", xml.name, "nvidia")
    assert query_gpu.COMPUTE_CAPABILITY.argv[1:] == ("--query-gpu=pci.bus_id,compute_cap", "--format=csv")


@pytest.mark.parametrize("module", [bus_id, nvidia_smi_values, nvidia_smi_xml, nvidia_smi_text, query_gpu])
def test_the_examples_are_true(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
