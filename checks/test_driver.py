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


@check("driver.known-bad", remedy="Install the version in which the problem is gone, then reboot.")
def test_driver_version_has_no_known_problem(node, expect):
    """Some driver versions hang GPUs or collectives on hardware that is healthy."""
    expect("driver.known-bad", node.driver_parts.known_problems)


@check(
    "driver.modules",
    remedy="`modprobe nvidia_uvm` (or `nvidia-modprobe -u -c0`), and have nvidia-persistenced or the image load it at boot.",
)
def test_kernel_modules_of_the_driver_are_loaded(node, expect):
    """CUDA needs nvidia_uvm beside the module that nvidia-smi talks to."""
    expect("driver.modules", node.driver_parts.missing_modules)


@check(
    "driver.device-files",
    remedy="`nvidia-modprobe -u -c0` makes them (as root); have the driver's udev rules or nvidia-persistenced do so at boot. In a container hand them in, as `--gpus all` or CDI does.",
)
def test_device_files_of_the_driver_are_there(node, expect):
    """CUDA starts on no GPU without /dev/nvidia-uvm, while nvidia-smi shows them all."""
    expect("driver.device-files", node.driver_parts.missing_device_files)


@check(
    "driver.nouveau",
    remedy="Blacklist nouveau (`blacklist nouveau`, `options nouveau modeset=0`), rebuild the initramfs and reboot.",
)
def test_nouveau_is_not_loaded(node, expect):
    """The distribution's own module takes GPUs that NVIDIA's driver then cannot have."""
    expect("driver.nouveau", node.driver_parts.nouveau)


@check("driver.persistence-mode", remedy="Enable nvidia-persistenced (`systemctl enable --now nvidia-persistenced`).")
def test_persistence_mode_is_on(gpu, expect):
    """Without it the driver lets go of an idle GPU: first calls take seconds, and settings are lost."""
    expect("driver.persistence-mode", gpu.persistence_mode)


@check(
    "driver.environment",
    remedy="Take the variable out of /etc/environment, the profile or the job's own script, and log in again.",
)
def test_no_variable_slows_jobs_down(node, expect):
    """A variable left behind by a debugging session slows every job, and is looked for last."""
    expect("driver.environment", node.driver_parts.harmful_environment)
