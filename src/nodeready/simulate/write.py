"""Writing a simulated node, as evidence or as commands: whole or not at all."""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeready.simulate.build import NoSuchNodeError, build
from nodeready.simulate.commands import RECORDED, write_commands
from nodeready.simulate.faults import faults
from nodeready.simulate.outputs.names import other_forms, outputs
from nodeready.simulate.releases import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nodeready.simulate.commands import Asked
    from nodeready.simulate.model import Node
    from nodeready.simulate.outputs.output import Output

_SETTINGS = ("gpu.count", "driver")


class SimulateError(ValueError):
    """A node that cannot be simulated or written; the text says what is known, or what to do."""


def simulate(
    node_type: str,
    out: Path,
    fault_names: Sequence[str] = (),
    settings: dict[str, str] | None = None,
    seed: int = 0,
) -> None:
    """Write the evidence of a node that does not exist, healthy but for the named faults.

    `settings` knows `gpu.count` and `driver`. Raises `SimulateError` for what is not known, and where
    `out` holds something already.
    """
    recorded = outputs(faulty(node_type, fault_names, settings or {}, seed))
    _whole(out, lambda folder: _fill(folder, recorded))


def simulate_commands(
    node_type: str,
    out: Path,
    probes: Iterable[Asked],
    fault_names: Sequence[str] = (),
    settings: dict[str, str] | None = None,
    seed: int = 0,
) -> None:
    """Write the same node as a folder to be put first on PATH: a live run then finds that node here.

    `probes` are what such a run asks. Raises as `simulate` does.
    """
    node = faulty(node_type, fault_names, settings or {}, seed)
    write_node_commands(out, node, outputs(node), probes)


def write_node_commands(out: Path, node: Node, recorded: dict[str, Output], probes: Iterable[Asked]) -> None:
    """Write a node that is made already, with what it gives, as such a folder; raises as `simulate` does."""
    answers = {**other_forms(node), **recorded}

    def fill(folder: Path) -> None:
        _fill(folder / RECORDED, answers)
        write_commands(folder, answers, probes)

    _whole(out, fill)


def faulty(node_type: str, fault_names: Sequence[str], settings: dict[str, str], seed: int) -> Node:
    """A node with some faults, each of which befalls it once; raises `SimulateError`."""
    node = healthy(node_type, settings, seed)
    known = {fault.name: fault for fault in faults(node_type)}
    for name in fault_names:
        if name not in known:
            raise SimulateError(f"there is no fault {name!r}: {_near(name, known)}")
    for name in dict.fromkeys(fault_names):
        known[name].apply(node)
    return node


def healthy(node_type: str, settings: dict[str, str], seed: int) -> Node:
    """A healthy node of a type; raises `SimulateError` for a type or setting that is not known."""
    unknown = [key for key in settings if key not in _SETTINGS]
    if unknown:
        raise SimulateError(
            f"--set {unknown[0]}: a simulated node can be told {' and '.join(_SETTINGS)} only; "
            "what it is judged by is set when it is judged"
        )
    count = settings.get("gpu.count")
    if count is not None and not (count.isascii() and count.isdigit()):
        raise SimulateError(f"--set gpu.count={count}: write a number, such as 4")
    try:
        return build(node_type, seed, None if count is None else int(count), settings.get("driver", LATEST))
    except NoSuchNodeError as error:
        raise SimulateError(str(error)) from None


def _whole(out: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder beside `out` and put it there; `out` must be absent or an empty folder."""
    if out.is_dir() and any(out.iterdir()):
        raise SimulateError(f"{out} is not empty: name a folder that does not exist yet")
    if out.exists() and not out.is_dir():
        raise SimulateError(f"{out} is there and no folder: name one that does not exist yet")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise SimulateError(f"{out} cannot be written: {error.strerror}") from None
    try:
        fill(beside)
        beside.chmod(0o755)
        os.replace(beside, out)  # noqa: PTH105 - Path.replace says the same of files only
    except OSError as error:
        raise SimulateError(f"{out} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _fill(folder: Path, recorded: dict[str, Output]) -> None:
    for name, output in recorded.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if output.stdout or not output.rc:
            path.write_bytes(output.stdout)
        if output.rc:
            Path(f"{path}.rc").write_text(f"{output.rc}\n", encoding="ascii")
        if output.stderr:
            Path(f"{path}.err").write_bytes(output.stderr)


def list_faults(node_type: str) -> list[dict[str, Any]]:
    """Every fault of a node type: its name, why it matters, its field case, and what it promises."""
    node = healthy(node_type, {}, 0)
    return [
        {
            "name": fault.name,
            "why": fault.why,
            "case": fault.case,
            "expects": [expected.as_json() for expected in fault.expects(node)],
        }
        for fault in faults(node_type)
    ]


def _near(name: str, known: dict[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    return f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(known)}"
