"""The options that the gate adds to pytest, and those that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

OPTIONS: dict[str, dict[str, Any]] = {
    "--node-type": {"default": None, "metavar": "NAME", "help": "what the node should be: sxm, ..., or auto"},
    "--tier": {
        "default": "acceptance",
        "metavar": "TIER",
        "help": "quick (read-only, seconds) or acceptance (default)",
    },
    "--evidence": {
        "default": None,
        "metavar": "PATH",
        "help": "judge a capture, a folder of raw outputs or one nvidia-smi document",
    },
    "--python": {
        "default": "",
        "metavar": "PATH",
        "help": "the Python that runs jobs, on the node (default: this one; a remote node's python3)",
    },
    "--baseline": {"default": "", "metavar": "NAME@VERSION|FILE", "help": "another baseline of that node type"},
    "--set": {
        "action": "append",
        "default": [],
        "metavar": "KEY=VALUE",
        "help": "replace a demand's required bound",
    },
    "--report-dir": {
        "default": "reports",
        "metavar": "DIR",
        "help": "where run folders are made (default: reports)",
    },
    "--in-service": {
        "action": "store_true",
        "help": "judge by the bounds for nodes in service, where a demand has any",
    },
    "--force": {"action": "store_true", "help": "put load on a node that is in use"},
    "--report-only": {"action": "store_true", "help": "exit 0 whatever the acceptance"},
    "--waivers": {"default": None, "metavar": "FILE", "help": "(a later version)"},
    "--burn-in-duration": {"default": None, "metavar": "TIME", "help": "(a later version)"},
}
LOCAL = "local://"
_WAYS = ("ssh_config", "ssh_identity_file", "ansible_inventory")  # testinfra's, with which remote hosts are reached
_LATER = {
    "waivers": "--waivers does not exist yet: no finding can be waived in this version",
    "burn_in_duration": "--burn-in-duration does not exist yet: this version has no tier burn-in",
}


def refusal(option: Callable[[str], Any], inipath: Path | None) -> str:
    """Why a gate cannot be run with these options; empty where it can.

    `option` gives an option's value, None where no plugin has it; `inipath` is where pytest took its own
    configuration from.
    """
    for name, sentence in _LATER.items():
        if option(name) is not None:
            return sentence
    evidence = option("evidence")
    if evidence == "":
        return "--evidence is empty: name what to judge, or leave it out to judge this machine"
    if option("numprocesses"):
        return "-n: the suite runs its own probes side by side; leave xdist out"
    return _of_hosts(option) or from_evidence(evidence, inipath, ())


def _of_hosts(option: Callable[[str], Any]) -> str:
    """Why hosts cannot be reached with testinfra's options as they are."""
    if option("connection"):
        return "--connection: write the connection before each host, such as --hosts ssh://NAME"
    if option("sudo_user") and not option("sudo"):
        return "--sudo-user says as whom --sudo reads: give --sudo too"
    without = (option("hosts") or LOCAL) == LOCAL
    name = next((name for name in _WAYS if without and option(name)), "")
    return f"--{name.replace('_', '-')} is for remote hosts: name them with --hosts" if name else ""


def from_evidence(evidence: str | None, inipath: Path | None, paths: Iterable[str]) -> str:
    """Why pytest may not go on: it took its configuration, or what it is to run, from inside the evidence."""
    if not evidence:
        return ""
    folder = Path(evidence).resolve()
    taken = [inipath, *(Path(path.partition("::")[0]) for path in paths)]
    inside = next((path for path in taken if path is not None and path.resolve().is_relative_to(folder)), None)
    if inside is None:
        return ""
    return (
        f"pytest took {inside} from the evidence for its own: "
        "write --evidence=PATH with an equals sign, or checks/ before the options"
    )
