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


@check(
    "nvlink.fabric-health",
    remedy="Drain the node, reset all GPUs of the board together, and read the fabric manager's log for the link it names.",
)
def test_fabric_reports_no_fault_of_the_gpu(gpu, expect):
    """The fabric can call itself complete and run degraded: with less bandwidth, or with routes that it is mending."""
    expect("nvlink.fabric-health", gpu.fabric.health)


@check("nvlink.switches", remedy="Power-cycle the node; then exchange the board that carries the NVSwitches.")
def test_every_nvswitch_answers(node, expect):
    """A board that lost an NVSwitch trains fewer links, or none, and says so only in the fabric manager's log."""
    expect("nvlink.switches", node.fabric.switches)


@check(
    "nvlink.errors",
    remedy="See which link in `nvidia-smi nvlink -e`, reset the GPUs of the board together; if it grows again reseat or exchange the GPU.",
)
def test_nvlink_errors_do_not_grow(gpu, expect):
    """A link that replays and recovers while nobody uses it slows every collective, and is seen before an Xid 74."""
    expect("nvlink.errors", gpu.fabric.growth.errors)
    expect("nvlink.errors/crc", gpu.fabric.growth.crc_rate)


@check(
    "nvlink.peers",
    remedy="Compare `nvidia-smi topo -m` with a good node: seat bridges anew on cards, restart nvidia-fabricmanager on a board.",
)
def test_every_pair_of_gpus_is_joined(gpu, expect):
    """Links that are up and lead to the wrong GPU, or to none, send the traffic of one pair over PCIe."""
    expect("nvlink.peers", gpu.fabric.peers.short_pairs)
    expect("nvlink.peers/p2p", gpu.fabric.peers.silent_peers)


@check(
    "nvlink.bandwidth",
    remedy="Reset all GPUs of the board together and measure again; then reseat the bridges, or exchange the GPU that is in every slow pair.",
)
def test_every_pair_copies_at_full_rate_and_right(gpu, expect):
    """Links that are up at full speed can lead a pair by a slow way, and one that corrupts raises no error."""
    expect("nvlink.bandwidth", gpu.copies.slowest_peer)
    expect("nvlink.bandwidth/correct", gpu.copies.peers_correct)


@check(
    "nvlink.log", remedy="Reboot the node; if the line comes back, reseat or exchange the GPU or bridge that it names."
)
def test_kernel_found_no_dead_link(node, expect):
    """The driver writes what it found while links were trained, and no Xid follows."""
    expect("nvlink.log", node.fabric.log.nvlink_faults)


@check(
    "nvlink.all-reduce",
    remedy="Name the slow or failing GPU by its links and errors; then see that NVLS is on (NCCL_NVLS_ENABLE, nvidia-fabricmanager).",
)
def test_all_gpus_reduce_together_at_full_speed_and_right(node, expect):
    """Links that are all up can still be slow together, and a job of eight GPUs spends its time in this one operation."""
    expect("nvlink.all-reduce", node.all_reduce.rate)
    expect("nvlink.all-reduce/correct", node.all_reduce.correct)
    expect("nvlink.all-reduce/nvls", node.all_reduce.algorithm)
