"""Results of a run as a document: what the renderers read, built by hand for their tests."""

import copy

SHA256 = "3f6a9c0d5b7e1824a6c3d9f0b2e4571890abcdef1234567890fedcba98765432"
GPUS = [
    {
        "subject": f"gpu{index}",
        "bus_id": f"0000:{bus}:00.0",
        "uuid": f"GPU-{index}a2b{bus}00-33ea-b22a-d948-d60845a5206{index}",
        "serial": f"16532230{bus.upper()}{index}17",
        "product": "NVIDIA H100 80GB HBM3",
        "slot": str(index + 1),
    }
    for index, bus in enumerate(("1b", "2c", "3d", "4e", "5f", "6a", "9b", "ab"))
]


def bound(kind, value, unit=""):
    return {kind: {"value": value, "unit": unit}}


def finding(key, subject="node", verdict="pass", value=1, unit="", **other):
    check = key.partition("/")[0]
    made = {
        "check": check,
        "layer": check.partition(".")[0],
        "subject": subject,
        "key": key,
        "title": f"The title of {check}",
        "verdict": verdict,
        "observed": None if verdict in ("unverified", "not-applicable") else {"value": value, "unit": unit},
        "required": bound("equals", 1),
        "recommended": None,
        "source": "h100-setup-guide",
        "source_title": "H100 setup guide",
        "source_url": "https://docs.nvidia.com/h100",
        "why": "It matters to the job.",
        "message": "" if verdict == "pass" else f"{key} is {verdict}",
        "remedy": "Look at the part, then run the gate again.",
        "blocked_by": None,
        "evidence": ["nvidia-smi_-q_-x"],
        "measure": "must",
    }
    return made | other


def healthy_findings():
    made = [
        finding(
            "memory.installed",
            value=1024,
            unit="GiB",
            title="The memory of a whole node is installed",
            required=bound("min", 512, "GiB"),
            recommended=bound("min", 1, "TiB"),
        ),
        finding("driver.responds", value=True, title="The driver answers", required=bound("equals", True)),
        finding("driver.version", value="550.90.07", title="The driver is new enough", required=bound("min", "525")),
        finding("gpu.count", value=8, title="Every planned GPU answers", required=bound("equals", 8)),
        finding(
            "nvlink.fabric-manager", value="active", title="The fabric manager runs", required=bound("equals", "active")
        ),
        finding("network.ports-active", value=8, title="Every planned port is active", required=bound("min", 8)),
    ]
    per_gpu = [
        ("pcie.gpu-link-generation", "The PCIe link trains at full generation", 5, "", bound("min", 5)),
        ("pcie.gpu-link-width", "The PCIe link has its full width", 16, "", bound("equals", 16)),
        ("gpu.memory", "The GPU has its full memory", 81559, "MiB", bound("min", 81000, "MiB")),
        ("health.ecc-mode", "ECC is on", "enabled", "", bound("equals", "enabled")),
        ("health.ecc-uncorrected/sram", "No uncorrectable ECC errors", 0, "", bound("equals", 0)),
        ("health.ecc-uncorrected/dram", "No uncorrectable ECC errors", 0, "", bound("equals", 0)),
        ("health.row-remap-pending", "No row remap waits for a reset", False, "", bound("equals", False)),
        ("power.limit", "The enforced power limit is the product's", 700, "W", bound("min", 700, "W")),
        ("nvlink.links-active", "Every NVLink is active", 18, "", bound("one_of", [18])),
    ]
    for key, title, value, unit, required in per_gpu:
        made += [finding(key, f"gpu{i}", value=value, unit=unit, title=title, required=required) for i in range(8)]
    return made


