from nodeready.check import check


@check(
    "power.limit",
    remedy="`nvidia-smi -i INDEX -pl WATTS` with the rated power; then look for a cap by the BMC or a sense-strap cable.",
)
def test_gpu_may_draw_its_rated_power(gpu, expect):
    """Below its rated power a GPU cannot hold its clocks under load."""
    expect("power.limit", gpu.power_limit)


@check("power.supplies", remedy="Look at the named supply, its cord and its feed; exchange it where the input is good.")
def test_power_supplies_are_well(node, expect):
    """With too few supplies the node brakes its GPUs under load, or goes down."""
    expect("power.supplies", node.bmc.bad_supplies)
    expect("power.supplies/redundancy", node.bmc.supply_redundancy)
    expect("power.supplies/count", node.bmc.supplies)


@check("power.supply-rating", remedy="Fill the empty bays, or fit supplies of the rating that was ordered.")
def test_power_supplies_can_feed_all_gpus(node, expect):
    """Supplies that cannot feed all GPUs at once brake them under load."""
    expect("power.supply-rating", node.bmc.rated_for_each_gpu)


@check(
    "power.draw",
    remedy="Look at clock events and temperature under load, the power cable and its sense strap; then at the sibling GPUs.",
)
def test_gpu_draws_its_power_under_load(gpu, expect):
    """The heaviest product takes a GPU to its power limit; one that stays far below is held down by something."""
    expect("power.draw", gpu.compute.draw)
