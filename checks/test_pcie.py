from nodeready.check import check


@check(
    "pcie.gpu-present",
    remedy="Power the node off and on; if the GPU stays away, reseat its tray or card, then exchange it.",
)
def test_every_gpu_answers_on_the_bus(node, expect):
    """A GPU that is not on the PCI bus cannot be reached by any driver."""
    expect("pcie.gpu-present", node.gpus_on_bus)


@check("pcie.gpu-link-generation", remedy="Reseat the GPU tray; then look for a link-speed cap in the BIOS.")
def test_gpu_link_trains_at_full_generation(gpu, expect):
    """A link that trained low halves host bandwidth and raises no error anywhere else."""
    expect("pcie.gpu-link-generation", gpu.pcie.generation)


@check(
    "pcie.gpu-link-width",
    remedy="Reseat the GPU tray; then look for bent pins, dirt, or a bifurcation setting in the BIOS.",
)
def test_gpu_link_trains_at_full_width(gpu, expect):
    """A link with half its lanes halves host bandwidth and raises no error anywhere else."""
    expect("pcie.gpu-link-width", gpu.pcie.width)


@check(
    "pcie.gpu-bridges",
    remedy="Reseat the card or tray that the named port leads to; then look at its BIOS setting and at the switch's firmware.",
)
def test_no_link_above_the_gpu_is_slower_than_its_own(gpu, expect):
    """Every byte between GPU and host goes through the links above the switch too: one that trained low halves them all."""
    expect("pcie.gpu-bridges", gpu.path.bottlenecks)


@check(
    "pcie.adapter-links",
    remedy="Reseat the named adapter or riser; then look for a slot with fewer lanes or a bifurcation setting in the BIOS.",
)
def test_network_adapters_have_their_link(node, expect):
    """An adapter with half its lanes is up at its full network rate and moves half of it."""
    expect("pcie.adapter-links", node.pci.slow_adapters)


@check("pcie.drive-links", remedy="Reseat the named drive; then exchange its cable or backplane.")
def test_drives_have_their_link(node, expect):
    """A drive with half its lanes reads half as fast, and its own health says nothing of it."""
    expect("pcie.drive-links", node.pci.slow_drives)


@check(
    "pcie.gpu-errors",
    remedy="Reseat the GPU tray or card; if errors go on, exchange cable or riser, then the part that the named port leads to.",
)
def test_no_pcie_errors_arise_while_one_looks(gpu, expect):
    """Errors that grow now are a bad contact or a dying part, whatever an old counter holds."""
    expect("pcie.gpu-errors/uncorrected", gpu.path.uncorrected)
    expect("pcie.gpu-errors/corrected", gpu.path.corrected)


@check("pcie.replays", remedy="Reseat the GPU tray or card; if replays go on, exchange its riser or the tray.")
def test_the_link_seldom_has_to_send_again(gpu, expect):
    """A link that sends packets again and again loses bandwidth, and is on its way to fall off the bus."""
    expect("pcie.replays", gpu.path.replays)


@check(
    "pcie.errors-logged",
    remedy="Read the kernel log around the named device; reseat its card or tray, then exchange it if the error comes back.",
)
def test_the_kernel_logged_no_pcie_errors(node, expect):
    """The kernel log still tells of an error since boot that no counter shows."""
    expect("pcie.errors-logged", node.pci.log.uncorrected)
    expect("pcie.errors-logged/corrected", node.pci.log.corrected)


@check(
    "pcie.access-control",
    remedy="Switch ACS off on the named ports, in the BIOS or with `setpci` at every boot; and boot with iommu=pt.",
)
def test_peers_reach_each_other_below_the_processor(node, expect):
    """With ACS redirection GPU and adapter reach each other through the processor only, at a part of the speed."""
    expect("pcie.access-control", node.pci.redirecting)


@check("pcie.iommu", remedy="Add iommu=pt to the kernel's command line, take pci=realloc away, and boot.")
def test_the_iommu_lets_transfers_pass(node, expect):
    """An IOMMU that translates slows every transfer of a GPU, and breaks transfers between peers."""
    expect("pcie.iommu", node.pci.iommu)
    expect("pcie.iommu/realloc", node.pci.reallocation)


@check(
    "pcie.bar1",
    remedy="Switch on `Above 4G decoding` and resizable BARs in the BIOS; then boot, and look for an old VBIOS.",
)
def test_the_whole_memory_can_be_reached_by_peers(gpu, expect):
    """Adapters and peers reach the GPU's memory through this window only: a small one makes GPUDirect fail."""
    expect("pcie.bar1", gpu.path.bar1)


@check("pcie.numa-node", remedy="Update the BIOS, and look for a setting that hides the NUMA nodes of PCI devices.")
def test_the_firmware_names_the_numa_node(gpu, expect):
    """Without it jobs are not kept beside their GPU, and copies cross the processors' own link."""
    expect("pcie.numa-node", gpu.path.numa_node)


@check(
    "pcie.bandwidth",
    remedy="Look at the link's width and generation first; then at IOMMU and NPS settings; then reseat the GPU's tray or card.",
)
def test_the_host_feeds_the_gpu_at_full_rate(gpu, expect):
    """A link can show its full width and generation and still move half of what it should, or move it wrong."""
    expect("pcie.bandwidth/to-device", gpu.copies.to_device)
    expect("pcie.bandwidth/to-host", gpu.copies.to_host)
    expect("pcie.bandwidth/correct", gpu.copies.host_correct)
