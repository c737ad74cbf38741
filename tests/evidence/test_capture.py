"""What is recorded comes back byte for byte; what was changed on the way is noticed."""

import io
import json
import tarfile

import pytest

from nodeready.evidence.capture import CaptureWriter, EvidenceError, pack_evidence
from nodeready.evidence.folder import read_evidence
from nodeready.evidence.recording import Ended, Recording

KNOWN = {"nvidia-smi_-q_-x", "nvidia-smi_-q", "dmesg", "proc/meminfo", "lspci_-nn"}
MADE = (
    Recording("nvidia-smi_-q_-x", ("nvidia-smi", "-q", "-x"), stdout=b"<xml/>\n", started=5.0, duration=0.25),
    Recording("dmesg", ("dmesg",), rc=1, stderr=b"dmesg: Operation not permitted\n"),
    Recording("proc/meminfo", ("cat", "/proc/meminfo"), stdout=b"MemTotal: 5 kB\n"),
    Recording("lspci_-nn", ("lspci", "-nn"), Ended.TIMED_OUT, -9, stdout=b"00:00", reason="gave no answer in 10 s"),
    Recording("nvidia-smi_-q", ("nvidia-smi", "-q"), Ended.NOT_INSTALLED, None, reason="command not found"),
)


@pytest.fixture
def folder(tmp_path):
    writer = CaptureWriter(tmp_path / "capture", "node17", "2026-11-30T12:00:00Z")
    for recording in MADE:
        writer.add(recording)
    return tmp_path / "capture"


def test_folder_and_archive_give_back_the_same_recordings(folder, tmp_path):
    from_folder = read_evidence(folder, KNOWN)
    assert from_folder.kind == "capture"
    assert from_folder.host == "node17"
    assert from_folder.recordings == {r.name: r for r in MADE}
    pack_evidence(from_folder, "", tmp_path / "c.tar.gz")
    from_archive = read_evidence(tmp_path / "c.tar.gz", KNOWN)
    assert from_archive.recordings == from_folder.recordings
    assert (from_archive.host, from_archive.taken) == ("node17", "2026-11-30T12:00:00Z")


def test_an_output_that_changed_since_is_damaged(folder):
    (folder / "proc/meminfo").write_bytes(b"MemTotal: 999999999 kB\n")
    recording = read_evidence(folder, KNOWN).recordings["proc/meminfo"]
    assert recording.ended is Ended.DAMAGED


def test_an_output_that_was_taken_out_is_not_recorded(folder):
    (folder / "proc/meminfo").unlink()
    assert "proc/meminfo" not in read_evidence(folder, KNOWN).recordings


@pytest.mark.parametrize("spoil", [b"", b"{", b"[]", b"[" * 100_000, b'{"schema": 9}', b'{"schema": 1, "host": "a"}'])
def test_a_spoilt_list_of_contents_is_a_clear_error(folder, spoil):
    (folder / "capture.json").write_bytes(spoil)
    with pytest.raises(EvidenceError, match="capture"):
        read_evidence(folder, KNOWN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("rc", value) for value in (True, False, 0.0, "0", [], 256, -65, 10**400)),
        *(("started", value) for value in (True, None, "5", -1, float("nan"), float("inf"), 10**400)),
        *(("duration", value) for value in (False, None, -0.5, float("nan"), float("-inf"))),
        *(("argv", value) for value in (None, "dmesg", {"a": 1}, ["dmesg", 1], ["\ud800"])),
        *(
            ("name", value)
            for value in (None, 5, "", ".", "/etc/dmesg", "../dmesg", "a/../dmesg", "a\0b", "capture.json")
        ),
        *(("ended", value) for value in (None, 0, "EXITED", "fine", ["exited"])),
        *(("truncated", value) for value in (None, 0, "false")),
        *(("reason", value) for value in (None, 0, "\udcff")),
        *((field, value) for field in ("bytes", "stderr_bytes") for value in (None, True, -1, 1.0, "1")),
        *(("sha256", value) for value in (None, 0, "", "g" * 64)),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_a_field_of_another_kind_is_an_error_that_names_recording_and_field(folder, field, value):
    document = json.loads((folder / "capture.json").read_text())
    row = next(r for r in document["recordings"] if r["name"] == "dmesg")
    row[field] = value
    (folder / "capture.json").write_text(json.dumps(document))
    with pytest.raises(EvidenceError, match=rf"recording .*: {field} is "):
        read_evidence(folder, KNOWN)
    del row[field]
    (folder / "capture.json").write_text(json.dumps(document))
    with pytest.raises(EvidenceError, match=f"recording .* has no {field}"):
        read_evidence(folder, KNOWN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("host", None),
        ("host", 5),
        ("host", "\ud800"),
        ("taken", 5),
        ("recordings", {}),
        ("schema", True),
        ("schema", 1.0),
    ],
)
def test_a_head_of_another_kind_is_an_error_that_names_the_field(folder, field, value):
    document = json.loads((folder / "capture.json").read_text())
    (folder / "capture.json").write_text(json.dumps({**document, field: value}))
    with pytest.raises(EvidenceError, match=rf"capture.* {field} "):
        read_evidence(folder, KNOWN)


