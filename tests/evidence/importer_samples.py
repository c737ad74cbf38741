"""Reports as their scripts write them, around outputs that a test hands in."""

import gzip
import io
import json
import tarfile

LINE = "_" * 44


def _plain(text):
    plain = text if isinstance(text, bytes) else text.encode()
    return plain if not plain or plain.endswith(b"\n") else plain + b"\n"


def file_section(path, content):
    listed = f"*** ls: -r--r--r-- 1 root root 0 2026-11-30 20:48:33.974169298 +0000 {path}\n"
    return f"{LINE}\n\n*** {path}\n{listed}".encode() + _plain(content) + b"\n"


def command_section(command, output):
    return f"{LINE}\n\n{command}\n\n".encode() + _plain(output) + b"\n"


def several(*pairs):
    """One section in which several commands follow one another, as those of nvidia-smi do."""
    return f"{LINE}\n\n".encode() + b"".join(f"{c}\n\n".encode() + _plain(o) + b"\n" for c, o in pairs)


PROLOGUE = f"""{LINE}

Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem, when reporting a graphics
driver bug via the NVIDIA Linux forum (see forums.developer.nvidia.com)
or by sending email to 'linux-bugs@nvidia.com'.

nvidia-bug-report.sh Version: 37062940

Date: Mon Nov 30 20:50:11 UTC 2026
uname: Linux gpu-node-7 5.15.0-126-generic #136-Ubuntu SMP x86_64 x86_64 x86_64 GNU/Linux
command line flags:

""".encode()
EPILOGUE = f"{LINE}\n\nEnd of NVIDIA bug report log file.\n".encode()


def bug_report(*sections, whole=True):
    """The parts of a report, each of which the script compresses by itself."""
    return [PROLOGUE, *sections, *([EPILOGUE] if whole else [])]


def compressed(parts):
    return b"".join(gzip.compress(part) for part in parts)


def sos_manifest(**ended):
    """A manifest that tells how commands ended: file -> (return code, truncated)."""
    commands = [
        {"exec": path.rpartition("/")[2].replace("_", " "), "filepath": path, "return_code": rc, "truncated": cut}
        for path, (rc, cut) in ended.items()
    ]
    return json.dumps({"components": {"report": {"plugins": {"nvidia": {"commands": commands}}}}})


def tar_of(path, files, top="", mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{top}{name}")
            data = content if isinstance(content, bytes) else content.encode()
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path
