"""The nvml probe's document becomes readings: the same as nvidia-smi's, and unknown where NVML did not say."""

import copy
import doctest
import importlib.util
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts import nvidia_smi_xml, nvml, nvml_entry, nvml_links, nvml_values
from nodeready.facts.nvidia_smi import FIELDS
from nodeready.facts.nvlink import Link
from nodeready.facts.nvml import MORE, parse
from nodeready.facts.nvml_links import LinkErrors
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

spec = importlib.util.spec_from_file_location("fake_nvml_build", Path(__file__).parents[1] / "fake_nvml" / "build.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)

FIRST = "0000:19:00.0"
SPEED = Quantity(26.562, "GB/s")
# what NVML has no call for, or what the probe does not ask it
NOT_IN_NVML = (
    {"gpu_part", "inforom_image", "memory_clock_max"}
    | {
        name
        for name in FIELDS
        if name.startswith(("fabric_health_", "application_")) or name.endswith("_repair_pending")
    }
    | {"unrepairable_memory"}
)


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    """Run the probe on a node of these GPUs; its document as a table."""
    library = fake.build(tmp_path_factory.getbasetemp() / "fake_nvml")
    folder = tmp_path_factory.mktemp("nvml")

    def run(gpus=None, *arguments, env=None, **node):
        return fake.run_probe(library, fake.write_config(folder / "node.conf", gpus=gpus, **node), *arguments, env=env)[
            0
        ]

    return run


@pytest.fixture(scope="module")
def healthy(probe):
    return probe()


def read(document):
    return parse(json.dumps(document).encode())


@pytest.fixture
def gpu(healthy):
    """The readings of the first GPU of a healthy node after a change to its entry."""

    def change(**changes):
        document = copy.deepcopy(healthy)
        document["devices"][0].update(changes)
        return read(document).gpus[FIRST]

    return change


@pytest.mark.parametrize("module", [nvml, nvml_entry, nvml_links, nvml_values])
def test_the_examples_in_the_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0


def test_the_probe_is_one_of_the_nvidia_family():
    found = nvml.nvml_probe("/venv/bin/python", "/probes/nvml.py")
    assert (found.name, found.argv) == ("nvml", ("/venv/bin/python", "/probes/nvml.py"))
    assert (found.family, found.tier, found.deadline, found.answers) == ("nvidia", "quick", 20.0, (0, 3))
    assert "nvlink.links-active" in found.serves


def test_a_healthy_node_is_known_throughout(healthy):
    found = read(healthy)
    assert (found.driver_version.value, found.cuda_version.value, found.device_count.value) == ("580.105.08", "13.0", 8)
    assert list(found.gpus) == [f"0000:{bus:02x}:00.0" for bus in fake.BUSES]
    assert found.unplaced == {}
    for readings in found.gpus.values():
        assert list(readings) == [*FIELDS, *MORE]
        unknown = {name for name, reading in readings.items() if isinstance(reading, Unknown)}
        assert unknown == {*NOT_IN_NVML, "fabric_health"}
    assert readings["gpu_part"].missing
    assert readings["fabric_health"].reason == "this platform reports no fabric health"
    assert readings["nvlinks"].value == tuple(Link(index, SPEED) for index in range(18))
    assert readings["nvlink_errors"].value == tuple(LinkErrors(index, 0, 0, 0) for index in range(18))
    assert readings["p2p_nvlink"].value == dict.fromkeys(list(found.gpus)[:7], "OK")
    assert (readings["compute_capability"].value, readings["row_remap_banks"].value) == ("9.0", (2560, 0, 0, 0, 0))


CODES = {"Enabled": 1, "Disabled": 0, "Yes": 1, "No": 0, "Default": 0, "None": 0, "NVIDIA": 14, "Pass-Through": 1}
EVENTS = {"hw_slowdown": 8, "hw_thermal": 64, "power_brake": 128, "sw_thermal": 32, "sw_power_cap": 4, "idle": 1}
EVENTS["application_clocks"] = 2
COUNTS = ("minor", "replay_counter", "row_remap_corrected", "row_remap_uncorrected")
LINKS = ("link_gen_current", "link_gen_max", "link_gen_device_max", "link_width_current", "link_width_max")
MODES = ("persistence", "mig_current", "mig_pending", "compute_mode", "ecc_mode_current", "ecc_mode_pending")
STATES = ("sram_threshold_exceeded", "row_remap_pending", "row_remap_failure", "recovery_action", "virtualization")
TEXTS = ("product_name", "serial", "uuid", "vbios", "board_part", "gsp_firmware")
DEGREES = ("temperature", "margin", "margin_slowdown", "margin_shutdown", "memory_temperature")
POWERS = ("power_limit", "power_limit_default", "power_limit_max", "power_draw")


def items_of(bus_id, said):
    """What NVML would say on a GPU of which nvidia-smi said this."""
    value = {name: reading.value for name, reading in said.items() if isinstance(reading, Known)}
    events = sum(bit for name, bit in EVENTS.items() if value[f"event_{name}"])
    domain, bus, device = bus_id.split(":")
    items = {"bus_id": f"0000{domain}:{bus}:{device}".upper(), "brand": CODES[value["product_brand"]]}
    for name in ("device_id", "subsystem_id"):
        vendor, part = value[name].split(":")
        items[name] = f"0x{part}{vendor}"
    items |= {name: value[name] for name in (*TEXTS, *COUNTS, *LINKS)}
    items |= {name: CODES[value[name]] for name in (*MODES, *STATES)}
    items |= {f"{name}_degc": value[name].value for name in DEGREES}
    items |= {f"{name}_mw": round(value[name].value * 1000) for name in POWERS}
    items |= {f"{name}_bytes": value[name].value * 2**20 for name in ("memory_total", "memory_used", "bar1_total")}
    items["bar1_used_bytes"] = 2**20
    items |= {f"{name}_mhz": value[name].value for name in ("sm_clock", "sm_clock_max")}
    items |= {
        "performance_state": value["performance_state"].removeprefix("P"),
        "gpu_util_percent": value["gpu_util"],
        "sram_secded_volatile": value["ecc_sram_uncorrected_volatile"],
        "sram_secded_aggregate": value["ecc_sram_uncorrected_aggregate"],
        "sram_corrected_volatile": value["ecc_sram_corrected_volatile"],
        "dram_uncorrected_volatile": value["ecc_dram_uncorrected_volatile"],
        "dram_uncorrected_aggregate": value["ecc_dram_uncorrected_aggregate"],
        "dram_corrected_volatile": value["ecc_dram_corrected_volatile"],
        "clocks_event_reasons": events,
        "power_limit_min_mw": 200_000,
        "row_remap_max": 2560,
        "row_remap_high": 0,
        "row_remap_partial": 0,
        "row_remap_low": value["row_remap_banks_low"],
        "row_remap_none": value["row_remap_banks_none"],
        "fabric_state": {"Completed": 3}[value["fabric_state"]],
        "fabric_status": {"Success": 0}[value["fabric_status"]],
    }
    return items


def test_nvml_and_nvidia_smi_of_a_real_node_agree_field_by_field(captures, probe):
    smi = nvidia_smi_xml.parse((captures / "nvidia-smi-q-xml" / "01-h100-hw.txt").read_bytes())
    found = read(probe([items_of(bus_id, said) for bus_id, said in smi.gpus.items()]))
    assert list(found.gpus) == list(smi.gpus)
    assert (found.driver_version.value, found.device_count.value) == (smi.driver_version.value, smi.attached.value)
    for bus_id, said in smi.gpus.items():
        for name in FIELDS.keys() - NOT_IN_NVML:
            assert type(found.gpus[bus_id][name].value) is type(said[name].value), name
            assert found.gpus[bus_id][name].value == said[name].value, name


def test_an_error_is_the_reason_and_only_a_lacking_call_is_missing(gpu):
    def of(*errors):
        calls = [f"nvmlCall{number}" for number in range(len(errors))]
        said = dict(zip(calls, errors, strict=True))
        return gpu(temperature_degc=None, unread={"temperature_degc": calls}, errors=said)["temperature"]

    assert of("NOT_SUPPORTED").reason == "nvmlCall0: NOT_SUPPORTED"
    for error in ("NOT_SUPPORTED", "GPU_IS_LOST", "UNKNOWN", "RESET_REQUIRED", "no answer in 8 s"):
        assert not of(error).missing
    assert of("FUNCTION_NOT_FOUND").missing
    assert of("NOT_IN_BINDING", "FUNCTION_NOT_FOUND").missing
    mixed = of("FUNCTION_NOT_FOUND", "NOT_SUPPORTED")
    assert (mixed.missing, mixed.reason) == (False, "nvmlCall0: FUNCTION_NOT_FOUND; nvmlCall1: NOT_SUPPORTED")


def test_a_gpu_that_is_lost_after_it_was_listed_is_lost(healthy):
    def of(place, **errors):
        document = copy.deepcopy(healthy)
        document["devices"][place]["errors"] = errors
        return read(document)

    lost = of(0, nvmlDeviceGetTemperature="GPU_IS_LOST")
    assert lost.lost == lost.refused == {FIRST: "nvmlDeviceGetTemperature: GPU_IS_LOST"}
    waits = of(0, nvmlDeviceGetTemperature="UNKNOWN", nvmlDeviceGetSerial="RESET_REQUIRED")
    assert (waits.lost, waits.refused) == ({}, {FIRST: "nvmlDeviceGetSerial: RESET_REQUIRED"})
    # of a pair it is the other one
    assert of(0, **{"nvmlDeviceGetP2PStatus(0, 1)": "GPU_IS_LOST"}).refused == {}
    for word in ("UNKNOWN", "NOT_SUPPORTED", "no answer in 8 s", None, 7, ["GPU_IS_LOST"]):
        assert of(0, nvmlDeviceGetTemperature=word).refused == {}


def test_a_gpu_without_a_bus_id_is_lost_only_where_nvml_says_so(healthy):
    for word, gone in (("GPU_IS_LOST", True), ("RESET_REQUIRED", True), ("UNKNOWN", False), ("no answer", False)):
        document = copy.deepcopy(healthy)
        place = len(document["devices"]) - 1
        nowhere = list(read(document).gpus)[place]
        document["devices"][place] = {"index": place, "errors": {"nvmlDeviceGetHandleByIndex": word}}
        found = read(document)
        assert found.lost == ({f"index {place}": f"nvmlDeviceGetHandleByIndex: {word}"} if gone else {})
        assert found.gpu_field(nowhere, "serial").reason.startswith(f"NVML lists no GPU at {nowhere}; index")


def test_a_value_that_nobody_speaks_of_is_unknown(gpu):
    temperature = gpu(temperature_degc=None)["temperature"]
    assert (temperature.missing, temperature.reason) == (False, "the nvml probe has no temperature_degc")


def test_sick_gpus_hide_no_other(probe):
    gpus = [fake.h100(index) for index in range(5)]
    gpus[1]["fault"], gpus[2]["fault"] = "lost", "reset-required"
    gpus[3]["fault"] = "hang nvmlDeviceGetTemperature"
    found = read(probe(gpus, "--deadline", 1.5))
    assert found.unplaced == {1: "nvmlDeviceGetHandleByIndex: GPU_IS_LOST"}
    assert found.device_count.reason == "NVML counts 5 GPUs and gives the bus ids of 4"
    assert found.lost == {"index 1": "nvmlDeviceGetHandleByIndex: GPU_IS_LOST"}
    (refused,) = found.refused
    assert refused == list(found.gpus)[1]
    assert found.refused[refused].endswith(": RESET_REQUIRED")
    well, reset, hung, last = found.gpus.values()
    assert well["temperature"].value == last["temperature"].value == Quantity(29, "degC")
    assert well["p2p_nvlink"].reason == "nvmlDeviceGetP2PStatus(0, 1): not asked: GPU 1 gave no answer"
    for name in FIELDS.keys() - NOT_IN_NVML - {"device_id", "subsystem_id", "minor", "processes"}:
        assert "RESET_REQUIRED" in reset[name].reason, name
        assert not reset[name].missing
    assert hung["power_draw"].value == Quantity(68.57, "W")
    for name in ("temperature", "margin", "nvlinks", "nvlink_errors", "processes", "p2p_nvlink", "fabric_state"):
        assert hung[name].reason == "not read, since nvmlDeviceGetTemperature: no answer in 1.5 s"
        assert not hung[name].missing


def test_a_driver_of_535_leaves_missing_what_it_has_no_call_for(probe):
    lacks = ("GpuFabricInfoV", "MarginTemperature", "SramEccErrorStatus", "CurrentClocksEventReasons")
    lines = [f"function-not-found nvmlDeviceGet{name}" for name in lacks]
    readings = read(probe([fake.h100(0)], lines=lines)).gpus[FIRST]
    assert readings["margin"].missing
    assert readings["sram_threshold_exceeded"].missing
    for name in ("fabric_state", "ecc_sram_uncorrected_volatile", "event_hw_slowdown"):
        assert isinstance(readings[name], Known), name


def test_without_a_library_the_whole_form_is_missing(probe):
    found = read(probe(env={"LD_LIBRARY_PATH": ""}))
    assert found.missing
    assert found.reason.startswith("LIBRARY_NOT_FOUND: libnvidia-ml.so.1: cannot open")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("init-error 9", "DRIVER_NOT_LOADED"),
        ("init-error 18", "LIB_RM_VERSION_MISMATCH"),
        ("hang nvmlInitWithFlags", "no answer in 0.5 s"),
    ],
)
def test_a_library_that_does_not_start_is_a_form_that_is_missing(probe, line, says):
    found = read(probe(None, "--deadline", 0.5, lines=[line]))
    assert (found.reason, found.missing) == (f"nvmlInit: {says}", True)


