"""Paths on which a node was once accepted that should not have been; each stays closed."""

import json
import re

import pytest

from nodeready.baseline import BaselineError, load
from nodeready.gate import Gate, Request, UsageError

JOURNAL = "journalctl_-k_-b_--no-pager_-o_short-iso"
XML, TEXT, LSPCI, NVLINK = "nvidia-smi_-q_-x", "nvidia-smi_-q", "lspci_-nnvvv", "nvidia-smi_nvlink_-s"
XID = b"[ 1843.3] NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n"


def torch_of(files, **changes):
    document = json.loads(files["torch"])
    devices = changes.pop("devices", None)
    document.update(changes)
    if devices is not None:
        document["devices"] = devices(document["devices"])
    return json.dumps(document).encode()


def matmul_of(files, change):
    document = json.loads(files["matmul"])
    change(document)
    return json.dumps(document).encode()


def each(**changes):
    return lambda document: [entry.update(changes) for entry in document["results"]]


def first(**changes):
    return lambda document: document["results"][0].update(changes)


def renamed(data, old, new):
    return re.sub(old, new, data)


def wrapped(log):
    return b"".join(log.splitlines(True)[40:])


ATTACKS = {
    "xid-in-the-journal-only": lambda f: {JOURNAL: f["dmesg"] + XID},
    "xid-in-a-wrapped-ring-buffer": lambda f: {"dmesg": wrapped(f["dmesg"]) + XID, JOURNAL: f["dmesg"]},
    "xid-in-a-cut-log": lambda f: {"dmesg": f["dmesg"] + XID + b"[ 1900.0", JOURNAL: f["dmesg"]},
    "xid-before-dmesg-failed": lambda f: {"dmesg": f["dmesg"] + XID, "dmesg.rc": b"1", JOURNAL: f["dmesg"]},
    "two-messages-on-a-line": lambda f: {
        "dmesg": f["dmesg"] + b"[ 9.0] NVRM: Xid (PCI:0000:9b:00): 31, x NVRM: Xid (PCI:0000:9b:00): 79, y\n"
    },
    "xid-after-an-apostrophe": lambda f: {"dmesg": f["dmesg"] + b"[ 9.0] systemd[1]: Can't open PID file " + XID},
    "xid-with-odd-blanks": lambda f: {"dmesg": f["dmesg"] + b"[ 9.0] NVRM:  Xid (PCI:0000:9b:00): 79 \n"},
    "xid-that-cannot-be-read": lambda f: {"dmesg": f["dmesg"] + b"[ 9.0] NVRM: Xid (PCI:0000:9b:00): seventy-nine\n"},
    "log-of-one-line": lambda f: {"dmesg": f["dmesg"].splitlines(True)[0]},
    "cuda-broken-on-every-gpu": lambda f: {
        "torch": torch_of(
            f, error="no GPU", devices=lambda ds: [{**d, "error": "CUDA error 802", "capability": None} for d in ds]
        )
    },
    "cuda-sees-no-device": lambda f: {"torch": torch_of(f, devices=lambda _: [])},
    "cuda-broken-on-one": lambda f: {
        "torch": torch_of(
            f, devices=lambda ds: [{**ds[0], "error": "uncorrectable ECC error", "capability": None}, *ds[1:]]
        )
    },
    "cuda-masked": lambda f: {"torch": torch_of(f, visible="0,1")},
    "bus-of-another-node": lambda f: {
        LSPCI: renamed(
            f[LSPCI],
            rb"(?m)^(19|3b|4c|5d|9b|bb|cb|db)(:00\.0 3D)",
            lambda m: b"e%d" % (b"19 3b 4c 5d 9b bb cb db".split().index(m[1])) + m[2],
        )
    },
    "one-gpu-elsewhere-on-the-bus": lambda f: {LSPCI: renamed(f[LSPCI], rb"(?m)^db(:00\.0 3D)", rb"e7\1")},
    "matmul-of-another-node": lambda f: {"matmul": matmul_of(f, each(uuid="GPU-00000000-0000-0000-0000-000000000000"))},
    "power-maximum-that-scales-the-floor": lambda f: {
        XML: renamed(f[XML], rb"<max_power_limit>7[^<]*<", b"<max_power_limit>1400.00 W<"),
        TEXT: None,
        "matmul": matmul_of(f, lambda d: [e.update(tflops=e["tflops"] / 2, p5=e["p5"] / 2) for e in d["results"]]),
    },
    "matmul-without-iterations": lambda f: {"matmul": matmul_of(f, first(iterations=0))},
    "matmul-not-steady": lambda f: {"matmul": matmul_of(f, first(cv=9))},
    "matmul-on-zeros": lambda f: {"matmul": matmul_of(f, lambda d: d.update(inputs="zeros"))},
    "matmul-with-an-error": lambda f: {"matmul": matmul_of(f, lambda d: d.update(error="out of time"))},
    "wrong-product-of-an-unnamed-gpu": lambda f: {
        "matmul": matmul_of(
            f,
            lambda d: d["results"].append(
                {**d["results"][0], "bus_id": None, "uuid": None, "device": "cuda:9", "verified": False}
            ),
        )
    },
    "slowed-down-under-load": lambda f: {"matmul": matmul_of(f, first(events={"samples": 50, "reasons": {"0x8": 50}}))},
    "duplicate-json-keys": lambda f: {
        "matmul": f["matmul"].replace(b'"verified": true', b'"verified": false, "verified": true', 1)
    },
    "matmul-exit-3": lambda f: {"matmul.rc": b"3"},
    "torch-exit-3": lambda f: {"torch.rc": b"3"},
    "exit-status-under-the-longer-name": lambda f: {"matmul": None, "matmul.json": f["matmul"], "matmul.json.rc": b"1"},
    "text-form-says-lost": lambda f: {f"{TEXT}.rc": b"15"},
    "active-with-an-error-status": lambda f: {"systemctl_is-active_nvidia-fabricmanager.rc": b"3"},
    "two-gpus-with-one-uuid": lambda f: {XML: renamed(f[XML], *uuids(f[XML])), TEXT: None},
    "sram-threshold-exceeded": lambda f: {
        XML: f[XML].replace(b"<sram_threshold_exceeded>No", b"<sram_threshold_exceeded>Yes", 1),
        TEXT: None,
    },
    "ports-in-error-recovery": lambda f: {
        "ibstat": f["ibstat"].replace(b"LinkUp", b"LinkErrorRecovery"),
        "ip_-j_link": b"[]\n",
    },
}


