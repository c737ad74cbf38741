"""`nvidia-smi -L`: the GPUs that a process can see, such as one in a container."""

from __future__ import annotations

import re

from nodeready.facts.nvidia_smi_values import uuid as gpu_uuid
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Unknown

CONTAINER_GPUS = "container-gpus"
"""The evidence name of this list as seen from inside a container, whatever engine ran it."""

_GPU = re.compile(r"GPU ([0-9]{1,3}): (.+?) \(UUID: (GPU-[0-9A-Fa-f-]+)\)")
_MIG = re.compile(r"MIG \S+ +Device +[0-9]{1,3}: \(UUID: MIG-[0-9A-Za-z/-]+\)")


def parse(data: bytes) -> dict[str, str] | Unknown:
    r"""The name of every GPU by UUID; unknown as soon as one line is anything else, and nothing is ever raised.

    Counting lines would count error messages. MIG devices are no GPUs and are passed over.

    >>> parse(b"GPU 0: NVIDIA H200 (UUID: GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691)\n")
    {'GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a691': 'NVIDIA H200'}
    >>> parse(b"Failed to initialize NVML: Unknown Error\n").reason
    "not a GPU: 'Failed to initialize NVML: Unknown Error'"
    """
    if not data.strip():
        return Unknown("the output is empty")
    gpus: dict[str, str] = {}
    indices: set[str] = set()
    for line in map(str.strip, lines(data)):
        match = _GPU.fullmatch(line)
        if match is None:
            if line and not (gpus and _MIG.fullmatch(line)):
                return Unknown(f"not a GPU: {line!r:.200}")
            continue
        index, name, uuid = match.groups()
        if gpu_uuid(uuid) is None:
            return Unknown(f"not the UUID of a GPU: {uuid!r:.80}")
        if uuid in gpus or index in indices:
            return Unknown(f"a GPU is listed twice: {line!r:.200}")
        gpus[uuid] = name
        indices.add(index)
    return Unknown("the output stops in the middle of a line") if is_cut(data) else gpus
