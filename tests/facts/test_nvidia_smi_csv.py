"""The CSV of --query-gpu says what the full document says, where a column was asked for; a prefix says no more."""

import pytest

from nodeready.facts import nvidia_smi_csv, nvidia_smi_text
from nodeready.reading import Known, Unknown

FILES = ["01-h100-590-idle", "04-h100-mig-590-load", "05-h200-590-idle", "08-h200-mig-590-load"]
# read at another moment than the document beside it
MOVING = {"memory_used", "gpu_util", "power_draw", "temperature", "margin", "memory_temperature", "sm_clock"}
MADE_UP = {"serial"}  # the captures hold other ones in each file


def parse(text):
    return nvidia_smi_csv.parse(text.encode())


@pytest.mark.parametrize("name", ["01-h100-590-idle", "05-h200-590-idle"])
def test_it_agrees_with_the_full_document_of_the_same_node(captures, name):
    table = nvidia_smi_csv.parse((captures / f"query-gpu-csv/{name}.txt").read_bytes())
    full = nvidia_smi_text.parse((captures / f"nvidia-smi-q/{name}.txt").read_bytes())
    assert (table.attached.value, table.driver_version.value) == (full.attached.value, full.driver_version.value)
    for bus_id, fields in full.gpus.items():
        both = {
            field: (reading.value, table.gpus[bus_id][field].value)
            for field, reading in fields.items()
            if isinstance(reading, Known)
            and isinstance(table.gpus[bus_id][field], Known)
            and field not in MOVING | MADE_UP
        }
        assert len(both) >= 30
        assert {field: pair for field, pair in both.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize("name", FILES)
def test_golden(captures, name):
    smi = nvidia_smi_csv.parse((captures / f"query-gpu-csv/{name}.txt").read_bytes())
    ((_, gpu),) = smi.gpus.items()
    mig = "mig" in name
    assert gpu["mig_current"].value == ("Enabled" if mig else "Disabled")
    assert gpu["device_id"].value == ("10de:2335" if "h200" in name else "10de:2330")
    assert gpu["compute_capability"].value == "9.0"
    assert str(gpu["power_limit"].value) == "700 W"
    assert gpu["link_width_current"].value == 16
    if mig:  # a driver in MIG mode shows no remapped rows
        assert gpu["row_remap_pending"].reason == "remapped_rows.pending reads '[N/A]'"
    else:
        assert gpu["row_remap_pending"].value == "No"


@pytest.mark.parametrize("name", FILES)
def test_a_prefix_gives_the_same_value_or_none(captures, name):
    whole = (captures / f"query-gpu-csv/{name}.txt").read_bytes()
    full = nvidia_smi_csv.parse(whole)
    for cut in range(0, len(whole), 37):
        found = nvidia_smi_csv.parse(whole[:cut])
        if isinstance(found, Unknown):
            continue
        for bus_id, fields in found.gpus.items():
            for field, reading in fields.items():
                assert isinstance(reading, Unknown) or reading.value == full.gpus[bus_id][field].value


EIGHT = "pci.bus_id, memory.total [MiB], count\n" + "".join(
    f"00000000:{bus:02X}:00.0, 81559 MiB, 8\n" for bus in range(0x10, 0x18)
)


def test_a_table_that_lost_lines_does_not_count_fewer_gpus():
    assert parse(EIGHT).attached.value == 8
    for lines in range(2, 9):
        found = parse("".join(EIGHT.splitlines(True)[:lines]))
        assert isinstance(found.attached, Unknown)
    without = "".join(line.rpartition(",")[0] + "\n" for line in EIGHT.splitlines())
    assert parse(without).attached.missing  # nothing tells how many there should be
    assert len(parse(without).gpus) == 8


@pytest.mark.parametrize(
    ("column", "plain", "with_unit", "field"),
    [
        ("memory.total", "81559", "81559 MiB", "memory_total"),
        ("enforced.power.limit", "700.00", "700.00 W", "power_limit"),
        ("temperature.gpu.tlimit", "-3", "-3", "margin"),
        ("utilization.gpu", "7", "7 %", "gpu_util"),
        ("clocks.current.sm", "345", "345 MHz", "sm_clock"),
    ],
)
def test_nounits_changes_nothing(column, plain, with_unit, field):
    def value(text):
        (gpu,) = parse(f"pci.bus_id, {column}\n0000:18:00.0, {text}\n").gpus.values()
        return gpu[field]

    assert value(plain).value == value(with_unit).value
    assert isinstance(value(f"{plain} XiB"), Unknown)


@pytest.mark.parametrize(
    "cell", ["[N/A]", "[Unknown Error]", "[GPU requires reset]", "", "[Not Supported]", "ERR!", "8 1559 MiB", "1e5 MiB"]
)
def test_what_is_no_value_is_unknown(cell):
    (gpu,) = parse(f"pci.bus_id, memory.total [MiB]\n0000:18:00.0, {cell}\n").gpus.values()
    assert not gpu["memory_total"].missing


def test_names_of_older_drivers_and_other_spellings():
    head = "gpu_bus_id, gpu_name, clocks_throttle_reasons.hw_slowdown, remapped_rows.dbe, gpu.power.current_limit"
    (gpu,) = parse(f"{head}\n0000:18:00.0, NVIDIA H100, Active, 2, 650.00 W\n").gpus.values()
    assert (gpu["product_name"].value, gpu["event_hw_slowdown"].value) == ("NVIDIA H100", True)
    assert (gpu["row_remap_uncorrected"].value, str(gpu["power_limit"].value)) == (2, "650 W")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("pci.bus_id, name", "cut in its first line"),
        ("name, serial\nNVIDIA H100, 1650\n", "add it to --query-gpu"),
        ("NVIDIA H100, 1650\n", "without its header line"),
        ("No devices were found\n", "without its header line"),
        ("pci.bus_id, name\n", "no row names a GPU"),
        ("pci.bus_id, pci.bus_id\n0000:18:00.0, 0000:18:00.0\n", "pci.bus_id"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "no table"),
    ],
)
def test_what_is_no_table_is_unknown(text, says):
    found = parse(text)
    assert isinstance(found, Unknown)
    assert says in found.reason


