"""One batch of probes as one command line for a target, and what comes back as recordings."""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
import shlex
import sys
import time
import zlib
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeready.evidence import frames
from nodeready.evidence.agent import NODENAME, PYTHON, SCRIPT
from nodeready.evidence.recording import Ended, Recording
from nodeready.evidence.script import gathered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nodeready.evidence.probe import Probe

MOST_ARGUMENT = 128 * 1024 - 1  # bytes: MAX_ARG_STRLEN of Linux, for one argument and so for a whole remote command
_TRAVELS = (
    "probe",
    "recording",
    "driver_root",
    "runner",
    "capture",
    "live",
    "frames",
    "script",
    "agent",
)  # in the order they import each other
# what the shell of a target runs: the agent under a Python that is new enough, else the probes by the shell itself
SHELL = (
    'if command -v "$1" >/dev/null 2>&1; then "$1" -c "$2" "$3" "$4"; '
    'rc=$?; [ "$rc" = 97 ] || exit "$rc"; fi; '
    'eval "$(printf %s "$5" | base64 -d)"'
)
BOOT = (
    "import sys;sys.version_info<(3,9) and sys.exit(97);import base64,zlib;"
    "exec(zlib.decompress(base64.b64decode(sys.argv[2])))"
)
LOADER = """
import json, sys, types
carried = json.loads({carried!r})
for name in ("nodeready", "nodeready.evidence"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
sys.modules["nodeready"].evidence = sys.modules["nodeready.evidence"]
for name, text in carried["modules"].items():
    full = "nodeready.evidence." + name
    sys.modules[full] = module = types.ModuleType(full)
    setattr(sys.modules["nodeready.evidence"], name, module)
    exec(compile(text, full, "exec"), module.__dict__)
sys.modules["nodeready.evidence.agent"].main(sys.argv[1], carried["order"])
"""
# a target without Python: one probe after the other, within the budget, a family no further once it overran
PLAIN = """exec 7>&1
printf '\\n%s plainhello %s %s\\n' "$N" "$(uname -n)" "$(id -u)"
E=$(($(date +%s) + B)); W=' '
p() {
  n=$1; f=$2; d=$3; shift 3
  case $W in *" $f "*) return;; esac
  [ "$(date +%s)" -lt "$E" ] || return
  case "$1 $3" in 'sudo -u') c=$5;; sudo\\ *) c=$3;; *) c=$1;; esac
  if ! command -v "$c" >/dev/null 2>&1; then printf '\\n%s plainmissing %s\\n' "$N" "$n"; return; fi
  printf '\\n%s plain %s %s\\n' "$N" "$n" "$(date +%s)"
  e=$( { { timeout -k 1 "$d" "$@" </dev/null 2>&6 6>&- 7>&-; printf '\\n=%s' "$?" >&6; } | base64 >&7; } 6>&1 | base64)
  printf '%s plainend %s\\n' "$N" "$(echo $e | tr -d ' ')"
  case $(echo "$e" | base64 -d | tail -n 1) in =124|=137) W="$W$f ";; esac
}
"""
END = "printf '\\n%s plaindone\\n' \"$N\"\n"
_MODULES = Path(__file__).parent


@dataclass
class Answer:
    """What came back of a batch: how the target presented itself, the recordings, and whether it came to its end."""

    hello: dict[str, Any] = field(default_factory=dict)
    recordings: dict[str, Recording] = field(default_factory=dict)
    whole: bool = False


