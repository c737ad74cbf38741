"""The NVML probe against a fake library at the C ABI: healthy nodes, sick GPUs, older drivers."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from nodeready.probes import nvml

SCRIPT = Path(nvml.__file__)

spec = importlib.util.spec_from_file_location("fake_nvml_build", Path(__file__).parents[1] / "fake_nvml" / "build.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return fake.build(tmp_path_factory.getbasetemp() / "fake_nvml")


@pytest.fixture
def run(tmp_path, library):
    """Run the probe on a node of these GPUs: (document, process)."""

    def start(gpus=None, *arguments, python=(), env=None, **node):
        config = fake.write_config(tmp_path / "node.conf", gpus=gpus, **node)
        return fake.run_probe(library, config, *arguments, python=python, env=env)

    return start


def two(**changes):
    return [fake.h100(0, **changes), fake.h100(1)]


REMOTES = [f"{link} remote 00000000:{0x83 + link % 4:X}:00.0" for link in range(18)]


def eight(**sick):
    """Eight GPUs, with changes to some: gpu3={"fault": "lost"}."""
    return [fake.h100(index, link=REMOTES, **sick.get(f"gpu{index}", {})) for index in range(8)]


HEALTHY = {
    "index": 3,
    "bus_id": "00000000:5D:00.0",
    "device_id": "10de:2330",
    "subsystem_id": "10de:16c1",
    "uuid": "GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a693",
    "serial": "1650624000003",
    "product_name": "NVIDIA H100 80GB HBM3",
    "product_brand": "NVIDIA",
    "minor": 3,
    "compute_capability": "9.0",
    "vbios": "96.00.99.00.01",
    "board_part": "692-2G520-0200-000",
    "gsp_firmware": "580.105.08",
    "virtualization": "None",
    "recovery_action": "None",
    "persistence": "Enabled",
    "mig_current": "Disabled",
    "mig_pending": "Disabled",
    "compute_mode": "Default",
    "performance_state": "P0",
    "link_gen_current": 5,
    "link_gen_max": 5,
    "link_gen_device_max": 5,
    "link_width_current": 16,
    "link_width_max": 16,
    "replay_counter": 150,
    "bar1_total_bytes": 131072 * 2**20,
    "memory_total_bytes": 85520809984,
    "memory_used_bytes": 0,
    "gpu_util_percent": 0,
    "ecc_mode_current": "Enabled",
    "ecc_mode_pending": "Enabled",
    "ecc_dram_uncorrected_volatile": 0,
    "ecc_dram_uncorrected_aggregate": 0,
    "ecc_dram_corrected_volatile": 0,
    "ecc_sram_uncorrected_volatile": 0,
    "ecc_sram_uncorrected_aggregate": 0,
    "ecc_sram_corrected_volatile": 0,
    "sram_threshold_exceeded": "No",
    "row_remap_corrected": 0,
    "row_remap_uncorrected": 0,
    "row_remap_pending": "No",
    "row_remap_failure": "No",
    "row_remap_banks": {"max": 2560, "high": 0, "partial": 0, "low": 0, "none": 0},
    "clocks_event_reasons": 1,
    "power_limit_watts": 700,
    "power_limit_default_watts": 700,
    "power_limit_min_watts": 200,
    "power_limit_max_watts": 700,
    "power_draw_watts": 68.57,
    "temperature_degc": 29,
    "margin_degc": 58,
    "margin_slowdown_degc": -2,
    "margin_shutdown_degc": -8,
    "margin_max_operating_degc": 0,
    "memory_temperature_degc": 37,
    "fabric": {"state": "Completed", "status": "Success"},
    "sm_clock_mhz": 345,
    "sm_clock_max_mhz": 1980,
    "memory_clock_mhz": 2619,
    "memory_clock_max_mhz": 2619,
    "processes": [],
    "nvlink_count": 18,
    "p2p_nvlink": dict.fromkeys("0124567", "OK"),
    "unread": {},
    "errors": {},
}


def test_eight_healthy_gpus_are_read_whole(run):
    document, process = run(eight())
    assert (process.returncode, process.stderr) == (0, "")
    devices = document.pop("devices")
    assert document.pop("seconds") < 10
    assert document.pop("binding").split(".")[0].isdigit()
    assert document == {
        "probe": "nvml",
        "schema": 1,
        "python": ".".join(map(str, sys.version_info[:3])),
        "driver_version": "580.105.08",
        "nvml_version": "13.580.105.08",
        "cuda_version": "13.0",
        "device_count": 8,
        "unfinished": None,
        "unread": {},
        "errors": {},
        "error": None,
    }
    links = devices[3].pop("nvlink")
    assert devices[3] == HEALTHY
    assert [device["bus_id"] for device in devices] == [f"00000000:{bus:02X}:00.0" for bus in fake.BUSES]
    assert [link["index"] for link in links] == list(range(18))
    assert links[5] == {
        "index": 5,
        "state": "active",
        "version": "4.0",
        "speed_gb_per_s": 26.562,
        "remote_type": "switch",
        "remote_bus_id": "00000000:84:00.0",
        "replay_errors": 0,
        "recovery_errors": 0,
        "crc_flit_errors": 0,
        "ecc_data_errors": 0,
    }


def test_one_gpu_can_be_read_alone(run):
    document, _ = run(eight(), "--index", 6)
    (device,) = document["devices"]
    assert (device["index"], device["bus_id"]) == (6, "00000000:CB:00.0")
    assert document["device_count"] == 8


@pytest.mark.parametrize(("fault", "error"), [("lost", "GPU_IS_LOST"), ("unknown", "UNKNOWN")])
def test_a_gpu_without_a_handle_is_an_entry_of_its_own(run, fault, error):
    document, _ = run(eight(gpu3={"fault": fault}))
    devices = document["devices"]
    assert devices[3] == {"index": 3, "unread": {}, "errors": {"nvmlDeviceGetHandleByIndex": error}}
    assert document["device_count"] == len(devices) == 8
    for device in devices[:3] + devices[4:]:
        others = {str(index) for index in range(8)} - {"3", str(device["index"])}
        assert device["p2p_nvlink"] == dict.fromkeys(others, "OK")
        label = f"nvmlDeviceGetP2PStatus({device['index']}, 3)"
        assert device["errors"] == {label: "not asked: GPU 3 gave no answer"}


def test_a_gpu_that_is_lost_halfway_stays_lost_and_keeps_what_was_read(run):
    document, _ = run(two(fault="lost 6"))
    device = document["devices"][0]
    assert (device["bus_id"], device["serial"]) == ("00000000:19:00.0", "1650624000000")
    assert "minor" not in device
    assert device["errors"]["nvmlDeviceGetMinorNumber"] == "GPU_IS_LOST"
    assert device["unread"]["minor"] == ["nvmlDeviceGetMinorNumber"]
    assert device["unread"]["nvlink_count"] == ["nvmlDeviceGetNvLinkState(0)"]
    assert device["nvlink"] == [{"index": 0, "state": "unknown"}]
    assert set(device["errors"].values()) == {"GPU_IS_LOST"}


def test_a_gpu_that_needs_a_reset_says_so_at_every_call(run):
    device = run(two(fault="reset-required"))[0]["devices"][0]
    assert (device["bus_id"], device["minor"]) == ("00000000:19:00.0", 0)
    assert set(device["errors"].values()) == {"RESET_REQUIRED"}
    assert device["unread"]["ecc_sram_uncorrected_volatile"] == [
        "nvmlDeviceGetSramEccErrorStatus",
        "nvmlDeviceGetMemoryErrorCounter(uncorrected, volatile, SRAM)",
    ]
    for call in (
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetFieldValues(NVML_FI_DEV_MEMORY_TEMP)",
        "nvmlDeviceGetEccMode",
    ):
        assert call in device["errors"]


def test_what_is_not_supported_costs_its_own_value_alone(run):
    gpu = fake.h100(0, margin_degc=None, **{"not-supported": ["nvmlDeviceGetEccMode", "nvmlDeviceGetMemoryInfo_v2"]})
    device = run([gpu])[0]["devices"][0]
    assert device["unread"] == {
        "ecc_mode_current": ["nvmlDeviceGetEccMode"],
        "ecc_mode_pending": ["nvmlDeviceGetEccMode"],
        "memory_used_bytes": ["nvmlDeviceGetMemoryInfo(v2)"],
        "margin_degc": ["nvmlDeviceGetMarginTemperature"],
        "nvlink/0/remote_bus_id": ["nvmlDeviceGetNvLinkRemotePciInfo(0)"],
    }
    assert set(device["errors"].values()) == {"NOT_SUPPORTED"}
    assert device["memory_total_bytes"] == 85520809984  # by version 1, whose `used` means another thing
    assert not {"ecc_mode_current", "margin_degc", "memory_used_bytes"} & device.keys()


def test_a_driver_of_535_is_read_by_its_older_calls(run):
    lacks = ("GpuFabricInfoV", "MarginTemperature", "SramEccErrorStatus", "CurrentClocksEventReasons")
    lines = [f"function-not-found nvmlDeviceGet{name}" for name in lacks]
    counters = {"sram_parity_volatile": 1, "sram_secded_volatile": 2, "sram_secded_aggregate": 5}
    gpu = fake.h100(0, recovery_action=None, clocks_event_reasons="0x88", fabric_status=23, **counters)
    device = run([gpu], lines=lines, driver="535.183.01", nvml="12.535.183.01", cuda=12020)[0]["devices"][0]
    assert device["fabric"] == {"state": "Completed", "status": "Insufficient Resources"}
    assert (device["ecc_sram_uncorrected_volatile"], device["ecc_sram_uncorrected_aggregate"]) == (3, 5)
    assert device["clocks_event_reasons"] == 0x88
    for name in lacks:
        assert device["errors"][f"nvmlDeviceGet{name}"] == "FUNCTION_NOT_FOUND"
    recovery = "nvmlDeviceGetFieldValues(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)"
    assert device["errors"][recovery] == "NOT_SUPPORTED"
    assert {key: calls for key, calls in device["unread"].items() if not key.startswith("nvlink")} == {
        "margin_degc": ["nvmlDeviceGetMarginTemperature"],
        "sram_threshold_exceeded": ["nvmlDeviceGetSramEccErrorStatus"],
        "recovery_action": [recovery],
    }


def test_thresholds_in_degrees_stand_in_where_there_are_no_margins(run):
    before_hopper = {
        "margin_slowdown_degc": None,
        "margin_shutdown_degc": None,
        "slowdown_degc": 89,
        "shutdown_degc": 92,
    }
    device = run([fake.h100(0, **before_hopper)])[0]["devices"][0]
    assert (device["slowdown_degc"], device["shutdown_degc"]) == (89, 92)
    assert not {"margin_slowdown_degc", "margin_shutdown_degc"} & device.keys()


def test_codes_without_a_meaning_are_no_values(run):
    gpu = fake.h100(0, performance_state=32, compute_mode=9, recovery_action=77, virtualization=5, fabric_state=9)
    device = run([gpu])[0]["devices"][0]
    assert not {"performance_state", "compute_mode", "recovery_action", "virtualization", "fabric"} & device.keys()
    assert device["errors"]["nvmlDeviceGetPerformanceState"] == "answered 32, which has no meaning here"
    assert device["errors"]["nvmlDeviceGetGpuFabricInfoV"] == "answered 9, which has no meaning here"


def test_recovery_actions_have_nvidia_smis_words(run):
    devices = run([fake.h100(code, recovery_action=code) for code in range(8)])[0]["devices"]
    words = [device["recovery_action"] for device in devices]
    assert words[:5] == ["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"]
    assert len(set(words)) == 8


def test_fabric_before_it_is_complete_has_no_status_and_health_is_told_where_there_is_some(run):
    gpus = [fake.h100(0, fabric_state=2, fabric_status=999), fake.h100(1, fabric_health_mask=0x29A), fake.h100(2)]
    gpus[2]["fabric_state"] = 0
    training, sick, card = run(gpus)[0]["devices"]
    assert training["fabric"] == {"state": "In Progress"}
    assert sick["fabric"]["health"] == {
        "degraded_bandwidth": False,
        "route_recovery": False,
        "route_unhealthy": True,
        "access_timeout_recovery": False,
        "incorrect_configuration": 1,
    }
    assert "fabric" not in card
    assert card["errors"]["nvmlDeviceGetGpuFabricInfoV"] == "NOT_SUPPORTED"


def test_links_are_counted_by_their_state(run):
    sick = {"link": ["4 state 0", "7 state -1", "9 replay 12", "9 recovery 1", "9 crc_flit 3", "17 speed_mbps 13281"]}
    gpus = [fake.h100(0, **sick), fake.h100(1, nvlink_count=None), fake.h100(2, nvlink_count=12)]
    some, none, bridge = run(gpus)[0]["devices"]
    words = {link["index"]: link["state"] for link in some["nvlink"]}
    assert (words.pop(4), words.pop(7), set(words.values())) == ("inactive", "not-supported", {"active"})
    assert some["nvlink_count"] == 17
    assert some["nvlink"][4] == {"index": 4, "state": "inactive"}
    counters = {key: value for key, value in some["nvlink"][9].items() if key.endswith("_errors")}
    assert counters == {"replay_errors": 12, "recovery_errors": 1, "crc_flit_errors": 3, "ecc_data_errors": 0}
    assert some["nvlink"][17]["speed_gb_per_s"] == 13.281
    assert (none["nvlink"], none["nvlink_count"]) == ([{"index": 0, "state": "not-supported"}], 0)
    assert (len(bridge["nvlink"]), bridge["nvlink_count"]) == (12, 12)
    assert none["p2p_nvlink"] == {"0": "NOT_SUPPORTED", "2": "NOT_SUPPORTED"}


def test_pairs_are_read_in_both_directions(run):
    first, second = run(two(p2p="1 4"))[0]["devices"]
    assert (first["p2p_nvlink"], second["p2p_nvlink"]) == ({"1": "DISABLED_BY_REGKEY"}, {"0": "OK"})


def test_processes_have_nvidia_smis_types(run):
    found = ["4242 C python", "4242 G python", "77 C /opt/my job", "80 M trainer"]
    devices = run(two(process=found))[0]["devices"]
    assert devices[0]["processes"] == [
        {"pid": 4242, "type": "C+G", "name": "python"},
        {"pid": 77, "type": "C", "name": "/opt/my job"},
        {"pid": 80, "type": "M+C", "name": "trainer"},
    ]
    assert devices[1]["processes"] == []


def test_processes_are_unread_where_one_kind_cannot_be_listed(run):
    call = "nvmlDeviceGetComputeRunningProcesses"
    device = run(two(**{"not-supported": f"{call}_v3"}))[0]["devices"][0]
    assert "processes" not in device
    assert device["unread"]["processes"] == [call]


@pytest.mark.parametrize(("code", "error"), [(9, "DRIVER_NOT_LOADED"), (18, "LIB_RM_VERSION_MISMATCH")])
def test_a_driver_that_does_not_start_is_an_answer(run, code, error):
    document, process = run(lines=[f"init-error {code}"])
    assert (process.returncode, document["error"]) == (0, None)
    assert (document["errors"], document["devices"]) == ({"nvmlInit": error}, [])


def test_a_count_of_more_gpus_than_there_are_gives_entries_with_errors(run):
    document, _ = run(two(), lines=["device-count 3"])
    assert document["device_count"] == 3
    assert document["devices"][2]["errors"] == {"nvmlDeviceGetHandleByIndex": "INVALID_ARGUMENT"}


@pytest.mark.parametrize(
    "line",
    [
        "gpu 0 temprature_degc 29",
        "gpu 0 fault asleep",
        "gpu 0 link 18 state 0",
        "drvier 1",
    ],
)
def test_a_wrong_line_makes_the_fake_fail_loudly(run, line):
    document, process = run(lines=[line])
    assert document["errors"] == {"nvmlInit": "UNKNOWN"}
    assert f"no such item, or a wrong value: {line}" in process.stderr


def test_a_call_that_the_fake_does_not_have_cannot_be_made_to_fail(run):
    assert "no such item" in run(lines=["function-not-found nvmlDeviceGetNothing"])[1].stderr


@pytest.mark.parametrize("wrong", [("--deadline", "nan"), ("--index", "-1")])
def test_usage_errors_have_status_2(wrong):
    process = subprocess.run([sys.executable, str(SCRIPT), *wrong], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (2, "")


def test_the_script_stands_alone():
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 9))
    found = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    found |= {node.module.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert found <= sys.stdlib_module_names