def test_the_host_is_kept_as_it_is_written(folder):
    document = json.loads((folder / "capture.json").read_text())
    (folder / "capture.json").write_text(json.dumps({**document, "host": "../../etc"}))
    assert read_evidence(folder, KNOWN).host == "../../etc"


def test_a_recording_that_is_listed_twice_is_an_error(folder):
    document = json.loads((folder / "capture.json").read_text())
    document["recordings"].append(document["recordings"][0])
    (folder / "capture.json").write_text(json.dumps(document))
    with pytest.raises(EvidenceError, match="name is there twice"):
        read_evidence(folder, KNOWN)


def test_a_capture_without_a_known_name_is_an_error(folder):
    with pytest.raises(EvidenceError, match="without any known name"):
        read_evidence(folder, {"ibstat"})


def test_a_command_line_that_is_no_utf_8_can_be_read_again(tmp_path):
    made = Recording("dmesg", ("/opt/\udce9/dmesg",), stdout=b"a\n", reason="/opt/\udce9: odd")
    CaptureWriter(tmp_path / "c", "node17", "").add(made)
    found = read_evidence(tmp_path / "c", KNOWN).recordings["dmesg"]
    assert (found.argv, found.reason) == (("/opt/\\udce9/dmesg",), "/opt/\\udce9: odd")


def test_a_folder_of_raw_outputs(folder_of):
    folder = folder_of(
        {
            "nvidia-smi_-q_-x.xml": "<xml/>",
            "dmesg.txt": "",
            "dmesg.rc": "1\n",
            "dmesg.err": "no\n",
            "proc/meminfo": "MemTotal: 5 kB\n",
            "lspci_-nn.rc": "127",
            "notes.txt": "mine",
        }
    )
    evidence = read_evidence(folder, KNOWN)
    assert evidence.kind == "folder"
    assert evidence.recordings["nvidia-smi_-q_-x"].stdout == b"<xml/>"
    assert (evidence.recordings["dmesg"].rc, evidence.recordings["dmesg"].stderr) == (1, b"no\n")
    assert evidence.recordings["lspci_-nn"].rc == 127
    assert evidence.unread == ("notes.txt",)


def test_two_files_for_one_name_are_an_error(folder_of):
    with pytest.raises(EvidenceError, match="both the output dmesg"):
        read_evidence(folder_of({"dmesg": "a\n", "dmesg.txt": "b\n"}), KNOWN)


@pytest.mark.parametrize("spoil", ["bad", "", "256", "-65", "1.0", "9" * 5000])
def test_an_exit_status_that_is_none_is_an_error(folder_of, spoil):
    with pytest.raises(EvidenceError, match="not an exit status"):
        read_evidence(folder_of({"dmesg": "a\n", "dmesg.rc": spoil}), KNOWN)


