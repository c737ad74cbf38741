"""A node that does not exist: every part as a value, healthy until a fault changes it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodeready.simulate.copy_state import CopyState
from nodeready.simulate.host_model import HostState
from nodeready.simulate.link_model import EngineState, LinkState
from nodeready.simulate.memory_model import PatternRun
from nodeready.simulate.pci import PciState
from nodeready.simulate.reduction_state import ReductionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.simulate.adapters import Adapter
    from nodeready.simulate.machines import Distribution
    from nodeready.simulate.outputs.output import Output
    from nodeready.simulate.products import Product
    from nodeready.simulate.shapes import Shape

# when every simulated node was read: as nvidia-smi prints it, and in Unix time
READ_AT = "Tue Dec  1 09:12:41 2026"
READ_AT_SECONDS = 1796116361.0
# how long it had been up then, in seconds
UPTIME = 93_841.0

INACTIVE = "<inactive>"


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
    """One matmul result: the median, how far the batches spread, and what became of the product.

    `odd` says that it is right within rounding, and not what the sibling GPUs make of the same numbers.
    """

    tflops: float
    cv: float
    verified: bool = True
    repeatable: bool = True
    odd: bool = False


@dataclass(frozen=True)
class Process:
    """A process that computes on a GPU, with the memory that it holds there in MiB."""

    pid: int
    name: str
    memory_mib: int


@dataclass
class Gpu:
    """One GPU and the place that it sits in.

    `at_boot` is false where the firmware already missed it, `on_bus` where it is gone now, and
    `answers` where its config space reads all ones. `cuda_error` is what CUDA says on its first use.
    `load_events` are further clock event reasons under load, in samples by their bit, `load_margin` is the least
    margin then, where it is no healthy one, and `load_draw` the share of a healthy GPU's draw. `printed`
    replaces single values of `nvidia-smi -q`, by their path in the XML; `every_value` replaces all
    but the bus id. Powers are in W, clocks in MHz, temperatures and `margin` in degrees C, `links`
    one text per NVLink.
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
    fabric_state: str
    fabric_status: str
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
    load_events: dict[str, int] = field(default_factory=dict)
    load_margin: int | None = None
    load_draw: float = 1.0
    patterns: PatternRun = field(default_factory=PatternRun)
    memory_used: int = 0
    processes: list[Process] = field(default_factory=list)
    printed: dict[str, str] = field(default_factory=dict)
    every_value: str = ""

    @property
    def answers_queries(self) -> bool:
        """Whether the driver can still read anything from it."""
        return not self.every_value


@dataclass
class Dimm:
    """One slot of the board; 0 GiB where it is empty. `printed` replaces its size in dmidecode, `speed` is in MT/s."""

    locator: str
    size_gib: int
    serial: str
    printed: str = ""
    speed: int = 4400


@dataclass
class Driver:
    """The driver; `library` differs from `module` after an upgrade without a reboot.

    `refusal` is what every nvidia-smi command says instead of an answer, with `refusal_status`;
    `cuda_refusal` is what CUDA says on its first call. `bound` is the module that has taken the GPUs.
    `lost_files` are device files of it that nobody made.
    """

    module: str
    library: str
    cuda: str
    bound: str = "nvidia"
    refusal: str = ""
    refusal_status: int = 0
    cuda_refusal: str = ""
    lost_files: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """Whether NVIDIA's own module is in the kernel."""
        return self.bound == "nvidia"

    @property
    def refuses(self) -> bool:
        """Whether nvidia-smi gives no answer."""
        return bool(self.refusal or self.refusal_status)

    @property
    def major(self) -> int:
        """The driver's branch, which decides what its outputs look like."""
        return int(self.library.partition(".")[0])

    @property
    def release(self) -> int:
        """Branch and minor number as one: 580178 for 580.178.04."""
        return self.major * 1000 + int(self.library.split(".")[1])


@dataclass
class FabricManager:
    """The fabric manager's service, in systemd's word, and its version; None where it is not installed."""

    state: str
    version: str | None


@dataclass
class Engine:
    """The container engine of a `kind`; `cdi` tells whether CDI devices of NVIDIA are there.

    `refusal` is what the engine says instead of an answer.
    """

    kind: str
    version: str
    runtimes: tuple[str, ...] = ()
    cdi: bool = False
    refusal: str = ""


@dataclass
class Torch:
    """The Python environment that runs jobs; a CPU build has no CUDA. `visible` is CUDA_VISIBLE_DEVICES."""

    python: str
    version: str
    cuda: str | None
    cudnn: str | None
    nccl: str | None
    cublas: str | None
    arch_list: tuple[str, ...]
    tensorflow: str | None = None
    visible: str | None = None


@dataclass
class Port:
    """One port of a network adapter at a PCI address, as the RDMA stack and as the kernel show it.

    `rate` is in Gb/s. `physical` is `LinkUp` on a port that is Active.
    """

    adapter: Adapter
    rdma_name: str
    interface: str
    address: str
    numa: int
    guid: int
    lid: int
    layer: str
    rate: int
    state: str = "Active"
    physical: str = "LinkUp"

    @property
    def up(self) -> bool:
        """Whether it carries traffic."""
        return self.state == "Active"


@dataclass(frozen=True)
class KernelEvent:
    """Lines of the kernel log, at a time in seconds since boot."""

    seconds: float
    lines: tuple[str, ...]


@dataclass
class Node:
    """A whole node.

    `gpus` are all places of the plan in bus-id order, with or without a working GPU. `journal` tells
    whether the journal was asked for the kernel log. `jobs` are those that Slurm knows of, None without
    Slurm; `environment` holds variables that every login gets, `confidential` the state of confidential
    computing. `absent` are commands that are not installed, by name. `spoilers` change a finished output
    by its evidence name: what the node prints and what arrives differ. `diagnostic` is how each test of
    `dcgmi diag` ended on the GPU that a fault befalls; it is empty where nobody ran it.
    """

    shape: Shape
    seed: int
    gpus: list[Gpu]
    ports: list[Port]
    dimms: list[Dimm]
    mem_total_kib: int
    driver: Driver
    fabric_manager: FabricManager | None
    engine: Engine
    container_toolkit: str | None
    cuda_toolkit: str | None
    torch: Torch
    os: Distribution
    events: list[KernelEvent] = field(default_factory=list)
    journal: bool = False
    host: HostState = field(default_factory=HostState)
    pci: PciState = field(default_factory=PciState)
    links: LinkState = field(default_factory=LinkState)
    copies: CopyState = field(default_factory=CopyState)
    reduction: ReductionState = field(default_factory=ReductionState)
    below: EngineState = field(default_factory=EngineState)
    jobs: tuple[int, ...] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    confidential: str = "OFF"
    absent: set[str] = field(default_factory=set)
    spoilers: dict[str, Callable[[Output], Output | None]] = field(default_factory=dict)
    diagnostic: dict[str, str] = field(default_factory=dict)

    def stream(self, *purpose: object) -> random.Random:
        """Random numbers of their own for one purpose, the same for the same seed."""
        return stream(self.shape.node_type, self.seed, *purpose)

    @property
    def listed_gpus(self) -> list[Gpu]:
        """The GPUs that the driver lists, in its order."""
        return [gpu for gpu in self.gpus if gpu.in_driver]


def stream(*purpose: object) -> random.Random:
    """Random numbers of their own for one purpose."""
    return random.Random("/".join(map(str, purpose)))  # noqa: S311 - a made-up node needs no secrets
