"""A node that does not exist: every part as a value, healthy until a fault changes it."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodeready.simulate.shapes import SHAPES, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.simulate.outputs.output import Output
    from nodeready.simulate.products import Product

# when every simulated node was read: as nvidia-smi prints it, and in Unix time
READ_AT = "Tue Dec  1 09:12:41 2026"
READ_AT_SECONDS = 1796116361.0
# how long it had been up then, in seconds
UPTIME = 93_841.0

INACTIVE = "<inactive>"


class NoSuchNodeError(ValueError):
    """A node type or a number of GPUs that no shape has."""


@dataclass
class Link:
    """The PCIe link of one GPU; `max_generation` is the lower of what GPU and slot can do."""

    generation: int
    max_generation: int
    device_generation: int
    port_generation: int
    width: int
    max_width: int


@dataclass
class EccCounts:
    """Errors of one period; SRAM errors by parity and by SEC-DED."""

    sram_correctable: int = 0
    sram_parity: int = 0
    sram_secded: int = 0
    dram_correctable: int = 0
    dram_uncorrectable: int = 0


@dataclass
class Remap:
    """The row remapper; `banks` by spare rows left: all, high, partial, low, none."""

    correctable: int
    uncorrectable: int
    pending: str
    failure: str
    banks: list[int]


@dataclass
class Rate:
    """One matmul result: the median, how far the batches spread, and whether the product was right."""

    tflops: float
    cv: float
    verified: bool = True


@dataclass
class Gpu:
    """One GPU and the place that it sits in.

    `at_boot` is false where the firmware already missed it, `on_bus` where it is gone now, and
    `answers` where its config space reads all ones. `cuda_error` is what CUDA says on its first
    use. `printed` replaces single values of
    `nvidia-smi -q`, by their path in the XML; `every_value` replaces all but the bus id. Powers are
    in W, clocks in MHz, temperatures and `margin` in degrees C, `links` one text per NVLink.
    """

    place: int
    bus_id: str
    numa: int
    module_id: int
    product: Product
    serial: str
    uuid: str
    pdi: str
    link: Link
    replays: int
    temperature: int
    margin: int
    memory_temperature: int
    power_draw: float
    memory_power_draw: float
    power_limit: float
    memory_mib: int
    links: list[str]
    remap: Remap
    rates: dict[tuple[str, int], Rate]
    sm_clock: int = 345
    at_boot: bool = True
    on_bus: bool = True
    answers: bool = True
    in_driver: bool = True
    in_container: bool = True
    in_cuda: bool = True
    cuda_error: str = ""
    mig: str = "Disabled"
    mig_pending: str = "Disabled"
    ecc: str = "Enabled"
    ecc_pending: str = "Enabled"
    volatile: EccCounts = field(default_factory=EccCounts)
    aggregate: EccCounts = field(default_factory=EccCounts)
    recovery_action: str = "None"
    active_events: set[str] = field(default_factory=lambda: {"gpu_idle"})
    event_counters: dict[str, int] = field(default_factory=dict)
    fabric_state: str = "Completed"
    fabric_status: str = "Success"
    printed: dict[str, str] = field(default_factory=dict)
    every_value: str = ""

    @property
    def answers_queries(self) -> bool:
        """Whether the driver can still read anything from it."""
        return not self.every_value


@dataclass
class Dimm:
    """One slot of the board; 0 GiB where it is empty."""

    locator: str
    size_gib: int
    serial: str


@dataclass
class Driver:
    """The driver; `library` differs from `module` after an upgrade without a reboot.

    `refusal` is what every nvidia-smi command says instead of an answer, with `refusal_status`.
    """

    module: str
    library: str
    cuda: str
    loaded: bool = True
    refusal: str = ""
    refusal_status: int = 0

    @property
    def major(self) -> int:
        """The driver's branch, which decides what its outputs look like."""
        return int(self.library.partition(".")[0])


@dataclass
class FabricManager:
    """The fabric manager's service, in systemd's word, and its version."""

    state: str
    version: str


@dataclass
class Engine:
    """The container engine; `refusal` is what a stopped daemon says."""

    version: str
    runtimes: tuple[str, ...]
    refusal: str = ""


@dataclass
class Torch:
    """The Python environment that runs jobs; a CPU build has no CUDA."""

    python: str
    version: str
    cuda: str | None
    cudnn: str | None
    nccl: str | None
    cublas: str | None
    arch_list: tuple[str, ...]


@dataclass(frozen=True)
class KernelEvent:
    """Lines of the kernel log, at a time in seconds since boot."""

    seconds: float
    lines: tuple[str, ...]


