from nodeready.check import check


@check("platform.os", remedy="Reinstall the node with the fleet's image, or note that this distribution is intended.")
def test_operating_system_is_one_that_drivers_are_tested_on(node, expect):
    """Drivers and container tools are tested first on Ubuntu 22.04 and newer, and on RHEL 9 and its kin."""
    expect("platform.os", node.operating_system)


@check(
    "platform.kernel", remedy="Install the kernel of the fleet's image and reboot; rebuild the driver's module for it."
)
def test_kernel_is_one_that_drivers_are_tested_on(node, expect):
    """Older kernels know neither these processors nor their adapters."""
    expect("platform.kernel", node.host.setting("kernel"))


@check(
    "platform.hypervisor",
    remedy="Judge a virtual machine by a baseline with `virtual = true`: what only its host can show is then absent.",
)
def test_node_is_no_virtual_machine_unless_its_baseline_says_so(node, expect):
    """A virtual machine cannot show DIMMs, supplies, fans or link errors of its host."""
    expect("platform.hypervisor", node.host.hypervisor)
