"""Asking a node, this machine or a remote one: first what only reads, then, on an idle node, what loads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from nodeready.evidence.agent import NODENAME
from nodeready.evidence.live import QUICK_BUDGET, LiveNode
from nodeready.load import loads, put_load
from nodeready.node import Node
from nodeready.node.catalogue import quick_probes
from nodeready.occupancy import occupants, squeue
from nodeready.reading import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nodeready.evidence.capture import Evidence
    from nodeready.evidence.probe import Probe
    from nodeready.evidence.recording import Recording
    from nodeready.evidence.remote import RemoteNode
    from nodeready.gate import Gate, Request

SUDO = ("sudo", "-n")


class Reached(Protocol):
    """A node that probes can be run on, here or elsewhere."""

    recordings: dict[str, Recording]

    def record(self, probes: Iterable[Probe], budget: float = QUICK_BUDGET) -> None:
        """Run the probes and keep their recordings."""

    def evidence(self) -> Evidence:
        """What has been recorded so far."""

    def keep_not_run(self, probe: Probe, reason: str) -> None:
        """Record that a probe was not run, and why."""


def acquire(gate: Gate, keep: Callable[[Recording], None], announce: Callable[[str], None]) -> tuple[Evidence, str]:
    """The evidence of the node, and who holds it where the tier's load was not run for that."""
    if gate.request.is_remote:
        return _acquire_remote(gate, keep, announce)
    sudo = sudo_of(gate.request)
    for line in beyond_this_user(_asked(gate), sudo=bool(sudo), uid=os.geteuid()):
        announce(line)
    return _ask(LiveNode(gate.host, keep, sudo), gate, announce)


def sudo_of(request: Request) -> tuple[str, ...]:
    """What is put before the probes that need root."""
    if not request.sudo:
        return ()
    return (*SUDO, "-u", request.sudo_user) if request.sudo_user else SUDO


def _acquire_remote(
    gate: Gate, keep: Callable[[Recording], None], announce: Callable[[str], None]
) -> tuple[Evidence, str]:
    from nodeready.evidence.remote import RemoteNode
    from nodeready.evidence.transport import Transport

    request = gate.request
    transport = Transport(request.host, request.way, shared=gate.plan.tier != "quick" and gate.load_wanted)
    node = RemoteNode(gate.host, transport, keep, sudo_of(request), request.python or "python3")
    try:
        evidence, busy = _ask(node, gate, announce)
    finally:
        node.close()
    if node.trouble:
        announce(f"{request.host}: {node.trouble}")
    return evidence, busy


def _ask(node: LiveNode | RemoteNode, gate: Gate, announce: Callable[[str], None]) -> tuple[Evidence, str]:
    request, plan = gate.request, gate.plan
    who = NODENAME if request.is_remote else gate.host
    node.record([*quick_probes(), *([squeue(who)] if plan.tier != "quick" else [])])
    if request.is_remote:
        for line in _said_of_target(node, gate):
            announce(line)
    if plan.tier == "quick" or not gate.load_wanted:
        return node.evidence(), ""
    judged = Node(node.evidence(), gate.terms)
    refusal, busy = _why_no_load(judged, request)
    if busy:
        return node.evidence(), busy
    if refusal:
        announce(f"no load is run: {refusal}")
        for probe in loads(plan, request.job_python):
            node.keep_not_run(probe, refusal)
        return node.evidence(), ""
    put_load(node, request, plan, announce)
    return node.evidence(), ""


def _asked(gate: Gate) -> tuple[Probe, ...]:
    """Every probe that this run is to ask the node."""
    load = loads(gate.plan, gate.request.job_python) if gate.load_wanted else ()
    return (*quick_probes(), *load)


def _said_of_target(node: LiveNode | RemoteNode, gate: Gate) -> list[str]:
    """What has to be said of a target's shell and user, once it has presented itself."""
    request, hello = gate.request, getattr(node, "hello", {})
    if not hello:
        return []
    lines = beyond_this_user(_asked(gate), sudo=request.sudo, uid=hello.get("uid", 0))
    if "pid" not in hello:
        wanted = request.python or "python3"
        asked = "its shell asks one probe after the other, without NVML or load"
        lines.append(f"{request.host}: no {wanted} of 3.9 or newer there; {asked}")
    return lines


def beyond_this_user(probes: Iterable[Probe], *, sudo: bool, uid: int) -> list[str]:
    """What a plain user without --sudo cannot measure."""
    if sudo or uid == 0:
        return []
    rows = [f"  {p.name}: {p.root_for} ({', '.join(p.serves)})" for p in probes if p.root_for]
    return ["as a plain user without --sudo these cannot be read, or only in part:", *rows] if rows else []


def _why_no_load(node: Node, request: Request) -> tuple[str, str]:
    """Why nothing may be loaded: the driver does not answer, or (second) the node is in use."""
    responds = node.driver.responds
    if isinstance(responds, Unknown) or not responds.value:
        return f"the driver does not answer: {responds.reason if isinstance(responds, Unknown) else responds.note}", ""
    if request.force:
        return "", ""
    holders = occupants(node, this_machine=not request.is_remote)
    if isinstance(holders, Unknown):
        return f"{holders.reason}; --force runs the load all the same", ""
    return "", ", ".join(holders.value)
