"""What is wrong with the copies of a node that does not exist, as values."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class CopyState:
    """What is wrong with copies, by the places of GPUs.

    `memory` is the part of its rate that a GPU's memory copies at, `host` the same of its copies to and from
    the host, `pairs` that of single ordered pairs. `corrupt` are ordered pairs whose bytes arrive wrong, a
    GPU with itself for its own memory. A GPU that is `hung` never answers. `dropped` is the generation that
    a link falls to under load. `far` GPUs could not be given memory beside them.
    """

    memory: dict[int, float] = field(default_factory=dict)
    host: dict[int, float] = field(default_factory=dict)
    pairs: dict[tuple[int, int], float] = field(default_factory=dict)
    corrupt: set[tuple[int, int]] = field(default_factory=set)
    hung: set[int] = field(default_factory=set)
    dropped: dict[int, int] = field(default_factory=dict)
    far: set[int] = field(default_factory=set)
