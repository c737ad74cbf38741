from nodeready.check import check


@check(
    "power.limit",
    remedy="`nvidia-smi -i INDEX -pl WATTS` with the rated power; then look for a cap by the BMC or a sense-strap cable.",
)
def test_gpu_may_draw_its_rated_power(gpu, expect):
    """Below its rated power a GPU cannot hold its clocks under load."""
    expect("power.limit", gpu.power_limit)
