"""Which torch the jobs' Python has and which GPUs CUDA gives it, from the torch probe."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from nodeready.evidence.probe import Probe
from nodeready.facts.bus_id import normal_bus_id
from nodeready.facts.probe_document import document, shown, text
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_PYTHON = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){1,2}((a|b|rc)[0-9]{1,3})?\+?")
_TORCH = re.compile(
    r"[0-9]{1,4}(\.[0-9]{1,6}){1,3}((a|b|rc)[0-9]{1,8})?(\.post[0-9]{1,12})?(\.dev[0-9]{1,12})?"
    r"(\+[A-Za-z0-9]+([._-][A-Za-z0-9]+)*)?"
)
_NO_TENSORFLOW = Unknown("this environment has no TensorFlow", missing=True)
_PLAIN = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6}){0,3}")
_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]")


def torch_probe(python: str, script: str, *, deadline: float = 90.0) -> Probe:
    """The probe under the Python of the environment that runs jobs; exit status 3 says that it has no torch.

    It makes contexts on all GPUs, so it must not run while the load probes measure, nor they once it hung.
    """
    serves = ("frameworks.torch", "gpu.compute-capability")
    argv = (python, script)
    return Probe("torch", argv, deadline=deadline, family="load", tier="acceptance", answers=(0, 3), serves=serves)


@dataclass(frozen=True)
class TorchInfo:
    """The probe's document; a key of `devices` (compute capabilities), `names` and `uuids` is a bus id, else cuda:N.

    `cuda` is the version that torch was built for, with a defect where it is a CPU build. `visible`
    is CUDA_VISIBLE_DEVICES as the probe found it, None where it was not set. `error` is empty or says
    why there is no torch or no GPU, `errors` what is wrong with single devices.
    """

    python: Reading[str]
    version: Reading[str]
    cuda: Reading[str]
    cudnn: Reading[str]
    nccl: Reading[str]
    arch_list: Reading[tuple[str, ...]]
    devices: dict[str, Reading[str]]
    names: dict[str, Reading[str]]
    uuids: dict[str, Reading[str]]
    visible: str | None = None
    error: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    tensorflow: Reading[str] = field(default_factory=lambda: _NO_TENSORFLOW)


def parse(data: bytes) -> TorchInfo | Unknown:
    """The whole document; unknown where it is cut or not the probe's. Without torch all but Python is unknown.

    >>> info = parse(b'''{"probe": "torch", "schema": 1, "python": "3.12.3", "torch": "2.7.0+cu126", "cuda": "12.6",
    ... "cudnn": "9.5.1", "nccl": "2.26.2", "arch_list": ["sm_80", "sm_90"], "visible": null, "error": null, "devices":
    ... [{"index": 0, "name": "NVIDIA H100 80GB HBM3", "bus_id": "0000:1B:00.0", "capability": "9.0", "error": null},
    ... {"index": 1, "name": null, "bus_id": "0000:43:00.0", "capability": null, "error": "CUDA error 719"}]}''')
    >>> info.version.value, info.cuda.value, info.arch_list.value, info.devices["0000:1b:00.0"].value
    ('2.7.0+cu126', '12.6', ('sm_80', 'sm_90'), '9.0')
    >>> info.devices["0000:43:00.0"].reason, info.errors
    ('CUDA error 719', {'0000:43:00.0': 'CUDA error 719'})
    """
    found = document(data, "torch", 1)
    if isinstance(found, Unknown):
        return found
    said = _error(found.get("error"))
    version = _version(found, "torch", _TORCH)
    if found.get("torch") is None and said:
        version = Unknown(said)

    tensorflow: Reading[str] = _NO_TENSORFLOW
    if found.get("tensorflow") is not None:
        tensorflow = _version(found, "tensorflow", _TORCH)

    def with_torch(reading: Reading[T]) -> Reading[T]:
        return reading if isinstance(version, Known) else version

    visible = found.get("visible")
    return TorchInfo(
        python=_version(found, "python", _PYTHON),
        version=version,
        cuda=with_torch(_cuda(found)),
        cudnn=with_torch(_version(found, "cudnn", _PLAIN)),
        nccl=with_torch(_version(found, "nccl", _PLAIN)),
        arch_list=with_torch(_arch_list(found)),
        devices=_by_device(found.get("devices"), _capability),
        names=_by_device(found.get("devices"), lambda entry: text(entry.get("name"), "device name")),
        uuids=_by_device(found.get("devices"), lambda entry: text(entry.get("uuid"), "uuid"), despite_error=True),
        visible=visible if isinstance(visible, str) else None,
        error=said,
        errors=_errors(found.get("devices")),
        tensorflow=tensorflow,
    )


def _error(value: Any) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) and value.strip() else f"error reads {shown(value)}"


def _version(found: dict[str, Any], name: str, pattern: re.Pattern[str]) -> Reading[str]:
    version = text(found.get(name), f"{name} version")
    if isinstance(version, Known) and not pattern.fullmatch(version.value):
        return Unknown(f"{name} version reads {shown(version.value)}, no version")
    return version


def _cuda(found: dict[str, Any]) -> Reading[str]:
    if "cuda" in found and found["cuda"] is None:
        return Known("none", defect="this torch is built without CUDA")
    return _version(found, "cuda", _PLAIN)


def _arch_list(found: dict[str, Any]) -> Reading[tuple[str, ...]]:
    archs = found.get("arch_list")
    if not isinstance(archs, list) or not all(isinstance(arch, str) and arch for arch in archs):
        return Unknown(f"arch_list reads {shown(archs)}, no list of architectures")
    if not archs and found.get("cuda") is not None:  # older builds answer so where they see no GPU
        return Unknown("torch did not say which architectures it holds code for")
    return Known(tuple(archs))


def _by_device(
    entries: Any, ask: Callable[[dict[str, Any]], Reading[str]], *, despite_error: bool = False
) -> dict[str, Reading[str]]:
    """The answer of each device; where it has an error that is the answer, but for what the driver alone told."""
    answers: dict[str, Reading[str]] = {}
    for entry in entries if isinstance(entries, list) else []:
        device = _device(entry)
        if device is None:
            continue  # of no known GPU: that one is then missing, which is no pass
        said = _error(entry.get("error"))
        answer = Unknown(said) if said and not despite_error else ask(entry)
        answers[device] = Unknown(f"torch lists {device} twice") if device in answers else answer
    return answers


def _errors(entries: Any) -> dict[str, str]:
    """What is wrong with each device that has an error; of one listed twice, all that was said."""
    said: dict[str, list[str]] = {}
    for entry in entries if isinstance(entries, list) else []:
        device = _device(entry)
        error = _error(entry.get("error")) if device else ""
        if device and error:
            said.setdefault(device, []).append(error)
    return {device: "; ".join(dict.fromkeys(errors)) for device, errors in said.items()}


def _device(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return None
    bus_id, index = entry.get("bus_id"), entry.get("index")
    placed = normal_bus_id(bus_id) if isinstance(bus_id, str) else None
    numbered = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < 1000
    return placed or (f"cuda:{index}" if numbered else None)


def _capability(entry: dict[str, Any]) -> Reading[str]:
    capability = text(entry.get("capability"), "compute capability")
    if isinstance(capability, Known) and not _CAPABILITY.fullmatch(capability.value):
        return Unknown(f"compute capability reads {shown(capability.value)}")
    return capability
