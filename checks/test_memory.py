from nodeready.check import check


@check(
    "memory.installed",
    remedy="Compare the DIMM list with the order; reseat or exchange the missing or disabled DIMM, then check the BIOS's memory map.",
)
def test_installed_memory_is_what_was_bought(node, expect):
    """The DIMMs add up to the demanded size, and the kernel can use what is installed."""
    expect("memory.installed", node.memory_installed)


@check(
    "memory.dimms",
    remedy="Look up the named slot; reseat or exchange that DIMM, and compare all of them with the order.",
)
def test_dimms_are_alike_and_evenly_placed(node, expect):
    """A DIMM that is not seen, or is another than its neighbours, costs memory bandwidth even where the sum is enough."""
    expect("memory.dimms", node.dimms.uneven)
    expect("memory.dimms/sizes", node.dimms.sizes)
    expect("memory.dimms/speeds", node.dimms.speeds)
    expect("memory.dimms/count", node.dimms.count)
    expect("memory.dimms/speed", node.dimms.slowest)


@check("memory.errors", remedy="Exchange the named DIMM; where none is named, find it by the BMC's event log.")
def test_memory_controllers_counted_no_error(node, expect):
    """An error that no code mended corrupts what ran there; one that is mended again and again comes before it."""
    expect("memory.errors/uncorrected", node.dimms.errors_uncorrected)
    expect("memory.errors/corrected", node.dimms.errors_corrected)


@check(
    "memory.machine-checks",
    remedy="Drain the node; decode the lines with `ras-mc-ctl --errors` or the BMC's log, and exchange the part they name.",
)
def test_kernel_log_holds_no_machine_check(node, expect):
    """The processor or the firmware reports errors of memory and caches that no counter may show."""
    expect("memory.machine-checks", node.host_log.memory_lost)
    expect("memory.machine-checks/corrected", node.host_log.memory_mended)
