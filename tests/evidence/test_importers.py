"""What others wrote is read as it is: each part becomes the recording that it is, and nothing is made up."""

import importlib.util
from pathlib import Path

import pytest

from nodeready.evidence.capture import EvidenceError
from nodeready.evidence.folder import read_evidence
from nodeready.evidence.importers import bug_report as importer
from nodeready.evidence.importers import document, query_gpu, sosreport
from nodeready.evidence.recording import Ended
from nodeready.node.catalogue import TREES, evidence_names

_spec = importlib.util.spec_from_file_location("importer_samples", Path(__file__).with_name("importer_samples.py"))
samples = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(samples)
command_section, file_section = samples.command_section, samples.file_section

JOURNAL = "journalctl_-k_-b_--no-pager_-o_short-iso"
XID = "Nov 30 20:41:03 gpu-node-7 kernel: NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n"
CSV = "nvidia-smi_--query-gpu"


def read(path):
    return read_evidence(path, evidence_names(), TREES)


def test_every_name_that_an_importer_gives_is_an_evidence_name():
    given = [
        *(name for _, name in importer._COMMANDS if name),
        *importer.FILES,
        *sosreport.FILES,
        *(name for name, _ in document._FORMS),
        query_gpu.NAME,
    ]
    assert set(given) <= set(evidence_names())


@pytest.fixture
def sections(captures):
    """The sections of a bug report of a healthy 8-GPU node, as far as there are real outputs of one."""
    return {
        "nvidia-smi_-q": (captures / "nvidia-smi-q/09-h100x8-535-powerbrake-all.txt").read_bytes(),
        "lspci_-nnvvv": (captures / "lspci/01-hgx-h100x8-xe9680-lspci-vvv.txt").read_bytes(),
        "dmidecode_-t_memory": (captures / "dmidecode/01-xe9680-system.txt").read_bytes(),
        "proc/meminfo": (captures / "meminfo/01-sichek-meminfo.txt").read_bytes(),
        "etc/os-release": (captures / "os-release/01-ubuntu-etc-os-release.txt").read_bytes(),
        "ibstat": (captures / "ibstat/01-h100-mt4129-all-active-0.txt").read_bytes(),
        "nvidia-smi_nvlink_-s": (captures / "nvlink-s/01-h100-590-cap.txt").read_bytes(),
        "dmesg": b"[    0.000000] Linux version 5.15.0-126-generic\n[    9.1] NVRM: loading NVIDIA UNIX\n",
        "proc/driver/nvidia/version": b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08\nGCC version:  11\n",
    }


@pytest.fixture
def parts(sections):
    scanned = f"\n  /var/log/kern.log:\n{XID}\n  journalctl -b -0:\n{XID}\n  journalctl -b -1:\n{XID}"
    return samples.bug_report(
        file_section("/etc/os-release", sections["etc/os-release"]),
        f"{samples.LINE}\n\n*** /var/log/nvidia-installer.log does not exist\n\n".encode(),
        command_section("/usr/bin/lspci -nnDvvvxxxx", sections["lspci_-nnvvv"]),
        command_section("/usr/sbin/dmidecode", sections["dmidecode_-t_memory"]),
        f"{samples.LINE}\n\nScanning kernel log files for NVIDIA kernel messages:\n{scanned}\n".encode(),
        f"{samples.LINE}\n\ndmesg:\n\n".encode() + sections["dmesg"],
        file_section("/proc/meminfo", sections["proc/meminfo"]),
        file_section("/proc/driver/nvidia/./version", sections["proc/driver/nvidia/version"]),
        command_section("/usr/bin/nvidia-debugdump -D", "UEsDBBQAAAAI\n" * 500),
        samples.several(
            ("/usr/bin/nvidia-smi --query", sections["nvidia-smi_-q"]),
            ("/usr/bin/nvidia-smi --query --unit", "==============NVSMI LOG==============\n\nHIC Info : N/A\n"),
            ("/usr/bin/nvidia-smi nvlink --remotelinkinfo", "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: ...\n"),
            ("/usr/bin/nvidia-smi nvlink --status", sections["nvidia-smi_nvlink_-s"]),
            ("/usr/bin/nvidia-smi conf-compute --query-conf-compute", "CC State : OFF\n"),
        ),
        samples.several(
            ("/usr/sbin/ibstat", sections["ibstat"]),
            ("Running InfiniBand commands for device: mlx5_0", "/usr/sbin/ibnetdiscover -C mlx5_0\n"),
        ),
    )


