from nodeready.check import check

_REMEDY = (
    "Compare power limit, clock events and temperature with the sibling GPUs; run again alone; then exchange the GPU."
)


@check("compute.matmul-fp16", remedy=_REMEDY)
def test_fp16_matmul_is_fast_and_right(gpu, expect):
    """One slow GPU slows every job it is in; one that computes wrong spoils it."""
    expect("compute.matmul-fp16", gpu.compute.rate("float16", 8192))
    expect("compute.matmul-fp16/16384", gpu.compute.rate("float16", 16384))
    expect("compute.matmul-fp16/correct", gpu.compute.correct("float16"))


@check("compute.matmul-bf16", remedy=_REMEDY)
def test_bf16_matmul_is_fast_and_right(gpu, expect):
    """BF16 is what most training runs in."""
    expect("compute.matmul-bf16", gpu.compute.rate("bfloat16", 8192))
    expect("compute.matmul-bf16/correct", gpu.compute.correct("bfloat16"))


@check("compute.matmul-fp8", remedy=_REMEDY)
def test_fp8_matmul_is_fast_and_right(gpu, expect):
    """FP8 is the path that Hopper was bought for; nothing before it has one."""
    expect("compute.matmul-fp8", gpu.compute.rate("float8_e4m3fn", 8192))
    expect("compute.matmul-fp8/correct", gpu.compute.correct("float8_e4m3fn"))


@check("compute.matmul-tf32", remedy=_REMEDY)
def test_tf32_matmul_is_fast_and_right(gpu, expect):
    """TF32 is what FP32 code runs in on tensor cores."""
    expect("compute.matmul-tf32", gpu.compute.rate("tf32", 8192))
    expect("compute.matmul-tf32/correct", gpu.compute.correct("tf32"))


@check("compute.matmul-fp32", remedy=_REMEDY)
def test_fp32_matmul_is_fast_and_right(gpu, expect):
    """The plain FP32 units are a path of their own."""
    expect("compute.matmul-fp32", gpu.compute.rate("float32", 8192))
    expect("compute.matmul-fp32/correct", gpu.compute.correct("float32"))


@check("compute.matmul-fp64", remedy=_REMEDY)
def test_fp64_matmul_is_fast_and_right(gpu, expect):
    """FP64 is what simulations run in, on tensor cores of its own."""
    expect("compute.matmul-fp64", gpu.compute.rate("float64", 8192))
    expect("compute.matmul-fp64/correct", gpu.compute.correct("float64"))


@check(
    "compute.repeatable",
    remedy="Take the GPU out of service: it computes other results from one time to the next. Ask for an exchange.",
)
def test_products_come_out_the_same_each_time(gpu, expect):
    """A product made again from the same numbers is the same to the last bit, or the GPU corrupts data in silence."""
    expect("compute.repeatable", gpu.compute.repeatable)
