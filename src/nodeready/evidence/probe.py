"""A probe is one command or file to read the node by."""

from __future__ import annotations

from dataclasses import dataclass


def evidence_name(*argv: str) -> str:
    """The file name of a command's output in an evidence folder.

    >>> evidence_name("nvidia-smi", "-q", "-x")
    'nvidia-smi_-q_-x'
    """
    return "_".join(argv).replace(" ", "_").replace("/", ".")


@dataclass(frozen=True)
class Probe:
    """How to ask the node for one recording.

    `deadline` is in seconds. Probes of one `family` touch the same device or daemon: they run one
    after the other, and once one overran its deadline the rest of the family is not started.
    `undo` is run on the node where this probe was ended: what it may have left behind is taken away.
    `answers` are the exit statuses with which the output is an answer, and `refusals` those among them
    with which it can only explain why there is none: a value in such an output was not measured.
    `instead_of` names the probe that this one stands in for: it runs only where that one gave nothing.
    `after` names the probe whose counters this one reads a second time, for a rate: it runs last, at least
    `pause` seconds after that one was started, and only where that one gave something.
    `serves` are the check ids that need it and `root_for` what a plain user loses.
    """

    name: str
    argv: tuple[str, ...]
    deadline: float = 10.0
    family: str = ""
    tier: str = "quick"
    answers: tuple[int, ...] = (0,)
    refusals: tuple[int, ...] = ()
    instead_of: str = ""
    after: str = ""
    pause: float = 3.0
    undo: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    root_for: str = ""

    @property
    def is_file(self) -> bool:
        """Whether the recording is a file of the node, kept under its own path."""
        return self.argv[:1] == ("cat",)


def command(*argv: str, name: str = "", **options: object) -> Probe:
    """A probe that runs a command; its evidence name follows from the command line."""
    return Probe(name or evidence_name(*argv), argv, **options)  # type: ignore[arg-type]


def file(path: str, **options: object) -> Probe:
    """A probe that reads a file; its evidence name is the path below the evidence folder."""
    return Probe(path.lstrip("/"), ("cat", path), **options)  # type: ignore[arg-type]
