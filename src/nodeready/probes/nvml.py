"""Reads every GPU through NVML and prints one JSON document.

Stand-alone: needs Python >= 3.9 and nvidia-ml-py (its module is pynvml), nothing of nodeready. The
parent never calls NVML: one process reads the node, then one process each GPU, then one the pairs of
GPUs. Each names a call before it makes it, so that of a call that never returns the name is known,
what was read before it is kept, and no other GPU is concerned. A process that can't be killed is
abandoned. `errors` holds NVML's own word for each call that failed, `unread` the calls that would
have given a value; a value that NVML did not give is not there. Exit status 0: answered (a device
may hold errors), 2: usage, 3: no NVML library here, or no nvidia-ml-py.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import itertools
import json
import os
import platform
import select
import signal
import struct
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NO_BINDING = "this Python has no nvidia-ml-py: pip install nvidia-ml-py"
SHADOWED = (
    "the module pynvml at {} is not nvidia-ml-py's but that of the deprecated package pynvml, which hides it:"
    " pip uninstall pynvml; pip install --force-reinstall nvidia-ml-py"
)
NOT_IN_BINDING = "NOT_IN_BINDING"  # this nvidia-ml-py does not know the call; FUNCTION_NOT_FOUND: the driver lacks it
CAN_NOT = ("NOT_SUPPORTED", "INVALID_ARGUMENT", "FUNCTION_NOT_FOUND", NOT_IN_BINDING)  # of every link alike
MOST_GPUS, MOST_LINKS = 64, 36
NODE_ITSELF = -1
WHOLE = 1.75  # of the deadline of one process: what the whole run may take
KILL_SECONDS = 0.3

# fmt: off
# by NVML's numbers; bindings of older dates know fewer than drivers answer with
ERRORS = (
    "SUCCESS", "UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "ALREADY_INITIALIZED",
    "NOT_FOUND", "INSUFFICIENT_SIZE", "INSUFFICIENT_POWER", "DRIVER_NOT_LOADED", "TIMEOUT", "IRQ_ISSUE",
    "LIBRARY_NOT_FOUND", "FUNCTION_NOT_FOUND", "CORRUPTED_INFOROM", "GPU_IS_LOST", "RESET_REQUIRED",
    "OPERATING_SYSTEM", "LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "VGPU_ECC_NOT_SUPPORTED",
    "INSUFFICIENT_RESOURCES", "FREQ_NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH", "DEPRECATED", "NOT_READY",
    "GPU_NOT_FOUND", "INVALID_STATE", "RESET_TYPE_NOT_SUPPORTED",
)
# fmt: on


def error_name(code: int) -> str:
    """NVML's name of an error: GPU_IS_LOST for 15."""
    if 0 <= code < len(ERRORS):
        return ERRORS[code]
    return "UNKNOWN" if code == 999 else f"ERROR_{code}"


# ---- what an answer means ---------------------------------------------------------------------


def text(answer: str | bytes) -> str:
    """Some versions of the binding give bytes where others give a text."""
    return (answer.decode() if isinstance(answer, bytes) else answer).strip()


def thousandths(answer: float) -> float:
    """Watts where NVML counts milliwatts, GB/s where it counts MB/s."""
    return answer / 1000


def coded(*words: str) -> Callable[[int], str]:
    """What a code means, in nvidia-smi's words; `ValueError` for a code that has no word here."""

    def convert(code: int) -> str:
        if not 0 <= code < len(words) or not words[code]:
            raise ValueError(f"answered {code}, which has no meaning here")
        return words[code]

    return convert


def pci_id(answer: int) -> str:
    """Vendor and device: 10de:2330 for 0x233010DE."""
    return f"{answer & 0xFFFF:04x}:{answer >> 16:04x}"


# fmt: off
on_off, yes_no = coded("Disabled", "Enabled"), coded("No", "Yes")
brand = coded(
    "", "Quadro", "Tesla", "NVS", "Grid", "GeForce", "Titan", "", "", "", "", "", "Quadro RTX", "NVIDIA RTX", "NVIDIA")
