"""One run of the gate: what is asked for, the evidence it judges, and the folder it fills."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from nodeready import baseline as baselines
from nodeready.engine import Judging
from nodeready.evidence.capture import CaptureWriter, EvidenceError, pack_evidence, utc
from nodeready.evidence.folder import read_evidence
from nodeready.evidence.transport import LOCAL, Way, host_name
from nodeready.node import Node
from nodeready.node.catalogue import TREES, evidence_names
from nodeready.node.places import matrix_of
from nodeready.node.terms import Terms
from nodeready.plan import Plan
from nodeready.quantity import Quantity, UnitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.evidence.capture import Evidence
    from nodeready.expectation import Bound

AUTO = "auto"
_AUTO_IS_HERE = "--node-type auto looks at this machine's PCI bus: name what the remote node should be"


class UsageError(ValueError):
    """What was asked for does not exist or does not fit; the text says what does."""


@dataclass(frozen=True)
class Request:
    """What an operator asks for, as options of pytest or of `nodeready`.

    `host` is empty for this machine and for evidence, else how to reach the node, and `way` by which of
    testinfra's options. `python` is empty for the default. `picked` is true where the node type was found by
    the PCI ids, and not named.
    """

    node_type: str
    tier: str = "acceptance"
    evidence: str = ""
    baseline: str = ""
    settings: tuple[str, ...] = ()
    python: str = ""
    report_dir: str = "reports"
    host: str = ""
    way: Way = field(default_factory=Way)
    sudo: bool = False
    sudo_user: str = ""
    force: bool = False
    in_service: bool = False
    report_only: bool = False
    picked: bool = False

    @property
    def is_remote(self) -> bool:
        """Whether the node is another than this machine."""
        return self.host not in ("", LOCAL)

    @property
    def job_python(self) -> str:
        """The Python of the environment that runs jobs, on the node."""
        return self.python or ("python3" if self.is_remote else sys.executable)


@dataclass
class Gate:
    """A run that is being made.

    `busy` says who holds the node where nothing was run for that, `foreign_failure` names a test that is
    no check and failed in the same run, `load_wanted` is false where no check that is to run needs load.
    """

    request: Request
    plan: Plan
    terms: Terms
    handed_in: Evidence | None
    host: str
    started: float
    folder: Path | None = None
    evidence: Evidence | None = None
    busy: str = ""
    subset: bool = False
    foreign_failure: str = ""
    load_wanted: bool = True
    judging: Judging | None = field(default=None)

    @classmethod
    def open(cls, request: Request) -> Gate:
        """Check everything that was asked for; the node is not touched and nothing is written yet."""
        _refuse(request)
        handed_in = None
        try:
            if request.node_type != AUTO:
                baselines.known(request.node_type)  # said before evidence is read
            if request.evidence:
                handed_in = read_evidence(Path(request.evidence), evidence_names(), TREES)
            if request.node_type == AUTO:
                request = replace(request, node_type=_found_type(handed_in), picked=True)
            baseline = baselines.load(
                request.node_type, request.baseline, list(request.settings), in_service=request.in_service
            )
            terms = terms_of(baseline)
        except (baselines.BaselineError, EvidenceError) as error:
            raise UsageError(str(error)) from None
        if not request.is_remote and not shutil.which(request.job_python):
            raise UsageError(f"--python {request.python}: there is no such program")
        own = host_name(request.host) if request.is_remote else os.uname().nodename
        host = _safe(handed_in.host if handed_in else own)
        return cls(request, Plan(baseline, request.tier), terms, handed_in, host, time.time())

    def for_host(self, spec: str) -> Gate:
        """The same gate for another host."""
        request = replace(self.request, host=spec)
        if request.is_remote and request.picked:
            raise UsageError(_AUTO_IS_HERE)
        name = host_name(spec) if request.is_remote else os.uname().nodename
        return replace(self, request=request, host=_safe(name), started=time.time())

    def make_folder(self) -> Path:
        """Create the run folder: REPORT_DIR/HOST/TIME, with a number appended where it is taken."""
        parent = Path(self.request.report_dir) / self.host
        latest = parent / "latest"
        if latest.is_dir() and not latest.is_symlink():
            raise UsageError(f"{latest} is a folder, not the link to the newest run: move it away")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.started))
        for number in range(1, 1000):
            folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise UsageError(
                    f"--report-dir {self.request.report_dir} cannot be written: {error.strerror}"
                ) from None
            self.folder = folder
            return folder
        raise UsageError(f"{parent} holds a thousand runs of this second")

    def gather(self, announce: Callable[[str], None]) -> Judging:
        """Get the evidence (live: run the probes) and stand ready to judge it."""
        if self.folder is None:
            raise RuntimeError("make_folder() comes first")
        if self.request.picked:
            announce(f"node type {self.request.node_type}, picked by the PCI ids of the GPUs")
        if self.handed_in is not None:
            self.evidence = self.handed_in
            if self.handed_in.unread:
                announce(_unread(self.handed_in.unread))
        else:
            from nodeready.acquire import acquire

            writer = CaptureWriter(self.folder / "capture", self.host, utc(self.started))
            self.evidence, self.busy = acquire(self, writer.add, announce)
        self.judging = Judging(self.plan, Node(self.evidence, self.terms))
        return self.judging

    def pack_capture(self) -> None:
        """Pack what was recorded; the folder of a live run is then no longer needed."""
        if self.folder is None or self.evidence is None:
            raise RuntimeError("gather() comes first")
        pack_evidence(self.evidence, utc(self.started), self.folder / "capture.tar.gz")
        shutil.rmtree(self.folder / "capture", ignore_errors=True)

    def point_latest(self) -> None:
        """Let REPORT_DIR/HOST/latest lead to this run."""
        if self.folder is None:
            raise RuntimeError("make_folder() comes first")
        link, beside = self.folder.parent / "latest", self.folder.parent / f".latest.{os.getpid()}"
        beside.unlink(missing_ok=True)
        beside.symlink_to(self.folder.name)
        beside.replace(link)

    def discard_empty_folder(self) -> None:
        """Remove a run folder in which nothing was kept."""
        if self.folder is not None and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _refuse(request: Request) -> None:
    """Say what cannot be asked for."""
    if request.tier == "burn-in":
        raise UsageError("--tier burn-in does not exist yet; this version has quick and acceptance")
    if request.tier not in baselines.TIERS:
        raise UsageError(f"--tier {request.tier}: there is no such tier; known: quick, acceptance")
    if not request.node_type:
        raise UsageError(
            f"--node-type is missing: say what the node should be, one of {', '.join(baselines.node_types())}"
        )
    if request.is_remote and request.evidence:
        raise UsageError("--hosts and --evidence: a node is asked, or its evidence is judged; leave one out")
    if request.is_remote and request.node_type == AUTO:
        raise UsageError(_AUTO_IS_HERE)


def _found_type(evidence: Evidence | None) -> str:
    """The node type for `auto`; raises `UsageError` where no GPU of a known type is there."""
    from nodeready.node.identify import ids_of_evidence, ids_of_machine, node_type_of

    ids = ids_of_evidence(evidence) if evidence else ids_of_machine()
    found = node_type_of(ids, baselines.products())
    if found is None:
        seen = f"the NVIDIA devices are {', '.join(dict.fromkeys(ids))}" if ids else "no NVIDIA device is known"
        raise UsageError(f"--node-type auto: {seen}; name one of {', '.join(baselines.node_types())}")
    return found


def _unread(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"not read, since no evidence has these names: {shown} (`nodeready explain evidence` lists them)"


def terms_of(baseline: baselines.Baseline) -> Terms:
    """What the readings of a baseline's nodes are taken by; raises `BaselineError` for a setting that does not fit."""
    power = baseline.demands["power.limit"]
    may_be_lower = power.recommended is not None and power.required is not None
    return Terms(
        gpu_count=baseline.gpu_count,
        power_rated=power.recommended.operand if may_be_lower and power.recommended else None,
        power_least=power.required.operand if may_be_lower and power.required else None,
        port_rate=_data_rate(baseline, "network.port-rate"),
        link_speed=_data_rate(baseline, "nvlink.link-speed"),
        host_power=_quantity(baseline, "power.host", "power", "2000 W"),
        xid_window=_hours(baseline, "health.xid-window"),
        links=_numbers_of(baseline.demands["nvlink.links-active"].required),
        links_per_pair=_counts(baseline, "nvlink.links-per-pair"),
        reduce_shares=_shares(baseline, "nvlink.all-reduce-shares"),
        matrix=_matrix(baseline),
        tables=baseline.tables,
        today=today(),
    )


