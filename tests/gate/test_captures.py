"""Documents of real nodes get the verdicts that their own content warrants, and no more."""

import pytest

ANSWERED = (
    "pcie.gpu-link-generation",
    "pcie.gpu-link-width",
    "gpu.product",
    "gpu.memory",
    "gpu.mig",
    "health.ecc-mode",
    "health.ecc-uncorrected/sram",
    "health.ecc-uncorrected/dram",
    "health.row-remap-pending",
    "health.row-remap-failure",
    "health.recovery-action",
    "health.clock-events",
    "power.limit",
    "thermal.margin",
    "nvlink.fabric-state",
)
SILENT = ("gpu.compute-capability", "nvlink.links-active", "compute.matmul-fp16", "compute.matmul-fp32/correct")
NODE = ("memory.installed", "container.runtime", "health.xid", "platform.os", "pcie.gpu-present", "frameworks.torch")


def test_eight_healthy_h100(judge, captures):
    results, found = judge(captures / "nvidia-smi-q-xml/01-h100-hw.txt")
    for gpu in range(8):
        assert {key: found[key, f"gpu{gpu}"]["verdict"] for key in ANSWERED} == dict.fromkeys(ANSWERED, "pass")
        assert {key: found[key, f"gpu{gpu}"]["verdict"] for key in SILENT} == dict.fromkeys(SILENT, "unverified")
    assert {key: found[key, "node"]["verdict"] for key in NODE} == dict.fromkeys(NODE, "unverified")
    assert found["gpu.count", "node"]["verdict"] == "pass"
    assert found["driver.responds", "node"]["verdict"] == "pass"
    assert (results["acceptance"], results["exit_status"]) == ("incomplete", 10)
    # the driver of that day has not the fixes of the last bulletin: nothing else is short of anything
    assert {f["key"] for f in results["findings"] if f["verdict"] in ("fail", "advisory")} == {"driver.security-floor"}


def test_power_brake_on_all_eight(judge, captures):
    results, found = judge(captures / "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt")
    for gpu in range(8):
        finding = found["health.clock-events", f"gpu{gpu}"]
        assert finding["verdict"] == "fail"
        assert "power brake" in finding["observed"]["value"]
    assert results["exit_status"] == 1


@pytest.mark.parametrize(
    ("document", "gpus"),
    [
        ("nvidia-smi-q/20-a100x8-460-azure.txt", 8),
        ("nvidia-smi-q/12-a10-535-remap-uncorrectable-pending.txt", 1),
        ("nvidia-smi-q-xml/06-l40s-hw.txt", 1),
        ("nvidia-smi-q/21-l40sx8-gpu_info.txt", 8),
        ("nvidia-smi-q-xml/02-b200-hw.txt", 8),
        ("nvidia-smi-q/18-gh200.txt", 1),
        ("nvidia-smi-q/16-h100nvlx2.txt", 2),
    ],
)
def test_another_product_fails(judge, captures, document, gpus):
    results, found = judge(captures / document)
    assert [found["gpu.product", f"gpu{i}"]["verdict"] for i in range(gpus)] == ["fail"] * gpus
    assert results["acceptance"] == "rejected"


def test_lspci_of_a_healthy_hgx_passes_although_other_devices_are_downgraded(judge, captures, folder_of):
    listing = (captures / "lspci/01-hgx-h100x8-xe9680-lspci-vvv.txt").read_bytes()
    results, found = judge(folder_of({"lspci_-vvv": listing}))
    for gpu in range(8):
        assert found["pcie.gpu-link-generation", f"gpu{gpu}"]["verdict"] == "pass"
        assert found["pcie.gpu-link-width", f"gpu{gpu}"]["verdict"] == "pass"
        assert found["gpu.product", f"gpu{gpu}"]["verdict"] == "pass"
    assert found["pcie.gpu-present", "node"]["verdict"] == "pass"
    assert not [f for f in results["findings"] if f["verdict"] in ("fail", "advisory")]


def test_a_header_that_counts_more_gpus_than_the_document_holds(judge, captures):
    _, found = judge(captures / "nvidia-smi-q/21-l40sx8-gpu_info.txt")
    assert found["gpu.count", "node"]["verdict"] == "unverified"
    assert "10" in found["gpu.count", "node"]["message"]


def test_a_cut_document_is_no_node(judge, captures):
    results, found = judge(captures / "nvidia-smi-q/11-h100-535-truncated-unknown-keys.txt")
    assert found["gpu.count", "node"]["verdict"] == "unverified"
    assert results["acceptance"] == "incomplete"


def test_mig_is_a_finding(judge, captures):
    _, found = judge(captures / "nvidia-smi-q/03-h100-mig-590-idle.txt")
    assert found["gpu.mig", "gpu0"]["verdict"] == "fail"


def test_a_docker_that_does_not_know_the_nvidia_runtime(judge, captures, folder_of):
    info = (captures / "container-runtime/07-docker-info-nvidia-missing.txt").read_bytes()
    _, found = judge(folder_of({"docker_info": info}))
    assert found["container.runtime/gpu-support", "node"]["verdict"] == "fail"


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        ("01-xid119-gsp-timeout-h100.txt", "fail"),
        ("03-iso-log-1.txt", "pass"),
        ("11-stas00-compute_accelerator_nvidia_debug-1.txt", "fail"),
        ("17-xid79-fallen-off-535.txt", "fail"),
        ("23-xid144-149-subcodes.txt", "fail"),
    ],
)
def test_kernel_logs(judge, captures, folder_of, log, verdict):
    whole = (captures / "dmesg" / log).read_bytes().rstrip(b"\n") + b"\n"  # some copies lost their last newline
    _, found = judge(folder_of({"dmesg": whole}))
    assert found["health.xid", "node"]["verdict"] == verdict


def test_a_log_that_stops_in_the_middle_of_a_line_rules_nothing_out(judge, captures, folder_of):
    _, found = judge(folder_of({"dmesg": (captures / "dmesg/03-iso-log-1.txt").read_bytes()[:-20]}))
    assert found["health.xid", "node"]["verdict"] == "unverified"
