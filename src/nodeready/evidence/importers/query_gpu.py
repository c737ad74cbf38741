"""`nvidia-smi --query-gpu=FIELDS --format=csv` under the name of its own command line."""

from __future__ import annotations

NAME = "nvidia-smi_--query-gpu"
_START = f"{NAME}="
_FORMAT = "_--format="


def alias(file_name: str) -> str:
    """The one evidence name for such a table, whatever its fields; '' for another file.

    >>> alias("nvidia-smi_--query-gpu=name,serial_--format=csv,noheader")
    'nvidia-smi_--query-gpu'
    """
    return NAME if file_name.startswith(_START) else ""


def with_header(file_name: str, stdout: bytes) -> bytes:
    r"""The table with the header line that `noheader` left out: the file's name tells its columns.

    >>> with_header("nvidia-smi_--query-gpu=name,serial_--format=csv,noheader.csv", b"NVIDIA H100, 16500\n")
    b'name, serial\nNVIDIA H100, 16500\n'
    """
    options = file_name.partition(_FORMAT)[2].split(".")[0].split("_")[0].split(",")
    if not file_name.startswith(_START) or "noheader" not in options or not stdout.strip():
        return stdout
    fields = file_name.removeprefix(_START).partition("_--")[0].split(",")
    return ", ".join(fields).encode("utf-8", "replace") + b"\n" + stdout