def results(findings=None, **other):
    findings = healthy_findings() if findings is None else findings
    counted = [f for f in findings if f["verdict"] != "not-applicable"]
    unjudged = other.get("unjudged", [])
    made = {
        "schema_version": 1,
        "acceptance": "accepted",
        "exit_status": 0,
        "host": "gpu-node-a12",
        "node_type": "sxm",
        "tier": "quick",
        "started": "2026-12-01T09:15:00Z",
        "finished": "2026-12-01T09:15:12Z",
        "suite_version": "2026.12",
        "baseline": {"name": "sxm", "version": "2026.12", "sha256": SHA256, "status": "released"},
        "overrides": {},
        "coverage": {
            "planned": len(counted) + len(unjudged),
            "judged": sum(f["verdict"] != "unverified" for f in counted),
        },
        "subset": False,
        "report_only": False,
        "busy": None,
        "node": {
            "product": "NVIDIA H100 80GB HBM3",
            "driver": "550.90.07",
            "cuda": "12.4",
            "os": "Ubuntu 22.04.4 LTS",
            "memory": "1024 GiB",
            "gpus": copy.deepcopy(GPUS),
        },
        "evidence": {"kind": "live", "path": None},
        "unjudged": [],
        "findings": findings,
    }
    return made | other


def with_findings(*changed):
    """The healthy findings with some replaced by (key, subject)."""
    by_place = {(f["key"], f["subject"]): f for f in healthy_findings()}
    by_place |= {(f["key"], f["subject"]): f for f in changed}
    return list(by_place.values())


def rejected(**other):
    """Two parts fail, a driver probe leaves others open, one advisory, one waiver."""
    remap = finding(
        "health.row-remap-pending",
        "gpu6",
        "fail",
        value=True,
        required=bound("equals", False),
        title="No row remap waits for a reset",
        source="nvidia-memory-error-management",
        source_title="NVIDIA GPU Memory Error Management",
        source_url="https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/",
        message="A row remap is pending since the last boot.",
        why="Until the reset the GPU runs jobs on rows that are known to be bad.",
        remedy="Reset the GPU, then run the gate again.",
    )
    width = [
        finding(
            "pcie.gpu-link-width",
            f"gpu{i}",
            "fail",
            value=8,
            required=bound("equals", 16),
            title="The PCIe link has its full width",
            message=f"The link of gpu{i} trained at x8; the port above it can do x16.",
            why="A narrow link halves host bandwidth and raises no error anywhere else.",
            remedy="Reseat the GPU tray; look for bent pins in the connector.",
        )
        for i in (2, 3)
    ]
    blocked = [
        finding(
            "nvlink.links-active",
            f"gpu{i}",
            "unverified",
            required=bound("one_of", [18]),
            message="nvidia-smi nvlink -s overran its deadline of 10 s",
            blocked_by=["driver.responds@node"],
        )
        for i in range(8)
    ]
    odd = finding(
        "network.ports-active",
        "node",
        "unverified",
        message="ibstat: command not found",
        measure="if-possible",
        title="Every planned port is active",
        required=bound("min", 8),
        remedy="Install infiniband-diags.",
    )
    memory = finding(
        "memory.installed",
        "node",
        "advisory",
        value=768,
        unit="GiB",
        required=bound("min", 512, "GiB"),
        recommended=bound("min", 1, "TiB"),
        message="Below the recommended memory of a whole node.",
    )
    waived = finding("power.limit", "gpu0", "waived", value=650, unit="W", required=bound("min", 700, "W"))
    bmc = finding("platform.bmc", "node", "not-applicable", message="This node type has no BMC of its own.")
    found = with_findings(remap, *width, *blocked, odd, memory, waived, bmc)
    return results(found, **({"acceptance": "rejected", "exit_status": 1} | other))


def large(findings_wanted=200):
    """About as many findings as an eight-GPU node has at acceptance tier, of all verdicts."""
    made = rejected()
    verdicts = ("pass", "pass", "pass", "advisory", "unverified", "fail")
    for position in range(findings_wanted - len(made["findings"])):
        verdict = verdicts[position % len(verdicts)]
        made["findings"].append(finding(f"frameworks.extra-{position // 8}", f"gpu{position % 8}", verdict))
    return made
