"""What goes wrong with copies: memory, links to the host, pairs of GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.copy_model import OF_LINKS, memory_rate
from nodeready.simulate.faults.checks import recommended, required
from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    on_every_gpu,
    on_victim,
    rows,
    subject,
    victim,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodeready.simulate.model import Gpu, Node
    from nodeready.simulate.shapes import Shape

MEMORY, HOST, PEERS = "gpu.memory-bandwidth", "pcie.bandwidth", "nvlink.bandwidth"
_GENERATION = "pcie.gpu-link-generation"


def _linked(shape: Shape) -> bool:
    return shape.joined > 1


def _next_to(node: Node) -> Gpu:
    """A GPU that NVLink joins with the one that the fault befalls."""
    gpu, joined = victim(node), node.shape.joined
    return next(g for g in node.gpus if g is not gpu and g.place // joined == gpu.place // joined)


def _slow_memory(node: Node) -> None:
    node.copies.memory[victim(node).place] = 0.7


def _lag(node: Node) -> None:
    gpu, middle = victim(node), (required(node, MEMORY) + recommended(node, MEMORY)) / 2
    node.copies.memory[gpu.place] = middle * 1000 / memory_rate(node, gpu)


def _spoil_memory(node: Node) -> None:
    node.copies.corrupt.add((victim(node).place, victim(node).place))


def _halve_the_host(node: Node) -> None:
    node.copies.host[victim(node).place] = 0.5


def _stand_far(node: Node) -> None:
    node.copies.host[victim(node).place] = 0.75
    node.copies.far.add(victim(node).place)


def _drop(node: Node) -> None:
    node.copies.dropped[victim(node).place] = 3


def _slow_a_pair(node: Node) -> None:
    node.copies.pairs[victim(node).place, _next_to(node).place] = 0.5


def _spoil_a_pair(node: Node) -> None:
    node.copies.corrupt.add((victim(node).place, _next_to(node).place))


def _hang(node: Node) -> None:
    node.copies.hung.add(victim(node).place)


def _cut(node: Node) -> None:
    node.spoilers["copies"] = lambda output: replace(output, stdout=output.stdout[: len(output.stdout) // 2])


def lose_copies(node: Node) -> None:
    """Let nobody have measured any copy."""
    node.spoilers["copies"] = lambda _: None


def unmeasured(node: Node) -> tuple[Expected, ...]:
    """What is unknown where no copy was measured."""
    return on_every_gpu(UNVERIFIED, HOST, MEMORY, PEERS)(node)


def by_links(node: Node, links: int, *gpus: Gpu) -> tuple[Expected, ...]:
    """The verdict on GPUs whose slowest pair is joined by so many links at full speed; none where that is enough."""
    if len(node.gpus) < 2:
        return ()
    rate = links * float(node.shape.product.link_speed.split()[0]) * OF_LINKS
    short = rate < 0.99 * required(node, PEERS), rate < 0.99 * recommended(node, PEERS)
    verdict = FAIL if short[0] else ADVISORY
    return rows(verdict, PEERS, on=map(subject, gpus)) if any(short) else ()


def worst_first(changes: Iterable[Expected]) -> tuple[Expected, ...]:
    """The same rows, failures before all others."""
    return tuple(sorted(changes, key=lambda row: (FAIL, UNVERIFIED, ADVISORY).index(row.verdict)))


FAULTS = (
    Fault(
        "slow-memory",
        "One GPU's memory copies at two thirds of its rate, and nothing else tells of it.",
        _slow_memory,
        on_victim(FAIL, MEMORY),
    ),
    Fault(
        "lagging-memory",
        "One GPU's memory is slower than a good one's, and fast enough to work with.",
        _lag,
        on_victim(ADVISORY, MEMORY),
    ),
    Fault(
        "memory-changes-bytes",
        "One GPU's memory holds other bytes than were copied into it, and counts no ECC error.",
        _spoil_memory,
        on_victim(FAIL, MEMORY),
    ),
    Fault(
        "host-copies-halved",
        "One GPU's link shows full width and generation, and moves half of what it should.",
        _halve_the_host,
        on_victim(FAIL, HOST),
    ),
    Fault(
        "host-memory-far",
        "The probe was not let onto the processors beside one GPU: its copies are slow, and nothing is proven of it.",
        _stand_far,
        on_victim(UNVERIFIED, HOST),
    ),
    Fault(
        "link-drops-under-load",
        "One GPU's link shows generation 5 when idle and falls to 3 as soon as something is copied.",
        _drop,
        on_victim(FAIL, _GENERATION, HOST),
    ),
    Fault(
        "slow-pair",
        "Copies from one GPU to one other run at half speed; all links are up, and the way back is fine.",
        _slow_a_pair,
        on_victim(FAIL, PEERS),
        can_have=_linked,
    ),
    Fault(
        "corrupt-pair",
        "Bytes from one GPU to one other arrive changed, at full speed and without an error.",
        _spoil_a_pair,
        on_victim(FAIL, PEERS),
        can_have=_linked,
    ),
    Fault(
        "copies-hang-on-one",
        "One GPU's first copy never ends: its process was ended, and the other GPUs were measured without it.",
        _hang,
        on_victim(UNVERIFIED, HOST, MEMORY, PEERS),
    ),
    Fault(
        "copies-result-cut",
        "The document of the copies was cut on its way: nothing is known of any copy.",
        _cut,
        unmeasured,
    ),
)
