"""GPU products as data: what a healthy card of each says of itself.

Figures are those of captured outputs and published measurements. A rate is in TFLOPS by data type
and edge of a square product.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Product:
    """One GPU product.

    `memory_mib`, `reserved_mib` and `bar1_mib` are as NVML counts them, `cuda_bytes` as CUDA does;
    `power` is minimum, default and maximum in W; clocks are in MHz. `degrees` are shutdown, slowdown
    and highest operating temperature where the driver prints degrees, `tlimits` the same as margins
    where it prints those; `headroom` is temperature plus margin.
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
    tlimits: tuple[int, int, int] | None = None
    degrees: tuple[int, int, int, int] | None = None
    headroom: int = 87
    link_width: int = 16
    rates: dict[tuple[str, int], float] = field(default_factory=dict)


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
    rates={("float16", 8192): 735.0, ("float16", 16384): 667.0, ("float32", 8192): 51.9},
)

# Part numbers and firmware are the H100's: none of this board's were published.
H800_SXM = Product(
    name="NVIDIA H800",
    architecture="Hopper",
    device="2324",
    subsystem="17a6",
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
    links=8,
    link_speed="26.562 GB/s",
    link_generation=5,
    tlimits=(-8, -2, 0),
    rates={("float16", 8192): 735.0, ("float16", 16384): 667.0, ("float32", 8192): 51.9},
)

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
    rates={("float16", 8192): 257.0, ("float16", 16384): 251.0, ("float32", 8192): 19.1},
)
