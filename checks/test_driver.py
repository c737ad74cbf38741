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
