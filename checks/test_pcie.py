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
