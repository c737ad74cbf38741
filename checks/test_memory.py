from nodeready.check import check


@check(
    "memory.installed",
    remedy="Compare the DIMM list with the order; reseat or exchange the missing or disabled DIMM, then check the BIOS's memory map.",
)
def test_installed_memory_is_what_was_bought(node, expect):
    """The DIMMs add up to the demanded size, and the kernel can use what is installed."""
    expect("memory.installed", node.memory_installed)
