"""`nodeready collect`: record the evidence of this node or of others, to be judged elsewhere or later."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeready.commands.say import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from nodeready.evidence.capture import Evidence

USAGE, INTERRUPTED, PARTLY = 4, 2, 10
_AT_ONCE = 64


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    collect = commands.add_parser("collect", help="record a node's evidence, and judge it elsewhere or later")
    _add_options(collect)
    collect.add_argument(
        "--hosts",
        default="",
        metavar="ssh://A,ssh://B",
        help="record these nodes, one capture each, into the folder --out",
    )
    collect.add_argument("--ssh-config", default="", metavar="FILE", help="with --hosts: an ssh configuration")
    collect.add_argument(
        "--as-zipapp",
        default="",
        metavar="FILE",
        help="write the collector itself, for nodes that have python3 and no more",
    )
    collect.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="", help="the capture to write (default: HOST-TIME.tar.gz)")
    parser.add_argument("--sudo", action="store_true", help="read with sudo -n what only root can read")


def main(argv: Sequence[str] | None = None) -> int:
    """The collector by itself, out of the zip: standard library only."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="nodeready-collect", description="Record this node's evidence; `nodeready judge` judges it elsewhere."
    )
    _add_options(parser)
    arguments = parser.parse_args(argv)
    try:
        return _collect_here(arguments)
    except OSError as error:
        print(f"nodeready-collect: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("nodeready-collect: interrupted; nothing was written", file=sys.stderr)
        return INTERRUPTED


def run(arguments: argparse.Namespace) -> int:
    """Record with every probe that only reads, and pack what came; 0 unless a capture cannot be written."""
    if arguments.as_zipapp:
        from nodeready.collector import write_collector

        size = write_collector(Path(arguments.as_zipapp))
        name = Path(arguments.as_zipapp).name
        say(f"{arguments.as_zipapp}: {size >> 10} KiB; copy it to a node and run `python3 {name}`")
        return 0
    if arguments.hosts:
        return _collect_there(arguments)
    if arguments.ssh_config:
        raise ValueError("--ssh-config is for remote hosts: name them with --hosts")
    return _collect_here(arguments)


def _collect_here(arguments: argparse.Namespace) -> int:
    import socket

    from nodeready.acquire import SUDO, beyond_this_user
    from nodeready.collector import ProbesOfZip
    from nodeready.evidence.capture import Evidence
    from nodeready.evidence.live import LiveNode
    from nodeready.interrupt import interruptible
    from nodeready.node.catalogue import quick_probes

    host, started = socket.gethostname(), time.time()
    target = _free(Path(arguments.out or _name(host, started)))
    for line in beyond_this_user(quick_probes(), sudo=arguments.sudo, uid=os.geteuid()):
        say(line)
    asked = ProbesOfZip(quick_probes())
    node = LiveNode(host, lambda _: None, SUDO if arguments.sudo else ())
    with interruptible():
        node.record(asked.probes)
    recordings = {name: asked.as_asked(recording) for name, recording in node.recordings.items()}
    _pack(Evidence("live", host, recordings), started, target)
    say(f"nothing was loaded: judge it with `nodeready judge {target} --tier quick --node-type NAME`")
    return 0


def _collect_there(arguments: argparse.Namespace) -> int:
    """A capture of each host, side by side; 10 where a host gave nothing or not all."""
    import socket
    from concurrent.futures import ThreadPoolExecutor

    from nodeready.acquire import SUDO
    from nodeready.evidence.remote import RemoteNode
    from nodeready.evidence.transport import Transport, Way, host_name, host_specs
    from nodeready.interrupt import interruptible
    from nodeready.node.catalogue import quick_probes

    way = Way(ssh_config=arguments.ssh_config)
    folder, started = Path(arguments.out or "."), time.time()
    folder.mkdir(parents=True, exist_ok=True)
    transports = [Transport(spec, way, shared=False) for spec in host_specs(arguments.hosts, way)]
    sudo = SUDO if arguments.sudo else ()
    own = socket.gethostname()
    nodes = [RemoteNode(host_name(way.spec) or own, way, lambda _: None, sudo) for way in transports]
    with interruptible(), ThreadPoolExecutor(min(len(nodes), _AT_ONCE)) as pool:
        list(pool.map(lambda node: node.record(quick_probes()), nodes))
    for node in nodes:
        if node.hello:
            _pack(node.evidence(), started, _free(folder / _name(node.host, started)))
        if node.trouble:
            say(f"{node.host}: {node.trouble}")
    return PARTLY if any(node.trouble for node in nodes) else 0


def _name(host: str, started: float) -> str:
    return f"{host}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(started))}.tar.gz"


def _free(target: Path) -> Path:
    if target.exists():
        raise FileExistsError(f"{target} is there already; name another with --out")
    return target


def _pack(evidence: Evidence, started: float, target: Path) -> None:
    from nodeready.evidence.capture import pack_evidence, utc

    pack_evidence(evidence, utc(started), target)
    silent = sorted(name for name, r in evidence.recordings.items() if not r.stdout)
    say(f"{target}: {len(evidence.recordings) - len(silent)} recordings; no output from {', '.join(silent) or 'none'}")