def test_a_gpu_that_is_there_twice_has_no_reading():
    found = parse("pci.bus_id, name, count\n0000:18:00.0, A, 2\n00000000:18:00.0, B, 2\n")
    assert isinstance(found.attached, Unknown)
    assert all(isinstance(reading, Unknown) for reading in found.gpus["0000:18:00.0"].values())


def test_a_line_between_the_rows_is_told_and_hides_nobody():
    found = parse("pci.bus_id, name, count\nUnable to determine the device handle\n0000:18:00.0, A, 1\n")
    assert "Unable to determine" in found.complaint
    assert isinstance(found.attached, Unknown)
    assert found.gpus["0000:18:00.0"]["product_name"].value == "A"


def test_it_is_judged_like_the_full_document(captures, judge):
    _, by_table = judge(captures / "query-gpu-csv/01-h100-590-idle.txt", "sxm-1")
    _, by_document = judge(captures / "nvidia-smi-q/01-h100-590-idle.txt", "sxm-1")
    keys = "gpu.count gpu.product gpu.memory gpu.mig health.ecc-mode health.row-remap-pending health.recovery-action"
    for key in keys.split():
        subject = "node" if key == "gpu.count" else "gpu0"
        assert by_table[key, subject]["verdict"] == by_document[key, subject]["verdict"] == "pass", key
    assert by_table["driver.responds", "node"]["verdict"] == "pass"
    assert by_table["gpu.compute-capability", "gpu0"]["evidence"] == ["nvidia-smi_--query-gpu"]


def test_a_table_that_says_otherwise_makes_the_reading_unknown(healthy_files, folder_of, judge):
    (bus_id,) = {
        line.split(b",")[0]
        for line in healthy_files["nvidia-smi_--query-gpu=pci.bus_id,compute_cap_--format=csv"].splitlines()[1:2]
    }
    table = b"pci.bus_id, memory.total [MiB]\n" + bus_id + b", 40960 MiB\n"
    name = "nvidia-smi_--query-gpu=pci.bus_id,memory.total_--format=csv"
    _, found = judge(folder_of({**healthy_files, name: table}))
    assert found["gpu.memory", "gpu0"]["verdict"] == "unverified"
    assert "40960 MiB" in found["gpu.memory", "gpu0"]["message"]
    assert found["gpu.memory", "gpu1"]["verdict"] == "pass"