def test_a_library_that_does_not_start_again_for_the_pairs_hides_no_gpu(healthy):
    assert len(read({**healthy, "errors": {"nvmlInit": "UNKNOWN"}}).gpus) == 8


def test_a_library_that_hangs_is_told_of_every_reading_after(probe):
    found = read(probe(None, "--deadline", 0.5, lines=["hang nvmlSystemGetNVMLVersion"]))
    assert found.driver_version.value == "580.105.08"
    assert found.device_count.reason == "not read, since nvmlSystemGetNVMLVersion: no answer in 0.5 s"


@pytest.mark.parametrize(
    ("place", "field", "values"),
    [
        ("memory_total_bytes", "memory_total", [-1, 0, 2**63, 1.5, "85520809984", True]),
        ("temperature_degc", "temperature", [2**32 - 1, -100, 400, "29"]),
        ("margin_degc", "margin", [2**31, -300]),
        ("power_limit_watts", "power_limit", [0, -700, 4294967.295, float("nan"), float("inf")]),
        ("link_gen_current", "link_gen_current", [0, 10, 5.0]),
        ("link_width_current", "link_width_current", [0, 3, 64]),
        ("replay_counter", "replay_counter", [2**32 - 1, -1]),
        ("ecc_dram_uncorrected_volatile", "ecc_dram_uncorrected_volatile", [2**64 - 1, -1, "0"]),
        ("gpu_util_percent", "gpu_util", [101, -1]),
        ("clocks_event_reasons", "event_hw_slowdown", [-1, "0x0", 2**64]),
        ("mig_current", "mig_current", ["On", 0, ["Disabled"]]),
        ("performance_state", "performance_state", ["0", 0]),
        ("serial", "serial", ["", "N/A", "Unknown Error", 1650624000000]),
        ("uuid", "uuid", ["GPU-1", "MIG-6065b0d7-2a0b-56bf-432f-8c9f35b5a690"]),
        ("compute_capability", "compute_capability", ["9", 9.0, "900.0"]),
        ("sm_clock_mhz", "sm_clock", [4294967295]),
        ("processes", "processes", [{}, [{"pid": 0, "type": "C"}], [{"pid": 2**31, "type": "C"}], [{"pid": 5}], [5]]),
        ("row_remap_banks", "row_remap_banks", [{}, {"max": 2560}, []]),
        ("fabric", "fabric_state", [{"state": "N/A"}, {"state": 3}]),
    ],
)
def test_what_cannot_be_is_unknown(gpu, place, field, values):
    for value in values:
        reading = gpu(**{place: value})[field]
        assert isinstance(reading, Unknown), value
        assert not reading.missing
        assert " reads " in reading.reason


