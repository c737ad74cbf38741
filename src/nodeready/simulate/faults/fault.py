"""A fault: what it does to a healthy node, and which verdicts it promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodeready.simulate.faults.checks import judged_checks
from nodeready.simulate.model import UPTIME, KernelEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nodeready.simulate.model import Gpu, Node
    from nodeready.simulate.shapes import Shape

FAIL, UNVERIFIED, ADVISORY = "fail", "unverified", "advisory"
# what the kernel log alone tells of the host
BY_LOG = (
    *("memory.machine-checks", "storage.read-only", "storage.errors", "host.hangs"),
    *("nvlink.log", "network.log", "pcie.errors-logged"),
)
# what is judged by loads other than the matrix products
BY_OTHER_LOADS = ("gpu.memory-patterns", "pcie.bandwidth", "gpu.memory-bandwidth", "nvlink.bandwidth")
# what is judged by the matrix products, and so unknown of a GPU that made none
BY_LOAD = (
    *(f"compute.matmul-{kind}" for kind in ("fp16", "bf16", "fp8", "tf32", "fp32", "fp64")),
    *("compute.repeatable", "health.clock-events", "power.draw", "thermal.margin"),
)
# what all GPUs do together, and so unknown where one of them takes no part
BY_ALL_TOGETHER = ("nvlink.all-reduce",)
# what holds GPUs against each other under load, and so unknown where fewer than two of them bore it
BY_LOAD_OF_ALL = ("consistency.products", "consistency.matmul-rate")


@dataclass(frozen=True)
class Expected:
    """The verdict of one check on one subject where it is not that of the healthy node."""

    check: str
    subject: str
    verdict: str

    def as_json(self) -> dict[str, str]:
        """As `--list-faults --json` shows it."""
        return {"check": self.check, "subject": self.subject, "verdict": self.verdict}


def any_shape(_: Shape) -> bool:
    """Every node can have it."""
    return True


def several_gpus(shape: Shape) -> bool:
    """Only a node with more than one GPU can have it."""
    return shape.gpus > 1


def bare_metal(shape: Shape) -> bool:
    """No virtual machine can have it."""
    return not shape.virtual


def networked(shape: Shape) -> bool:
    """Only a node with ports for jobs over several nodes can have it."""
    return shape.networked


def has_nvswitch(shape: Shape) -> bool:
    """Only a board with NVSwitches can have it."""
    return shape.fabric_manager


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong with a node.

    `why` is a sentence in an operator's words, `case` the number of a known field case or empty.
    `apply` changes a healthy node. `changes` lists, for a healthy node, every verdict that then
    differs, the promise first; the rows are joins, the worst finding of a check. `can_have` tells by
    its shape whether a node can have it.
    """

    name: str
    why: str
    apply: Callable[[Node], None]
    changes: Callable[[Node], tuple[Expected, ...]]
    case: str = ""
    can_have: Callable[[Shape], bool] = any_shape

    def expects(self, node: Node) -> tuple[Expected, ...]:
        """What changes on this healthy node, without checks that do not apply to its type."""
        judged = judged_checks(node)
        return tuple(row for row in _with_the_other(node, self.changes(node)) if row.check in judged)


def _with_the_other(node: Node, changes: tuple[Expected, ...]) -> tuple[Expected, ...]:
    """What is not known of the copies of one of two GPUs is not known of the other's: they have but one pair."""
    lost = [row for row in changes if (row.check, row.verdict) == ("nvlink.bandwidth", UNVERIFIED)]
    if len(node.gpus) != 2 or len(lost) != 1:
        return changes
    other = next(subject(gpu) for gpu in node.gpus if subject(gpu) != lost[0].subject)
    at = changes.index(lost[0])
    return (*changes[:at], Expected("nvlink.bandwidth", other, UNVERIFIED), *changes[at:])


