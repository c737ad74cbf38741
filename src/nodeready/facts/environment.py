"""Environment variables that jobs meet: those of this login, and those that /etc/environment gives to every login."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeready.evidence.probe import command
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Unknown

# only names that CUDA, NCCL and their like read: an environment holds secrets, which are nobody's evidence
_NAMES = "CUDA_|CUDNN_|CUBLAS|NCCL_|NVIDIA_|COMPUTE_PROFILE|OPENCL_PROFILE|NSIGHT_|PYTORCH_|TORCH_|XLA_|LD_PRELOAD="
_SCRIPT = (
    f"env | sed -n -E 's/^({_NAMES})/process:&/p'; "
    f"[ ! -r /etc/environment ] || sed -n -E 's/^[[:space:]]*(export[[:space:]]+)?(({_NAMES}).*)/file:\\2/p' "
    "/etc/environment; echo end"
)
ENVIRONMENT = command("sh", "-c", _SCRIPT, name="environment", family="files", serves=("driver.environment",))

FILE = "/etc/environment"
_LINE = re.compile(r"(process|file):([A-Za-z_][A-Za-z0-9_]{0,80})=(.{0,4000})")
_END = "end"


class Variable(NamedTuple):
    """One variable, and where it was found: `process` for this login's, or the file's path."""

    name: str
    value: str
    where: str


def parse(data: bytes) -> tuple[Variable, ...] | Unknown:
    r"""The variables in the order of the list; unknown where its last line, `end`, is missing: it was cut then.

    >>> parse(b'process:CUDA_LAUNCH_BLOCKING=1\nfile:CUDA_PROFILE="1"\nend\n')[1]
    Variable(name='CUDA_PROFILE', value='1', where='/etc/environment')
    >>> parse(b"process:CUDA_LAUNCH_BLOCKING=1\n").reason
    'the list of environment variables was cut'
    """
    text = lines(data)
    if is_cut(data) or not text or text[-1] != _END:
        return Unknown("the list of environment variables was cut")
    found = []
    for line in text[:-1]:
        match = _LINE.fullmatch(line)
        if match:
            where = FILE if match[1] == "file" else match[1]
            found.append(Variable(match[2], match[3].strip().strip("\"'"), where))
    return tuple(found)
