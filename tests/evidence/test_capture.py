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


@pytest.mark.parametrize("spoil", [b"", b"{", b"[]", b'{"schema": 9}', b'{"schema": 1, "host": "a"}'])
def test_a_spoilt_list_of_contents_is_a_clear_error(folder, spoil):
    (folder / "capture.json").write_bytes(spoil)
    with pytest.raises(EvidenceError, match="capture"):
        read_evidence(folder, KNOWN)


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


def test_an_exit_status_that_is_no_number_is_an_error(folder_of):
    with pytest.raises(EvidenceError, match="not an exit status"):
        read_evidence(folder_of({"dmesg": "a\n", "dmesg.rc": "bad"}), KNOWN)


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