def _matrix(baseline: baselines.Baseline) -> dict[tuple[str, str], str]:
    found = matrix_of(baseline.settings["topology.matrix"])
    if found is None:
        sample = "gpu0 numa=0 mlx5_0=PIX mlx5_1=NODE"
        raise baselines.BaselineError(f"--set topology.matrix: write one text for each GPU, such as '{sample}'")
    return found


def _data_rate(baseline: baselines.Baseline, name: str) -> Quantity:
    return _quantity(baseline, name, "data rate", "100 Gb/s")


def _quantity(baseline: baselines.Baseline, name: str, dimension: str, sample: str) -> Quantity:
    try:
        set_to = Quantity.parse(baseline.settings[name])
    except UnitError as error:
        raise baselines.BaselineError(f"--set {name}: {error}") from None
    if set_to.dimension != dimension:
        raise baselines.BaselineError(
            f"--set {name}: {set_to} is a {set_to.dimension}, not a {dimension} such as '{sample}'"
        )
    return set_to


def _hours(baseline: baselines.Baseline, name: str) -> float | None:
    """A window in hours, None for all since boot."""
    found = re.fullmatch(r"boot|([0-9]{1,5}(?:\.[0-9]{1,2})?) h", baseline.settings[name].strip())
    if found is None or (found[1] and float(found[1]) <= 0):
        raise baselines.BaselineError(f"--set {name}={baseline.settings[name]}: write boot, or hours such as '24 h'")
    return float(found[1]) if found[1] else None


