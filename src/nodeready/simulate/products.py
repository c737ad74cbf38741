"""GPU products as data: what a healthy card of each says of itself.

Figures are those of captured outputs and published measurements. A rate is in TFLOPS by data type
and edge of a square product.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

# the links that a bridge does not reach: three bridges take four links each, and six are left over
_UNBRIDGED = (4, 5, 10, 11, 16, 17)


@dataclass(frozen=True)
class Product:
    """One GPU product.

    `memory_mib`, `reserved_mib` and `bar1_mib` are as NVML counts them, `cuda_bytes` as CUDA does;
    `power` is minimum, default and maximum in W; clocks are in MHz. `links` are listed by nvidia-smi,
    of which `unwired` never come up. `degrees` are shutdown, slowdown and highest operating
    temperature where the driver prints degrees, `tlimits` the same as margins where it prints those;
    `headroom` is temperature plus margin.
    """

    name: str
    architecture: str
    device: str
    subsystem: str
    board_part: str
    gpu_part: str
    vbios: str
    inforom: tuple[str, str, str]
    capability: str
    memory_mib: int
    reserved_mib: int
    bar1_mib: int
    cuda_bytes: int
    power: tuple[int, int, int]
    sm_clock: int
    memory_clock: int
    video_clock: int
    banks: int
    links: int
    link_speed: str
    link_generation: int
    unwired: tuple[int, ...] = ()
    tlimits: tuple[int, int, int] | None = None
    degrees: tuple[int, int, int, int] | None = None
    headroom: int = 87
    link_width: int = 16
    rates: dict[tuple[str, int], float] = field(default_factory=dict)


def _rates(
    half: float, half_large: float, single: float, *, bf16: float, fp8: float | None, tf32: float, fp64: float
) -> dict[tuple[str, int], float]:
    """The rates in TFLOPS by dtype and size; a product without FP8 has none."""
    rates = {("float16", 8192): half, ("float16", 16384): half_large, ("bfloat16", 8192): bf16}
    if fp8 is not None:
        rates["float8_e4m3fn", 8192] = fp8
    return {**rates, ("tf32", 8192): tf32, ("float32", 8192): single, ("float64", 8192): fp64}


H100_SXM = Product(
    name="NVIDIA H100 80GB HBM3",
    architecture="Hopper",
    device="2330",
    subsystem="16c1",
    board_part="692-2G520-0200-000",
    gpu_part="2330-885-A1",
    vbios="96.00.99.00.01",
    inforom=("G520.0200.00.05", "2.1", "7.16"),
    capability="9.0",
    memory_mib=81559,
    reserved_mib=480,
    bar1_mib=131072,
    cuda_bytes=85045477376,
    power=(200, 700, 700),
    sm_clock=1980,
    memory_clock=2619,
    video_clock=1545,
    banks=2560,
    links=18,
    link_speed="26.562 GB/s",
    link_generation=5,
    tlimits=(-8, -2, 0),
    rates=_rates(735.0, 667.0, 51.9, bf16=798.0, fp8=1280.0, tf32=372.0, fp64=57.0),
)

H200_SXM = replace(
    H100_SXM,
    name="NVIDIA H200",
    device="2335",
    subsystem="18be",
    board_part="695-2G520-0280-001",
    gpu_part="2335-895-A1",
    vbios="96.00.A5.00.03",
    inforom=("G520.0280.02.02", "2.1", "7.16"),
    memory_mib=143771,
    reserved_mib=614,
    bar1_mib=262144,
    cuda_bytes=150109880320,
    memory_clock=3201,
    banks=3072,
    rates=_rates(759.4, 690.0, 51.3, bf16=790.3, fp8=1300.0, tf32=375.0, fp64=57.0),
)

H100_NVL = replace(
    H100_SXM,
    name="NVIDIA H100 NVL",
    device="2321",
    subsystem="1839",
    board_part="900-21010-0020-000",
    gpu_part="2321-886-A1",
    vbios="96.00.74.00.11",
    inforom=("1010.0210.00.02", "2.1", "7.16"),
    memory_mib=95830,
    reserved_mib=594,
    cuda_bytes=99861594112,
    power=(200, 400, 400),
    sm_clock=1785,
    video_clock=1410,
    banks=3072,
    unwired=_UNBRIDGED,
    rates=_rates(490.0, 470.0, 45.0, bf16=520.0, fp8=860.0, tf32=262.0, fp64=44.0),
)

# Firmware of this card was not published: it is that of the NVL card.
H100_PCIE = replace(
    H100_NVL,
    name="NVIDIA H100 PCIe",
    device="2331",
    subsystem="1626",
    board_part="900-21010-0000-000",
    gpu_part="2331-885-A1",
    inforom=("1010.0200.00.02", "2.1", "7.16"),
    memory_mib=81559,
    reserved_mib=480,
    cuda_bytes=85028634624,
    power=(200, 350, 350),
    sm_clock=1755,
    memory_clock=1593,
    banks=2560,
    rates=_rates(437.1, 449.7, 36.95, bf16=492.8, fp8=780.0, tf32=240.4, fp64=38.0),
)

# Part numbers and firmware of this card were not published: they are those of the H200 and the NVL card.
H200_NVL = replace(
    H200_SXM,
    name="NVIDIA H200 NVL",
    device="233b",
    subsystem="1996",
    power=(200, 600, 600),
    sm_clock=1785,
    video_clock=1410,
    rates=_rates(620.0, 600.0, 48.0, bf16=655.0, fp8=1080.0, tf32=318.0, fp64=47.0),
)

# Part numbers and firmware are the H100's: none of these boards' were published.
H800_SXM = replace(H100_SXM, name="NVIDIA H800", device="2324", subsystem="17a6", links=8)
H800_PCIE = replace(H100_PCIE, name="NVIDIA H800 PCIe", device="2322", subsystem="17a4")
H800_NVL = replace(H100_NVL, name="NVIDIA H800 NVL", device="233a", subsystem="183a")

A100_SXM = Product(
    name="NVIDIA A100-SXM4-80GB",
    architecture="Ampere",
    device="20b2",
    subsystem="147f",
    board_part="692-2G506-0212-002",
    gpu_part="20B2-895-A1",
    vbios="92.00.36.00.02",
    inforom=("G506.0212.00.01", "2.0", "6.16"),
    capability="8.0",
    memory_mib=81920,
    reserved_mib=869,
    bar1_mib=131072,
    cuda_bytes=84987740160,
    power=(100, 400, 400),
    sm_clock=1410,
    memory_clock=1593,
    video_clock=1290,
    banks=640,
    links=12,
    link_speed="25 GB/s",
    link_generation=4,
    degrees=(92, 89, 85, 95),
    rates=_rates(257.0, 251.0, 19.1, bf16=264.0, fp8=None, tf32=128.0, fp64=18.0),
)
