"""`nodeready judge`: evidence that was collected before, judged by the same engine as under pytest."""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeready.commands.say import say
from nodeready.render.escape import visible_lines

if TYPE_CHECKING:
    import argparse

DIFFERENCE = "difference.json"


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    judge = commands.add_parser("judge", help="judge evidence that was collected before")
    judge.add_argument(
        "evidence", help="a capture, a run folder, a folder of raw outputs, or one nvidia-smi -q [-x] document"
    )
    judge.add_argument("--node-type", default="", help="what the node should be (default: as the baseline or run says)")
    judge.add_argument("--tier", default="acceptance", help="quick or acceptance (default)")
    judge.add_argument("--baseline", default="", metavar="NAME@VERSION|FILE", help="another baseline of that node type")
    judge.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="replace a demand's required bound"
    )
    judge.add_argument(
        "--against",
        default="",
        metavar="RESULTS.json|RUN",
        help="an earlier judgement to compare with (default: the one that lies beside the capture)",
    )
    judge.add_argument("--report-dir", default="reports", help="where run folders are made (default: reports)")
    judge.add_argument(
        "--in-service", action="store_true", help="judge by the bounds for nodes in service, where a demand has any"
    )
    judge.add_argument("--report-only", action="store_true", help="exit 0 whatever the acceptance")
    judge.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge, write the run folder, say the summary and what differs; the exit status is the gate's."""
    gc.disable()  # a short life with one big result: collecting it again and again costs a tenth of the run
    from nodeready import earlier, outputs, results
    from nodeready.check import load_checks
    from nodeready.gate import Gate, Request

    if not arguments.evidence:
        raise ValueError("the evidence is empty: name a capture, a folder or a document")
    where = earlier.locate(Path(arguments.evidence))
    first = _First.at(earlier.results_at(Path(arguments.against)) if arguments.against else where.results)
    gate = Gate.open(
        Request(
            node_type=arguments.node_type or _node_type(arguments.baseline, first),
            tier=arguments.tier,
            evidence=str(where.evidence),
            baseline=arguments.baseline,
            settings=tuple(arguments.set),
            report_dir=arguments.report_dir,
            in_service=arguments.in_service,
            report_only=arguments.report_only,
        )
    )
    folder = gate.make_folder()
    judging = gate.gather(lambda text: say(visible_lines(text, 4000)))
    judging.run_all(load_checks())
    found = results.build(gate, judging)
    differs = first.compared(found, folder)
    seen = outputs.write(gate, found, with_report=True)
    *summary, sentence = outputs.summary(gate, seen, colour=sys.stdout is not None and sys.stdout.isatty())
    for line in (*summary, *differs, sentence):
        say(line)
    return int(found["exit_status"])


@dataclass(frozen=True)
class _First:
    """The first judgement of the evidence, where there is one, or why it cannot be compared with."""

    path: Path | None = None
    results: dict[str, Any] | None = None
    damage: str = ""

    @classmethod
    def at(cls, path: Path | None) -> _First:
        """The judgement in a results.json; one that is damaged is said, and keeps nobody from judging."""
        from nodeready import earlier

        if path is None:
            return cls()
        try:
            return cls(path, earlier.read_results(path))
        except earlier.EarlierError as error:
            return cls(path, None, str(error))

    def compared(self, found: dict[str, Any], folder: Path) -> list[str]:
        """What differs, in lines; also written to the run folder."""
        if self.path is None:
            return []
        from nodeready.difference import difference, unlike
        from nodeready.evidence.capture import write_beside
        from nodeready.render import difference as rendered
        from nodeready.render.escape import visible

        problem = self.damage or ("" if self.results is None else unlike(self.results, found))
        if self.results is None or problem:
            return [visible(f"not compared with {self.path}: {problem}")]
        told = difference(self.results, found)
        write_beside(folder / DIFFERENCE, f"{json.dumps(told, indent=1)}\n".encode())
        return rendered.lines(told)


def _node_type(baseline: str, first: _First) -> str:
    """The node type where none is named: the baseline's name, else what the first judgement was by."""
    from nodeready.baseline import node_types

    name = baseline.partition("@")[0]
    if name in node_types():
        return name
    return "" if first.results is None else str(first.results["node_type"])
