"""What is fuzzed: each parser, each reader of evidence and a whole judgement, as targets that make cases and run them."""

import bz2
import contextlib
import dataclasses
import gzip
import io
import json
import lzma
import os
import shutil
import struct
import tarfile
import tempfile
from pathlib import Path

from fuzz_parsers import PARSERS, Parser
from mutation import mutated, restructured

from nodeready import outputs, results
from nodeready.check import load_checks
from nodeready.engine import Judging
from nodeready.evidence import frames
from nodeready.evidence.capture import EvidenceError, contents, files_of
from nodeready.evidence.folder import read_evidence
from nodeready.evidence.importers import bug_report, sosreport
from nodeready.evidence.recording import Recording
from nodeready.gate import Gate, Request
from nodeready.node import Node
from nodeready.node.catalogue import TREES, evidence_names
from nodeready.render import certificate, html_report, junit, prometheus, terminal
from nodeready.render.escape import Seen
from nodeready.simulate.write import simulate


class Files:
    """A reader of files: a mutated folder, archive, capture or single document, read as evidence."""

    def __init__(self, name, material):
        self.name, self.files, self.known = name, dict(material.files), evidence_names()
        documents = ("query-gpu-csv", "nvidia-smi-table", "dcgmi", "nvidia-smi-q-xml", "nvidia-smi-q")
        self.files |= {
            f"nvidia-smi {kind} {at}": d for kind in documents for at, d in enumerate(material.captured.get(kind, ()))
        }
        self.names = sorted(self.files)
        self.texts = sorted({data for data in self.files.values() if len(data) < 20_000} | set(material.any[:40]))

    def case(self, rng, _):
        """A few files of a node, some of them mutated, in the form that this reader reads."""
        files = {name: self.files[name] for name in rng.sample(self.names, rng.randrange(1, 9))}
        for name in rng.sample(sorted(files), rng.randrange(len(files) + 1)):
            files[name] = mutated(rng, [files[name], *self.texts[:3]])
        for _ in range(rng.choice((0, 0, 1, 3))):
            name = rng.choice(self.names) + rng.choice(("", ".rc", ".err", ".txt", ".txt.rc", ".xml", "\n", "/x", " "))
            files[name] = rng.choice(
                (b"1\n", b"-9", b"9" * 5000, "٣".encode(), b"\xff", b"", b"0x1", b"x" * 5000, b"1\x00")
            )
        return FORMS[self.name](rng, files)

    def run(self, data):
        """Read it, twice; only `EvidenceError` is allowed, with a text that can be printed."""
        place = Path(tempfile.mkdtemp(prefix="fuzz-evidence-", dir=SCRATCH))
        try:
            path = place / "evidence"
            _laid_out(data, path)
            if _reading(path, self.known) != _reading(path, self.known):
                raise AssertionError("the same files give two kinds of evidence")
        finally:
            shutil.rmtree(place)


SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _reading(path, known):
    try:
        return repr(read_evidence(path, known, TREES))
    except EvidenceError as error:
        if not str(error).isprintable():
            raise AssertionError(f"an EvidenceError with characters that cannot be seen: {str(error)!r:.300}") from None
        return str(error)


def _folder_form(_, files):
    return b"F" + b"".join(struct.pack(">II", len(n := name.encode()), len(d)) + n + d for name, d in files.items())


_TOPS = ("", "node/", "node/", "./", "/", "../", "a/../", "x" * 300 + "/", "\udcff/", "n\u202e/")
_TYPES = (
    *(tarfile.REGTYPE,) * 12,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.FIFOTYPE,
    tarfile.DIRTYPE,
)


def _archive_form(rng, files):
    buffer = io.BytesIO()
    strange = not rng.randrange(3)
    with tarfile.open(fileobj=buffer, mode="w", format=rng.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo((rng.choice(_TOPS) if strange else "node/") + name)
            entry.size, entry.type = len(data), rng.choice(_TYPES) if strange else tarfile.REGTYPE
            entry.linkname = rng.choice(("", "/etc/passwd", "../x", "node/dmesg"))
            entry.size = len(data) if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(data))
    plain = buffer.getvalue() if rng.randrange(2) else mutated(rng, [buffer.getvalue()])
    pack = rng.choice((lambda data: gzip.compress(data, 1, mtime=0), bz2.compress, lzma.compress, bytes, bytes))
    return b"A" + (pack(plain) if rng.randrange(3) else mutated(rng, [pack(plain)]))


def _capture_form(rng, files):
    recordings = [Recording(name, stdout=data) for name, data in files.items() if "/x" not in name]
    listed = contents("h100-07", "2026-12-01T00:00:00Z", recordings)
    listed = restructured(rng, listed) if rng.randrange(4) else mutated(rng, [listed])
    made = {"capture.json": listed}
    for recording in recordings:
        made |= files_of(recording)
    return _folder_form(rng, made)


def _document_form(rng, files):
    documents = [
        data
        for name, data in sorted(files.items())
        if name.startswith("nvidia-smi") or "query-gpu" in name or "dcgm" in name
    ]
    return b"A" + mutated(rng, documents or sorted(files.values()))


