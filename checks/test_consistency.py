from nodeready.check import check


@check("consistency.gpu-part", remedy="Compare the part number of the GPU named here with the order.")
def test_gpus_are_of_one_part(node, expect):
    """All GPUs of a node have the same part number; the board's own number may differ by its vendor."""
    expect("consistency.gpu-part", node.consistency.gpu_part)


@check("consistency.vbios", remedy="Bring the GPU named here to the VBIOS of the others, by its vendor's update.")
def test_gpus_run_one_vbios(node, expect):
    """All GPUs of a node run the same VBIOS, and the one that a site demands."""
    expect("consistency.vbios", node.consistency.vbios)
    expect("consistency.vbios/version", node.consistency.vbios_version)


@check("consistency.inforom", remedy="Ask the vendor for the InfoROM update of the GPU named here.")
def test_gpus_hold_one_inforom_image(node, expect):
    """All GPUs of a node hold the same InfoROM image, and the one that a site demands."""
    expect("consistency.inforom", node.consistency.inforom)
    expect("consistency.inforom/version", node.consistency.inforom_version)


@check(
    "consistency.max-clocks",
    remedy="Compare part number and VBIOS of the GPU named here with the others'; exchange it where they are the same.",
)
def test_gpus_reach_the_same_clock(node, expect):
    """One GPU with a lower highest clock slows every job that it is in."""
    expect("consistency.max-clocks", node.consistency.sm_clock)


@check(
    "consistency.power-limit",
    remedy="Compare part number and power cable of the GPU named here with the others'.",
)
def test_gpus_may_draw_the_same_power(node, expect):
    """The GPU that may draw least sets the pace of every job on the node."""
    expect("consistency.power-limit", node.consistency.power_limit)


@check(
    "consistency.idle-power",
    remedy="Look what runs on the GPU named here, also in containers; reset it, and exchange it if the draw stays.",
)
def test_no_gpu_draws_far_more_than_the_others_when_idle(node, expect):
    """A GPU that draws far more than its siblings is busy with something that nobody sees."""
    expect("consistency.idle-power", node.consistency.idle_power)


@check(
    "consistency.idle-temperature",
    remedy="Look at fans, blanking panels and the air path of the GPU named here; then at its heat sink or cold plate.",
)
def test_no_gpu_is_far_warmer_than_the_others_when_idle(node, expect):
    """A GPU far warmer than its siblings while all are idle has a bad cold plate, fan or air path."""
    expect("consistency.idle-temperature", node.consistency.idle_temperature)


@check(
    "consistency.products",
    remedy="Take the GPU named here out of service: it computes other results than its siblings. Ask for an exchange.",
)
def test_gpus_compute_the_same(node, expect):
    """GPUs of one kind make the same product from the same numbers, to the last bit."""
    expect("consistency.products", node.consistency.products)


@check(
    "consistency.matmul-rate",
    remedy="Compare power limit, clock events and temperature of the GPU named here with the others'; then exchange it.",
)
def test_no_gpu_is_far_slower_than_the_others(node, expect):
    """The slowest GPU sets the pace of every job that all are in."""
    expect("consistency.matmul-rate", node.consistency.slowest_product)
