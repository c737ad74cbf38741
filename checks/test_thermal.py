from nodeready.check import check


@check(
    "thermal.margin",
    remedy="Look at fans, blanking panels, airflow and the inlet temperature; then at the heat sink or cold plate.",
)
def test_gpu_is_cool_enough(gpu, expect):
    """The margin to the slowdown temperature, as the GPU itself reckons it."""
    expect("thermal.margin", gpu.thermal_margin)
    expect("thermal.margin/load", gpu.compute.least_margin)


@check("thermal.fans", remedy="Exchange the named fan, and look at what blocks it.")
def test_fans_turn(node, expect):
    """One fan less, and the GPUs behind it are the first to slow down."""
    expect("thermal.fans", node.bmc.bad_fans)


@check("thermal.inlet", remedy="Look at the aisle's air, blanking panels, and what blows warm air at this node.")
def test_inlet_air_is_cool(node, expect):
    """No fan can cool below the air that it gets."""
    expect("thermal.inlet", node.bmc.inlet)


@check(
    "thermal.memory",
    remedy="Look at airflow and the heat sink or cold plate of this GPU: its memory sits on the same one.",
)
def test_gpu_memory_is_cool_enough(gpu, expect):
    """Hot memory makes more errors and slows itself down."""
    expect("thermal.memory", gpu.memory_temperature)