performance_state = coded(*(f"P{state}" for state in range(16)))
compute_mode = coded("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
virtualization = coded("None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA")
recovery_action = coded(
    "None", "Reset", "Reboot", "Drain P2P", "Drain and Reset", "Recover IMEX Domain", "Bus Reset", "System Reboot")
nvlink_version = coded("", "1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0", "6.0")
remote_type = coded("gpu", "ibmnpu", "switch")
fabric_state = coded("", "Not Started", "In Progress", "Completed")
p2p_status = coded(
    "OK", "CHIPSET_NOT_SUPPORTED", "GPU_NOT_SUPPORTED", "IOH_TOPOLOGY_NOT_SUPPORTED", "DISABLED_BY_REGKEY",
    "NOT_SUPPORTED", "UNKNOWN")
# fmt: on


def cuda_version(answer: int) -> str:
    """The version from NVML's one number: 12.8 for 12080."""
    return f"{answer // 1000}.{answer % 1000 // 10}"


# structures of our own, since bindings up to 12.535 have the fabric's wrong
class FabricV1(ctypes.Structure):
    """nvmlGpuFabricInfo_t."""

    _fields_ = (
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_int),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    )


class FabricV2(ctypes.Structure):
    """nvmlGpuFabricInfo_v2_t."""

    _fields_ = (("version", ctypes.c_uint), *FabricV1._fields_, ("health", ctypes.c_uint))


class Sram(ctypes.Structure):
    """nvmlEccSramErrorStatus_v1_t: uncorrectable by parity and SEC-DED, then corrected; of all time, then volatile."""

    _fields_ = (("version", ctypes.c_uint), ("counts", ctypes.c_uint64 * 11), ("exceeded", ctypes.c_uint))


def fabric(info: Any) -> dict[str, Any]:
    """State, status and health of a GPU in the NVLink fabric; what the platform does not report is left out.

    The status means something once the state is Completed. Drivers before 550 report no health.
    """
    if info.state == 0:
        raise ValueError("NOT_SUPPORTED")
    found: dict[str, Any] = {"state": fabric_state(info.state)}
    if found["state"] == "Completed":
        status = error_name(info.status).replace("_", " ").title()  # as nvidia-smi spells it
        found["status"] = "Unknown Error" if status == "Unknown" else status
    mask = getattr(info, "health", 0)
    names = ("degraded_bandwidth", "route_recovery", "route_unhealthy", "access_timeout_recovery")
    health: dict[str, Any] = {name: mask >> 2 * place & 3 for place, name in enumerate(names)}
    health = {name: code == 1 for name, code in health.items() if code in (1, 2)}
    if mask >> 8 & 15:
        health["incorrect_configuration"] = (mask >> 8 & 15) - 1  # 0 is none; else NVML's code less 1
    return {**found, "health": health} if health else found


# ---- the process that asks --------------------------------------------------------------------


class Reader:
    """Asks NVML, and tells the parent each step as one JSON line."""

    def __init__(self, nvml: Any, out: Any) -> None:
        self.nvml, self.out = nvml, out
        self.handle: tuple[Any, ...] = ()  # of the GPU that the rows are about
        self.about = NODE_ITSELF  # the index of the GPU that this is about
        self.within: tuple[str, ...] = ()  # the part of the GPU that this is about
        self.refused = ""  # the last error

    def tell(self, **step: Any) -> None:
        """One step; nothing is kept back, since the next call may never return."""
        print(json.dumps({"about": self.about, **step}), file=self.out, flush=True)

    def put(self, value: Any, key: str) -> None:
        """A value that was read."""
        self.tell(put=[*self.within, key], value=value)

    def refuse(self, error: str) -> None:
        """The call that was asked last gave no value."""
        self.refused = error
        self.tell(error=error)

    def unread(self, keys: Iterable[str], *calls: str) -> None:
        """Values that are not to be had, since these calls failed."""
        self.tell(unread=["/".join((*self.within, key)) for key in keys], calls=calls)

    def call(self, function: str, *arguments: Any, label: object = "") -> tuple[Any, str]:
        """The answer of one call and an empty text, or None and the error, which is not told yet."""
        name = f"({label})" if label != "" else ""
        self.tell(ask=f"{function}{name}")
        known = getattr(self.nvml, function, None)
        if known is None:
            return None, NOT_IN_BINDING
        try:
            return known(*arguments), ""
        except self.nvml.NVMLError as error:
            return None, error_name(error.value)
        except UnicodeDecodeError:
            return None, "answered with bytes that are no text"
        except TypeError:  # called in a way that older bindings do not know
            return None, NOT_IN_BINDING

    def ask(self, function: str, *arguments: Any, label: object = "") -> Any:
        """The answer of one call, None where it is an error, which is told."""
        answer, error = self.call(function, *arguments, label=label)
        if error:
            self.refuse(error)
        return answer

    def filled(self, function: str, shape: type[ctypes.Structure], version: int) -> Any:
        """The structure that a call fills, None where it does not."""
        room: Any = shape()
        if version:
            room.version = version << 24 | ctypes.sizeof(shape)
        return None if self.ask(function, *self.handle, ctypes.byref(room)) is None else room

    def field(self, field: int, scope: int, label: str) -> Any:
        """A field value, None where there is none, which is told."""
        answer = self.ask("nvmlDeviceGetFieldValues", *self.handle, [(field, scope)], label=label)
        if answer is None:
            return None
        if answer[0].nvmlReturn == 0 and 0 <= answer[0].valueType < len(VALUE_TYPES):
            (value,) = struct.unpack_from(f"={VALUE_TYPES[answer[0].valueType]}", bytes(answer[0].value))
            return value
        self.refuse(error_name(answer[0].nvmlReturn) if answer[0].nvmlReturn else "answered with an unknown type")
        return None

    def read(self, asked: Row) -> bool:
        """Whether a row was answered, or one that stands in for it; what is left is told as unread."""
        left: list[str] = []
        failed: list[str] = []
        given = False
        for row in (asked, *asked.instead):
            given = self._given(row)
            left = [key for key in left if key not in row.fields]
            if given:
                break
            left += row.fields
            failed.append(row.label)
        if left:
            self.unread(left, *failed)
        return given

    def _given(self, row: Row) -> bool:
        answer = row.ask(self)
        if answer is None:
            return False
        parts = answer if isinstance(answer, (list, tuple)) and len(row.fields) > 1 else [answer] * len(row.fields)
        try:
            values = {key: convert(part) for (key, convert), part in zip(row.fields.items(), parts)}  # noqa: B905 - 3.9
        except ValueError as error:
            self.refuse(str(error))
            return False
        for key, value in values.items():
            self.put(value, key)
        return True


