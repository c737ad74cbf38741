"""Asking the node under the suite: first what only reads, then, on an idle node, what loads."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.evidence.live import LiveNode
from nodeready.evidence.probe import Probe
from nodeready.evidence.recording import Ended, Recording
from nodeready.evidence.runner import run
from nodeready.node import Node
from nodeready.node.catalogue import CONTAINER_GPUS, MATMUL, TORCH, matmul_by, quick_probes, torch_by
from nodeready.occupancy import occupants, squeue
from nodeready.reading import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.evidence.capture import Evidence
    from nodeready.gate import Gate, Request
    from nodeready.plan import Plan

LOAD_BUDGET = 720.0
CONTAINER_DEADLINE = 60.0
SUDO = ("sudo", "-n")


def acquire(gate: Gate, keep: Callable[[Recording], None], announce: Callable[[str], None]) -> tuple[Evidence, str]:
    """The evidence of this machine, and who holds it where the tier's load was not run for that."""
    request, plan, host = gate.request, gate.plan, gate.host
    node = LiveNode(host, keep, SUDO if request.sudo else ())
    for line in beyond_this_user(request.sudo):
        announce(line)
    probes = [*quick_probes(), *([squeue(host)] if plan.tier != "quick" else [])]
    node.record(probes)
    if plan.tier == "quick" or not gate.load_wanted:
        return node.evidence(), ""
    judged = Node(node.evidence(), gate.terms)
    refusal, busy = _why_no_load(judged, request.force)
    if busy:
        return node.evidence(), busy
    if refusal:
        announce(f"no load is run: {refusal}")
        for probe in (TORCH, MATMUL, CONTAINER_GPUS):
            node.keep_not_run(probe, refusal)
        return node.evidence(), ""
    _load(node, request, plan, announce)
    return node.evidence(), ""


def beyond_this_user(sudo: bool) -> list[str]:
    """What a plain user without --sudo cannot measure, said before the run."""
    if sudo or os.geteuid() == 0:
        return []
    rows = [f"  {p.name}: {p.root_for} ({', '.join(p.serves)})" for p in quick_probes() if p.root_for]
    return ["as a plain user without --sudo these cannot be read, or only in part:", *rows] if rows else []


def _why_no_load(node: Node, force: bool) -> tuple[str, str]:
    """Why nothing may be loaded: the driver does not answer, or (second) the node is in use."""
    responds = node.driver.responds
    if isinstance(responds, Unknown) or not responds.value:
        return f"the driver does not answer: {responds.reason if isinstance(responds, Unknown) else responds.note}", ""
    if force:
        return "", ""
    holders = occupants(node)
    if isinstance(holders, Unknown):
        return f"{holders.reason}; --force runs the load all the same", ""
    return "", ", ".join(holders.value)


def _load(node: LiveNode, request: Request, plan: Plan, announce: Callable[[str], None]) -> None:
    container = container_probe(plan.baseline.settings.get("container.image", ""))
    if isinstance(container, Probe):
        announce(f"container: {' '.join(container.argv)}")
    else:
        node.keep_not_run(CONTAINER_GPUS, container.reason)
    node.record([torch_by(request.python), *([container] if isinstance(container, Probe) else [])], budget=120.0)
    ran = node.recordings[CONTAINER_GPUS.name]
    if ran.ended in (Ended.TIMED_OUT, Ended.ABANDONED):
        _end_container(ran.argv[0])
    torch = node.recordings[TORCH.name]
    if torch.ended is not Ended.EXITED or torch.rc != 0:
        node.keep_not_run(MATMUL, f"{request.python} cannot run torch; name one that can with --python")
        return
    probe = matmul_by(request.python)
    announce(f"load: matmul on all GPUs at once, at most {probe.deadline:.0f} s")
    node.record([probe], budget=LOAD_BUDGET)


def container_probe(image: str) -> Probe | Unknown:
    """How to run one container that lists its GPUs: an image that is there, or the host's own root."""
    named = ("--rm", f"--name={_container_name()}", "--network=none")
    if image and shutil.which("docker"):
        argv = ("docker", "run", *named, "--pull=never", "--gpus=all", image, "nvidia-smi", "-L")
        return replace(CONTAINER_GPUS, argv=argv, deadline=CONTAINER_DEADLINE)
    if shutil.which("podman"):
        where = ("--pull=never", image) if image else ("--rootfs", "/:O")
        argv = ("podman", "run", *named, "--device=nvidia.com/gpu=all", *where, "nvidia-smi", "-L")
        return replace(CONTAINER_GPUS, argv=argv, deadline=CONTAINER_DEADLINE)
    if shutil.which("docker"):
        return Unknown("no container was run: name an image that is on the node with --set container.image=NAME")
    return Unknown("no container was run: neither docker nor podman is on PATH")


def _container_name() -> str:
    return f"nodeready-{os.getpid()}"


def _end_container(engine: str) -> None:
    """A client that was ended leaves its container behind."""
    run(Probe("container-end", (engine, "rm", "--force", _container_name()), deadline=10.0))