@pytest.mark.parametrize("output", ["dmesg", "dmesg.txt", "dmesg.json"])
@pytest.mark.parametrize("ending", ["", ".txt", ".json"])
def test_an_exit_status_is_read_with_the_outputs_ending_too(folder_of, output, ending):
    evidence = read_evidence(
        folder_of({output: "a\n", f"dmesg{ending}.rc": "3\n", f"dmesg{ending}.err": "no\n"}), KNOWN
    )
    recording = evidence.recordings["dmesg"]
    assert (recording.rc, recording.stdout, recording.stderr) == (3, b"a\n", b"no\n")
    assert evidence.unread == ()


def test_an_exit_status_with_an_ending_and_no_output_is_a_command_that_failed(folder_of):
    recording = read_evidence(folder_of({"dmesg.json.rc": "1\n"}), KNOWN).recordings["dmesg"]
    assert (recording.rc, recording.stdout) == (1, b"")


@pytest.mark.parametrize("side", [".rc", ".err"])
def test_two_files_beside_one_output_are_an_error(folder_of, side):
    folder = folder_of({"dmesg.json": "{}\n", f"dmesg{side}": "0\n", f"dmesg.json{side}": "1\n"})
    with pytest.raises(EvidenceError, match="both beside the output dmesg"):
        read_evidence(folder, KNOWN)


def test_links_in_a_loop_are_not_read(folder_of):
    folder = folder_of({"dmesg": "a\n"})
    (folder / "nvidia-smi_-q").symlink_to("lspci_-nn")
    (folder / "lspci_-nn").symlink_to("nvidia-smi_-q")
    (folder / "proc").symlink_to("proc")
    assert set(read_evidence(folder, KNOWN).recordings) == {"dmesg"}


def test_a_file_that_cannot_be_read_is_a_clear_error():
    from pathlib import Path

    with pytest.raises(EvidenceError, match="cannot be read"):
        read_evidence(Path("/proc/self/mem"), KNOWN)


def test_links_that_lead_out_and_pipes_are_not_read(folder_of, tmp_path):
    import os

    folder = folder_of({"dmesg": "a\n"})
    (tmp_path / "secret").write_text("x")
    (folder / "nvidia-smi_-q").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "lspci_-nn")
    assert set(read_evidence(folder, KNOWN).recordings) == {"dmesg"}


@pytest.mark.parametrize("name", ["/etc/dmesg", "../dmesg", "a/../../dmesg"])
def test_an_archive_with_a_path_that_leads_out_is_refused(tmp_path, name):
    path = tmp_path / "e.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 2
        archive.addfile(entry, io.BytesIO(b"a\n"))
    with pytest.raises(EvidenceError, match="leads out"):
        read_evidence(path, KNOWN)


def test_an_archive_of_a_raw_folder(tmp_path, folder_of):
    folder = folder_of({"dmesg": "a\n", "proc/meminfo": "MemTotal: 5 kB\n"})
    with tarfile.open(tmp_path / "e.tgz", "w:gz") as archive:
        archive.add(folder, "node17")
    assert set(read_evidence(tmp_path / "e.tgz", KNOWN).recordings) == {"dmesg", "proc/meminfo"}