class Row(NamedTuple):
    """A question and the values that its answer holds: a list is dealt out, anything else goes to each.

    Where it is not answered those of `instead` are asked.
    """

    label: str
    ask: Callable[[Reader], Any]
    fields: dict[str, Callable[[Any], Any]]
    instead: tuple[Row, ...] = ()


def either(first: Row, *others: Row) -> Row:
    """Rows that stand in for each other."""
    return first._replace(instead=others)


def call(function: str, *arguments: Any, label: str = "", **fields: Callable[[Any], Any]) -> Row:
    """A call about the node, or about the GPU that is being read."""
    name = f"{function}({label})" if label else function
    return Row(name, lambda reader: reader.ask(function, *reader.handle, *arguments, label=label), fields)


def filled(function: str, shape: type[ctypes.Structure], version: int = 0, **fields: Callable[[Any], Any]) -> Row:
    """A call that fills a structure of the caller's."""
    return Row(function, lambda reader: reader.filled(function, shape, version), fields)


def field(number: int, name: str, scope: int | None = None, **fields: Callable[[Any], Any]) -> Row:
    """A field value by its number, since older bindings lack some names; `scope` is the link that it is about."""
    label = name if scope is None else f"{name}, {scope}"
    row = f"nvmlDeviceGetFieldValues({label})"
    return Row(row, lambda reader: reader.field(number, scope or 0, label), fields)


def ecc(corrected: str, period: str, place: str, key: str) -> Row:
    """A counter of memory errors."""
    codes = ("corrected", "uncorrected").index(corrected), ("volatile", "aggregate").index(period)
    location = {"DRAM": 2, "SRAM": 7}[place]
    label = f"{corrected}, {period}, {place}"
    return call("nvmlDeviceGetMemoryErrorCounter", *codes, location, label=label, **{key: int})


def firmware(reader: Reader) -> bytes | None:
    """The version of the GPU's own firmware; older bindings want room for it."""
    room = ctypes.create_string_buffer(64)
    done = reader.ask("nvmlDeviceGetGspFirmwareVersion", *reader.handle, room) is not None
    return room.value if done else None


VALUE_TYPES = "dIQQqiH"  # of field values, as struct spells them
MEMORY_V2 = 0x02000028  # bindings had this constant wrong
BANKS = ("max", "high", "partial", "low", "none")  # of memory, by the spare rows left to them

