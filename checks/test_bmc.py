from nodeready.check import check


@check(
    "bmc.responds",
    remedy="Install ipmitool and load ipmi_si and ipmi_devintf; run with --sudo; restart the BMC where it is silent.",
)
def test_bmc_tells_its_sensors(node, expect):
    """Without the BMC nobody knows of supplies, fans and inlet air."""
    expect("bmc.responds", node.bmc.responds)


@check(
    "bmc.events", remedy="Follow the named event to its part; clear the log (`ipmitool sel clear`) once that is mended."
)
def test_bmc_noted_no_critical_event(node, expect):
    """The board itself reports faults of supplies, memory and slots."""
    expect("bmc.events", node.bmc.events_since_boot)
    expect("bmc.events/standing", node.bmc.events_standing)