def _numbers_of(bound: Bound | None) -> tuple[int, ...]:
    """The numbers that a bound lets pass; none where it is no list of them."""
    if bound is None or bound.operator not in ("equals", "one_of"):
        return ()
    operands = bound.operand if isinstance(bound.operand, tuple) else (bound.operand,)
    return tuple(int(operand) for operand in operands)


def _counts(baseline: baselines.Baseline, name: str) -> tuple[int, ...]:
    """A list of numbers, written with commas."""
    words = [word.strip() for word in baseline.settings[name].split(",")]
    if not all(re.fullmatch("[0-9]{1,3}", word) for word in words):
        raise baselines.BaselineError(f"--set {name}={baseline.settings[name]}: write numbers such as 18, or 0,12")
    return tuple(int(word) for word in words)


def _shares(baseline: baselines.Baseline, name: str) -> dict[int, float]:
    """Parts of a floor by the number of GPUs, 0 for GPUs that are not joined; none where the setting is empty."""
    words = [word.strip() for word in baseline.settings[name].split(",") if word.strip()]
    found = [re.fullmatch(r"(unjoined|[1-9][0-9]?)=(1|0\.[0-9]{1,4})", word) for word in words]
    if not all(found):
        raise baselines.BaselineError(f"--set {name}={baseline.settings[name]}: write parts such as 8=1,4=0.767")
    return {0 if each[1] == "unjoined" else int(each[1]): float(each[2]) for each in found if each}


def today() -> date:
    """The day as of which dated tables are read: SOURCE_DATE_EPOCH where it is set, for runs to be repeated."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    if fixed and not fixed.isdigit():
        raise UsageError(f"SOURCE_DATE_EPOCH={fixed}: write seconds since 1970, or unset it")
    return datetime.fromtimestamp(float(fixed or time.time()), tz=timezone.utc).date()


def _safe(host: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", host).strip(".-") or "node"