def archive_of(path, *files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def test_a_capture_deeper_inside_a_raw_folder_does_not_stand_for_it(folder, tmp_path, folder_of):
    inside = [(f"node17/old/{p.relative_to(folder)}", p.read_bytes()) for p in folder.rglob("*") if p.is_file()]
    archive = archive_of(tmp_path / "e.tgz", ("node17/dmesg", b"now\n"), *inside)
    raw = folder_of({"dmesg": b"now\n", **{name.removeprefix("node17/"): data for name, data in inside}})
    for evidence in (read_evidence(archive, KNOWN), read_evidence(raw, KNOWN)):
        assert evidence.kind == "folder"
        assert {name: r.stdout for name, r in evidence.recordings.items()} == {"dmesg": b"now\n"}
        assert "old/capture.json" in evidence.unread


def test_a_capture_too_deep_in_an_archive_is_named(folder, tmp_path):
    with tarfile.open(tmp_path / "e.tgz", "w:gz") as archive:
        archive.add(folder, "srv/reports/node17")
    with pytest.raises(EvidenceError, match="reports/node17/capture.json: hand in that folder alone"):
        read_evidence(tmp_path / "e.tgz", KNOWN)


@pytest.mark.parametrize("names", [("a", "b"), ("a", "a/b"), ("", "b"), ("a/b", "a/c")])
def test_an_archive_of_two_captures_is_an_error(folder, tmp_path, names):
    with tarfile.open(tmp_path / "e.tgz", "w:gz") as archive:
        for name in names:
            archive.add(folder, name or ".")
    with pytest.raises(EvidenceError, match="two captures"):
        read_evidence(tmp_path / "e.tgz", KNOWN)


def test_an_archive_that_holds_a_file_twice_is_an_error(tmp_path):
    path = archive_of(tmp_path / "e.tgz", ("dmesg", b"a\n"), ("./dmesg", b"b\n"))
    with pytest.raises(EvidenceError, match="dmesg twice"):
        read_evidence(path, KNOWN)


@pytest.mark.parametrize("name", ["", ".", "./"])
def test_an_archive_with_a_file_of_no_name(tmp_path, name):
    path = archive_of(tmp_path / "e.tgz", (name, b""), ("dmesg", b"a\n"))
    assert set(read_evidence(path, KNOWN).recordings) == {"dmesg"}


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_archive_is_a_clear_error(tmp_path, folder, share):
    pack_evidence(read_evidence(folder, KNOWN), "", tmp_path / "c.tar.gz")
    whole = (tmp_path / "c.tar.gz").read_bytes()
    (tmp_path / "c.tar.gz").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(EvidenceError):
        read_evidence(tmp_path / "c.tar.gz", KNOWN)


def test_paths_that_are_no_evidence(tmp_path):
    with pytest.raises(EvidenceError, match="there is no evidence"):
        read_evidence(tmp_path / "none", KNOWN)
    (tmp_path / "note.txt").write_text("hello\n")
    with pytest.raises(EvidenceError, match="no document"):
        read_evidence(tmp_path / "note.txt", KNOWN)
    (tmp_path / "empty").mkdir()
    with pytest.raises(EvidenceError, match="explain evidence"):
        read_evidence(tmp_path / "empty", KNOWN)


def test_single_documents_are_known_by_their_first_lines(captures):
    xml = read_evidence(captures / "nvidia-smi-q-xml/01-h100-hw.txt", KNOWN)
    text = read_evidence(captures / "nvidia-smi-q/01-h100-590-idle.txt", KNOWN)
    assert list(xml.recordings) == ["nvidia-smi_-q_-x"]
    assert list(text.recordings) == ["nvidia-smi_-q"]
    assert xml.kind == "file"


def test_nothing_half_written_is_left(folder):
    assert not [p for p in folder.rglob("*") if p.name.startswith(".")]
    assert json.loads((folder / "capture.json").read_text())["host"] == "node17"


def test_a_sysfs_tree_is_one_recording(folder_of):
    from nodeready.facts import pci_sysfs
    from nodeready.node.catalogue import TREES, evidence_names

    at = "sys/bus/pci/devices/0000:19:00.0"
    folder = folder_of(
        {
            f"{at}/vendor": "0x10de\n",
            f"{at}/device": "0x2330\n",
            f"{at}/class": "0x030200\n",
            f"{at}/current_link_speed": "32.0 GT/s PCIe\n",
            f"{at}/current_link_width": "16\n",
        }
    )
    evidence = read_evidence(folder, evidence_names(), TREES)
    link = pci_sysfs.parse(evidence.recordings[pci_sysfs.PCI_LINKS.name].stdout)["0000:19:00.0"]
    assert (link.generation.value, link.width.value, link.vendor_device.value) == (5, 16, "10de:2330")
    assert evidence.unread == ()