def test_processes_keep_pid_type_and_name(gpu):
    listed = [{"pid": 4242, "type": "C", "name": "python"}, {"pid": 77, "type": "M+C", "name": None}]
    assert gpu(processes=listed)["processes"].value == ((77, "M+C", "(unknown)"), (4242, "C", "python"))


def test_a_bus_id_that_comes_twice_makes_all_of_it_unknown(healthy):
    document = copy.deepcopy(healthy)
    document["devices"][1]["bus_id"] = "00000000:19:00.0"
    found = read(document)
    assert {reading.reason for reading in found.gpus[FIRST].values()} == {f"NVML lists GPU {FIRST} twice"}
    assert len(found.gpus) == 7
    assert isinstance(found.device_count, Unknown)


@pytest.mark.parametrize("bus_id", [None, "", "19:00", 19, "GPU-1"])
def test_a_gpu_without_a_bus_id_is_unplaced(healthy, bus_id):
    document = copy.deepcopy(healthy)
    document["devices"][4]["bus_id"] = bus_id
    found = read(document)
    assert list(found.unplaced) == [4]
    assert len(found.gpus) == 7
    assert isinstance(found.device_count, Unknown)


def test_fabric_health_is_said_in_words(gpu):
    def of(**health):
        return gpu(fabric={"state": "Completed", "status": "Success", "health": health})["fabric_health"]

    assert of(degraded_bandwidth=False, incorrect_configuration=0).value == "none"
    assert (
        of(degraded_bandwidth=True, incorrect_configuration=5).value == "degraded bandwidth, incorrect configuration 5"
    )
    assert isinstance(of(degraded_bandwidth="yes"), Unknown)


