"""One row for each real output: the verdicts that its own content warrants, where a check for it exists.

What no check reads yet is listed in OPEN with the reason; a file of these folders that is in neither table fails.
"""

import pytest

XML, TEXT = "nvidia-smi_-q_-x", "nvidia-smi_-q"
NDR = ("network.ports-active=8", "network.port-rate=400 Gb/s")
SXM1, NVL = ("gpu.count=1",), ("gpu.count=2",)
GPUS = [f"gpu{i}" for i in range(8)]
HEALTH = "pcie.gpu-link-generation pcie.gpu-link-width gpu.product gpu.memory gpu.mig health.ecc-mode health.recovery-action health.clock-events power.limit thermal.margin"


def every(verdict, keys, subjects=("gpu0",)):
    return {(key, subject): verdict for key in keys.split() for subject in subjects}


# file -> (node type, settings, evidence name, exit status, verdicts)
ROWS = {
    "nvidia-smi-q-xml/01-h100-hw.txt": ("sxm", (), XML, 0, every("pass", HEALTH, GPUS)),
    "nvidia-smi-q-xml/02-b200-hw.txt": ("sxm", (), XML, 0, every("fail", "gpu.product", GPUS)),
    "nvidia-smi-q-xml/04-gb300-hw.txt": ("sxm", (), XML, 0, every("fail", "gpu.product", GPUS[:4])),
    "nvidia-smi-q-xml/06-l40s-hw.txt": ("sxm", SXM1, XML, 0, every("fail", "gpu.product")),
    "nvidia-smi-q-xml/07-MOCK-gb200-ecc-injected.txt": (
        "sxm",
        NVL,
        XML,
        0,
        every("fail", "gpu.product health.ecc-uncorrected/dram"),
    ),
    "nvidia-smi-q-xml/09-MOCK-gb200-lost.txt": ("sxm", NVL, XML, 0, every("fail", "gpu.product")),
    "nvidia-smi-q-xml/10-MOCK-gb200-throttle-counters.txt": ("sxm", NVL, XML, 0, every("fail", "gpu.product")),
    "nvidia-smi-q-xml/11-a100-sxm4-v12.txt": (
        "sxm-4",
        (),
        XML,
        0,
        every("fail", "gpu.product gpu.mig") | every("unverified", "gpu.count", ["node"]),
    ),
    "nvidia-smi-q/01-h100-590-idle.txt": ("sxm-1", (), TEXT, 0, every("pass", HEALTH + " nvlink.fabric-state")),
    "nvidia-smi-q/03-h100-mig-590-idle.txt": (
        "sxm-1",
        (),
        TEXT,
        0,
        every("fail", "gpu.mig") | every("pass", "gpu.product"),
    ),
    "nvidia-smi-q/05-h200-590-idle.txt": ("h200-sxm", SXM1, TEXT, 0, every("pass", HEALTH + " nvlink.fabric-state")),
    "nvidia-smi-q/08-h200-mig-590-load.txt": (
        "h200-sxm",
        SXM1,
        TEXT,
        0,
        every("fail", "gpu.mig") | every("pass", "gpu.product"),
    ),
    "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("fail", "health.clock-events", GPUS) | every("pass", "gpu.product power.limit", GPUS),
    ),
    "nvidia-smi-q/11-h100-535-truncated-unknown-keys.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("unverified", "gpu.count", ["node"]) | every("unverified", "health.ecc-mode thermal.margin"),
    ),
    "nvidia-smi-q/12-a10-535-remap-uncorrectable-pending.txt": (
        "sxm",
        SXM1,
        TEXT,
        0,
        every("fail", "gpu.product health.row-remap-pending"),
    ),
    "nvidia-smi-q/13-rtx4090x8-535-addressing-unknown-error.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("fail", "gpu.product health.ecc-mode", GPUS),
    ),
    "nvidia-smi-q/14-titanv-560.txt": ("sxm", SXM1, TEXT, 0, every("fail", "gpu.product")),
    "nvidia-smi-q/16-h100nvlx2.txt": (
        "nvl",
        (),
        TEXT,
        0,
        every("advisory", "power.limit", GPUS[:2])
        | every("not-applicable", "nvlink.fabric-state", GPUS[:2])
        | every("pass", "gpu.product gpu.memory pcie.gpu-link-generation thermal.margin", GPUS[:2]),
    ),
    "nvidia-smi-q/18-gh200.txt": (
        "sxm",
        SXM1,
        TEXT,
        0,
        every("fail", "gpu.product") | every("advisory", "health.ecc-uncorrected/dram-lifetime"),
    ),
    "nvidia-smi-q/20-a100x8-460-azure.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("fail", "driver.version cuda.driver-version", ["node"]) | every("fail", "gpu.product", GPUS),
    ),
    "nvidia-smi-q/21-l40sx8-gpu_info.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("fail", "gpu.product", GPUS) | every("unverified", "gpu.count", ["node"]),
    ),
    "nvidia-smi-q-excerpt/01-stas00-compute_accelerator_nvidia_debug-2.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("fail", "health.row-remap-pending") | every("fail", "driver.version", ["node"]),
    ),
    "nvidia-smi-q-excerpt/03-stas00-compute_accelerator_nvidia_debug-4.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("unverified", "health.ecc-uncorrected/sram"),
    ),
    "nvidia-smi-q-excerpt/04-stas00-compute_accelerator_nvidia_debug-5.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("unverified", "health.ecc-uncorrected/sram"),
    ),
    "nvidia-smi-q-excerpt/07-remapped-uncorrectable4-pending.txt": (
        "sxm",
        (),
        TEXT,
        0,
        every("unverified", "health.row-remap-pending"),
    ),
    "nvidia-smi-error/01-unable-device-handle-unknown-error.txt": (
        "sxm",
        (),
        TEXT,
        255,
        every("fail", "driver.responds", ["node"]) | every("unverified", "gpu.memory"),
    ),
    "nvlink-e/01-stas00-compute_accelerator_nvidia_debug-7.txt": (
        "sxm",
        (),
        "nvidia-smi_nvlink_-e",
        0,
        every("unverified", "nvlink.errors"),
    ),
    "dmesg/06-kmsg-peermem-invalid-context.txt": (
        "sxm",
        (),
        "dmesg",
        0,
        every("advisory", "network.log/warning", ["node"]),
    ),
    "dmesg/07-dmesg-peermem-iso.txt": ("sxm", (), "dmesg", 0, every("advisory", "network.log/warning", ["node"])),
    "nvlink-s/01-h100-590-cap.txt": (
        "sxm-1",
        (),
        "nvidia-smi_nvlink_-s",
        0,
        every("pass", "nvlink.links-active nvlink.links-active/slow"),
    ),
    "nvlink-s/02-h100-mig-590-cap.txt": (
        "sxm-1",
        (),
        "nvidia-smi_nvlink_-s",
        0,
        every("unverified", "nvlink.links-active"),
    ),
    "nvlink-s/04-h200-mig-590-cap.txt": (
        "h200-sxm",
        SXM1,
        "nvidia-smi_nvlink_-s",
        0,
        every("unverified", "nvlink.links-active"),
    ),
    "nvlink-s/05-a100x8-nvlink-status.txt": (
        "sxm",
        (),
        "nvidia-smi_nvlink_-s",
        0,
        every("fail", "nvlink.links-active nvlink.links-active/slow", GPUS[:7]),
    ),
    "nvlink-s/07-stas00-compute_accelerator_nvidia_debug-8.txt": (
        "sxm",
        (),
        "nvidia-smi_nvlink_-s",
        0,
        every("unverified", "nvlink.links-active"),
    ),
    "nvlink-s/08-azure-bad_nvlink_status.txt": (
        "sxm",
        (),
        "nvidia-smi_nvlink_-s",
        0,
        every("fail", "nvlink.links-active", ["gpu6"]),
    ),
    "nvlink-s/10-azure-nvlink-bad.txt": (
        "sxm",
        (),
        "nvidia-smi_nvlink_-s",
        0,
        every("fail", "nvlink.links-active", GPUS[:2]),
    ),
    "lspci/01-hgx-h100x8-xe9680-lspci-vvv.txt": (
        "sxm",
        (),
        "lspci_-vvv",
        0,
        every("pass", "pcie.gpu-link-generation pcie.gpu-link-width pcie.gpu-bridges pcie.numa-node gpu.product", GPUS)
        | every("pass", "pcie.gpu-present pcie.access-control topology.adapters", ["node"])
        | every("pass", "pcie.adapter-links pcie.drive-links", ["node"]),
    ),
    "lspci/02-gb200-lspci.txt": ("sxm", SXM1, "lspci_-nn", 0, every("fail", "gpu.product")),
    "lspci/04-a10-lspci-nn.txt": ("sxm", SXM1, "lspci_-nn", 0, every("fail", "gpu.product")),
    "lspci/05-a100-relaxed-ordering-grep.txt": ("sxm", SXM1, "lspci_-vvv", 0, every("fail", "gpu.product")),
    "lspci/06-rtx4090-gen1-idle-two-lines.txt": (
        "sxm",
        SXM1,
        "lspci_-vvv",
        0,
        every("unverified", "pcie.gpu-link-generation"),
    ),
    "ibstat/01-h100-mt4129-all-active-0.txt": (
        "sxm",
        NDR,
        "ibstat",
        0,
        every("pass", "network.ports-active", ["node"]),
    ),
    "ibstat/03-h100-some-down-0.txt": ("sxm", NDR, "ibstat", 0, every("pass", "network.ports-active", ["node"])),
    "ibstat/05-h100-some-down-polling.txt": ("sxm", NDR, "ibstat", 0, every("fail", "network.ports-active", ["node"])),
    "ibstat/06-a100-all-active.txt": ("sxm", NDR, "ibstat", 0, every("fail", "network.ports-active", ["node"])),
    "ibstat/08-a100-ibstatus-all-active.txt": (
        "sxm",
        NDR,
        "ibstat",
        0,
        every("fail", "network.ports-active", ["node"]),
    ),
    "ibstat/09-stas00-network_debug_README-1.txt": (
        "sxm",
        NDR,
        "ibstat",
        0,
        every("unverified", "network.ports-active", ["node"]),
    ),
    "dmesg/01-xid119-gsp-timeout-h100.txt": ("sxm", (), "dmesg", 0, every("fail", "health.xid", ["node"])),
    "dmesg/03-iso-log-1.txt": ("sxm", (), "dmesg", 0, every("unverified", "health.xid", ["node"])),
    "dmesg/05-kmsg-1.txt": ("sxm", (), "dmesg", 0, every("unverified", "health.xid", ["node"])),
    "dmesg/11-stas00-compute_accelerator_nvidia_debug-1.txt": (
        "sxm",
        (),
        "dmesg",
        0,
        every("fail", "health.xid", ["node"]),
    ),
    "dmesg/14-azure-journald.txt": ("sxm", (), "dmesg", 0, every("unverified", "health.xid", ["node"])),
    "dmesg/15-nvme-io-errors.txt": ("sxm", (), "dmesg", 0, every("fail", "storage.errors", ["node"])),
    "dmesg/17-xid79-fallen-off-535.txt": ("sxm", (), "dmesg", 0, every("fail", "health.xid", ["node"])),
    "dmesg/19-sxid-12028-iso.txt": (
        "sxm",
        (),
        "dmesg",
        0,
        every("advisory", "health.sxid/warning", ["node"]) | every("pass", "health.sxid", ["node"]),
    ),
    "dmesg/21-nv-err-reset-required.txt": ("sxm", (), "dmesg", 0, every("fail", "health.xid", ["node"])),
    "dmesg/23-xid144-149-subcodes.txt": (
        "sxm",
        (),
        "dmesg",
        0,
        every("fail", "health.xid", ["node"]) | every("advisory", "health.xid/warning", ["node"]),
    ),
    **{
        f"topo-m/{name}": ("sxm", (), "nvidia-smi_topo_-m", 0, every("pass", "topology.adapters", ["node"]))
        for name in (
            "01-h100-590-cap.txt",
            "05-b200x8-gke-2.txt",
            "07-stas00-network_README-2.txt",
            "08-stas00-training_performance_README-2.txt",
            "09-gh200-nics.txt",
            "11-h100-class-x8-18nics-tabs.txt",
        )
    },
    "container-runtime/07-docker-info-nvidia-missing.txt": (
        "sxm",
        (),
        "docker_info",
        0,
        every("fail", "container.runtime/gpu-support", ["node"]),
    ),
}