def _report_form(rng, files):
    """An nvidia-bug-report.log, packed or not."""
    titles = {"nvidia-smi_-q": "/usr/bin/nvidia-smi --query", "lspci_-nnvvv": "/usr/bin/lspci -nnDvvvxxxx", "ibstat": "/usr/sbin/ibstat",
              "dmidecode_-t_memory": "/usr/sbin/dmidecode", "dmesg": "dmesg:", "nvidia-smi_nvlink_-s": "/usr/bin/nvidia-smi nvlink --status"}  # fmt: skip
    line = bug_report.SEPARATOR + b"\n\n"
    report = line + b"Start of NVIDIA bug report log file.\n\nuname: Linux gpu-7 6.8.0 #1 SMP\n\n"
    report += b"".join(
        line + f"{titles.get(name, f'*** /{name}')}\n\n".encode() + data + b"\n" for name, data in files.items()
    )
    report += line + b"End of NVIDIA bug report log file.\n"
    report = mutated(rng, [report]) if rng.randrange(2) else report
    if rng.randrange(2):
        return b"A" + report
    packed = gzip.compress(report, 1, mtime=0)
    return b"A" + (mutated(rng, [packed]) if rng.randrange(2) else packed)


def _sosreport_form(rng, files):
    """A sosreport, as a folder or an archive."""
    placed = {
        sosreport.FILES[name][0].replace("*", "x"): data for name, data in files.items() if name in sosreport.FILES
    }
    ran = [
        {"name": place.rpartition("/")[2], "exec": place, "filepath": place, "return_code": 0, "truncated": False}
        for place in placed
    ]
    manifest = json.dumps({"components": {"report": {"plugins": {"nvidia": {"commands": ran}}}}}).encode()
    placed |= {sosreport.MANIFEST: mutated(rng, [manifest]), "sos_commands/host/hostname": mutated(rng, [b"gpu-7\n"])}
    return _folder_form(rng, placed) if rng.randrange(2) else _archive_form(rng, placed)


FORMS = {
    "evidence.archive": _archive_form,
    "evidence.bug-report": _report_form,
    "evidence.capture": _capture_form,
    "evidence.document": _document_form,
    "evidence.folder": _folder_form,
    "evidence.sosreport": _sosreport_form,
}


def _unfolded(data):
    at = 1
    while at < len(data):
        name_size, size = struct.unpack_from(">II", data, at)
        middle = at + 8 + name_size
        yield data[at + 8 : middle].decode(), data[middle : middle + size]
        at = middle + size


def _laid_out(data, path):
    if data[:1] == b"A":
        path.write_bytes(data[1:])
        return
    path.mkdir()
    for name, content in _unfolded(data):
        with contextlib.suppress(
            FileExistsError, NotADirectoryError, IsADirectoryError
        ):  # a file and a folder of one name
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)


class Frames:
    """What comes back from a remote target."""

    def __init__(self, name, material):
        self.name = name
        rows = [Recording(n, stdout=d, stderr=b"x") for n, d in material.files.items() if len(d) < 5000][:8]
        self.payloads = [frames.pack_recording(row) for row in rows]
        self.streams = [
            b"".join(frames.frame("abc", "recording", payload) for payload in self.payloads),
            frames.frame("abc", "end", b"{}"),
        ]

    def case(self, rng, _):
        """A stream, or the payload of one frame."""
        return b"S" + mutated(rng, self.streams) if rng.randrange(2) else b"P" + mutated(rng, self.payloads)

    def run(self, data):
        """Frames or none, a recording or none; never an exception."""
        if data[:1] == b"S":
            list(frames.frames("abc", data[1:]))
            return
        recording = frames.unpack_recording(data[1:])
        if recording is not None:
            recording.metadata()


class Judged:
    """A node of which some recordings are mutated, judged by all checks; the results are rendered in every form."""

    def __init__(self, name, _):
        self.name, self.checks, self.gates = name, load_checks(), []
        with tempfile.TemporaryDirectory() as scratch:
            for node_type in ("sxm-1", "nvl"):
                folder = Path(scratch, node_type)
                simulate(node_type, folder, [], {}, 0)
                self.gates.append(Gate.open(Request(node_type=node_type, evidence=str(folder))))

    def case(self, rng, _):
        """One to three outputs of one of the nodes, mutated."""
        at = rng.randrange(len(self.gates))
        recordings = self.gates[at].handed_in.recordings
        names = rng.sample(sorted(recordings), rng.randrange(1, 4))
        return b"%d" % at + _folder_form(rng, {name: mutated(rng, [recordings[name].stdout]) for name in names})

    def run(self, data):
        """No check may raise, and no report may hold a character that cannot be seen."""
        gate = self.gates[int(data[:1])]
        changed = {name: Recording(name, stdout=output) for name, output in _unfolded(data[1:])}
        evidence = dataclasses.replace(gate.handed_in, recordings={**gate.handed_in.recordings, **changed})
        judging = Judging(gate.plan, Node(evidence, gate.terms))
        judging.run_all(self.checks)
        if judging.errors:
            raise AssertionError(f"checks raised: {sorted(set(judging.errors.values()))}")
        found = results.build(gate, judging)
        json.loads(outputs.as_json(found))
        seen = Seen.of(found)
        said = "".join((certificate.render(seen), junit.render(seen), prometheus.render(seen), *terminal.summary(seen)))
        odd = {character for character in said if not character.isprintable()} - {"\n"}
        if odd:
            raise AssertionError(f"a report holds {sorted(odd)}")
        html_report.render(seen).encode()


TARGETS = {
    **dict.fromkeys(sorted(PARSERS), Parser),
    **dict.fromkeys(FORMS, Files),
    "evidence.frames": Frames,
    "judged.node": Judged,
}
