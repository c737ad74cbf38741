"""What each Xid of the GPU driver, and SXid of an NVSwitch, means at the gate, and what a technician does about it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodeready.facts.kernel_log import SXid, Xid

_RESTART = "Restart the job; if the error comes back on this GPU with another job, run the acceptance load on it."
_RESET = (
    "Drain the node and reset the GPU (nvidia-smi --gpu-reset -i INDEX), or reboot;"
    " if the error comes back, have the GPU replaced."
)
_REBOOT = "Drain the node and power-cycle it; if the error comes back, reseat the GPU, then have it replaced."
_REPLACE = "Drain the node and have the GPU replaced: keep the nvidia-bug-report for the vendor."
_POWER = "Power the node off; check the GPU's power cables and the power supplies."
_ECC = (
    "Drain the node and reset the GPU; read its row remap and ECC counters afterwards:"
    " a failed remap or a further error means that the GPU is replaced."
)
_NVLINK = (
    "Drain the node; see which link in nvidia-smi nvlink -e and in the fabric manager's log; reset the GPUs of the"
    " board or reboot; if the link fails again, have the GPU or its board serviced."
)
_SOFTWARE = "Drain the node and reset the GPU; bring driver and GPU firmware to the baseline's version."
_WATCH = "No action by itself: note it, and look at the other errors of this GPU."
_OBSERVE = "Keep the node in service only under watch; if it comes back, open a case with the GPU's vendor."
_READ = "Read the line in the kernel log itself: the number of the error could not be read from it."
_UPDATE = "Bring host driver, guest driver and licence of the vGPU software to versions that match."
_FOLLOW = "Follow the Xid before it on the same GPU; alone and in numbers, restart the fabric manager."
_REMAP = "Drain the node and reset the GPU, so that the spare row takes over; then read the row remap state again."


@dataclass(frozen=True)
class XidKind:
    """One code: the driver's name for it, its meaning, how it weighs at the gate, and the next step.

    `severity` is fatal, warning, application, info, `remap` (63: it weighs only while the row remap
    is pending or unknown), or `unreadable` (0, which stands for a code that can't be read). Codes 144 to
    150 and 154 are told apart by their text: see `classify`.
    """

    mnemonic: str
    meaning: str
    severity: str
    next_step: str


_UNLISTED = XidKind("UNLISTED", "not in the catalogue", "warning", _OBSERVE)
_UNREADABLE = XidKind("UNREADABLE", "its code can't be read", "unreadable", _READ)

_FATAL = {
    46: ("ROBUST_CHANNEL_GPU_TIMEOUT_ERROR", "the GPU stopped working", _RESET),
    48: ("ROBUST_CHANNEL_GPU_ECC_DBE", "memory error that ECC could not correct", _ECC),
    54: ("SILENT_RUNNING_PWR_REDUCED_CLOCKING", "auxiliary power is not connected", _POWER),
    62: ("PMU_HALT_ERROR", "the GPU's power microcontroller halted", _RESET),
    64: ("INFOROM_DRAM_RETIREMENT_FAILURE", "a bad memory row could not be remapped", _REPLACE),
    74: ("NVLINK_ERROR", "NVLink error", _NVLINK),
    79: ("ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "the GPU fell off the PCIe bus", _REBOOT),
    92: ("EXCESSIVE_SBE_INTERRUPTS", "corrected memory errors at a high rate", _REPLACE),
    94: ("ROBUST_CHANNEL_CONTAINED_ERROR", "uncorrected memory error, contained in one application", _ECC),
    95: ("ROBUST_CHANNEL_UNCONTAINED_ERROR", "uncorrected memory error that was not contained", _ECC),
    109: ("ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR", "a context switch timed out", _RESET),
    110: ("SEC_FAULT_ERROR", "security fault", _SOFTWARE),
    119: ("GSP_RPC_TIMEOUT", "the GPU's system processor does not answer the driver", _SOFTWARE),
    120: ("GSP_ERROR", "the GPU's system processor failed", _SOFTWARE),
    136: ("ALI_TRAINING_FAIL", "an NVLink did not train", _NVLINK),
    140: ("UNRECOVERABLE_ECC_ERROR_ESCAPE", "ECC error that escaped recovery", _RESET),
    143: ("GPU_INIT_ERROR", "the GPU could not be initialised", _RESET),
    144: ("NVLINK_SAW_ERROR", "NVLink error (SAW)", _NVLINK),
    145: ("NVLINK_RLW_ERROR", "NVLink error (RLW)", _NVLINK),
    146: ("NVLINK_TLW_ERROR", "NVLink error (TLW)", _NVLINK),
    147: ("NVLINK_TREX_ERROR", "NVLink error (TREX)", _NVLINK),
    148: ("NVLINK_NVLPW_CTRL_ERROR", "NVLink error (NVLPW control)", _NVLINK),
    149: ("NVLINK_NETIR_ERROR", "NVLink error (NETIR)", _NVLINK),
    150: ("NVLINK_MSE_ERROR", "NVLink error (MSE)", _NVLINK),
    155: ("NVLINK_SW_DEFINED_ERROR", "NVLink error found by software", _NVLINK),
    156: ("RESOURCE_RETIREMENT_EVENT", "a part of the GPU was retired: it needs a reset", _RESET),
    158: ("GPU_FATAL_TIMEOUT", "fatal timeout of the GPU", _RESET),
    167: ("PCIE_FATAL_TIMEOUT", "fatal timeout on PCIe", _REBOOT),
    171: ("UNCORRECTABLE_DRAM_ERROR", "uncorrected error in the GPU's memory", _ECC),
    172: ("UNCORRECTABLE_SRAM_ERROR", "uncorrected error in the GPU's caches or registers", _RESET),
}
_WARNING = {
    78: ("VGPU_START_ERROR", "a virtual GPU did not start", _UPDATE),
    93: ("INFOROM_ERASE_LIMIT_EXCEEDED", "the GPU's InfoROM was written more often than it should be", _OBSERVE),
    121: ("C2C_ERROR", "error of the chip-to-chip link", _OBSERVE),
    137: ("NVLINK_PRIV_ERR", "forbidden access over NVLink", _OBSERVE),
    142: ("ROBUST_CHANNEL_NVENC3_ERROR", "video encoder 3 failed", _OBSERVE),
    151: ("ROBUST_CHANNEL_KEY_ROTATION_ERROR", "key rotation of confidential computing failed", _OBSERVE),
    157: ("RESOURCE_RETIREMENT_FAILURE", "a part of the GPU could not be retired", _OBSERVE),
    159: ("ROBUST_CHANNEL_CHI_NON_DATA_ERROR", "error on the coherent interface", _OBSERVE),
    160: ("CHANNEL_RETIREMENT_EVENT", "a memory channel was retired", _OBSERVE),
    161: ("CHANNEL_RETIREMENT_FAILURE", "a memory channel could not be retired", _OBSERVE),
    163: ("PSHC_DISENGAGED", "power smoothing switched itself off", _OBSERVE),
    164: ("PSHC_LOW_LIFETIME", "the power smoothing circuit is nearly worn out", _OBSERVE),
    165: ("PSHC_ZERO_LIFETIME", "the power smoothing circuit is worn out", _OBSERVE),
    166: ("NVLINK_SECURE_CRYPTO_ERR", "traffic before the link's encryption was set up", _OBSERVE),
    168: ("REDUCED_GPU_MEMORY_CAPACITY", "errors in the protected memory region: less memory is usable", _OBSERVE),
    169: ("SEC2_HALT_ERROR", "the GPU's security microcontroller halted", _OBSERVE),
    170: ("NVLINK_SECURE_OTHER", "interrupt of NVLink in confidential computing", _OBSERVE),
}
_APPLICATION = {
    8: ("ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT", "the GPU stopped working on a job", _RESTART),
    11: ("ROBUST_CHANNEL_GR_ERROR_MISSING_HW", "invalid command stream", _RESTART),
    13: ("ROBUST_CHANNEL_GR_EXCEPTION", "exception in a kernel of the application", _RESTART),
    25: ("ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY", "illegal command stream", _RESTART),
    31: ("ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT", "access to memory that is not mapped", _RESTART),
    32: ("ROBUST_CHANNEL_PBDMA_ERROR", "corrupted command stream", _RESTART),
    37: ("ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD", "firmware method that does not exist", _WATCH),
    38: ("ROBUST_CHANNEL_FECS_ERR_WATCHDOG_TIMEOUT", "watchdog of the GPU's firmware", _WATCH),
    43: ("ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR", "the driver stopped a job's channel", _WATCH),
    44: ("ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW", "fault during a context switch", _WATCH),
    45: ("ROBUST_CHANNEL_PREEMPTIVE_REMOVAL", "a job's channel was cleaned up", _FOLLOW),
    60: ("ROBUST_CHANNEL_SEC2_ERROR", "exception in the security engine", _RESTART),
    66: ("ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION", "illegal register access by the driver", _WATCH),
    67: ("ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION", "illegal access by the driver", _WATCH),
    69: ("ROBUST_CHANNEL_GR_CLASS_ERROR", "wrong class of graphics engine command", _RESTART),
    80: ("PBDMA_PUSHBUFFER_CRC_MISMATCH", "commands arrived corrupted", _RESTART),
    141: ("ROBUST_CHANNEL_FAST_PATH_ERROR", "error on CUDA's fast path", _WATCH),
    152: ("ROBUST_CHANNEL_DLA_SMMU_ERROR", "memory fault of the deep learning accelerator", _WATCH),
    153: ("ROBUST_CHANNEL_DLA_TIMEOUT", "timeout of the deep learning accelerator", _WATCH),
}
_INFO = {
    106: ("SMBPBI_TEST_MESSAGE", "test message of the management interface", _WATCH),
    107: ("SMBPBI_TEST_MESSAGE_SILENT", "silent test message of the management interface", _WATCH),
    162: ("PSHC_REENGAGED", "power smoothing works again", _WATCH),
}
# engines of which a GPU has many: the number of the engine follows from the code
_ENGINES = (
    ("CE", "copy engine", (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))),
    ("NVDEC", "video decoder", (68, 83, 84, 88, 89, 96, 97, 98)),
    ("NVJPG", "JPEG decoder", (82, *range(99, 106))),
    ("OFA", "optical flow engine", (86, 139)),
)
_REMAPPED = ("INFOROM_DRAM_RETIREMENT_EVENT", "a bad memory row was marked for a spare", _REMAP)
_RECOVERY = ("GPU_RECOVERY_ACTION_CHANGED", "the driver asks for a recovery action", _RESET)


def _catalogue() -> dict[int, XidKind]:
    kinds = {
        code: XidKind(*row[:2], severity, row[2])
        for severity, rows in (
            ("fatal", {**_FATAL, 154: _RECOVERY}),
            ("warning", _WARNING),
            ("application", _APPLICATION),
            ("info", _INFO),
            ("remap", {63: _REMAPPED}),
        )
        for code, row in rows.items()
    }
    for engine, words, codes in _ENGINES:
        for number, code in enumerate(codes):
            name = f"ROBUST_CHANNEL_{engine}{number}_ERROR"
            kinds[code] = XidKind(name, f"exception in {words} {number}", "application", _RESTART)
    return dict(sorted(kinds.items()))


CATALOGUE: dict[int, XidKind] = _catalogue()

_NVLINK5 = range(144, 151)
_RECOVERY_CHANGED = 154
_POWER_SMOOTHING_OFF, _POWER_SMOOTHING_ON = 163, 162
_REPEATS = 3
_NOT_FATAL = re.compile(r"\bnon-?fatal\b", re.IGNORECASE)
_IS_FATAL = re.compile(r"\bfatal\b", re.IGNORECASE)
# the Fabric Manager user guide's; 12028 is among the second by some lists, and non-fatal in the logs of fleets
_SXID_ALWAYS_FATAL = frozenset({12020, 22003, 22011, *range(23001, 23018)})
_SXID_PERHAPS_FATAL = frozenset(
    {11001, 11004, 11009, 11013, *range(11018, 11021), 12001, 12002, 12022, *range(12024, 12028), *range(12030, 12033)}
    | {14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060, 19061, 19063, 19064}
    | {19066, 19067, 19069, 19070, 19084, 20034, 22012, *range(24004, 24008)}
)
_SXID_DETAIL = re.compile(r"Severity [0-9]|Data \{", re.IGNORECASE)
_NEW_ACTION = re.compile(r"changed from .{0,80}? to 0x[0-9A-Fa-f]{1,8} \(([^)]{1,80})\)")


def kind_of(code: int) -> XidKind:
    """The catalogue's entry; a code that it does not list is a warning, "not in the catalogue".

    >>> kind_of(79).meaning, kind_of(51).meaning, kind_of(0).severity
    ('the GPU fell off the PCIe bus', 'not in the catalogue', 'unreadable')
    """
    return CATALOGUE.get(code, _UNLISTED) if code else _UNREADABLE


def classify(xid: Xid) -> str:
    """How one line weighs: fatal, warning, application, info, remap, or unreadable (see `XidKind`).

    NVLink errors of the newer kind (144 to 150) say in their text whether they are fatal, and are
    taken as fatal where they do not. A change of the recovery action is info where the new action is
    None, else fatal.
    """
    if xid.code in _NVLINK5:
        milder = _NOT_FATAL.search(xid.text) and not _IS_FATAL.search(_NOT_FATAL.sub("", xid.text))
        return "warning" if milder else "fatal"
    if xid.code == _RECOVERY_CHANGED:
        return "info" if _new_action(xid) == "None" else "fatal"
    return kind_of(xid.code).severity


def classify_all(xids: Iterable[Xid]) -> tuple[str, ...]:
    """How each line of a log weighs beside the others, in the order of the log.

    An application's error that stands on one GPU three times or more is a warning: it points at the
    GPU. Power smoothing that switched off is info once the same GPU reports that it works again.
    """
    log = tuple(xids)
    times = Counter((xid.code, xid.bus_id) for xid in log)
    works_again = {xid.bus_id: at for at, xid in enumerate(log) if xid.code == _POWER_SMOOTHING_ON}
    weighs = []
    for at, xid in enumerate(log):
        weight = classify(xid)
        if weight == "application" and times[xid.code, xid.bus_id] >= _REPEATS:
            weight = "warning"
        elif xid.code == _POWER_SMOOTHING_OFF and works_again.get(xid.bus_id, -1) > at:
            weight = "info"
        weighs.append(weight)
    return tuple(weighs)


def sxid_class(sxid: SXid) -> str:
    """How one error of an NVSwitch weighs: fatal, warning, or unreadable (its code can't be read).

    Some codes are fatal whatever the line says. The others go by the line's own word; without one, those
    that can be fatal are taken as fatal.
    """
    if sxid.code == 0:
        return "unreadable"
    if sxid.code in _SXID_ALWAYS_FATAL or sxid.fatal:
        return "fatal"
    return "fatal" if sxid.fatal is None and sxid.code in _SXID_PERHAPS_FATAL else "warning"


def sxid_classes(sxids: Iterable[SXid]) -> tuple[str, ...]:
    """How each error of a log weighs, in the order of the log.

    The switch driver prints details (`Severity 1 ...`, `Data {...}`) as lines of their own without the
    word: those that directly follow an error of the same code on the same switch weigh as it does.
    """
    weighs = []
    last: dict[str, tuple[int, str]] = {}
    for sxid in sxids:
        weight = sxid_class(sxid)
        code, before = last.get(sxid.bus_id or "", (0, ""))
        if code and code == sxid.code and sxid.bus_id and _SXID_DETAIL.match(sxid.text):
            weight = before
        last[sxid.bus_id or ""] = sxid.code, weight
        weighs.append(weight)
    return tuple(weighs)


def remedy(xid: Xid) -> str:
    """The next step for whoever stands before the node."""
    if xid.code != _RECOVERY_CHANGED:
        return _OBSERVE if xid.code in _NVLINK5 and classify(xid) == "warning" else kind_of(xid.code).next_step
    action = _new_action(xid)
    if action == "None":
        return _WATCH
    if "reboot" in action.lower():
        return "Drain the node and reboot it: the driver asks for that."
    if "drain" in action.lower():
        return "Drain the GPUs of this node, then reset them: the driver asks for that."
    return _RESET


def _new_action(xid: Xid) -> str:
    match = _NEW_ACTION.search(xid.text)
    return match[1] if match else ""
