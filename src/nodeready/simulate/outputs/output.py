"""What one command or file of a simulated node gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Output:
    """Standard output, exit status and standard error, byte for byte."""

    stdout: bytes
    rc: int = 0
    stderr: bytes = b""


def text(*lines: str, rc: int = 0, stderr: str = "") -> Output:
    """An output of whole lines."""
    return Output("".join(f"{line}\n" for line in lines).encode(), rc, stderr.encode())


def not_installed(command: str) -> Output:
    """What the shell says where there is no such command."""
    return Output(b"", 127, f"{command}: command not found\n".encode())


def no_such_file(path: str) -> Output:
    """What `cat` says where there is no such file."""
    return Output(b"", 1, f"cat: {path}: No such file or directory\n".encode())
