from nodeready.check import check


@check(
    "driver.responds",
    remedy="Read the kernel log for NVRM lines; load the module (modprobe nvidia) or install the driver again; if nvidia-smi hangs, reboot.",
)
def test_driver_answers(node, expect):
    """nvidia-smi answers within its deadline and with exit status 0."""
    expect("driver.responds", node.driver.responds)


@check("driver.version", remedy="Install a driver of a branch that is still supported, then reboot.")
def test_driver_is_new_enough(node, expect):
    """CUDA 12 needs driver 525."""
    expect("driver.version", node.driver.version)


@check(
    "driver.matches-library",
    remedy="Reboot, or unload and reload the nvidia modules; then hold the driver packages against upgrades.",
)
def test_kernel_module_and_library_agree(node, expect):
    """After an upgrade without a reboot the library refuses to talk to the old module."""
    expect("driver.matches-library", node.driver.matches_library)


@check(
    "driver.branch-supported", remedy="Plan the move to a branch that still gets fixes; hold it in the fleet's image."
)
def test_driver_branch_still_gets_fixes(node, expect):
    """A branch past its end of life gets no fixes any more."""
    expect("driver.branch-supported", node.driver.branch_supported)


@check("driver.security-floor", remedy="Install the newest build of the same branch, then reboot.")
def test_driver_has_the_fixes_of_the_last_bulletin(node, expect):
    """Older builds of a branch hold known vulnerabilities."""
    expect("driver.security-floor", node.driver.meets_security_floor)