@dataclass
class Node:
    """A whole node.

    `gpus` are all places of the plan in bus-id order, with or without a working GPU. `spoilers`
    change a finished output by its evidence name: what the node prints and what arrives differ.
    """

    shape: Shape
    seed: int
    gpus: list[Gpu]
    dimms: list[Dimm]
    mem_total_kib: int
    driver: Driver
    fabric_manager: FabricManager | None
    engine: Engine
    container_toolkit: str | None
    cuda_toolkit: str | None
    torch: Torch
    os_pretty: str
    os_version: str
    os_codename: str
    kernel: str
    events: list[KernelEvent] = field(default_factory=list)
    spoilers: dict[str, Callable[[Output], Output]] = field(default_factory=dict)

    def stream(self, *purpose: object) -> random.Random:
        """Random numbers of their own for one purpose, the same for the same seed."""
        return _stream(self.shape.node_type, self.seed, *purpose)

    @property
    def listed_gpus(self) -> list[Gpu]:
        """The GPUs that the driver lists, in its order."""
        return [gpu for gpu in self.gpus if gpu.in_driver]


def _stream(*purpose: object) -> random.Random:
    return random.Random("/".join(map(str, purpose)))  # noqa: S311 - a made-up node needs no secrets


def build(node_type: str, seed: int = 0, gpu_count: int | None = None) -> Node:
    """A healthy node; the same arguments give the same node to the last byte.

    Raises `NoSuchNodeError` for a type without a shape, or more GPUs than its board has places.
    """
    shape = SHAPES.get(node_type)
    if shape is None:
        raise NoSuchNodeError(f"no node of type {node_type!r} can be simulated; known: {', '.join(sorted(SHAPES))}")
    count = len(shape.gpu_buses) if gpu_count is None else gpu_count
    if not 1 <= count <= len(shape.gpu_buses):
        raise NoSuchNodeError(f"a node of type {node_type} has 1 to {len(shape.gpu_buses)} GPUs, not {count}")
    return Node(
        shape=shape,
        seed=seed,
        gpus=[_gpu(shape, seed, place) for place in range(count)],
        dimms=_dimms(shape, seed),
        mem_total_kib=kernel_memory(shape.dimms[0] * shape.dimms[1], _stream(node_type, seed, "meminfo")),
        driver=Driver(shape.driver, shape.driver, shape.cuda),
        fabric_manager=FabricManager("active", shape.driver) if shape.fabric_manager else None,
        engine=Engine("28.5.1", ("io.containerd.runc.v2", "nvidia", "runc")),
        container_toolkit="1.19.1",
        cuda_toolkit="13.0",
        torch=Torch(
            python="3.12.3",
            version="2.11.0+cu130",
            cuda="13.0",
            cudnn="9.13.0",
            nccl="2.27.7",
            cublas="13.1.0",
            arch_list=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
        ),
        os_pretty="Ubuntu 22.04.5 LTS",
        os_version="22.04",
        os_codename="Jammy Jellyfish",
        kernel="5.15.0-161-generic",
    )


def kernel_memory(installed_gib: int, rng: random.Random) -> int:
    """MemTotal in KiB for so much installed memory: page structs and firmware keep 1.6 %."""
    return int(installed_gib * 2**20 * 0.9841) - rng.randrange(0, 400_000, 4)


def _gpu(shape: Shape, seed: int, place: int) -> Gpu:
    rng, product = _stream(shape.node_type, seed, "gpu", place), shape.product
    temperature = rng.randint(27, 33)
    draw = rng.uniform(65.5, 71.5)
    return Gpu(
        place=place,
        bus_id=f"0000:{shape.gpu_buses[place]:02x}:00.0",
        numa=place * 2 // len(shape.gpu_buses),
        module_id=shape.module_ids[place],
        product=product,
        serial=f"165{rng.randrange(10**10):010d}",
        uuid=f"GPU-{uuid.UUID(int=rng.getrandbits(128))}",
        pdi=f"0x{rng.getrandbits(64):016x}",
        link=Link(
            generation=product.link_generation,
            max_generation=product.link_generation,
            device_generation=product.link_generation,
            port_generation=product.link_generation,
            width=product.link_width,
            max_width=product.link_width,
        ),
        replays=rng.randint(4, 150),
        temperature=temperature,
        margin=product.headroom - temperature + rng.randint(-1, 1),
        memory_temperature=temperature + rng.randint(7, 9),
        power_draw=draw,
        memory_power_draw=draw * rng.uniform(0.48, 0.62),
        power_limit=float(product.power[1]),
        memory_mib=product.memory_mib,
        links=[product.link_speed] * product.links,
        remap=Remap(0, 0, "No", "No", [product.banks, 0, 0, 0, 0]),
        rates={
            key: Rate(typical * rng.uniform(0.988, 1.012), rng.uniform(0.003, 0.007))
            for key, typical in product.rates.items()
        },
        event_counters={"sw_power_cap": rng.randrange(10**9, 9 * 10**9)},
    )


def _dimms(shape: Shape, seed: int) -> list[Dimm]:
    slots, size = shape.dimms
    rng = _stream(shape.node_type, seed, "dimms")
    return [
        Dimm(f"{'AB'[slot * 2 // slots]}{slot % (slots // 2) + 1}", size, f"{rng.getrandbits(32):08X}")
        for slot in range(slots)
    ]
