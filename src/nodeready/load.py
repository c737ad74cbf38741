"""Putting load on an idle node: which probes, in which order, within which time."""

from __future__ import annotations

import secrets
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.evidence.probe import Probe
from nodeready.evidence.recording import Ended
from nodeready.node.catalogue import CONTAINER_GPUS, DRIVE_READ, RDMA_WRITE, TORCH, load_by, torch_by
from nodeready.reading import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.acquire import Reached
    from nodeready.gate import Request
    from nodeready.plan import Plan

LOAD_BUDGET = 720.0  # seconds for all of it, of the 15 minutes that a run may take
CONTAINER_DEADLINE = 60.0
_WITHOUT_TORCH = (RDMA_WRITE.name, DRIVE_READ.name)


def loads(plan: Plan, python: str) -> tuple[Probe, ...]:
    """The probes of the tiers that load which any demand of the plan needs, in the order they are run."""
    wanted = {demand.check for demand in plan.demands.values() if not demand.absent}
    every = (torch_by(python), CONTAINER_GPUS, *load_by(python))
    return tuple(probe for probe in every if wanted.intersection(probe.serves))


def put_load(node: Reached, request: Request, plan: Plan, announce: Callable[[str], None]) -> None:
    """Run what loads, one probe after the other; what is not run is recorded with the reason."""
    python = request.job_python
    probes = loads(plan, python)
    has = _engines(node) if request.is_remote else shutil.which
    container = container_probe(plan.baseline.settings.get("container.image", ""), has)
    first = [probe for probe in probes if probe.name == TORCH.name]
    if isinstance(container, Probe):
        announce(f"container: {' '.join(container.argv)}")
        first.append(container)
    else:
        node.keep_not_run(CONTAINER_GPUS, container.reason)
    node.record(first, budget=120.0)
    torch = node.recordings.get(TORCH.name)
    has_torch = torch is not None and torch.ended is Ended.EXITED and torch.rc == 0
    until, refusal = time.monotonic() + LOAD_BUDGET, ""
    for probe in probes:
        if probe.name in (TORCH.name, CONTAINER_GPUS.name):
            continue
        if probe.name not in _WITHOUT_TORCH and not has_torch:
            node.keep_not_run(probe, f"{python} cannot run torch; name one that can with --python")
        elif refusal:
            node.keep_not_run(probe, refusal)
        else:
            left = until - time.monotonic()
            announce(f"load: {probe.name}, at most {min(probe.deadline, left):.0f} s")
            node.record([probe], budget=left)
            if node.recordings[probe.name].ended in (Ended.TIMED_OUT, Ended.ABANDONED):
                refusal = f"not asked: {probe.name} before it never answered"


def _engines(node: Reached) -> Callable[[str], object]:
    """Which container engines a target has, by what it said when they were asked."""
    asked = {recording.argv[0]: recording for recording in node.recordings.values() if recording.argv}

    def has(engine: str) -> bool:
        recording = asked.get(engine)
        return recording is not None and recording.ended is Ended.EXITED

    return has


def container_probe(image: str, has: Callable[[str], object]) -> Probe | Unknown:
    """How to run one container that lists its GPUs: an image that is there, or the host's own root."""
    name = f"nodeready-{secrets.token_hex(4)}"
    named = ("--rm", f"--name={name}", "--network=none")

    def by(*argv: str) -> Probe:
        undo = (argv[0], "rm", "--force", name)  # a client that was ended leaves its container behind
        return replace(CONTAINER_GPUS, argv=argv, deadline=CONTAINER_DEADLINE, undo=undo)

    if image and has("docker"):
        return by("docker", "run", *named, "--pull=never", "--gpus=all", image, "nvidia-smi", "-L")
    if has("podman"):
        where = ("--pull=never", image) if image else ("--rootfs", "/:O")
        return by("podman", "run", *named, "--device=nvidia.com/gpu=all", *where, "nvidia-smi", "-L")
    if has("docker"):
        return Unknown("no container was run: name an image that is on the node with --set container.image=NAME")
    return Unknown("no container was run: neither docker nor podman is on PATH")
