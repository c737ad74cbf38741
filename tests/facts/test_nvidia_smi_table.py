"""The plain table shows little: what it does not show is missing, and a cut one shows no more than before."""

import pytest

from nodeready.facts import nvidia_smi_table
from nodeready.reading import Known, Unknown

SHOWN = {
    "product_name",
    "persistence",
    "mig_current",
    "performance_state",
    "memory_total",
    "memory_used",
    "compute_mode",
    "gpu_util",
    "ecc_mode_current",
    "power_limit",
    "power_draw",
    "temperature",
}


def parse(captures, name):
    return nvidia_smi_table.parse((captures / "nvidia-smi-table" / f"{name}.txt").read_bytes())


def known(gpu):
    return {field: str(reading.value) for field, reading in gpu.items() if isinstance(reading, Known)}


@pytest.mark.parametrize(
    ("name", "driver", "cuda", "count", "first"),
    [
        ("01-h100-590-idle", "590.48.01", "13.1", 1, {"memory_total": "81559 MiB", "mig_current": "Disabled"}),
        ("03-h100-mig-590-idle", "590.48.01", "13.1", 1, {"ecc_mode_current": "Enabled", "mig_current": "Enabled"}),
        ("07-h200-mig-590-idle", "590.48.01", "13.1", 1, {"memory_total": "143771 MiB", "mig_current": "Enabled"}),
        ("11-h100sxmx8", "565.57.01", "12.7", 8, {"power_limit": "700 W", "product_name": "NVIDIA H100 80GB HBM3"}),
        ("12-h100nvlx2", "550.54.14", "12.4", 2, {"power_limit": "310 W", "product_name": "NVIDIA H100 NVL"}),
        ("14-gh200", "550.127.05", "12.4", 1, {"memory_total": "97871 MiB", "temperature": "31 degC"}),
    ],
)
def test_golden(captures, name, driver, cuda, count, first):
    smi = parse(captures, name)
    assert (smi.driver_version.value, smi.cuda_version.value, smi.attached.value) == (driver, cuda, count)
    assert smi.complaint == ""
    gpu = next(iter(smi.gpus.values()))
    assert first.items() <= known(gpu).items()
    assert set(known(gpu)) <= SHOWN


def test_everything_else_is_missing_so_that_another_form_may_be_asked(captures):
    for gpu in parse(captures, "11-h100sxmx8").gpus.values():
        for field, reading in gpu.items():
            assert isinstance(reading, Known) or reading.missing, field
        assert "hand in `nvidia-smi -q`" in gpu["row_remap_pending"].reason
        assert "hand in `nvidia-smi -q`" in gpu["device_id"].reason


def test_a_newer_line_of_versions():
    found = nvidia_smi_table.parse(
        b"| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |\n"
    )
    assert (found.driver_version.value, found.cuda_version.value) == ("610.43.02", "13.3")
    assert isinstance(found.attached, Unknown)


def test_words_that_are_no_value(captures):
    (gpu,) = parse(captures, "09-rtx-525-fan-ERR").gpus.values()
    assert "cuts the name" in gpu["product_name"].reason
    assert str(gpu["power_limit"].value) == "450 W"
    (gpu,) = parse(captures, "19-v100-power-ERR-transient").gpus.values()
    assert gpu["power_draw"].reason == "power_draw of the plain table reads 'ERR!'"
    assert str(gpu["power_limit"].value) == "250 W"


@pytest.mark.parametrize(
    ("cell", "mode", "errors"),
    [
        ("0", "Enabled", None),
        ("3", "Enabled", 3),
        ("Off", "Disabled", None),
        ("On", "Enabled", None),
        ("N/A", None, None),
    ],
)
def test_the_column_of_errors_is_a_sum_that_proves_a_fault_and_no_health(captures, cell, mode, errors):
    text = (captures / "nvidia-smi-table/01-h100-590-idle.txt").read_text()
    (gpu,) = nvidia_smi_table.parse(
        text.replace("Off |                    0 |", f"Off | {cell:>20} |").encode()
    ).gpus.values()
    assert (known(gpu).get("ecc_mode_current"), known(gpu).get("ecc_dram_uncorrected_volatile")) == (
        mode,
        str(errors) if errors else None,
    )
    assert gpu["ecc_sram_uncorrected_volatile"].missing


@pytest.mark.parametrize("name", ["03-h100-mig-590-idle", "11-h100sxmx8", "12-h100nvlx2"])
def test_a_prefix_gives_the_same_value_or_none(captures, name):
    whole = (captures / f"nvidia-smi-table/{name}.txt").read_bytes()
    full = nvidia_smi_table.parse(whole)
    for cut in range(0, len(whole), 13):
        found = nvidia_smi_table.parse(whole[:cut])
        if isinstance(found, Unknown):
            continue
        for one, other in ((found.attached, full.attached), (found.driver_version, full.driver_version)):
            assert isinstance(one, Unknown) or one.value == other.value
        for bus_id, fields in found.gpus.items():
            for field, reading in fields.items():
                assert isinstance(reading, Unknown) or reading.value == full.gpus[bus_id][field].value


def test_tables_of_several_nodes_in_one_file(captures):
    assert "hand in the table of one node" in parse(captures, "17-oci-h100-535-prefixed-multi-host").reason


@pytest.mark.parametrize(
    "text", ["", "\n", "NVIDIA-SMI has failed because it couldn't communicate\n", "| x |\n", "+--+\n"]
)
def test_what_is_no_table_is_unknown(text):
    assert isinstance(nvidia_smi_table.parse(text.encode()), Unknown)


def test_a_gpu_that_is_there_twice_has_no_reading(captures):
    whole = (captures / "nvidia-smi-table/11-h100sxmx8.txt").read_bytes()
    found = nvidia_smi_table.parse(whole.replace(b"00000000:2A:00.0", b"00000000:18:00.0"))
    assert isinstance(found.attached, Unknown)
    assert known(found.gpus["0000:18:00.0"]) == {}


def test_it_alone_leaves_a_node_incomplete_and_says_what_to_hand_in(captures, judge):
    results, found = judge(captures / "nvidia-smi-table/11-h100sxmx8.txt")
    assert results["acceptance"] == "incomplete"
    assert {key for (key, _), f in found.items() if f["verdict"] == "pass"} >= {
        "gpu.count",
        "driver.version",
        "gpu.memory",
    }
    for key in ("health.row-remap-pending", "gpu.product", "health.ecc-uncorrected/dram", "nvlink.links-active"):
        finding = found[key, "gpu7"]
        assert finding["verdict"] == "unverified", key
    assert "hand in `nvidia-smi -q`" in found["gpu.product", "gpu7"]["message"]


def test_it_is_not_read_beside_a_full_document(healthy_files, captures, folder_of, judge):
    table = (captures / "nvidia-smi-table/14-gh200.txt").read_bytes()
    results, _ = judge(folder_of({**healthy_files, "nvidia-smi": table}))
    assert results["acceptance"] == "accepted"
