"""Says what torch this Python has and which GPUs it can use, as one JSON document.

Stand-alone: needs Python >= 3.9, nothing of nodeready. A context is made on every GPU, since a GPU
that is listed need not work; the error of one does not hide the others. Exit status 0: answered
(a device may hold an error), 3: no usable torch.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

NO_TORCH = "this Python has no torch: name one that has with --python"


def first_line(error: BaseException) -> str:
    """An error as one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def cuda_devices(driver: Any = None) -> list[dict[str, str]]:
    """The uuid and bus_id of each GPU in CUDA's own order; no context is made on any.

    The driver is asked, not torch: torch tells bus ids only since 2.6. Raises `RuntimeError` where
    the driver can't be loaded or answers with an error.
    """
    try:
        driver = driver or ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(f"no CUDA driver here: {error}") from error

    def ask(function: str, *arguments: Any) -> None:
        status = getattr(driver, function)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            driver.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{function}: error {status} ({(text.value or b'no text').decode('utf-8', 'replace')})")

    ask("cuInit", 0)
    count = ctypes.c_int()
    ask("cuDeviceGetCount", ctypes.byref(count))
    devices = []
    for ordinal in range(count.value):
        handle, raw, bus_id = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(32)
        ask("cuDeviceGet", ctypes.byref(handle), ordinal)
        ask("cuDeviceGetUuid_v2", ctypes.byref(raw), handle)
        ask("cuDeviceGetPCIBusId", bus_id, 32, handle)
        identity = {"uuid": f"GPU-{uuid.UUID(bytes=bytes(raw))}", "bus_id": bus_id.value.decode("ascii", "replace")}
        devices.append(identity)
    return devices


def cudnn_text(number: int | None) -> str | None:
    """The version of cuDNN as text from its one number, whose places moved with version 9.

    >>> cudnn_text(8902), cudnn_text(91002), cudnn_text(None)
    ('8.9.2', '9.10.2', None)
    """
    if number is None:
        return None
    major = number // 10000 if number >= 90000 else number // 1000
    minor = number // 100 % 100 if number >= 90000 else number // 100 % 10
    return f"{major}.{minor}.{number % 100}"


def device_entry(torch: Any, ordinal: int) -> dict[str, Any]:
    """One GPU as torch sees it, after a context was made on it and a number written there."""
    blank: dict[str, Any] = dict.fromkeys(("name", "uuid", "bus_id", "capability", "total_memory", "error"))
    entry = {"index": ordinal, **blank}
    try:
        facts = torch.cuda.get_device_properties(ordinal)
        capability = f"{facts.major}.{facts.minor}"
        entry.update(name=str(facts.name), capability=capability, total_memory=int(facts.total_memory))
        torch.ones(1, device=f"cuda:{ordinal}").item()
    except (RuntimeError, AssertionError, torch.cuda.DeferredCudaCallError) as error:
        entry["error"] = first_line(error)
    return entry


def devices_of(torch: Any) -> tuple[list[dict[str, Any]], str | None]:
    """The entries of all GPUs and, where they can't be told apart or there is none, why."""
    if not torch.backends.cuda.is_built():
        return [], "this torch is built without CUDA"
    try:
        identities = cuda_devices()
    except RuntimeError as error:
        identities, complaint = [], first_line(error)
    else:
        complaint = "" if identities else "the CUDA driver shows no GPU"
    # where the driver gives no list torch may still count its GPUs, and say of each what is wrong
    entries = [device_entry(torch, ordinal) for ordinal in range(max(len(identities), torch.cuda.device_count()))]
    for ordinal, identity in enumerate(identities):
        entries[ordinal].update(identity)
    return entries, complaint or None


def asked(question: Callable[[], Any]) -> Any:
    """The answer, or None where this build of torch has none."""
    try:
        return question()
    except (AttributeError, RuntimeError, ImportError):
        return None


def installed(*names: str) -> str | None:
    """The version of the first of these packages that is installed; nothing is imported for it."""

    def version(name: str) -> str | None:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return None

    return next(filter(None, map(version, names)), None)


def torch_document() -> dict[str, Any]:
    """The whole document; `error` says why there is no torch or no GPU in it."""
    about = dict.fromkeys(("torch", "cuda", "cudnn", "nccl"))
    document: dict[str, Any] = {"probe": "torch", "schema": 1, "python": platform.python_version(), **about}
    document["tensorflow"] = installed("tensorflow", "tensorflow-gpu", "tf-nightly")
    document.update(arch_list=[], devices=[], visible=os.environ.get("CUDA_VISIBLE_DEVICES"), error=None)
    try:
        # through importlib, since a type checker would otherwise read all of torch
        torch: Any = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        document["error"] = NO_TORCH if error.name == "torch" else f"torch does not load: {first_line(error)}"
        return document
    except (ImportError, OSError) as error:
        document["error"] = f"torch does not load: {first_line(error)}"
        return document
    document.update(torch=str(torch.__version__), cuda=torch.version.cuda)
    document["cudnn"] = cudnn_text(asked(torch.backends.cudnn.version))
    nccl = asked(lambda: torch.cuda.nccl.version())  # noqa: PLW0108 - torch.cuda.nccl itself may be absent
    document["nccl"] = ".".join(map(str, nccl)) if nccl else None
    document["arch_list"] = list(asked(torch.cuda.get_arch_list) or [])
    document["devices"], document["error"] = devices_of(torch)
    return document


def main() -> int:
    """Print the document; the exit status."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # read when CUDA starts: before torch is imported
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not get into the document
    document = torch_document()
    print(json.dumps(document), file=out, flush=True)
    return 0 if document["torch"] else 3


if __name__ == "__main__":
    sys.exit(main())