def victim(node: Node) -> Gpu:
    """The GPU that a fault of one GPU befalls: the first of the upper half."""
    return node.gpus[len(node.gpus) // 2]


def subject(gpu: Gpu) -> str:
    """How findings call it."""
    return f"gpu{gpu.place}"


def rows(verdict: str, *checks: str, on: Iterable[str] = ("node",)) -> tuple[Expected, ...]:
    """The same verdict for some checks on some subjects."""
    subjects = tuple(on)
    return tuple(Expected(check, at, verdict) for check in checks for at in subjects)


def on_victim(verdict: str, *checks: str) -> Callable[[Node], tuple[Expected, ...]]:
    """The same verdict for some checks on the GPU that the fault befalls."""
    return lambda node: rows(verdict, *checks, on=(subject(victim(node)),))


def on_every_gpu(verdict: str, *checks: str) -> Callable[[Node], tuple[Expected, ...]]:
    """The same verdict for some checks on all GPUs."""
    return lambda node: rows(verdict, *checks, on=map(subject, node.gpus))


def on_node(verdict: str, *checks: str) -> Callable[[Node], tuple[Expected, ...]]:
    """The same verdict for some checks on the node."""
    return lambda _: rows(verdict, *checks)


def unless_alone(changes: Callable[[Node], tuple[Expected, ...]]) -> Callable[[Node], tuple[Expected, ...]]:
    """What changes only on a node with more than one GPU."""
    return lambda node: changes(node) if len(node.gpus) > 1 else ()


def if_alone(changes: Callable[[Node], tuple[Expected, ...]]) -> Callable[[Node], tuple[Expected, ...]]:
    """What changes only on a node with one GPU."""
    return lambda node: changes(node) if len(node.gpus) == 1 else ()


def together(*parts: Callable[[Node], tuple[Expected, ...]]) -> Callable[[Node], tuple[Expected, ...]]:
    """All that several parts expect, in their order."""
    return lambda node: tuple(expected for part in parts for expected in part(node))


def without_load(node: Node, gpus: Iterable[Gpu]) -> tuple[Expected, ...]:
    """What is unknown where some of the GPUs bore no load."""
    idle = tuple(map(subject, gpus))
    of_all = rows(UNVERIFIED, *BY_LOAD_OF_ALL) if len(node.gpus) - len(idle) < 2 else ()
    together = rows(UNVERIFIED, *BY_ALL_TOGETHER) if idle else ()
    return (*rows(UNVERIFIED, *BY_LOAD, *BY_OTHER_LOADS, on=idle), *together, *of_all)


def no_load(node: Node) -> tuple[Expected, ...]:
    """What is unknown where no GPU bore any load."""
    return without_load(node, node.gpus)


def no_products(node: Node) -> tuple[Expected, ...]:
    """What is unknown where the matrix products of no GPU are known."""
    return tuple(row for row in no_load(node) if row.check not in BY_OTHER_LOADS)


def no_load_on_victim(node: Node) -> tuple[Expected, ...]:
    """What is unknown where the GPU that the fault befalls bore no load."""
    return without_load(node, [victim(node)])


def nothing(_: Node) -> tuple[Expected, ...]:
    """No verdict changes: it looks like a fault and is none."""
    return ()


def logged(node: Node, *lines: str) -> None:
    """Let the kernel have said this, a while before the node was read."""
    node.events.append(KernelEvent(UPTIME - 7200 + 60 * len(node.events), lines))


def xid(node: Node, gpu: Gpu, code: int, text: str, process: str = "pid='<unknown>', name=<unknown>") -> None:
    """Let the driver have logged an Xid of a GPU."""
    address = f"PCI:{gpu.bus_id[:-2]}"
    logged(
        node,
        f"NVRM: GPU at {address}: {gpu.uuid}",
        f"NVRM: GPU Board Serial Number: {gpu.serial}",
        f"NVRM: Xid ({address}): {code}, {process}, {text}",
    )
