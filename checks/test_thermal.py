from nodeready.check import check


@check(
    "thermal.margin",
    remedy="Look at fans, blanking panels, airflow and the inlet temperature; then at the heat sink or cold plate.",
)
def test_gpu_is_cool_enough(gpu, expect):
    """The margin to the slowdown temperature, as the GPU itself reckons it."""
    expect("thermal.margin", gpu.thermal_margin)