def test_a_fabric_that_is_not_supported_is_nvidia_smis_not_available(gpu):
    def of(*errors):
        said = {f"nvmlCall{number}": error for number, error in enumerate(errors)}
        return gpu(fabric=None, unread={"fabric": list(said)}, errors=said)["fabric_state"].reason

    assert of("NOT_SUPPORTED") == "nvmlCall0: NOT_SUPPORTED: nvidia-smi prints 'N/A'"
    assert of("FUNCTION_NOT_FOUND", "NOT_SUPPORTED").endswith("'N/A'")
    for errors in (("FUNCTION_NOT_FOUND", "FUNCTION_NOT_FOUND"), ("NOT_SUPPORTED", "UNKNOWN"), ("GPU_IS_LOST",), ()):
        assert "N/A" not in of(*errors)


def test_a_fabric_in_progress_has_no_status(gpu):
    readings = gpu(fabric={"state": "In Progress"})
    assert readings["fabric_state"].value == "In Progress"
    assert readings["fabric_status"].reason == "NVML gives no fabric status while the state is In Progress"


def test_a_cut_document_is_unknown(healthy):
    data = json.dumps(healthy).encode() + b"\n"
    whole = parse(data)
    for end in [*range(0, len(data) - 1, 977), len(data) - 2]:
        assert isinstance(parse(data[:end]), Unknown)
    assert parse(data[:-1]).gpus.keys() == whole.gpus.keys()


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"[]", b"null", b'{"probe": "torch", "schema": 1}', b"\xff\xfe", b"[" * 100_000]
)
def test_what_is_no_document_of_the_probe_is_unknown(data):
    assert isinstance(parse(data), Unknown)


def test_another_schema_is_unknown(healthy):
    assert "schema 2" in read({**healthy, "schema": 2}).reason


LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = LEAF | st.lists(LEAF, max_size=3) | st.dictionaries(st.text(max_size=8), LEAF, max_size=3)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_nothing_in_a_document_ever_raises(healthy, data):
    document = {**healthy, "devices": copy.deepcopy(healthy["devices"][:2])}
    table = data.draw(st.sampled_from([document, document["devices"][0], document["devices"][0]["nvlink"][0]]))
    for key in data.draw(st.lists(st.sampled_from(sorted(table)), min_size=1, max_size=4)):
        table[key] = data.draw(JSON)
    found = read(document)
    if not isinstance(found, Unknown):
        for readings in found.gpus.values():
            assert list(readings) == [*FIELDS, *MORE]


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_ever_raise(data):
    assert isinstance(parse(data), Unknown)