def uuids(document):
    found = re.findall(rb"<uuid>(GPU-[^<]*)", document)
    return re.escape(found[7]), found[6]


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_is_not_accepted(judge, healthy_files, folder_of, attack):
    files = {**healthy_files, **ATTACKS[attack](healthy_files)}
    changed = {name: data for name, data in files.items() if data is not None}
    assert changed != healthy_files
    results, _ = judge(folder_of(changed))
    assert results["acceptance"] in ("rejected", "incomplete"), [
        f for f in results["findings"] if f["verdict"] != "pass"
    ]


def test_a_clean_journal_beside_a_clean_log_is_accepted(judge, healthy_files, folder_of):
    results, _ = judge(folder_of({**healthy_files, JOURNAL: healthy_files["dmesg"]}))
    assert results["acceptance"] == "accepted"


@pytest.mark.parametrize(
    "text",
    [
        '["health.xid"]\nabsent = "noisy"',
        '["pcie.gpu-present"]\nrequired = { min = 0 }',
        '["compute.matmul-fp16"]\nplausible = "5000 TFLOPS"',
        '["memory.installed"]\nrecommended = { min = "1 GiB" }',
        '["pcie.gpu-link-generation"]\nrequired = { min = 3 }\nloosened_because = " "',
        '["pcie.gpu-link-generation"]\nrequired = { min = 3 }\nloosened_because = true',
    ],
)
def test_a_site_baseline_does_not_loosen_in_silence(tmp_path, text):
    path = tmp_path / "site.toml"
    path.write_text(f'extends = "sxm@2026.12"\n{text}\n')
    with pytest.raises(BaselineError, match=r"site\.toml"):
        load("sxm", str(path))


def test_a_file_of_that_name_is_not_that_node_type(tmp_path):
    path = tmp_path / "sxm.toml"
    path.write_text('extends = "hopper@2026.12"\n')
    with pytest.raises(BaselineError):
        load("sxm", str(path))


@pytest.mark.parametrize("setting", ["pcie.gpu-present=4", "health.xid=inf", "gpu.count=-1"])
def test_settings_without_side_effects(setting):
    with pytest.raises(BaselineError):
        load("sxm", settings=[setting])


def test_a_host_name_in_a_capture_stays_inside_the_report_folder(judge, healthy, tmp_path):
    from nodeready.evidence.capture import contents, files_of, pack
    from nodeready.evidence.folder import read_evidence
    from nodeready.node.catalogue import evidence_names

    evidence = read_evidence(healthy, evidence_names())
    files = {"capture.json": contents("../../pwned", "2026-11-30T00:00:00Z", evidence.recordings.values())}
    for recording in evidence.recordings.values():
        files |= files_of(recording)
    pack(files, tmp_path / "c.tar.gz")
    gate = Gate.open(
        Request(node_type="sxm", evidence=str(tmp_path / "c.tar.gz"), report_dir=str(tmp_path / "reports"))
    )
    assert gate.make_folder().resolve().is_relative_to((tmp_path / "reports").resolve())


def test_auto_does_not_shrink_a_board_whose_nvswitches_are_there(folder_of):
    """By sysfs alone: one GPU of eight is left, the NVSwitches tell what the node was bought as."""
    lines = ["0000:19:00.0/vendor:0x10de", "0000:19:00.0/device:0x2330", "0000:19:00.0/class:0x030200"]
    for bus in ("83", "84", "85", "86"):
        lines += [f"0000:{bus}:00.0/vendor:0x10de", f"0000:{bus}:00.0/device:0x22a3", f"0000:{bus}:00.0/class:0x068000"]
    folder = folder_of({"sys/bus/pci/links": "\n".join(lines) + "\n"})
    assert Gate.open(Request(node_type="auto", evidence=str(folder))).request.node_type == "sxm"


def test_latest_that_is_a_folder_is_said_before_anything_is_judged(healthy, tmp_path):
    (tmp_path / "reports" / "node" / "latest").mkdir(parents=True)
    gate = Gate.open(Request(node_type="sxm", evidence=str(healthy), report_dir=str(tmp_path / "reports")))
    with pytest.raises(UsageError, match="latest"):
        gate.make_folder()