@pytest.mark.parametrize("packed", [True, False], ids=["log.gz", "log"])
def test_each_known_section_of_a_bug_report_is_that_recording(tmp_path, parts, sections, packed):
    path = tmp_path / f"nvidia-bug-report.log{'.gz' if packed else ''}"
    path.write_bytes(samples.compressed(parts) if packed else b"".join(parts))
    evidence = read(path)
    assert (evidence.kind, evidence.host) == ("bug-report", "gpu-node-7")
    assert set(evidence.recordings) == {*sections, JOURNAL}
    for name, output in sections.items():
        recording = evidence.recordings[name]
        assert recording.stdout.rstrip(b"\n") == output.strip(b"\n"), name
        assert (recording.ended, recording.rc, recording.truncated) == (Ended.EXITED, 0, False), name
    assert evidence.recordings[JOURNAL].stdout.decode() == XID  # this boot's alone


def test_a_bug_report_is_judged_by_what_it_holds(tmp_path, parts, judge):
    path = tmp_path / "nvidia-bug-report.log.gz"
    path.write_bytes(samples.compressed(parts))
    results, found = judge(path)
    assert results["acceptance"] == "rejected"
    assert found["health.clock-events", "gpu0"]["verdict"] == "fail"
    assert found["health.clock-events", "gpu0"]["evidence"] == ["nvidia-smi_-q"]
    assert found["health.xid", "node"]["verdict"] == "fail"
    assert found["pcie.gpu-link-width", "gpu0"]["verdict"] == "pass"
    assert found["driver.version", "node"]["verdict"] == "pass"
    assert found["container.runtime", "node"]["verdict"] == "unverified"


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.999])
def test_a_bug_report_that_was_cut_gives_what_was_before_the_cut(tmp_path, parts, sections, share):
    whole = samples.compressed(parts)
    path = tmp_path / "nvidia-bug-report.log.gz"
    path.write_bytes(whole[: int(len(whole) * share)])
    found = read(path).recordings
    assert found["etc/os-release"].ended is Ended.EXITED
    cut = [recording for recording in found.values() if recording.truncated]
    assert len(cut) <= 1
    for name, recording in found.items():
        if recording.truncated:
            assert "cut" in recording.reason
            assert sections[name].startswith(recording.stdout.rstrip(b"\n"))
        elif recording.ended is Ended.NOT_RUN:
            assert recording.reason == "it is not in the bug report, which is cut"
        elif name in sections:
            assert recording.stdout.rstrip(b"\n") == sections[name].strip(b"\n"), name


def test_a_cut_section_is_unverified_and_says_why(tmp_path, sections, judge):
    smi = command_section("/usr/bin/nvidia-smi --query", sections["nvidia-smi_-q"][:40_000])
    path = tmp_path / "nvidia-bug-report.log"
    path.write_bytes(
        b"".join(samples.bug_report(file_section("/proc/meminfo", "MemTotal: 5 kB\nMemFree: 1 kB\n"), smi, whole=False))
    )
    results, found = judge(path)
    assert found["gpu.memory", "gpu0"]["verdict"] == "unverified"
    assert "the bug report stops inside the section" in found["gpu.memory", "gpu0"]["message"]
    assert found["memory.installed", "node"]["verdict"] == "fail"
    assert results["acceptance"] == "rejected"


