"""The catalogue of Xid errors as data: the vendor's name and buckets, and what each code means at the gate."""

from __future__ import annotations

from typing import NamedTuple

_RESTART = "Restart the job; if the error comes back on this GPU with another job, run the acceptance load on it."
RESET = (
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
WATCH = "No action by itself: note it, and look at the other errors of this GPU."
OBSERVE = "Keep the node in service only under watch; if it comes back, open a case with the GPU's vendor."
_READ = "Read the line in the kernel log itself: the number of the error could not be read from it."
_UPDATE = "Bring host driver, guest driver and licence of the vGPU software to versions that match."
_FOLLOW = "Follow the Xid before it on the same GPU; alone and in numbers, restart the fabric manager."
_REMAP = "Drain the node and reset the GPU, so that the spare row takes over; then read the row remap state again."


class XidKind(NamedTuple):
    """One code: the driver's name for it, its meaning, how it weighs at the gate, and the next step.

    `severity` is fatal, warning, application, info, `remap` (63: it weighs only while the row remap
    is pending or unknown), or `unreadable` (0, which stands for a code that can't be read). Codes 144 to
    150 and 154 are told apart by their text: see `xid.classify`. `nvidia` are the vendor's own buckets: what
    to do at once, and what if it comes back; empty where the catalogue has none.
    """

    mnemonic: str
    meaning: str
    severity: str
    next_step: str
    nvidia: str = ""


UNLISTED = XidKind("UNLISTED", "not in the catalogue", "warning", OBSERVE)
UNREADABLE = XidKind("UNREADABLE", "its code can't be read", "unreadable", _READ)

_FATAL = {
    46: ("ROBUST_CHANNEL_GPU_TIMEOUT_ERROR", "the GPU stopped working", RESET),
    48: ("ROBUST_CHANNEL_GPU_ECC_DBE", "memory error that ECC could not correct", _ECC),
    54: ("SILENT_RUNNING_PWR_REDUCED_CLOCKING", "auxiliary power is not connected", _POWER),
    62: ("PMU_HALT_ERROR", "the GPU's power microcontroller halted", RESET),
    64: ("INFOROM_DRAM_RETIREMENT_FAILURE", "a bad memory row could not be remapped", _REPLACE),
    74: ("NVLINK_ERROR", "NVLink error", _NVLINK),
    79: ("ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "the GPU fell off the PCIe bus", _REBOOT),
    92: ("EXCESSIVE_SBE_INTERRUPTS", "corrected memory errors at a high rate", _REPLACE),
    94: ("ROBUST_CHANNEL_CONTAINED_ERROR", "uncorrected memory error, contained in one application", _ECC),
    95: ("ROBUST_CHANNEL_UNCONTAINED_ERROR", "uncorrected memory error that was not contained", _ECC),
    109: ("ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR", "a context switch timed out", RESET),
    110: ("SEC_FAULT_ERROR", "security fault", _SOFTWARE),
    119: ("GSP_RPC_TIMEOUT", "the GPU's system processor does not answer the driver", _SOFTWARE),
    120: ("GSP_ERROR", "the GPU's system processor failed", _SOFTWARE),
    136: ("ALI_TRAINING_FAIL", "an NVLink did not train", _NVLINK),
    140: ("UNRECOVERABLE_ECC_ERROR_ESCAPE", "ECC error that escaped recovery", RESET),
    143: ("GPU_INIT_ERROR", "the GPU could not be initialised", RESET),
    144: ("NVLINK_SAW_ERROR", "NVLink error (SAW)", _NVLINK),
    145: ("NVLINK_RLW_ERROR", "NVLink error (RLW)", _NVLINK),
    146: ("NVLINK_TLW_ERROR", "NVLink error (TLW)", _NVLINK),
    147: ("NVLINK_TREX_ERROR", "NVLink error (TREX)", _NVLINK),
    148: ("NVLINK_NVLPW_CTRL_ERROR", "NVLink error (NVLPW control)", _NVLINK),
    149: ("NVLINK_NETIR_ERROR", "NVLink error (NETIR)", _NVLINK),
    150: ("NVLINK_MSE_ERROR", "NVLink error (MSE)", _NVLINK),
    155: ("NVLINK_SW_DEFINED_ERROR", "NVLink error found by software", _NVLINK),
    156: ("RESOURCE_RETIREMENT_EVENT", "a part of the GPU was retired: it needs a reset", RESET),
    158: ("GPU_FATAL_TIMEOUT", "fatal timeout of the GPU", RESET),
    167: ("PCIE_FATAL_TIMEOUT", "fatal timeout on PCIe", _REBOOT),
    171: ("UNCORRECTABLE_DRAM_ERROR", "uncorrected error in the GPU's memory", _ECC),
    172: ("UNCORRECTABLE_SRAM_ERROR", "uncorrected error in the GPU's caches or registers", RESET),
}
_WARNING = {
    78: ("VGPU_START_ERROR", "a virtual GPU did not start", _UPDATE),
    93: ("INFOROM_ERASE_LIMIT_EXCEEDED", "the GPU's InfoROM was written more often than it should be", OBSERVE),
    121: ("C2C_ERROR", "error of the chip-to-chip link", OBSERVE),
    137: ("NVLINK_PRIV_ERR", "forbidden access over NVLink", OBSERVE),
    142: ("ROBUST_CHANNEL_NVENC3_ERROR", "video encoder 3 failed", OBSERVE),
    151: ("ROBUST_CHANNEL_KEY_ROTATION_ERROR", "key rotation of confidential computing failed", OBSERVE),
    157: ("RESOURCE_RETIREMENT_FAILURE", "a part of the GPU could not be retired", OBSERVE),
    159: ("ROBUST_CHANNEL_CHI_NON_DATA_ERROR", "error on the coherent interface", OBSERVE),
    160: ("CHANNEL_RETIREMENT_EVENT", "a memory channel was retired", OBSERVE),
    161: ("CHANNEL_RETIREMENT_FAILURE", "a memory channel could not be retired", OBSERVE),
    163: ("PSHC_DISENGAGED", "power smoothing switched itself off", OBSERVE),
    164: ("PSHC_LOW_LIFETIME", "the power smoothing circuit is nearly worn out", OBSERVE),
    165: ("PSHC_ZERO_LIFETIME", "the power smoothing circuit is worn out", OBSERVE),
    166: ("NVLINK_SECURE_CRYPTO_ERR", "traffic before the link's encryption was set up", OBSERVE),
    168: ("REDUCED_GPU_MEMORY_CAPACITY", "errors in the protected memory region: less memory is usable", OBSERVE),
    169: ("SEC2_HALT_ERROR", "the GPU's security microcontroller halted", OBSERVE),
    170: ("NVLINK_SECURE_OTHER", "interrupt of NVLink in confidential computing", OBSERVE),
}
_APPLICATION = {
    8: ("ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT", "the GPU stopped working on a job", _RESTART),
    11: ("ROBUST_CHANNEL_GR_ERROR_MISSING_HW", "invalid command stream", _RESTART),
    13: ("ROBUST_CHANNEL_GR_EXCEPTION", "exception in a kernel of the application", _RESTART),
    25: ("ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY", "illegal command stream", _RESTART),
    31: ("ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT", "access to memory that is not mapped", _RESTART),
    32: ("ROBUST_CHANNEL_PBDMA_ERROR", "corrupted command stream", _RESTART),
    37: ("ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD", "firmware method that does not exist", WATCH),
    38: ("ROBUST_CHANNEL_FECS_ERRWATCHDOG_TIMEOUT", "watchdog of the GPU's firmware", WATCH),
    43: ("ROBUST_CHANNELRESETCHANNEL_VERIF_ERROR", "the driver stopped a job's channel", WATCH),
    44: ("ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW", "fault during a context switch", WATCH),
    45: ("ROBUST_CHANNEL_PREEMPTIVE_REMOVAL", "a job's channel was cleaned up", _FOLLOW),
    60: ("ROBUST_CHANNEL_SEC2_ERROR", "exception in the security engine", _RESTART),
    66: ("ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION", "illegal register access by the driver", WATCH),
    67: ("ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION", "illegal access by the driver", WATCH),
    69: ("ROBUST_CHANNEL_GR_CLASS_ERROR", "wrong class of graphics engine command", _RESTART),
    80: ("PBDMA_PUSHBUFFER_CRC_MISMATCH", "commands arrived corrupted", _RESTART),
    141: ("ROBUST_CHANNEL_FAST_PATH_ERROR", "error on CUDA's fast path", WATCH),
    152: ("ROBUST_CHANNEL_DLA_SMMU_ERROR", "memory fault of the deep learning accelerator", WATCH),
    153: ("ROBUST_CHANNEL_DLA_TIMEOUT", "timeout of the deep learning accelerator", WATCH),
}
_INFO = {
    106: ("SMBPBI_TEST_MESSAGE", "test message of the management interface", WATCH),
    107: ("SMBPBI_TEST_MESSAGE_SILENT", "silent test message of the management interface", WATCH),
    162: ("PSHC_REENGAGED", "power smoothing works again", WATCH),
}
# engines of which a GPU has many: the number of the engine follows from the code
_ENGINES = (
    ("CE", "copy engine", (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))),
    ("NVDEC", "video decoder", (68, 83, 84, 88, 89, 96, 97, 98)),
    ("NVJPG", "JPEG decoder", (82, *range(99, 106))),
    ("OFA", "optical flow engine", (86, 139)),
)
_REMAPPED = ("INFOROM_DRAM_RETIREMENT_EVENT", "a bad memory row was marked for a spare", _REMAP)
_RECOVERY = ("GPU_RECOVERY_ACTION_CHANGED", "the driver asks for a recovery action", RESET)


# the vendor's buckets: immediate, investigatory, and the codes that are in both
_BUCKETS = (
    ("RESTART_APP", "CONTACT_SUPPORT", (8, 39, 40, 41, 68, *range(70, 73), *range(75, 78), *range(82, 87), 88, 89)),
    ("RESTART_APP", "CONTACT_SUPPORT", (*range(96, 106), *range(126, 136), 139)),
    ("RESTART_APP", "CHECK_APP/CUDA", (11, 25, 32, 69, 80)),
    ("RESTART_APP", "WORKFLOW_XID_13", (13,)),
    ("RESTART_APP", "WORKFLOW_XID_31", (31,)),
    ("RESTART_APP", "INVESTIGATE_SW", (60,)),
    ("RESTART_APP", "IGNORE", (94,)),
    ("IGNORE", "CHECK_APP/CUDA", (37,)),
    ("IGNORE", "CONTACT_SUPPORT", (38, 43, 44, 67, 92, 93, 121, 141, 152, 153, 157)),
    ("IGNORE", "INVESTIGATE_SW", (66, 160, 161)),
    ("IGNORE", "XID_137_FLOW", (137,)),
    ("IGNORE", "IGNORE", (63, 106, 107)),
    ("WORKFLOW_XID_45", "RESTART_FM", (45,)),
    ("WORKFLOW_XID_48", "WORKFLOW_XID_48", (48,)),
    ("WORKFLOW_NVLINK_ERR", "CONTACT_SUPPORT", (74,)),
    ("WORKFLOW_NVLINK5_ERR", "WORKFLOW_NVLINK5_ERR", (*range(144, 151),)),
    ("RESET_GPU", "CONTACT_SUPPORT", (46, 62, 64, 109, 140, 143, 158)),
    ("RESET_GPU", "INVESTIGATE_SW", (110, 119, 120, 155)),
    ("RESET_GPU", "INVESTIGATE_LINK_SI", (136,)),
    ("RESET_GPU", "IGNORE", (95, 156)),
    ("RESTART_BM", "CONTACT_SUPPORT", (79,)),
    ("RESTART_VM", "CONTACT_SUPPORT", (151,)),
    ("CHECK_MECHANICALS", "CONTACT_SUPPORT", (54,)),
    ("CHECK_UVM", "SYMPATHETIC_REPORT_SOLO", (159,)),
    ("UPDATE_SWFW", "UPDATE_SWFW", (78,)),
    ("CONTACT_SUPPORT", "", (142,)),
)


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
    for immediate, later, codes in _BUCKETS:
        told = immediate if later in ("", "IGNORE", immediate) else f"{immediate}, then {later}"
        for code in codes:
            kinds[code] = kinds[code]._replace(nvidia=told)
    return dict(sorted(kinds.items()))


CATALOGUE: dict[int, XidKind] = _catalogue()