_MIG = "one GPU in MIG mode: no adapter and no other GPU to be held against"
_TABLE = "the plain table is no evidence of this version: it can look clean while -q shows a fault"
_DECLARED = "a configuration file is declared only: no evidence name takes it, so container.runtime stays unverified"
OPEN = {
    "nvidia-smi-q-excerpt/05-azure-bad_nvsmi8_output.txt": "retired pages are not Hopper's: no check reads them",
    "nvidia-smi-L/": "a list alone: it is judged only against the host's driver document (tests/laws, container.gpu-visible)",
    "nvidia-smi-misc/": "dmon, retired pages and help texts: no evidence of this version",
    "nvidia-smi-table/": _TABLE,
    "nvidia-smi-version/": "no check reads nvidia-smi --version: the same versions are in -q",
    "topo-m/02-h100-mig-590-cap.txt": _MIG,
    "topo-m/04-h200-mig-590-cap.txt": _MIG,
    "dmesg/08-nccl-segfault.txt": "crashes of user software are not judged",
    "dmesg/10-pstore-panic.txt": "a panic before this boot is not judged yet",
    "dmesg/12-azure-1dev_6flap_syslog.txt": "lines of a service, not of the kernel: flaps are judged by the counters of the ports (network.flaps)",
    "fabricmanager/": "the fabric manager's own log is no evidence of this version; its service state and version are",
    "container-runtime/01-docker-daemon-json-nvidia-default.txt": _DECLARED,
    "container-runtime/03-docker-daemon-json-2.txt": _DECLARED,
    "container-runtime/04-containerd-config-toml-nvidia-cdi.txt": _DECLARED,
    "container-runtime/05-nvidia-container-runtime-toml-cdi.txt": _DECLARED,
    "cuda-error/": "an excerpt of a job's log: no evidence name takes it; the fabric state that explains it is judged",
}
FOLDERS = (
    "nvidia-smi",
    "nvlink",
    "lspci",
    "topo",
    "ibstat",
    "dmesg",
    "fabricmanager",
    "container-runtime",
    "cuda-error",
)


@pytest.mark.parametrize("row", ROWS)
def test_row(judge, captures, folder_of, row):
    node_type, settings, name, status, expected = ROWS[row]
    files = {name: (captures / row).read_bytes()}
    if status:
        files[f"{name}.rc"] = str(status)
    results, found = judge(folder_of(files), node_type=node_type, settings=settings, tier="quick")
    assert {at: found[at]["verdict"] for at in expected} == expected
    assert results["acceptance"] in ("rejected", "incomplete")


def test_every_file_has_a_row_or_a_reason(captures):
    files = {p.relative_to(captures).as_posix() for p in captures.rglob("*.txt") if p.parent.name.startswith(FOLDERS)}
    left = {f for f in files - set(ROWS) if f not in OPEN and f"{f.split('/')[0]}/" not in OPEN}
    assert left == set()
    assert set(ROWS) <= files