def test_a_damaged_member_ends_a_bug_report_where_it_stands(tmp_path, parts):
    whole = bytearray(samples.compressed(parts))
    whole[len(whole) // 2] ^= 0xFF
    (tmp_path / "b.log.gz").write_bytes(whole)
    found = read(tmp_path / "b.log.gz").recordings
    assert "etc/os-release" in found
    assert all("damaged" in r.reason for r in found.values() if r.truncated)


def test_a_section_that_is_there_twice_and_differs_is_damaged(tmp_path):
    parts = samples.bug_report(
        command_section("/usr/bin/nvidia-smi --query", "one\n"), command_section("/usr/bin/nvidia-smi --query", "two\n")
    )
    (tmp_path / "b.log").write_bytes(b"".join(parts))
    recording = read(tmp_path / "b.log").recordings["nvidia-smi_-q"]
    assert recording.ended is Ended.DAMAGED
    assert "twice" in recording.reason


def test_a_bug_report_without_a_known_section_is_a_clear_error(tmp_path):
    (tmp_path / "b.log").write_bytes(b"".join(samples.bug_report()))
    with pytest.raises(EvidenceError, match="without any section"):
        read(tmp_path / "b.log")


def test_a_bug_report_that_is_cut_before_its_first_section_says_that(tmp_path, parts):
    (tmp_path / "b.log.gz").write_bytes(samples.compressed(parts)[:200])
    with pytest.raises(EvidenceError, match="is cut"):
        read(tmp_path / "b.log.gz")


def test_a_bug_report_in_a_folder_fills_what_the_outputs_beside_it_do_not_hold(folder_of, parts, sections):
    report = {"nvidia-bug-report.log.gz": samples.compressed(parts), "notes.md": b"mine"}
    alone = read(folder_of(report, "alone"))
    assert (alone.kind, alone.host, alone.unread) == ("bug-report", "gpu-node-7", ("notes.md",))
    beside = read(folder_of({**report, "dmesg": b"now\n", "dcgmi_diag_-r_3_-j.json": b"{}\n"}, "beside"))
    assert beside.recordings["dmesg"].stdout == b"now\n"
    assert {"dcgmi_diag_-j", "nvidia-smi_-q"} <= set(beside.recordings)
    assert beside.unread == ("notes.md",)
    with pytest.raises(EvidenceError, match="keep one"):
        read(folder_of({**report, "nvidia-bug-report.log": b""}, "two"))


def test_an_archive_that_holds_a_bug_report_names_it(tmp_path):
    path = samples.tar_of(tmp_path / "e.tar.gz", {"nvidia-bug-report.log.gz": b"x", "notes": b""}, "node7/")
    with pytest.raises(EvidenceError, match=r"nvidia-bug-report\.log\.gz: hand in that file"):
        read(path)


@pytest.fixture
def sos(sections):
    at = "sos_commands"
    return {
        f"{at}/nvidia/nvidia-smi_-q": sections["nvidia-smi_-q"],
        f"{at}/nvidia/nvidia-smi_nvlink_-s": b"NVIDIA-SMI has failed\n",
        f"{at}/nvidia/nvidia-smi_--query-gpu_gpu_name_gpu_bus_id_memory.total_--format_csv": b"name, pci.bus_id\nx, y\n",
        f"{at}/pci/lspci_-nnvv": sections["lspci_-nnvvv"],
        f"{at}/pci/lspci_-tv": b"tree\n",
        f"{at}/kernel/dmesg": sections["dmesg"],
        f"{at}/kernel/dmesg_-T": b"[Mon Nov 30 20:41:03 2026] NVRM: Xid (PCI:0000:9b:00): 79\n",
        f"{at}/hardware/dmidecode": sections["dmidecode_-t_memory"],
        f"{at}/host/hostname": b"gpu-node-7.example\n",
        f"{at}/docker/docker_info": b"",
        "sos_strings/logs/journalctl_--no-pager_--boot.tailed": XID.encode(),
        "proc/meminfo": sections["proc/meminfo"],
        "usr/lib/os-release": sections["etc/os-release"],
        "var/log/huge": b"x" * 100_000,
        "sos_reports/manifest.json": samples.sos_manifest(
            **{
                f"{at}/nvidia/nvidia-smi_nvlink_-s": (9, False),
                f"{at}/docker/docker_info": (124, False),
                f"{at}/nvidia/nvidia-smi_-q": (0, False),
            }
        ),
    }


@pytest.mark.parametrize("form", ["folder", "tar.gz", "tar.xz", "tar.bz2", "tar"])
def test_a_sosreport_in_every_packing(tmp_path, folder_of, sos, sections, form):
    if form == "folder":
        path = folder_of(sos)
    else:
        packing = {"tar": "w"}.get(form, f"w:{form[4:]}")
        path = samples.tar_of(tmp_path / f"sosreport.{form}", sos, "sosreport-gpu-node-7-2026-11-30-abcdefg/", packing)
    evidence = read(path)
    assert (evidence.kind, evidence.host, evidence.unread) == ("sosreport", "gpu-node-7.example", ())
    found = evidence.recordings
    assert found["nvidia-smi_-q"].stdout == sections["nvidia-smi_-q"]
    assert found["lspci_-nnvvv"].stdout == sections["lspci_-nnvvv"]
    assert found["dmesg"].stdout == sections["dmesg"]  # the first of its places
    assert found["etc/os-release"].stdout == sections["etc/os-release"]  # a link in the report
    assert found["nvidia-smi_nvlink_-s"].rc == 9
    assert found["docker_info"].ended is Ended.TIMED_OUT
    assert (found[JOURNAL].truncated, found[JOURNAL].stdout.decode()) == (True, XID)
    assert CSV in found


def test_an_output_beside_a_sosreports_own_comes_first(folder_of, sos):
    found = read(folder_of({**sos, "dmesg": b"now\n", "torch": b"{}\n", "torch.rc": b"3\n"})).recordings
    assert found["dmesg"].stdout == b"now\n"
    assert found["torch"].rc == 3


def test_what_a_tailed_journal_still_holds_is_found(folder_of, sos, judge):
    _, found = judge(folder_of(sos))
    assert found["health.xid", "node"]["verdict"] == "fail"
    assert "79" in found["health.xid", "node"]["message"]


def test_a_sosreport_without_manifest_and_one_without_outputs(folder_of, sos):
    del sos["sos_reports/manifest.json"]
    assert read(folder_of(sos)).recordings["nvidia-smi_nvlink_-s"].rc == 0
    for spoilt in (b"", b"[]", b'{"components": 5}', b"[" * 100_000):
        sos["sos_reports/manifest.json"] = spoilt
        assert "nvidia-smi_-q" in read(folder_of(sos, "spoilt")).recordings
    with pytest.raises(EvidenceError, match="sosreport without any output"):
        read(folder_of({"sos_commands/date/date": b"now\n"}, "empty"))


def test_a_table_under_its_own_command_line_gets_its_header_back(folder_of):
    asked = "nvidia-smi_--query-gpu=pci.bus_id,memory.total,count_--format=csv,noheader,nounits"
    evidence = read(folder_of({f"{asked}.csv": "00000000:18:00.0, 81559, 1\n", f"{asked}.err": "a warning\n"}))
    recording = evidence.recordings[CSV]
    assert recording.stdout == b"pci.bus_id, memory.total, count\n00000000:18:00.0, 81559, 1\n"
    assert (recording.stderr, evidence.unread) == (b"a warning\n", ())


def test_the_table_of_capabilities_stays_what_it_is(folder_of):
    name = "nvidia-smi_--query-gpu=pci.bus_id,compute_cap_--format=csv"
    assert set(read(folder_of({name: "pci.bus_id, compute_cap\n0000:18:00.0, 9.0\n"})).recordings) == {name}


def test_two_tables_of_other_columns_are_an_error(folder_of):
    files = {f"{CSV}={fields}_--format=csv": "x\n" for fields in ("pci.bus_id,name", "pci.bus_id,serial")}
    with pytest.raises(EvidenceError, match="keep one"):
        read(folder_of(files))


@pytest.mark.parametrize("name", ["dcgmi_diag_-j", "dcgmi_diag_-r_3_-j.json", "dcgmi_diag_--run_2_--json"])
def test_a_diagnostic_under_its_own_command_line(folder_of, name):
    assert set(read(folder_of({name: "{}\n"})).recordings) == {"dcgmi_diag_-j"}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("query-gpu-csv/01-h100-590-idle.txt", CSV),
        ("query-gpu-csv/10-rtx2080ti-unknown-error-field.txt", CSV),
        ("nvidia-smi-table/11-h100sxmx8.txt", "nvidia-smi"),
        ("nvidia-smi-table/17-oci-h100-535-prefixed-multi-host.txt", "nvidia-smi"),
        ("dcgmi/01-diag-r1-json-pass-dcgm2-schema.txt", "dcgmi_diag_-j"),
        ("nvidia-smi-q/09-h100x8-535-powerbrake-all.txt", "nvidia-smi_-q"),
        ("nvidia-smi-q-xml/01-h100-hw.txt", "nvidia-smi_-q_-x"),
    ],
)
def test_a_single_document_is_known_by_its_first_lines(captures, file, name):
    evidence = read(captures / file)
    assert list(evidence.recordings) == [name]
    assert evidence.kind == "file"


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("dcgmi/07-diag-r3-table-deployment-pass-partial.txt", "run it again with -j"),
        ("dcgmi/04-nvlink-e-json-clean.txt", "is not read"),
        ("nvme/01-nvme-list-v2.3.txt", "no document of"),
        ("container-runtime/01-docker-daemon-json-nvidia-default.txt", "no document of"),
        ("storage/01-lsblk-1.txt", "no document of"),
    ],
)
def test_a_document_that_is_not_read_is_a_clear_error(captures, file, says):
    with pytest.raises(EvidenceError, match=says):
        read(captures / file)


def test_a_compressed_document_is_read_too(tmp_path, captures):
    import gzip

    output = (captures / "nvidia-smi-q-xml/01-h100-hw.txt").read_bytes()
    (tmp_path / "node.xml.gz").write_bytes(gzip.compress(output))
    assert read(tmp_path / "node.xml.gz").recordings["nvidia-smi_-q_-x"].stdout == output