# fmt: off
NODE: tuple[Row, ...] = (
    call("nvmlSystemGetDriverVersion", driver_version=text),
    call("nvmlSystemGetNVMLVersion", nvml_version=text),
    either(
        call("nvmlSystemGetCudaDriverVersion_v2", cuda_version=cuda_version),
        call("nvmlSystemGetCudaDriverVersion", cuda_version=cuda_version)),
    call("nvmlDeviceGetCount", device_count=int),
)
# who the GPU is comes first: what is not reached before a hang can still be told apart
GPU: tuple[Row, ...] = (
    call("nvmlDeviceGetPciInfo",
         bus_id=lambda pci: text(pci.busId),
         device_id=lambda pci: pci_id(pci.pciDeviceId), subsystem_id=lambda pci: pci_id(pci.pciSubSystemId)),
    call("nvmlDeviceGetUUID", uuid=text),
    call("nvmlDeviceGetSerial", serial=text),
    call("nvmlDeviceGetName", product_name=text),
    call("nvmlDeviceGetBrand", product_brand=brand),
    call("nvmlDeviceGetMinorNumber", minor=int),
    call("nvmlDeviceGetCudaComputeCapability", compute_capability=lambda pair: f"{pair[0]}.{pair[1]}"),
    call("nvmlDeviceGetVbiosVersion", vbios=text),
    call("nvmlDeviceGetBoardPartNumber", board_part=text),
    Row("nvmlDeviceGetGspFirmwareVersion", firmware, {"gsp_firmware": text}),
    call("nvmlDeviceGetVirtualizationMode", virtualization=virtualization),
    field(230, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", recovery_action=recovery_action),
    call("nvmlDeviceGetPersistenceMode", persistence=on_off),
    call("nvmlDeviceGetMigMode", mig_current=on_off, mig_pending=on_off),
    call("nvmlDeviceGetComputeMode", compute_mode=compute_mode),
    call("nvmlDeviceGetPerformanceState", performance_state=performance_state),
    call("nvmlDeviceGetCurrPcieLinkGeneration", link_gen_current=int),
    call("nvmlDeviceGetMaxPcieLinkGeneration", link_gen_max=int),
    call("nvmlDeviceGetGpuMaxPcieLinkGeneration", link_gen_device_max=int),
    call("nvmlDeviceGetCurrPcieLinkWidth", link_width_current=int),
    call("nvmlDeviceGetMaxPcieLinkWidth", link_width_max=int),
    call("nvmlDeviceGetPcieReplayCounter", replay_counter=int),
    call("nvmlDeviceGetBAR1MemoryInfo", bar1_total_bytes=lambda bar1: int(bar1.bar1Total)),
    either(
        call("nvmlDeviceGetMemoryInfo", MEMORY_V2, label="v2",
             memory_total_bytes=lambda memory: int(memory.total),
             memory_used_bytes=lambda memory: int(memory.used)),
        # what version 1 calls used includes what the driver reserves
        call("nvmlDeviceGetMemoryInfo", memory_total_bytes=lambda memory: int(memory.total))),
    call("nvmlDeviceGetUtilizationRates", gpu_util_percent=lambda rates: int(rates.gpu)),
    call("nvmlDeviceGetEccMode", ecc_mode_current=on_off, ecc_mode_pending=on_off),
    ecc("uncorrected", "volatile", "DRAM", "ecc_dram_uncorrected_volatile"),
    ecc("uncorrected", "aggregate", "DRAM", "ecc_dram_uncorrected_aggregate"),
    ecc("corrected", "volatile", "DRAM", "ecc_dram_corrected_volatile"),
    call("nvmlDeviceGetRemappedRows",
         row_remap_corrected=int, row_remap_uncorrected=int,
         row_remap_pending=yes_no, row_remap_failure=yes_no),
    call("nvmlDeviceGetRowRemapperHistogram",
         row_remap_banks=lambda found: {name: int(getattr(found, name)) for name in BANKS}),
    either(
        call("nvmlDeviceGetCurrentClocksEventReasons", clocks_event_reasons=int),
        call("nvmlDeviceGetCurrentClocksThrottleReasons", clocks_event_reasons=int)),
    call("nvmlDeviceGetEnforcedPowerLimit", power_limit_watts=thousandths),
    call("nvmlDeviceGetPowerManagementDefaultLimit", power_limit_default_watts=thousandths),
    call("nvmlDeviceGetPowerManagementLimitConstraints",
         power_limit_min_watts=thousandths, power_limit_max_watts=thousandths),
    call("nvmlDeviceGetPowerUsage", power_draw_watts=thousandths),
    either(
        call("nvmlDeviceGetTemperature", 0, temperature_degc=int),
        call("nvmlDeviceGetTemperatureV", 0, temperature_degc=int)),
    call("nvmlDeviceGetMarginTemperature", margin_degc=int),
    either(
        field(194, "NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT", margin_slowdown_degc=int),
        call("nvmlDeviceGetTemperatureThreshold", 1, label="slowdown", slowdown_degc=int)),
    either(
        field(193, "NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT", margin_shutdown_degc=int),
        call("nvmlDeviceGetTemperatureThreshold", 0, label="shutdown", shutdown_degc=int)),
    field(196, "NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT", margin_max_operating_degc=int),
    field(82, "NVML_FI_DEV_MEMORY_TEMP", memory_temperature_degc=int),
    either(
        filled("nvmlDeviceGetGpuFabricInfoV", FabricV2, 2, fabric=fabric),
        filled("nvmlDeviceGetGpuFabricInfo", FabricV1, fabric=fabric)),
    call("nvmlDeviceGetClockInfo", 1, label="SM", sm_clock_mhz=int),
    call("nvmlDeviceGetMaxClockInfo", 1, label="SM", sm_clock_max_mhz=int),
    call("nvmlDeviceGetClockInfo", 2, label="memory", memory_clock_mhz=int),
    call("nvmlDeviceGetMaxClockInfo", 2, label="memory", memory_clock_max_mhz=int),
)
SRAM = filled(
    "nvmlDeviceGetSramEccErrorStatus", Sram, 1,
    ecc_sram_uncorrected_volatile=lambda status: int(status.counts[3] + status.counts[4]),
    ecc_sram_uncorrected_aggregate=lambda status: int(status.counts[0] + status.counts[1]),
    ecc_sram_corrected_volatile=lambda status: int(status.counts[5]),
    sram_threshold_exceeded=lambda status: yes_no(status.exceeded))
# fmt: on
# older drivers count SRAM errors one by one
SRAM_COUNTERS = (
    ecc("uncorrected", "volatile", "SRAM", "ecc_sram_uncorrected_volatile"),
    ecc("uncorrected", "aggregate", "SRAM", "ecc_sram_uncorrected_aggregate"),
    ecc("corrected", "volatile", "SRAM", "ecc_sram_corrected_volatile"),
)
# by the call for it, since the field values of before Hopper answer 0 on Hopper whatever happened
LINK_COUNTERS = {"replay": 0, "recovery": 1, "crc_flit": 2, "ecc_data": 4}


def start(reader: Reader) -> bool:
    """Whether NVML started; where there is no library the loader's own words are told."""
    _, error = reader.call("nvmlInit")
    if not error:
        return True
    reader.refuse(error)
    if error == "LIBRARY_NOT_FOUND":
        try:
            ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as problem:
            reader.tell(ask="dlopen")
            reader.refuse(str(problem))
    return False


def read_node(reader: Reader) -> None:
    """Versions and the number of GPUs."""
    if start(reader):
        for row in NODE:
            reader.read(row)


def read_gpu(reader: Reader, index: int) -> None:
    """Everything about one GPU."""
    handle = reader.ask("nvmlDeviceGetHandleByIndex", index) if start(reader) else None
    if handle is None:
        return
    reader.handle = (handle,)
    for row in GPU:
        reader.read(row)
    if not reader.read(SRAM):
        for row in SRAM_COUNTERS:
            reader.read(row)
    read_processes(reader)
    read_links(reader)


def read_processes(reader: Reader) -> None:
    """Who uses the GPU, by nvidia-smi's types; unread where one kind can't be listed."""
    found: dict[int, str] = {}
    failed = []
    for word, kind in {"Compute": "C", "Graphics": "G", "MPSCompute": "M+C"}.items():
        function = f"nvmlDeviceGet{word}RunningProcesses"
        listed, error = reader.call(function, *reader.handle)
        if error:
            reader.refuse(error)
            if kind == "C" or error not in CAN_NOT:
                failed.append(function)
        for process in listed or ():
            found[process.pid] = "C+G" if found.get(process.pid) == "C" and kind == "G" else kind
    if failed:
        reader.unread(("processes",), *failed)
        return
    names = {pid: reader.ask("nvmlSystemGetProcessName", pid, label=pid) for pid in found}
    reader.put([{"pid": pid, "type": kind, "name": names[pid]} for pid, kind in found.items()], "processes")


def link_state(reader: Reader, index: int) -> tuple[str, str]:
    """The state of one link in a word and, where that is `unknown`, why; empty past the last link.

    Only this call tells which links there are: others answer for links that do not exist. That a link
    is not supported is no error: it is not there.
    """
    state, error = reader.call("nvmlDeviceGetNvLinkState", *reader.handle, index, label=index)
    if error == "INVALID_ARGUMENT" and index:
        return "", ""
    if error == "NOT_SUPPORTED":
        return "not-supported", ""
    if error or state not in (0, 1):
        return "unknown", error or f"answered {state}, which has no meaning here"
    return ("inactive", "active")[state], ""


def read_links(reader: Reader) -> None:
    """The state of every NVLink, how many there are, and what each active one says."""
    words: list[str] = []
    while len(words) < MOST_LINKS and "unknown" not in words:
        word, error = link_state(reader, len(words))
        if not word:
            break
        reader.within = ("nvlink", str(len(words)))
        reader.put(word, "state")
        reader.within = ()
        words.append(word)
        if error:
            reader.refuse(error)
            reader.unread(("nvlink_count",), f"nvmlDeviceGetNvLinkState({len(words) - 1})")
    if "unknown" not in words:
        reader.put(len(words) - words.count("not-supported"), "nvlink_count")
    read_active([index for index, word in enumerate(words) if word == "active"], reader)


def read_active(links: Sequence[int], reader: Reader) -> None:
    """Version, speed, remote end and error counters; what one link can't say the others are not asked."""
    silent: set[str] = set()
    for index in links:
        reader.within = ("nvlink", str(index))
        for row in link_rows(index):
            (key,) = row.fields
            if key not in silent and not reader.read(row) and reader.refused in CAN_NOT:
                silent.add(key)
    reader.within = ()


def link_rows(index: int) -> list[Row]:
    """What is asked of an active link, one value each."""
    rows = [
        call("nvmlDeviceGetNvLinkVersion", index, label=f"{index}", version=nvlink_version),
        field(164, "NVML_FI_DEV_NVLINK_GET_SPEED", scope=index, speed_gb_per_s=thousandths),
        call("nvmlDeviceGetNvLinkRemoteDeviceType", index, label=f"{index}", remote_type=remote_type),
        call("nvmlDeviceGetNvLinkRemotePciInfo", index, label=f"{index}", remote_bus_id=lambda pci: text(pci.busId)),
    ]
    for name, code in LINK_COUNTERS.items():
        fields = {f"{name}_errors": int}
        rows.append(call("nvmlDeviceGetNvLinkErrorCounter", index, code, label=f"{index}, {name}", **fields))
    return rows


def read_pairs(reader: Reader, indices: Sequence[int]) -> None:
    """Whether each GPU can reach each other one over NVLink."""
    if not start(reader):
        return
    handles = {}
    for reader.about in indices:
        handle = reader.ask("nvmlDeviceGetHandleByIndex", reader.about, label="pairs")
        if handle is not None:
            handles[reader.about] = handle
    reader.within = ("p2p_nvlink",)
    for one, other in itertools.permutations(handles, 2):
        reader.about, reader.handle = one, (handles[one], handles[other])
        nvlink, fields = 2, {str(other): p2p_status}
        reader.read(call("nvmlDeviceGetP2PStatus", nvlink, label=f"{one}, {other}", **fields))


# ---- the parent ---------------------------------------------------------------------------------


class Entry:
    """What one process told of one GPU, or of the node."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.errors: dict[str, str] = {}
        self.unread: dict[str, list[str]] = {}  # for each value the calls that failed

    def put(self, path: Sequence[str], value: Any) -> None:
        """A value at its place; it is no longer unread."""
        *above, key = path
        place = self.values
        for name in above:
            place = place.setdefault(name, {})
        place[key] = value
        self.unread.pop("/".join(path), None)


class Worker:
    """A process that asks, and what it has told so far."""

    def __init__(self, nvml: Any, about: int, work: Callable[[Reader], None], seconds: float) -> None:
        self.about, self.entry = about, Entry()
        self.entries = {about: self.entry}  # more than this one where a process reads several GPUs
        self.asking: tuple[int, str] | None = None  # about whom, and the call
        self.seconds, self.asked_at = seconds, time.monotonic()
        self.done, self.ended, self.unfinished = False, "", ""  # why it ended before it was done, and in which call
        self.status: int | None = None  # as os.waitpid gives it
        self.said: list[str] = []  # what is no step: errors of libraries and of Python
        self._rest, self.open = b"", True
        self.pipe, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            be_worker(nvml, about, work, write, seconds)
        os.close(write)
        os.set_blocking(self.pipe, False)

    def listen(self) -> None:
        """Take what it has told since."""
        while self.open:
            try:
                data = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                return
            self.open = bool(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._take(line.decode("utf-8", "replace"))

    def _take(self, line: str) -> None:
        try:
            step = json.loads(line)
            entry = self.entries.setdefault(step["about"], Entry())
        except (ValueError, TypeError, KeyError):
            self.said = [*self.said[-80:], line]
            return
        if "ask" in step:
            self.asking, self.asked_at = (step["about"], step["ask"]), time.monotonic()
        elif "error" in step and self.asking is not None:
            entry.errors[self.asking[1]] = step["error"]
        elif "put" in step:
            entry.put(step["put"], step["value"])
        elif "unread" in step:
            for key in step["unread"]:
                entry.unread.setdefault(key, []).extend(step["calls"])
        self.done = self.done or "done" in step

    def has_ended(self) -> bool:
        """Whether the process is gone: it is watched itself, since others may hold its pipe."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def kill(self) -> None:
        """End it, since its time is up; it is not waited for."""
        waited = time.monotonic() - self.asked_at
        self.ended = f"no answer in {self.seconds:.3g} s"
        if waited < 0.7 * self.seconds:
            self.ended = f"time was up after {self.seconds:.3g} s, {waited:.1f} s into this call"
        os.kill(self.pid, signal.SIGKILL)

    def conclude(self) -> None:
        """Name the call that it ended in, where it was not done; abandon it where it is still there."""
        self.listen()
        os.close(self.pipe)
        self.open = False
        if self.done:
            return
        if self.status is None:
            self.ended += f"; process {self.pid} cannot be killed and was abandoned"
        elif not self.ended:
            number = os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0
            how = f"was ended by {signal.Signals(number).name}" if number else "ended"
            self.ended = ": ".join([f"the process that asked {how}", *self.said[-1:]])
        about, asked = self.asking or (self.about, "process")
        self.entries[about].errors[asked] = self.ended
        self.unfinished = f"{asked}: {self.ended}"


def be_worker(nvml: Any, about: int, work: Callable[[Reader], None], write: int, seconds: float) -> NoReturn:
    """The life of a process that asks: it never returns."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + 2)  # its parent may be gone by then
        null = os.open(os.devnull, os.O_RDWR)
        for place, descriptor in enumerate((null, null, write)):
            os.dup2(descriptor, place)
        with os.fdopen(write, "w", encoding="utf-8") as out:
            reader = Reader(nvml, out)
            reader.about = about
            work(reader)
            reader.tell(done=True)
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent reads it, and must not run on twice
        traceback.print_exc()
    finally:
        os._exit(status)


def follow(workers: Sequence[Worker], seconds: float) -> None:
    """Listen to all until they have ended or the time is up; then end those that have not."""
    until = time.monotonic() + seconds
    running = list(workers)
    while running and time.monotonic() < until:
        select.select([worker.pipe for worker in running if worker.open], [], [], 0.02)
        for worker in running:
            worker.listen()
        running = [worker for worker in running if not worker.has_ended()]
    for worker in running:
        worker.kill()
    until = time.monotonic() + KILL_SECONDS
    while not all([worker.has_ended() for worker in running]) and time.monotonic() < until:  # noqa: C419 - ask all
        time.sleep(0.01)
    for worker in workers:
        worker.conclude()


def device(index: int, worker: Worker) -> dict[str, Any]:
    """The document's entry of one GPU; links past the last one that is there are left out."""
    found: dict[str, Any] = {"index": index, **worker.entry.values}
    if "nvlink" in found:
        found["nvlink"] = links = [{"index": int(number), **link} for number, link in found["nvlink"].items()]
        while len(links) > 1 and links[-1]["state"] == "not-supported":
            links.pop()
    if worker.unfinished:
        found["unfinished"] = worker.unfinished
    return {**found, "unread": worker.entry.unread, "errors": worker.entry.errors}


def add_pairs(devices: dict[int, dict[str, Any]], able: Sequence[int], worker: Worker | None) -> None:
    """Put what is known of pairs into the entries of the devices, and why the rest is not."""
    why = worker.unfinished or "NVML did not start again" if worker is not None else "no time was left"
    for index in able:
        told = worker.entries.get(index, Entry()) if worker is not None else Entry()
        pairs = devices[index]["p2p_nvlink"] = told.values.get("p2p_nvlink", {})
        errors = devices[index]["errors"]
        for other in devices:
            if other != index and str(other) not in pairs:
                reason = why if other in able else f"GPU {other} gave no answer"
                errors[f"nvmlDeviceGetP2PStatus({index}, {other})"] = f"not asked: {reason}"
        errors.update(told.errors)


# ---- the command line -----------------------------------------------------------------------------


def binding() -> tuple[Any, str | None, str]:
    """The module of nvidia-ml-py, its version where that is known, and why it can't be used, or nothing."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None:
        return None, None, NO_BINDING
    if spec.submodule_search_locations is not None:
        return None, None, SHADOWED.format(", ".join(spec.submodule_search_locations))
    try:
        nvml: Any = importlib.import_module("pynvml")
    except (ImportError, SyntaxError, OSError) as error:
        return None, None, f"nvidia-ml-py does not load: {error}"
    if not hasattr(nvml, "_nvmlGetFunctionPointer") or not hasattr(nvml, "NVMLError"):
        return None, None, SHADOWED.format(spec.origin)
    installed = sorted(Path(spec.origin or ".").parent.glob("nvidia_ml_py-*-info"))
    return nvml, installed[-1].name.partition("-")[2].rpartition(".")[0] if installed else None, ""


def probe(options: argparse.Namespace, nvml: Any, document: dict[str, Any]) -> None:
    """Fill the document: the node, every GPU by itself, then the pairs of those that answered."""
    begun, workers = time.monotonic(), []

    def run(works: dict[int, Callable[[Reader], None]]) -> dict[int, Worker]:
        seconds = min(options.deadline, options.deadline * WHOLE - (time.monotonic() - begun))
        started = {}
        for about, work in works.items():
            started[about] = Worker(nvml, about, work, seconds)
            workers.append(started[about])
        follow([*started.values()], seconds)
        return started

    try:
        node = run({NODE_ITSELF: read_node})[NODE_ITSELF]
        document.update(node.entry.values, unread=node.entry.unread, errors=node.entry.errors)
        document["unfinished"] = node.unfinished or None
        indices = options.index or range(min(document["device_count"] or 0, MOST_GPUS))
        gpus = run({index: partial(read_gpu, index=index) for index in indices})
        devices = {index: device(index, worker) for index, worker in gpus.items()}
        able = [index for index, found in devices.items() if "bus_id" in found and "unfinished" not in found]
        pairs = None
        if len(able) > 1 and time.monotonic() - begun < options.deadline * WHOLE - 0.5:
            pairs = run({NODE_ITSELF: partial(read_pairs, indices=able)})[NODE_ITSELF]
            document["errors"].update(pairs.entry.errors)
        add_pairs(devices, able, pairs)
        document["devices"] = [*devices.values()]
    finally:
        for worker in workers:
            if not worker.has_ended():
                os.kill(worker.pid, signal.SIGKILL)
    for line in dict.fromkeys(line for worker in workers for line in worker.said):
        print(line, file=sys.stderr)
    if document["errors"].get("nvmlInit") == "LIBRARY_NOT_FOUND":
        document["error"] = "LIBRARY_NOT_FOUND"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the document; the exit status."""
    parser = argparse.ArgumentParser(description="Reads every GPU through NVML.")
    parser.add_argument("--index", type=int, action="append", help="read only this GPU (default: all)")
    parser.add_argument("--deadline", type=float, default=8.0, help="seconds for one GPU; less than twice that in all")
    options = parser.parse_args(argv)
    if not 0 < options.deadline <= 3600 or any(index < 0 for index in options.index or ()):
        parser.error("--deadline must be above 0 and at most 3600, --index 0 or more")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored no process can be waited for
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # by the way that ends the others
    begun = time.monotonic()
    nvml, version, error = binding()
    document: dict[str, Any] = {"probe": "nvml", "schema": 1, "python": platform.python_version(), "binding": version}
    document.update(dict.fromkeys(("driver_version", "nvml_version", "cuda_version", "device_count")))
    document.update(unfinished=None, unread={}, errors={}, devices=[], error=error or None)
    if not error:
        probe(options, nvml, document)
    document["seconds"] = round(time.monotonic() - begun, 3)
    print(json.dumps(document))
    return 3 if document["error"] else 0


if __name__ == "__main__":
    sys.exit(main())
