"""What goes wrong on the PCI bus: GPUs that are gone, links that trained low."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.build import build
from nodeready.simulate.faults.checks import every_gpu_check
from nodeready.simulate.faults.copies import lose_copies, unmeasured
from nodeready.simulate.faults.driverless import ON_THE_BUS, no_answer, no_module, without_module
from nodeready.simulate.faults.fault import (
    BY_ALL_TOGETHER,
    FAIL,
    UNVERIFIED,
    Expected,
    Fault,
    logged,
    nothing,
    on_node,
    on_victim,
    rows,
    subject,
    together,
    unless_alone,
    victim,
    xid,
)

if TYPE_CHECKING:
    from nodeready.simulate.model import Node
    from nodeready.simulate.outputs.output import Output
    from nodeready.simulate.shapes import Shape


def _lose(node: Node) -> None:
    gpu = victim(node)
    gpu.on_bus = gpu.in_driver = gpu.in_container = gpu.in_cuda = False


def fall_off(node: Node) -> None:
    """One GPU is gone from the bus and from the driver, and the kernel log holds Xid 79."""
    _lose(node)
    xid(node, victim(node), 79, "GPU has fallen off the bus.")


def _never_there(node: Node) -> None:
    _lose(node)
    victim(node).at_boot = False
    if len(node.gpus) == 1:
        logged(node, "NVRM: No NVIDIA GPU found.")
        without_module(node)


def _answer_with_ones(node: Node) -> None:
    gpu = victim(node)
    gpu.answers = gpu.in_driver = gpu.in_container = gpu.in_cuda = False
    # the driver says it so when it probes such a GPU: three lines and no Xid
    logged(
        node,
        f"NVRM: The NVIDIA GPU {gpu.bus_id}",
        f"NVRM: (PCI ID: 10de:{gpu.product.device}) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
        f"nvidia: probe of {gpu.bus_id} failed with error -1",
    )


def _hide_all(node: Node) -> None:
    """nvidia-smi gives up at the first GPU that it cannot open."""
    gpu = victim(node)
    gpu.answers = gpu.in_cuda = False
    xid(node, gpu, 79, "GPU has fallen off the bus.")
    place = f"0000{gpu.bus_id}".upper()
    node.driver.refusal = f"Unable to determine the device handle for GPU{place}: Unknown Error\n"
    node.driver.refusal_status = 255
    node.driver.cuda_refusal = "cuInit: error 999 (unknown error)"


def _add_one(node: Node) -> None:
    larger = build(node.shape.node_type, node.seed, len(node.gpus) + 1)
    node.gpus.append(larger.gpus[-1])
    node.ports = larger.ports  # some have an adapter beside each GPU
    node.host.drives += larger.host.drives[len(node.host.drives) :]  # some boards have one beside each GPU


def _has_room(shape: Shape) -> bool:
    return len(shape.places) > shape.gpus


def lost(node: Node) -> tuple[Expected, ...]:
    """Driver, bus and kernel log say so; of the GPU itself nothing more can be known."""
    if len(node.gpus) == 1:
        return (*rows(FAIL, "pcie.gpu-present", "health.xid"), *no_answer(node), *_off_the_bus(node))
    counted = (*rows(FAIL, "gpu.count", "pcie.gpu-present", "health.xid"), *rows(UNVERIFIED, *BY_ALL_TOGETHER))
    return (*counted, *rows(UNVERIFIED, *every_gpu_check(node), on=(subject(victim(node)),)))


def _off_the_bus(node: Node) -> tuple[Expected, ...]:
    """What the bus would have told of the GPU."""
    return rows(UNVERIFIED, *ON_THE_BUS, on=(subject(victim(node)),))


def _short_of_one(node: Node) -> tuple[Expected, ...]:
    """Nothing names the missing GPU's slot, so that the last index stands for it."""
    if len(node.gpus) == 1:
        untold = rows(UNVERIFIED, "pcie.access-control")
        return (*rows(FAIL, "pcie.gpu-present"), *no_module(node), *_off_the_bus(node), *untold)
    counted = (*rows(FAIL, "gpu.count", "pcie.gpu-present"), *rows(UNVERIFIED, *BY_ALL_TOGETHER))
    return (*counted, *rows(UNVERIFIED, *every_gpu_check(node), on=(subject(node.gpus[-1]),)))


