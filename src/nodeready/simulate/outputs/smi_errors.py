"""The part of `nvidia-smi -q` about memory errors: ECC and the row remapper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.smi_field import NOT_AVAILABLE, Field, group, late_leaf, leaf

if TYPE_CHECKING:
    from nodeready.simulate.model import EccCounts, Gpu


def ecc_fields(gpu: Gpu) -> tuple[Field, ...]:
    """ECC mode, its counters, and the retired pages that Hopper no longer has."""
    off = gpu.ecc != "Enabled"

    def count(value: int) -> str:
        return NOT_AVAILABLE if off else str(value)

    def counts(errors: EccCounts) -> tuple[Field, ...]:
        return (
            leaf("sram_correctable", "SRAM Correctable", count(errors.sram_correctable)),
            leaf("sram_uncorrectable", "SRAM Uncorrectable", count(errors.sram_parity + errors.sram_secded), until=534),
            leaf("sram_uncorrectable_parity", "SRAM Uncorrectable Parity", count(errors.sram_parity), since=535),
            leaf("sram_uncorrectable_secded", "SRAM Uncorrectable SEC-DED", count(errors.sram_secded), since=535),
            leaf("dram_correctable", "DRAM Correctable", count(errors.dram_correctable)),
            leaf("dram_uncorrectable", "DRAM Uncorrectable", count(errors.dram_uncorrectable)),
        )

    lifetime = gpu.aggregate.sram_parity + gpu.aggregate.sram_secded
    exceeded = NOT_AVAILABLE if off else "Yes" if lifetime > 4 else "No"
    sources = (
        ("sram_l2", "SRAM L2", lifetime),
        ("sram_sm", "SRAM SM", 0),
        ("sram_microcontroller", "SRAM Microcontroller", 0),
    )
    rest = (("sram_pcie", "SRAM PCIE", 0), ("sram_other", "SRAM Other", 0))
    retired = (leaf("retired_pagelist", "", NOT_AVAILABLE),)
    modes = (leaf("current_ecc", "Current", gpu.ecc), leaf("pending_ecc", "Pending", gpu.ecc_pending))
    return (
        group("ecc_mode", "Ecc Mode", *modes, until=534),
        group("ecc_mode", "ECC Mode", *modes, since=535),
        group(
            "ecc_errors",
            "ECC Errors",
            group("volatile", "Volatile", *counts(gpu.volatile)),
            group(
                "aggregate",
                "Aggregate",
                *counts(gpu.aggregate),
                leaf("sram_threshold_exceeded", "SRAM Threshold Exceeded", exceeded, since=535),
            ),
            group(
                "aggregate_uncorrectable_sram_sources",
                "Aggregate Uncorrectable SRAM Sources",
                *(leaf(tag, label, count(value)) for tag, label, value in (*sources, *rest)),
                since=535,
            ),
            leaf("channel_repair_pending", "Channel Repair Pending", "No", since=580),
            leaf("tpc_repair_pending", "TPC Repair Pending", "No", since=580),
            leaf("unrepairable_memory", "Unrepairable Memory", "No", since=580_173),
        ),
        group(
            "retired_pages",
            "Retired Pages",
            group(
                "multiple_single_bit_retirement", "", leaf("retired_count", "Single Bit ECC", NOT_AVAILABLE), *retired
            ),
            group("double_bit_retirement", "", leaf("retired_count", "Double Bit ECC", NOT_AVAILABLE), *retired),
            leaf("pending_blacklist", "Pending Page Blacklist", NOT_AVAILABLE),
            leaf("pending_retirement", "", NOT_AVAILABLE),
        ),
    )


def remapped_rows(gpu: Gpu) -> Field:
    """What the row remapper did; a GPU in MIG mode does not say."""
    if gpu.mig != "Disabled":
        return leaf("remapped_rows", "Remapped Rows", NOT_AVAILABLE)
    remap = gpu.remap
    spare = zip(("Max", "High", "Partial", "Low", "None"), remap.banks, strict=True)
    return group(
        "remapped_rows",
        "Remapped Rows",
        leaf("remapped_row_corr", "Correctable Error", remap.correctable),
        *late_leaf("remapped_row_corr_inactive", 0),
        leaf("remapped_row_unc", "Uncorrectable Error", remap.uncorrectable),
        *late_leaf("remapped_row_unc_inactive", 0),
        leaf("remapped_row_pending", "Pending", remap.pending),
        leaf("remapped_row_failure", "Remapping Failure Occurred", remap.failure),
        group(
            "row_remapper_histogram",
            "Bank Remap Availability Histogram",
            *(leaf(f"row_remapper_histogram_{word.lower()}", word, f"{banks} bank(s)") for word, banks in spare),
        ),
    )
