"""Who the devices are, by the CUDA driver; the libraries that a worker has loaded, and what they say."""

from __future__ import annotations

import ctypes
import importlib
import platform
import re
import uuid
from pathlib import Path
from typing import Any


def cuda_devices(driver: Any = None) -> list[dict[str, str]]:
    """The uuid, bus_id and name of each GPU in CUDA's own order; no context is made on any.

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
        handle, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        bus_id, name = ctypes.create_string_buffer(32), ctypes.create_string_buffer(256)
        ask("cuDeviceGet", ctypes.byref(handle), ordinal)
        ask("cuDeviceGetUuid_v2", ctypes.byref(raw), handle)
        ask("cuDeviceGetPCIBusId", bus_id, 32, handle)
        ask("cuDeviceGetName", name, 256, handle)
        identity = {"uuid": f"GPU-{uuid.UUID(bytes=bytes(raw))}", "bus_id": bus_id.value.decode("ascii", "replace")}
        devices.append({**identity, "name": name.value.decode("utf-8", "replace")})
    return devices


def identity_of(device: str) -> dict[str, Any]:
    """The uuid, bus_id and name of one device; raises `RuntimeError` where there is no such device."""
    if device.startswith("cuda:"):
        devices, ordinal = cuda_devices(), int(device[5:])
        if ordinal >= len(devices):
            raise RuntimeError(f"there is no {device}: the driver shows {len(devices)} GPUs")
        return {**devices[ordinal]}
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text("utf-8", "replace")) if cpuinfo.exists() else None
    return {"uuid": None, "bus_id": None, "name": model[1] if model else platform.machine()}


def nvml_of(bus_id: str) -> tuple[Any, Any]:
    """NVML through pynvml, and its handle of one GPU; None and None where that is not to be had."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None, None
    try:
        nvml.nvmlInit()
        return nvml, nvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
    except nvml.NVMLError:
        return None, None


def cublas_version() -> str | None:
    """The version that the loaded cuBLAS library gives itself, such as 12.4.5; None without one.

    The file that is mapped into this process is asked: an installed package need not be the one in use.
    """
    maps = Path("/proc/self/maps")
    found = re.search(r"/\S*libcublas\.so\S*", maps.read_text("utf-8", "replace")) if maps.exists() else None
    if found is None:
        return None
    parts = [ctypes.c_int(-1) for _ in range(3)]
    try:
        library = ctypes.CDLL(found[0])
    except OSError:  # replaced on disk since it was loaded
        return None
    for which, part in enumerate(parts):  # cublasGetProperty: 0 major, 1 minor, 2 patch
        library.cublasGetProperty(which, ctypes.byref(part))
    return ".".join(str(part.value) for part in parts) if parts[0].value > 0 else None


def load_torch() -> Any:
    """The torch module, set to plain float32 and to sums in float32."""
    # through importlib, since a type checker would otherwise read all of torch
    torch: Any = importlib.import_module("torch")
    torch.set_float32_matmul_precision("highest")  # no TF32
    names = ("fp16_accumulation", "fp16_reduced_precision_reduction", "bf16_reduced_precision_reduction")
    for name in (f"allow_{name}" for name in names):
        if hasattr(torch.backends.cuda.matmul, name):
            setattr(torch.backends.cuda.matmul, name, False)
    return torch


def sentence(torch: Any, error: Exception) -> str:
    """An error of torch as one line."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    short = isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in text
    return f"out of memory: {text}" if short else text
