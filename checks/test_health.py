from nodeready.check import check


@check("health.ecc-mode", remedy="`nvidia-smi -i INDEX -e 1`, then reset the GPU.")
def test_ecc_is_on(gpu, expect):
    """Without ECC every memory error goes unseen."""
    expect("health.ecc-mode", gpu.health.ecc_mode)
    expect("health.ecc-mode/pending", gpu.health.ecc_mode_pending)


@check(
    "health.ecc-uncorrected",
    remedy="Reset the GPU and run the gate again; exchange it when it is new, when the errors come back, or when its lifetime SRAM errors pass 4.",
)
def test_no_uncorrected_memory_error(gpu, expect):
    """An uncorrected error ended or corrupted a job on this GPU."""
    expect("health.ecc-uncorrected/sram", gpu.health.sram_uncorrected)
    expect("health.ecc-uncorrected/dram", gpu.health.dram_uncorrected)
    expect("health.ecc-uncorrected/sram-lifetime", gpu.health.sram_uncorrected_lifetime)
    expect("health.ecc-uncorrected/dram-lifetime", gpu.health.dram_uncorrected_lifetime)


@check(
    "health.row-remap-pending",
    remedy="Reset the GPU (or reboot) so that the remap takes effect, then run the gate again.",
)
def test_no_row_remap_waits_for_a_reset(gpu, expect):
    """A bad row stays in use until the GPU is reset."""
    expect("health.row-remap-pending", gpu.health.reset_pending)


@check("health.row-remap-failure", remedy="Exchange the GPU: a failed row remap is a criterion of its warranty.")
def test_no_row_remap_failed(gpu, expect):
    """The spare rows of a bank are used up."""
    expect("health.row-remap-failure", gpu.health.remap_failed)


@check(
    "health.row-remaps",
    remedy="A new GPU: have it exchanged. One in service: watch it, and exchange it before its banks run out of spare rows.",
)
def test_few_rows_were_remapped(gpu, expect):
    """Spare rows mask bad memory; many in use foretell failures and cost speed."""
    expect("health.row-remaps/uncorrected", gpu.health.remapped_uncorrected)
    expect("health.row-remaps/corrected", gpu.health.remapped_corrected)
    expect("health.row-remaps/banks-low", gpu.health.banks_short_of_rows)
    expect("health.row-remaps/banks-used-up", gpu.health.banks_without_rows)


@check(
    "health.ecc-corrected",
    remedy="Run the acceptance load and read again: if the number grows under load, have the GPU exchanged.",
)
def test_corrected_errors_are_few(gpu, expect):
    """Corrected errors are what ECC is there for; very many come before one that it cannot correct."""
    expect("health.ecc-corrected/sram", gpu.health.sram_corrected)
    expect("health.ecc-corrected/dram", gpu.health.dram_corrected)


@check(
    "health.leftovers",
    remedy="End the processes named here; where memory stays in use without one, reset the GPU.",
)
def test_nothing_was_left_on_an_idle_gpu(gpu, expect):
    """What the job before left behind takes memory and time from the next one."""
    expect("health.leftovers/processes", gpu.health.leftover_processes)
    expect("health.leftovers/memory", gpu.health.leftover_memory)


@check("health.recovery-action", remedy="Drain the node and do what the driver asks for: reset the GPU, or reboot.")
def test_driver_asks_for_no_recovery(gpu, expect):
    """A GPU that waits for a reset or reboot refuses new work."""
    expect("health.recovery-action", gpu.health.recovery_action)


@check(
    "health.clock-events",
    remedy="Power brake: look at the power supplies and their budget. Thermal: look at fans, airflow and the cold plate.",
)
def test_nothing_holds_the_clocks_down(gpu, expect):
    """Hardware slowdown, thermal slowdown and power brake cut the clocks to a fraction."""
    expect("health.clock-events", gpu.health.slowdowns)
    expect("health.clock-events/load", gpu.compute.slowdowns)


@check("health.xid", remedy="Follow the next step of each Xid named here; drain the node until it is done.")
def test_kernel_log_holds_no_hardware_xid(node, expect):
    """These Xid errors mean a GPU, link or memory fault that a new job will meet again."""
    expect("health.xid", node.kernel.hardware_xids)
    expect("health.xid/warning", node.kernel.warning_xids)
    expect("health.xid/log", node.kernel.log_reaches_boot)


@check(
    "health.sxid",
    remedy="Read the fabric manager's log; reset all GPUs of the board together; exchange the board if it comes back.",
)
def test_kernel_log_holds_no_fatal_nvswitch_error(node, expect):
    """A fatal NVSwitch error takes the links of all GPUs behind it down."""
    expect("health.sxid", node.kernel.fatal_sxids)
    expect("health.sxid/warning", node.kernel.warning_sxids)


@check(
    "health.dcgm-diag",
    remedy="Do what the test itself asks for; run `dcgmi diag -r 3 -j` again on the idle node, and exchange the part that fails twice.",
)
def test_the_makers_diagnostic_found_nothing(node, expect):
    """A part that fails the maker's own diagnostic is one that its warranty covers."""
    expect("health.dcgm-diag", node.dcgm.failed)
    expect("health.dcgm-diag/warning", node.dcgm.warned)
    expect("health.dcgm-diag/skipped", node.dcgm.skipped)
