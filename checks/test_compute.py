from nodeready.check import check

_REMEDY = (
    "Compare power limit, clock events and temperature with the sibling GPUs; run again alone; then exchange the GPU."
)


@check("compute.matmul-fp16", remedy=_REMEDY)
def test_fp16_matmul_is_fast_and_right(gpu, expect):
    """One slow GPU slows every job it is in; one that computes wrong spoils it."""
    expect("compute.matmul-fp16", gpu.matmul("float16", 8192).rate)
    expect("compute.matmul-fp16/16384", gpu.matmul("float16", 16384).rate)
    expect("compute.matmul-fp16/correct", gpu.products_correct("float16"))


@check("compute.matmul-fp32", remedy=_REMEDY)
def test_fp32_matmul_is_fast_and_right(gpu, expect):
    """The plain FP32 units are a path of their own."""
    expect("compute.matmul-fp32", gpu.matmul("float32", 8192).rate)
    expect("compute.matmul-fp32/correct", gpu.products_correct("float32"))
