"""Evidence that means harm, or was spoilt on its way: a clear error or an unknown, never a crash, never a flood."""

import gzip
import io
import itertools
import os
import random
import resource
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from nodeready.evidence import archive, bounds, names, unpack
from nodeready.evidence.capture import EvidenceError
from nodeready.evidence.folder import read_evidence
from nodeready.evidence.importers import bug_report
from nodeready.node.catalogue import TREES, evidence_names

MIB = 2**20
XML = "nvidia-smi_-q_-x"


def read(path):
    return read_evidence(path, evidence_names(), TREES)


def header(name, size=0, kind=tarfile.REGTYPE, **fields):
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry.tobuf(tarfile.GNU_FORMAT)


def tar(*parts, end=True):
    return b"".join(parts) + (bytes(2 * archive.BLOCK) if end else b"")


def padded(data):
    return data + bytes(-len(data) % archive.BLOCK)


@pytest.fixture
def handed(tmp_path):
    """A file of some bytes, handed in as evidence."""

    def hand(data, name="e.tar.gz"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return hand


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_an_archive_are_not_read(handed, kind):
    data = tar(header("dmesg", kind=kind, linkname="/etc/shadow"), header("lspci_-nn", 2), padded(b"x\n"))
    assert set(read(handed(data, "e.tar")).recordings) == {"lspci_-nn"}


def test_a_link_does_not_lead_a_later_entry_out(handed, tmp_path):
    data = tar(header("out", kind=tarfile.SYMTYPE, linkname=str(tmp_path)), header("out/dmesg", 2), padded(b"x\n"))
    assert read(handed(data, "e.tar")).recordings["dmesg"].stdout == b"x\n"
    assert not (tmp_path / "dmesg").exists()


@pytest.mark.parametrize("name", ["/dmesg", "../dmesg", "a/../../dmesg", "x/.."])
@pytest.mark.parametrize("how", ["header", "pax", "gnu"])
def test_a_path_that_leads_out_is_refused_however_it_is_written(handed, name, how):
    if how == "header":
        data = header(name, 2)
    elif how == "gnu":
        data = header("././@LongLink", len(name) + 1, tarfile.GNUTYPE_LONGNAME) + padded(name.encode() + b"\0")
        data += header("dmesg", 2)
    else:
        record = f" path={name}\n"
        length = next(n for n in range(1, 99) if len(str(n)) + len(record) == n)
        data = header("x", length, tarfile.XHDTYPE) + padded(f"{length}{record}".encode()) + header("dmesg", 2)
    with pytest.raises(EvidenceError, match="leads out"):
        read(handed(tar(data, padded(b"x\n")), "e.tar"))


@pytest.mark.parametrize("size", [2 * MIB, 2**33, 2**62])
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_header_of_a_huge_value_is_refused_unread(handed, kind, size):
    with pytest.raises(EvidenceError, match="which no name needs"):
        read(handed(tar(header("x", size, kind)), "e.tar"))


@pytest.mark.parametrize(
    "data", [b"zz path=x\n", b"999 path=x\n", b"3 =\n", b"0 a=b\n", b"-5 a=b\n", b"12 path=dmesg", b" \n", b"\0" * 20]
)
def test_a_damaged_pax_header_is_a_clear_error(handed, data):
    with pytest.raises(EvidenceError, match="damaged pax header"):
        read(handed(tar(header("x", len(data), tarfile.XHDTYPE), padded(data), header("dmesg")), "e.tar"))


@pytest.mark.parametrize("size", ["-1", "1e3", "9" * 40, "", "\u0663"])
def test_a_size_that_is_none(handed, size):
    record = f" size={size}\n"
    length = next(n for n in range(1, 99) if len(str(n)) + len(record.encode()) == n)
    told = f"{length}{record}".encode()
    with pytest.raises(EvidenceError, match="which is none"):
        read(handed(tar(header("x", len(told), tarfile.XHDTYPE), padded(told), header("dmesg")), "e.tar"))


def test_a_sparse_file_of_terabytes_is_not_filled_with_zeros(handed):
    sparse = bytearray(header("dmesg", 512, tarfile.GNUTYPE_SPARSE))
    sparse[386:410] = b"00000000000\0" + b"00000001000\0"
    sparse[483:495] = b"\x80" + (2**42).to_bytes(11, "big")
    sparse[148:156] = b" " * 8
    sparse[148:156] = f"{sum(sparse):06o}\0 ".encode()
    with pytest.raises(EvidenceError, match="without --sparse"):
        read(handed(tar(bytes(sparse), bytes(512)), "e.tar"))
    other = tar(bytes(sparse).replace(b"dmesg", b"other"), bytes(512), header("lspci_-nn", 2), padded(b"x\n"))
    with pytest.raises(EvidenceError):  # its check sum no longer fits
        read(handed(other, "e.tar"))


def test_an_archive_of_too_many_entries_is_refused_by_their_number(handed, monkeypatch):
    monkeypatch.setattr(bounds, "MAX_FILES", 500)
    entries = tar(*(header(f"log/{number}") for number in range(600)))
    with pytest.raises(EvidenceError, match="more than 500 files"):
        read(handed(gzip.compress(entries)))


def test_names_that_are_too_long_together_are_refused(handed, monkeypatch):
    monkeypatch.setattr(bounds, "MAX_NAMES", 10_000)
    with pytest.raises(EvidenceError, match="names of more than"):
        read(handed(gzip.compress(tar(*(header(f"{'n' * 90}{number}") for number in range(200))))))


def test_outputs_that_are_too_large_alone_or_together(handed, folder_of, monkeypatch):
    files = {"dmesg": b"x" * 600, "lspci_-nn": b"y" * 600}
    packed = tar(*(header(name, len(data)) + padded(data) for name, data in files.items()))
    monkeypatch.setattr(bounds, "MAX_TOTAL", 1000)
    for path in (folder_of(files), handed(packed, "e.tar")):
        with pytest.raises(EvidenceError, match="hand in those of one node"):
            read(path)
    monkeypatch.setattr(bounds, "MAX_FILE", 500)
    monkeypatch.setattr(archive, "MAX_FILE", 500)
    for path in (folder_of(files), handed(packed, "e.tar")):
        with pytest.raises(EvidenceError, match="which no output of a node has"):
            read(path)


def test_a_large_file_that_nobody_reads_does_no_harm(handed):
    large = tar(header("var/log/huge", 100 * MIB), bytes(100 * MIB), header("dmesg", 2), padded(b"x\n"))
    assert set(read(handed(large, "e.tar")).recordings) == {"dmesg"}


@pytest.mark.parametrize("name", ["bomb.gz", "bomb.tar.gz", "bomb.log.gz"])
def test_a_bomb_is_refused_before_it_goes_off(handed, name):
    zeros = gzip.compress(bytes(16 * MIB), 9)
    data = zeros * 8
    if name == "bomb.tar.gz":
        data = gzip.compress(header("dmesg", 128 * MIB)) + data
    if name == "bomb.log.gz":
        data = gzip.compress(b"nvidia-bug-report.sh Version: 1\n") + data
    with pytest.raises(EvidenceError, match="unpacks to more than|more than 32 MiB|UTF-16"):
        read(handed(data, name))


def test_a_bomb_of_xz_and_of_bzip2(handed):
    import bz2
    import lzma

    for pack in (lzma.compress, bz2.compress):
        with pytest.raises(EvidenceError, match="unpacks to more than"):
            for _ in unpack.unpacked(handed(pack(bytes(100 * MIB)), "bomb")):
                pass


def test_the_whole_of_what_is_unpacked_has_an_end(handed, monkeypatch):
    monkeypatch.setattr(unpack, "MAX_UNPACKED", 3 * MIB)
    noise = random.Random(1).randbytes(4 * MIB)
    with pytest.raises(EvidenceError, match="unpacks to more than"):
        list(unpack.unpacked(handed(gzip.compress(noise))))


# what each of these does to a process that may have 500 MB and no more
FLOODS = {
    "gzip": "gzip.compress(bytes(2**24)) * 40",
    "pax": "gzip.compress(header('x', 2**30, b'x')) + gzip.compress(bytes(2**24)) * 64",
    "longname": "gzip.compress(header('x', 2**30, b'L')) + gzip.compress(b'n' * 2**24) * 64",
    "entry": "gzip.compress(header('dmesg', 2**30)) + gzip.compress(b'n' * 2**24) * 64",
    "line": "gzip.compress(b'nvidia-bug-report.sh Version: 1\\n' + b'_' * 44 + b'\\n\\ndmesg:\\n\\n') + noise * 12",
}
PROGRAM = """
import gzip, random, resource, sys, tarfile
from pathlib import Path
def header(name, size, kind=b"0"):
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)
noise = gzip.compress(random.Random(1).randbytes(2**24).replace(b"\\n", b"x").replace(b"\\0", b"y"), 1)
Path(sys.argv[1]).write_bytes({flood})
from nodeready.evidence.capture import EvidenceError
from nodeready.evidence.folder import read_evidence
from nodeready.node.catalogue import TREES, evidence_names
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_evidence(Path(sys.argv[1]), evidence_names(), TREES)
except EvidenceError as error:
    print(error)
print("peak", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("flood", FLOODS)
def test_no_flood_takes_the_memory(tmp_path, flood):
    limit = 1200 * MIB  # address space, of which the interpreter and its libraries take a part

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    program = PROGRAM.replace("{flood}", FLOODS[flood])
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "f.gz")],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=bound,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout.split()[-1]) < 300, run.stdout


def test_a_line_without_end_is_not_held_in_memory():
    """A line of 300 MiB in a section that nobody reads, and in one that is read."""
    for title, least in ((b"nobody reads this", 0), (b"dmesg:", 1)):
        start = b"nvidia-bug-report.sh Version: 1\n" + bug_report.SEPARATOR + b"\n\n" + title + b"\n\n"
        flood = itertools.repeat(b"x" * MIB, 300)
        tracemalloc.start()
        report = bug_report.read(itertools.chain((start,), flood), evidence_names())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200 * MIB
        assert sum(recording.truncated for recording in report.recordings.values()) == least


def test_a_file_of_one_line_is_an_unknown(judge, folder_of):
    line = b"x" * (20 * MIB)
    results, found = judge(folder_of({"dmesg": line, XML: line, "nvidia-smi_-q": line, "lspci_-nnvvv": line}))
    assert found["health.xid", "node"]["verdict"] == "unverified"
    assert results["acceptance"] == "incomplete"


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
@pytest.mark.parametrize("packing", ["gz", "xz", "bz2", ""])
def test_a_cut_archive_is_an_error_that_says_so(handed, tmp_path, packing, share):
    path = tmp_path / f"capture.tar.{packing}"
    with tarfile.open(path, f"w:{packing}" if packing else "w") as packed:
        for name in ("dmesg", "lspci_-nn"):
            content = random.Random(name).randbytes(20_000)
            entry = tarfile.TarInfo(f"capture/{name}")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    whole = path.read_bytes()[:42_000]  # tar fills up with zeros
    with pytest.raises(EvidenceError, match="is cut|is damaged") as caught:
        read(handed(whole[: int(len(whole) * share)], f"cut.tar.{packing}"))
    assert "Copy it again" in str(caught.value)


def test_a_damaged_archive_is_an_error_though_all_its_files_were_read(handed):
    packed = bytearray(gzip.compress(tar(header("dmesg", 2), padded(b"x\n"))))
    packed[-8:-4] = struct.pack("<I", 12345)  # the check sum
    with pytest.raises(EvidenceError, match="damaged"):
        read(handed(bytes(packed)))


@pytest.mark.parametrize("name", ["node.tar.gz", "node.log.gz", "node.xml"])
def test_a_zip_is_named_whatever_it_is_called(tmp_path, name):
    with zipfile.ZipFile(tmp_path / name, "w") as packed:
        packed.writestr("dmesg", "x\n")
    with pytest.raises(EvidenceError, match="is a zip archive, whatever its name says: unpack it"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("start", "what"), [(b"\x28\xb5\x2f\xfd", "zstd"), (b"7z\xbc\xaf\x27\x1c", "7-zip"), (b"Rar!\x1a\x07\0", "rar")]
)
def test_other_packings_are_named(handed, start, what):
    with pytest.raises(EvidenceError, match=what):
        read(handed(start + bytes(600)))


@pytest.mark.parametrize("data", [b"", b"\n\n", gzip.compress(b""), tar()])
def test_nothing_at_all(handed, data):
    with pytest.raises(EvidenceError, match="is empty|no file of a known name"):
        read(handed(data))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_text_in_another_encoding_is_read_by_its_mark_or_refused(captures, handed, folder_of, encoding):
    text = (captures / "nvidia-smi-q/01-h100-590-idle.txt").read_text()
    data = text.encode(encoding)
    if encoding in ("utf-16-le", "utf-16-be"):
        for path in (handed(data, "smi.txt"), folder_of({"nvidia-smi_-q.txt": data})):
            with pytest.raises(EvidenceError, match="UTF-16 without its mark"):
                read(path)
        return
    for path in (handed(data, "smi.txt"), folder_of({"nvidia-smi_-q.txt": data})):
        assert read(path).recordings["nvidia-smi_-q"].stdout == text.encode()


def test_a_mark_that_lies_about_the_encoding_breaks_nothing(handed, judge):
    data = b"\xff\xfe" + b"NVSMI LOG\nDriver Version : 535.1\n\xd8\x00\xdc"
    with pytest.raises(EvidenceError, match="no document"):
        read(handed(data, "smi.txt"))


def test_nul_bytes_in_outputs_pass_nothing(healthy_files, folder_of, judge):
    spoilt = {name: data.replace(b" ", b"\0", 40) for name, data in healthy_files.items() if not name.endswith(".rc")}
    results, _ = judge(folder_of(spoilt))
    assert results["acceptance"] in ("incomplete", "rejected")


LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10 if n else b"lol") for n in range(10))
ENTITIES = {
    "billion-laughs": b"<!DOCTYPE nvidia_smi_log [" + LAUGHS + b"]><nvidia_smi_log><driver_version>&l9;",
    "quadratic": b'<!DOCTYPE nvidia_smi_log [<!ENTITY a "%s">]><nvidia_smi_log><driver_version>%s'
    % (b"x" * 50_000, b"&a;" * 50_000),
    "external": b'<!DOCTYPE nvidia_smi_log [<!ENTITY e SYSTEM "file:///etc/passwd">]><nvidia_smi_log><driver_version>&e;',
    "parameter": b'<!DOCTYPE nvidia_smi_log [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]><nvidia_smi_log><driver_version>5',
    "undeclared": b'<!DOCTYPE nvidia_smi_log SYSTEM "http://127.0.0.1:9/x.dtd"><nvidia_smi_log><driver_version>&e;',
}


@pytest.mark.parametrize("attack", ENTITIES)
def test_xml_entities_are_refused(handed, judge, attack):
    document = b'<?xml version="1.0"?>' + ENTITIES[attack] + b"</driver_version></nvidia_smi_log>\n"
    results, found = judge(handed(document, "smi.xml"))
    assert found["driver.version", "node"]["verdict"] == "unverified"
    assert "root:" not in str(results)
    assert "lollol" not in str(results)


def test_a_file_that_changes_while_it_is_read_is_an_error(handed, tmp_path, monkeypatch):
    path = handed(b"NVSMI LOG\n" + b"x\n" * MIB, "smi.txt")
    pieces = unpack.unpacked(path)
    next(pieces)
    with path.open("ab") as growing:
        growing.write(b"more\n")
    with pytest.raises(EvidenceError, match=r"smi\.txt changed while it was read"):
        list(pieces)


def test_a_pipe_in_a_files_place_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "dmesg")
    with pytest.raises(EvidenceError, match="neither a file nor a folder"):
        bounds.read_file(tmp_path / "dmesg")
    with pytest.raises(EvidenceError, match="neither a file nor a folder"):
        read(tmp_path / "dmesg")


def test_a_folder_that_cannot_be_opened_is_an_error_that_names_it(folder_of, monkeypatch):
    folder = folder_of({"dmesg": "x\n", "proc/meminfo": "MemTotal: 5 kB\n"})
    listed = os.scandir

    def scandir(path):
        if str(path).endswith("/proc"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(EvidenceError, match="evidence/proc cannot be read: Permission denied"):
        read(folder)


NAMES = ["no\nte", "\u202egsemd", "\x1b[31mred", "sur\udcffrogate", "<b>bold</b>", "tab\there"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["folder", "archive"])
def test_names_with_line_ends_and_marks_of_direction_are_spelt_out(folder_of, handed, name, form):
    if form == "folder":
        path = folder_of({"dmesg": "x\n", name: "y"})
    else:
        path = handed(tar(header("dmesg", 2), padded(b"x\n"), header(name, 1), padded(b"y")), "e.tar")
    (shown,) = read(path).unread
    assert shown.isprintable()
    shown.encode()


@pytest.mark.parametrize("name", ["a\n/dmesg", "../\u202egsemd"])
def test_an_error_does_not_repeat_them_either(handed, name):
    entry = header(name, 2) + padded(b"x\n")
    with pytest.raises(EvidenceError) as caught:
        read(handed(tar(entry, entry), "e.tar"))
    assert "\n" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


@pytest.mark.parametrize("seed", range(60))
def test_spoilt_archives_give_evidence_or_an_error(handed, healthy_files, seed):
    """Bits turned over, parts cut out and doubled, of a real archive."""
    chance = random.Random(seed)
    some = dict(itertools.islice(healthy_files.items(), seed % 3, None, 3))
    whole = bytearray(tar(*(header(name, len(data)) + padded(data) for name, data in some.items())))
    for _ in range(chance.randint(1, 8)):
        at = (
            chance.randrange(len(whole))
            // (1 if chance.random() < 0.5 else 512)
            * (1 if chance.random() < 0.5 else 512)
        )
        at = min(at, len(whole) - 1)
        how = chance.randrange(4)
        if how == 0:
            whole[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            del whole[at : at + chance.randrange(2000)]
        elif how == 2:
            whole[at:at] = whole[at : at + 1024]
        else:
            whole[at : at + 512] = chance.randbytes(512)
    packed = gzip.compress(bytes(whole), 1) if seed % 2 else bytes(whole)
    path = handed(packed)
    try:
        found = set(read(path).recordings)
    except EvidenceError as error:
        found, said = set(), str(error)
    else:
        said = str(path)
    assert str(path) in said
    assert found <= set(evidence_names())


def test_an_old_archive_without_the_word_ustar_is_read(handed):
    old = bytearray(header("dmesg", 2))
    old[257:265] = bytes(8)
    old[148:156] = b" " * 8
    old[148:156] = f"{sum(old):06o}\0 ".encode()
    assert set(read(handed(tar(bytes(old), padded(b"x\n")), "e.tar")).recordings) == {"dmesg"}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_large_sizes_in_every_form_of_tar(tmp_path, form):
    deep = "node/" + "/".join(
        ["sys", "bus", "pci", "devices", "d" * 90, "e" * 90 if form != tarfile.USTAR_FORMAT else "e"]
    )
    with tarfile.open(tmp_path / "e.tar", "w", format=form) as packed:
        for name in (deep, "node/dmesg"):
            entry = tarfile.TarInfo(name)
            entry.size = 2
            packed.addfile(entry, io.BytesIO(b"x\n"))
    evidence = read(tmp_path / "e.tar")
    assert "sys/bus/pci/links" in evidence.recordings
    assert evidence.recordings["dmesg"].stdout == b"x\n"


def test_what_is_wanted_is_told_by_name_alone():
    wanted = names.Names(evidence_names(), TREES).wanted
    for name in ("dmesg", "top/dmesg.txt", "top/dmesg.rc", "capture/capture.json", "sys/bus/pci/devices/x/vendor"):
        assert wanted(name), name
    for name in ("top/deeper/dmesg", "var/log/syslog", "dmesg.old", "top/nvidia-smi_-q.html", ""):
        assert not wanted(name), name


def test_the_host_of_a_report_stays_inside_the_report_folder(handed, tmp_path):
    from nodeready.gate import Gate, Request

    report = b"nvidia-bug-report.sh Version: 1\nuname: Linux ../../pwned 5.15\n" + bug_report.SEPARATOR
    report += b"\n\ndmesg:\n\n[ 0.1] x\n" + bug_report.SEPARATOR + b"\n\nEnd of NVIDIA bug report log file.\n"
    path = handed(report, "b.log")
    reports = tmp_path / "reports"
    gate = Gate.open(Request(node_type="sxm", evidence=str(path), report_dir=str(reports)))
    assert gate.make_folder().resolve().is_relative_to(reports.resolve())


def test_reading_leaves_nothing_behind(handed, tmp_path):
    path = handed(gzip.compress(tar(header("capture/dmesg", 2), padded(b"x\n"))))
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    read(path)
    assert {p: p.stat().st_mtime_ns for p in Path(tmp_path).rglob("*")} == before
