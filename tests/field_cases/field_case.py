"""What one case of the field is: how it is shown to the suite, and the verdict that an operator would call right."""

from collections.abc import Callable
from dataclasses import dataclass, field

# why a case can't be a test here
LOAD = "load"  # it shows only while something loads the node, in a way that no probe of this version does
HARDWARE = "hardware"  # it shows only on real parts
NODES = "multi-node"  # it is a matter of several nodes, or of the network between them
SCOPE = "out of scope"  # this suite doesn't do that at all
LATER = "later part"  # planned, and not built yet
KINDS = (LOAD, HARDWARE, NODES, SCOPE, LATER)

Files = dict[str, bytes]


@dataclass(frozen=True)
class Want:
    """One right verdict: of a key on a subject.

    `says` are words of the finding's message, `remedy` of its next step. A pass has to have been measured:
    its finding holds an observed value, and `value` is that value where it is the odd one.
    """

    key: str
    subject: str
    verdict: str
    says: tuple[str, ...] = ()
    value: object = None
    remedy: tuple[str, ...] = ()
    blocked_by: str = ""


def passes(key, subject, value, *says):
    """A healthy value that a hasty checker takes for a fault, or that proves what was read."""
    return Want(key, subject, "pass", says, value)


def fails(key, subject, *says, remedy=()):
    """A fault that has to be seen."""
    return Want(key, subject, "fail", says, remedy=remedy)


def advises(key, subject, *says):
    """Worth a look, and no reason to reject the node."""
    return Want(key, subject, "advisory", says)


def unverified(key, subject, *says, by=""):
    """Not measured, so neither good nor bad; `by` is the finding that explains it."""
    return Want(key, subject, "unverified", says, blocked_by=by)


def absent(key, subject, *says):
    """A part that this node type does not have."""
    return Want(key, subject, "not-applicable", says)


@dataclass(frozen=True)
class Scene:
    """A simulated node of a type with faults, its evidence edited, and the verdicts that are right.

    `captures` are real outputs by evidence name; where `bare` is true they are all of the evidence. `nvml` are
    lines for the fake NVML library: what its probe says then stands in the place of nvidia-smi. `failing` are all
    keys that fail, where it matters that no other does. `judged_as` is another node type to judge the evidence by.
    `owed` says what the suite says instead, where it doesn't give the right verdict yet: such a scene has to fail.
    """

    wants: tuple[Want, ...]
    faults: tuple[str, ...] = ()
    edit: Callable[[Files], None] | None = None
    node_type: str = "sxm"
    driver: str = ""
    captures: dict[str, str] = field(default_factory=dict)
    bare: bool = False
    nvml: tuple[str, ...] | None = None
    judged_as: str = ""
    settings: tuple[str, ...] = ()
    in_service: bool = False
    acceptance: str = ""
    failing: frozenset[str] | None = None
    owed: str = ""


@dataclass(frozen=True)
class Run:
    """`pytest checks/` as a process on a simulated node: its exit status, acceptance and words.

    `acceptance` is empty where no results are written. `plugin` is a pytest plugin that the run loads.
    """

    arguments: tuple[str, ...]
    status: int
    acceptance: str = ""
    says: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    plugin: str = ""
    first: tuple[str, ...] = ("checks/",)


@dataclass(frozen=True)
class Proof:
    """A claim of the suite's own that evidence can't show; the function asserts it.

    Its parameters are fixtures by name.
    """

    claim: Callable[..., None]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cannot:
    """Why a case is no test here."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Case:
    """One row of the catalogue: the symptom, and how it is shown or why it can't be."""

    id: str
    symptom: str
    shown: tuple[Scene | Run | Proof, ...] = ()
    cannot: Cannot | None = None


def case(case_id, symptom, *shown):
    """A case that is taken."""
    return Case(case_id, symptom, shown)


def cannot(case_id, symptom, kind, reason):
    """A case that can't be a test here, and why."""
    return Case(case_id, symptom, cannot=Cannot(kind, reason))


def scene(*wants, **how):
    """A scene of these verdicts."""
    if "faults" in how:
        how["faults"] = tuple(how["faults"].split())
    if "failing" in how:
        how["failing"] = frozenset(how["failing"].split())
    return Scene(wants, **how)
