from nodeready.check import check


@check(
    "network.ports-active",
    remedy="Look at cable, transceiver and switch port of each port that is down; Polling means the far side.",
)
def test_network_ports_are_up_at_rate(node, expect):
    """Jobs over several nodes run at the speed of the slowest node's network."""
    expect("network.ports-active", node.network.ports_at_rate)
