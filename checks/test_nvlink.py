from nodeready.check import check


@check("nvlink.links-active", remedy="Reset all GPUs of the board together; then reseat the board or exchange it.")
def test_every_nvlink_is_up_at_full_speed(gpu, expect):
    """Collectives run at the speed of the GPU with the fewest links."""
    expect("nvlink.links-active", gpu.nvlink.links_active)
    expect("nvlink.links-active/slow", gpu.nvlink.slow_links)


@check(
    "nvlink.fabric-state",
    remedy="Restart nvidia-fabricmanager and read its log; then reset all GPUs of the board together.",
)
def test_fabric_has_admitted_the_gpu(gpu, expect):
    """CUDA refuses to start (error 802) on a GPU that the fabric manager has not admitted."""
    expect("nvlink.fabric-state", gpu.nvlink.fabric_state)


@check(
    "nvlink.fabric-manager",
    remedy="Install the fabric manager of exactly the driver's version; then `systemctl enable --now nvidia-fabricmanager`.",
)
def test_fabric_manager_runs_and_matches_the_driver(node, expect):
    """The fabric manager trains the NVSwitches; one of another version than the driver refuses to start."""
    expect("nvlink.fabric-manager", node.fabric_manager.state)
    expect("nvlink.fabric-manager/version", node.fabric_manager.matches_driver)
