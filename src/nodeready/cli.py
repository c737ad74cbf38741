"""The command line: collect, judge, simulate, explain - the same engine without pytest."""

from __future__ import annotations

import argparse
import gc
import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nodeready import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED, INTERNAL, USAGE = 2, 3, 4  # as pytest has them


class _Parser(argparse.ArgumentParser):
    """argparse, with the exit status that pytest gives usage errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}\n`{self.prog} --help` shows what there is.\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is that of the gate, 4 for a usage error."""
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except (ValueError, OSError) as error:
        print(f"nodeready: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("nodeready: interrupted; nothing was judged", file=sys.stderr)
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - 1 would mean that the node was rejected
        traceback.print_exc()
        print("nodeready: an internal error; the node was not judged", file=sys.stderr)
        return INTERNAL
    return status


def _parser() -> _Parser:
    parser = _Parser(
        prog="nodeready", description="Node readiness for GPU servers: what was not measured is never a pass."
    )
    parser.add_argument("--version", action="version", version=f"nodeready {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    judge = commands.add_parser("judge", help="judge evidence that was collected before")
    judge.add_argument("evidence", help="a capture, a folder of raw outputs, or one nvidia-smi -q [-x] document")
    judge.add_argument("--node-type", default="", help="what the node should be")
    judge.add_argument("--tier", default="acceptance", help="quick or acceptance (default)")
    judge.add_argument("--baseline", default="", metavar="NAME@VERSION|FILE", help="another baseline of that node type")
    judge.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="replace a demand's required bound"
    )
    judge.add_argument("--report-dir", default="reports", help="where run folders are made (default: reports)")
    judge.add_argument("--report-only", action="store_true", help="exit 0 whatever the acceptance")
    judge.set_defaults(run=_judge)

    collect = commands.add_parser("collect", help="record this node's evidence, and judge it elsewhere or later")
    collect.add_argument("--out", default="", help="the capture to write (default: HOST-TIME.tar.gz)")
    collect.add_argument("--sudo", action="store_true", help="read with sudo -n what only root can read")
    collect.set_defaults(run=_collect)

    simulate = commands.add_parser("simulate", help="write the evidence of a node that does not exist")
    simulate.add_argument("node_type", metavar="NODE-TYPE")
    simulate.add_argument("--out", default="", help="the folder to write")
    simulate.add_argument(
        "--fault", action="append", default=[], metavar="NAME", help="with this fault (may be repeated)"
    )
    simulate.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for the gate: gpu.count")
    simulate.add_argument(
        "--as",
        dest="form",
        choices=("evidence", "commands"),
        default="evidence",
        help="evidence to judge (default), or commands to put first on PATH for a live run",
    )
    simulate.add_argument("--seed", type=int, default=0, help="another node of the same kind")
    simulate.add_argument("--list-faults", action="store_true", help="list the faults and what each one must lead to")
    simulate.add_argument("--json", action="store_true", help="with --list-faults: as JSON")
    simulate.set_defaults(run=_simulate)

    explain = commands.add_parser("explain", help="what is demanded, and which evidence names there are")
    explain.add_argument("topic", help="checks, evidence, or a check's id")
    explain.add_argument("--node-type", default="sxm", help="whose demands to show (default: sxm)")
    explain.set_defaults(run=_explain)
    return parser


def _judge(arguments: argparse.Namespace) -> int:
    from nodeready import outputs, results
    from nodeready.check import load_checks
    from nodeready.gate import Gate, Request

    if not arguments.evidence:
        raise ValueError("the evidence is empty: name a capture, a folder or a document")
    gate = Gate.open(
        Request(
            node_type=arguments.node_type,
            tier=arguments.tier,
            evidence=arguments.evidence,
            baseline=arguments.baseline,
            settings=tuple(arguments.set),
            report_dir=arguments.report_dir,
            report_only=arguments.report_only,
        )
    )
    gc.disable()  # a short life with one big result: collecting it again and again costs a tenth of the run
    gate.make_folder()
    judging = gate.gather(print)
    judging.run_all(load_checks())
    found = results.build(gate, judging)
    outputs.write(gate, found, with_report=True)
    for line in outputs.summary(gate, found, colour=sys.stdout.isatty()):
        print(line)
    return int(found["exit_status"])


def _collect(arguments: argparse.Namespace) -> int:
    import os
    import socket
    import time

    from nodeready.acquire import SUDO, beyond_this_user
    from nodeready.evidence.capture import pack_evidence
    from nodeready.evidence.live import LiveNode
    from nodeready.gate import utc
    from nodeready.interrupt import interruptible
    from nodeready.node.catalogue import quick_probes

    host, started = socket.gethostname(), time.time()
    target = Path(arguments.out or f"{host}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(started))}.tar.gz")
    if target.exists():
        raise FileExistsError(f"{target} is there already; name another with --out")
    for line in beyond_this_user(sudo=arguments.sudo, uid=os.geteuid()):
        print(line)
    node = LiveNode(host, lambda _: None, SUDO if arguments.sudo else ())
    with interruptible():
        node.record(quick_probes())
    evidence = node.evidence()
    pack_evidence(evidence, utc(started), target)
    silent = sorted(name for name, r in evidence.recordings.items() if not r.stdout)
    print(
        f"{target}: {len(evidence.recordings) - len(silent)} recordings; no output from {', '.join(silent) or 'none'}"
    )
    print(f"nothing was loaded: judge it with `nodeready judge {target} --tier quick --node-type NAME`")
    return 0


def _simulate(arguments: argparse.Namespace) -> int:
    from nodeready.simulate import write

    if arguments.list_faults:
        faults: list[dict[str, Any]] = write.list_faults(arguments.node_type)
        if arguments.json:
            print(json.dumps(faults, indent=1))
        else:
            for fault in faults:
                print(f"{fault['name']:32} {fault['why']}")
        return 0
    if not arguments.out:
        raise ValueError("--out is missing: name the folder to write")
    settings = {}
    for text in arguments.set:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text!r}: write KEY=VALUE, such as gpu.count=4")
        settings[key] = value
    if arguments.form == "commands":
        from nodeready.node.catalogue import PROBES

        write.simulate_commands(
            arguments.node_type, Path(arguments.out), PROBES, arguments.fault, settings, arguments.seed
        )
        first = Path(arguments.out).absolute()
        print(
            f"{arguments.out}: run `PATH={first}:$PATH pytest checks/ --node-type {arguments.node_type} --tier quick`"
        )
        return 0
    write.simulate(arguments.node_type, Path(arguments.out), arguments.fault, settings, arguments.seed)
    print(
        f"{arguments.out}: judge it with `pytest checks/ --node-type {arguments.node_type} --evidence {arguments.out}`"
    )
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    from nodeready import explain

    for line in explain.lines(arguments.topic, arguments.node_type):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
