"""A sosreport: which of its files is which output, what its manifest says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from nodeready.evidence.recording import EXIT_STATUSES, Ended, Recording

if TYPE_CHECKING:
    from collections.abc import Collection

_COMMANDS, _TAILS, MANIFEST = "sos_commands/", "sos_strings/", "sos_reports/manifest.json"
_TAILED = ".tailed"
_HOST_NAMES = ("sos_commands/host/hostname", "etc/hostname")
_TIMED_OUT = 124

# evidence name: where its output lies, by versions of sos, the best first
FILES: dict[str, tuple[str, ...]] = {
    "nvidia-smi_-q": ("sos_commands/nvidia/nvidia-smi_-q",),
    "nvidia-smi_nvlink_-s": ("sos_commands/nvidia/nvidia-smi_nvlink_-s",),
    "nvidia-smi_--query-gpu": ("sos_commands/nvidia/nvidia-smi_--query-gpu_*_--format_csv",),
    "nvidia-ctk_--version": ("sos_commands/nvidia/nvidia-ctk_--version",),
    "nvidia-ctk_cdi_list": ("sos_commands/nvidia/nvidia-ctk_cdi_list",),
    "lspci_-nnvvv": ("sos_commands/pci/lspci_-nnvv", "sos_commands/pci/lspci_-nvv", "lspci"),
    "dmesg": ("sos_commands/kernel/dmesg", "sos_commands/general/dmesg", "sos_commands/kernel/dmesg_-T"),
    "journalctl_-k_-b_--no-pager_-o_short-iso": (
        "sos_commands/logs/journalctl_--no-pager_--boot",
        "sos_commands/logs/journalctl_--no-pager_--catalog_--boot",
    ),
    "dmidecode_-t_memory": ("sos_commands/hardware/dmidecode", "dmidecode"),
    "proc/meminfo": ("proc/meminfo",),
    "proc/modules": ("proc/modules",),
    "proc/driver/nvidia/version": ("proc/driver/nvidia/version",),
    "etc/os-release": ("etc/os-release", "usr/lib/os-release"),
    "etc/cdi/nvidia.yaml": ("etc/cdi/nvidia.yaml",),
    "lscpu": ("sos_commands/processor/lscpu", "sos_commands/hardware/lscpu"),
    "lsmod": ("sos_commands/kernel/lsmod", "lsmod"),
    "docker_info": ("sos_commands/docker/docker_info",),
    "ibstat": ("sos_commands/infiniband/ibstat",),
}
_NAMES = frozenset(pattern for patterns in FILES.values() for pattern in patterns)
_PATTERNS = tuple(pattern for pattern in _NAMES if "*" in pattern)


def is_sosreport(names: Collection[str]) -> bool:
    """Whether files of these names are those of a sosreport."""
    return any(name.startswith((_COMMANDS, "sos_reports/")) for name in names)


def wanted(name: str) -> bool:
    """Whether a file of a sosreport is read."""
    if name in (MANIFEST, *_HOST_NAMES) or name in _NAMES:
        return True
    plain = name.removesuffix(_TAILED)
    if plain != name:
        plain = plain.replace(_TAILS, _COMMANDS, 1)
    return plain in _NAMES or any(fnmatchcase(plain, pattern) for pattern in _PATTERNS)


def recordings_of(files: dict[str, bytes], known: Collection[str]) -> dict[str, Recording]:
    """The recordings that the files of a sosreport hold, each from the first place where it is."""
    ran = _ran(files.get(MANIFEST, b""))
    found = {}
    for name, patterns in FILES.items():
        place = _place(patterns, files)
        if place is not None and name in known:
            found[name] = _recording(name, place, files[place], ran)
    return found


def host_of(files: dict[str, bytes]) -> str:
    """The node's name, '' where no file tells it."""
    said = [files[name].decode("utf-8", "replace").strip() for name in _HOST_NAMES if name in files]
    return next((line.split()[0] for line in said if line), "")


def _place(patterns: tuple[str, ...], files: dict[str, bytes]) -> str | None:
    for pattern in patterns:
        # an output that was too long lies elsewhere, without its beginning
        for each in (pattern, f"{pattern.replace(_COMMANDS, _TAILS, 1)}{_TAILED}"):
            place = next((name for name in sorted(files) if fnmatchcase(name, each)), None)
            if place is not None:
                return place
    return None


def _recording(name: str, place: str, stdout: bytes, ran: dict[str, dict[str, Any]]) -> Recording:
    told = ran.get(place, {})
    status = told.get("return_code")
    rc = status if type(status) is int and status in EXIT_STATUSES else 0
    words = told.get("exec")
    recording = Recording(name, tuple(words.split()) if isinstance(words, str) else (), rc=rc, stdout=stdout)
    if place.endswith(_TAILED) or told.get("truncated") is True:
        return replace(recording, truncated=True, reason=f"sos kept only the end of it ({place})")
    if rc == _TIMED_OUT:
        return replace(recording, ended=Ended.TIMED_OUT, rc=None, reason="it overran the deadline that sos sets")
    return recording


def _ran(manifest: bytes) -> dict[str, dict[str, Any]]:
    """How each command ended, by the file that holds its output; nothing where the manifest cannot be read."""
    try:
        found = json.loads(manifest)
        plugins = found["components"]["report"]["plugins"]
        commands = [command for plugin in plugins.values() for command in plugin.get("commands", [])]
        return {command["filepath"]: command for command in commands if isinstance(command.get("filepath"), str)}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}
