from nodeready.check import check


@check("platform.os", remedy="Reinstall the node with the fleet's image, or note that this distribution is intended.")
def test_operating_system_is_one_that_drivers_are_tested_on(node, expect):
    """Drivers and container tools are tested first on Ubuntu 22.04 and newer, and on RHEL 9 and its kin."""
    expect("platform.os", node.operating_system)