class Batch:
    """Some probes, ready to be sent. `python` is the target's Python that the agent runs under.

    Raises `ValueError` where they do not fit into one command line.
    """

    def __init__(
        self, probes: Iterable[Probe], budget: float, sudo: Sequence[str] = (), python: str = "python3"
    ) -> None:
        self.nonce, self.budget, self.sudo, self._python = secrets.token_hex(8), budget, tuple(sudo), python
        self.probes = list(probes)
        self._scripts: dict[str, str] = {}
        rows = [{**asdict(probe), "argv": [self._argument(text) for text in probe.argv]} for probe in self.probes]
        order = {"probes": rows, "scripts": self._scripts, "budget": budget, "sudo": list(sudo)}
        text = LOADER.format(carried=json.dumps({"modules": _modules(), "order": json.dumps(order)}))
        packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        plain = base64.b64encode(self._plain().encode()).decode()
        self.argv = (SHELL, "nodeready", python, BOOT, self.nonce, packed, plain)
        size = len(shlex.join(self.argv))
        if size > MOST_ARGUMENT - 1024:
            raise ValueError(f"{len(self.probes)} probes are {size} bytes, more than one remote command may have")

    def answer(self, stream: bytes) -> Answer:
        """What a stream of frames holds, whether it is whole or was cut."""
        got = Answer()
        for kind, payload in frames.frames(self.nonce, stream):
            if kind == "hello":
                got.hello = _object(payload)
            elif kind == "end":
                got.whole = True
            elif kind == "recording":
                recording = frames.unpack_recording(payload)
                if recording is not None:
                    argv = tuple(_named(text, got.hello, self._python) for text in recording.argv)
                    got.recordings[recording.name] = replace(recording, argv=argv)
        return got if got.hello else self._plain_answer(stream)

    def _argument(self, text: str) -> str:
        if text == sys.executable:
            return PYTHON
        path = Path(text)
        if path.suffix == ".py" and path.is_file():
            self._scripts.update(gathered(path.name, lambda name: _text(path.with_name(name))))
            return SCRIPT + path.name
        return text

    def _plain(self) -> str:
        """The text for a target without Python."""
        lines = [f"N={self.nonce}; B={self.budget:.0f}", PLAIN]
        for probe in self.probes:
            argv = [self._argument(text) for text in probe.argv]
            if any(text.startswith((PYTHON, SCRIPT)) for text in argv):
                continue
            words = [
                '"$(uname -n | cut -d. -f1)"' if text == NODENAME else shlex.quote(text)
                for text in (*(self.sudo if probe.root_for else ()), *argv)
            ]
            name, family = shlex.quote(probe.name), shlex.quote(probe.family or probe.name)
            lines.append(f"p {name} {family} {probe.deadline:g} {' '.join(words)}")
        return "\n".join([*lines, END])

    def _plain_answer(self, stream: bytes) -> Answer:
        got = Answer()
        tag = re.escape(self.nonce.encode())
        hello = re.search(rb"^" + tag + rb" plainhello (\S{1,255}) (\d{1,10})$", stream, re.MULTILINE)
        if hello is None:
            return got
        got.hello = {"node": hello.group(1).decode("utf-8", "replace"), "uid": int(hello.group(2))}
        got.whole = re.search(rb"^" + tag + rb" plaindone$", stream, re.MULTILINE) is not None
        asked = {probe.name: probe for probe in self.probes}
        for found in re.finditer(rb"^" + tag + rb" plainmissing (\S+)$", stream, re.MULTILINE):
            probe = asked.get(found.group(1).decode("utf-8", "replace"))
            if probe is not None:
                reason = f"{probe.argv[0]}: command not found"
                got.recordings[probe.name] = Recording(probe.name, probe.argv, Ended.NOT_INSTALLED, None, reason=reason)
        pattern = rb"^" + tag + rb" plain (\S+) (\d{1,12})\n([A-Za-z0-9+/=\n]*?)^" + tag + rb" plainend (\S*)$"
        for found in re.finditer(pattern, stream, re.MULTILINE):
            probe = asked.get(found.group(1).decode("utf-8", "replace"))
            recording = probe and _plain_recording(probe, *found.groups()[1:])
            if recording:
                got.recordings[recording.name] = recording
        return got


def _plain_recording(probe: Probe, started: bytes, stdout: bytes, rest: bytes) -> Recording | None:
    try:
        stderr, _, status = base64.b64decode(rest, validate=True).rpartition(b"\n=")
        rc = int(status)
        out = base64.b64decode(stdout.replace(b"\n", b""), validate=True)
    except (binascii.Error, ValueError):
        return None
    if rc in (124, 137):
        reason = f"gave no answer in {probe.deadline:g} s and was ended"
        return Recording(probe.name, probe.argv, Ended.TIMED_OUT, None, out, stderr, float(started), reason=reason)
    return Recording(probe.name, probe.argv, Ended.EXITED, rc, out, stderr, float(started))


def _named(text: str, hello: dict[str, Any], python: str) -> str:
    """An argument as the target ran it, for the record; a script by its name, since it lay in memory."""
    if text == NODENAME:
        return str(hello.get("node", "")).partition(".")[0]
    return python if text == PYTHON else text.removeprefix(SCRIPT)


def unheard(probe: Probe, ended: Ended, reason: str, python: str) -> Recording:
    """The recording of a probe that the target was not asked, or whose answer the connection never brought."""
    argv = tuple(python if text == sys.executable else _script_name(text) for text in probe.argv)
    return Recording(probe.name, argv, ended, None, started=time.time(), reason=reason)


def _script_name(text: str) -> str:
    return Path(text).name if text.endswith(".py") else text


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _object(payload: bytes) -> dict[str, Any]:
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@cache
def _modules() -> dict[str, str]:
    return {name: (_MODULES / f"{name}.py").read_text(encoding="utf-8") for name in _TRAVELS}