def _all_hidden(node: Node) -> tuple[Expected, ...]:
    return (*rows(FAIL, "health.xid", "pcie.gpu-present"), *no_answer(node), *_off_the_bus(node))


def _train_at_gen3(node: Node) -> None:
    victim(node).link.generation = 3


def _train_at_x8(node: Node) -> None:
    victim(node).link.width = 8


def _cap_the_slot(node: Node) -> None:
    link = victim(node).link
    link.port_generation = link.max_generation = link.generation = 4


def _idle(node: Node) -> None:
    gpu = victim(node)
    gpu.link.generation = 1
    gpu.printed["performance_state"] = "P8"


def _idle_without_load(node: Node) -> None:
    _idle(node)
    lose_copies(node)


def _read_as_plain_user(node: Node) -> None:
    def without_capabilities(output: Output) -> Output:
        shown = re.sub(rb"\tCapabilities: .*\n(?:\t\t.*\n)*", b"", output.stdout)
        closed = rb"\1\tCapabilities: <access denied>\n"
        return replace(output, stdout=re.sub(rb"(?m)^(\tNUMA node: \d+\n(?:\tRegion.*\n)*)", closed, shown))

    node.spoilers["lspci_-nnvvv"] = without_capabilities


def _without_pciutils(node: Node) -> None:
    node.absent.add("lspci")


FAULTS = (
    Fault(
        "gpu-fell-off-the-bus",
        "A GPU stopped answering under a job, was dropped from the bus, and the kernel log holds Xid 79.",
        fall_off,
        lost,
    ),
    Fault(
        "gpu-missing-since-boot",
        "The firmware did not find one GPU at power-on, so that no log names it: only the count is short.",
        _never_there,
        _short_of_one,
        case="B19",
    ),
    Fault(
        "one-gpu-too-many",
        "The node holds one GPU more than was bought: it is another node than the one that was meant.",
        _add_one,
        # no floor is meant for the sum over more GPUs than were bought
        together(on_node(FAIL, "gpu.count", "pcie.gpu-present"), unless_alone(on_node(UNVERIFIED, *BY_ALL_TOGETHER))),
        can_have=_has_room,
    ),
    Fault(
        "gpu-rev-ff",
        "lspci still lists the GPU, but its registers read all ones (rev ff) and no Xid was logged.",
        _answer_with_ones,
        together(lost, on_node(UNVERIFIED, "network.write-bandwidth")),
        case="A9",
    ),
    Fault(
        "lost-gpu-hides-all",
        "One GPU is lost, and nvidia-smi gives up at it: not a word of the others.",
        _hide_all,
        _all_hidden,
        case="B17",
    ),
    Fault(
        "pcie-gen3-link",
        "One GPU's link trained at generation 3: host bandwidth is a quarter, and no error is logged.",
        _train_at_gen3,
        on_victim(FAIL, "pcie.gpu-link-generation", "pcie.bandwidth"),
        case="A4",
    ),
    Fault(
        "pcie-x8-link",
        "One GPU's link trained with half its lanes after the tray was reseated badly.",
        _train_at_x8,
        on_victim(FAIL, "pcie.gpu-link-width", "pcie.bandwidth"),
    ),
    Fault(
        "pcie-capped-slot",
        "The slot above one GPU is capped at generation 4 by a BIOS setting, so that its link can never reach 5.",
        _cap_the_slot,
        on_victim(FAIL, "pcie.gpu-link-generation", "pcie.bandwidth"),
        case="A3",
    ),
    Fault(
        "pcie-idle-link",
        "One GPU was read while it slept, with its link slowed down to save power; under load it was fast: no fault.",
        _idle,
        nothing,
        case="A1",
    ),
    Fault(
        "pcie-idle-link-without-load",
        "One GPU was read while it slept, with its link slowed down, and never under load: neither good nor bad.",
        _idle_without_load,
        together(on_victim(UNVERIFIED, "pcie.gpu-link-generation"), unmeasured),
        case="A1",
    ),
    Fault(
        "lspci-as-plain-user",
        "lspci ran without root and shows no links: nvidia-smi and sysfs do, but for the access control of ports.",
        _read_as_plain_user,
        on_node(UNVERIFIED, "pcie.access-control"),
        case="A6",
    ),
    Fault(
        "lspci-missing",
        "pciutils are not installed: the kernel's own word is enough, but for the access control of ports.",
        _without_pciutils,
        on_node(UNVERIFIED, "pcie.access-control"),
    ),
)
