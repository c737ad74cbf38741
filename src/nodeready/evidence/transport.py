"""The way to a target: testinfra makes the command line, the suite's own runner runs it with a deadline."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nodeready.evidence.probe import Probe
from nodeready.evidence.runner import run

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from nodeready.evidence.recording import Recording

LOCAL = "local://"
CARRIED = ("local", "ssh", "docker", "podman", "kubectl", "ansible")
CONNECT_SECONDS = 10
MOST_BYTES = 256 * 2**20
# no question is ever asked on a terminal, a dead peer is noticed, and banners are none of an error's words
_SSH = f"-o BatchMode=yes -o ConnectTimeout={CONNECT_SECONDS} -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
_QUIET = "-o LogLevel=ERROR"


class TransportError(ValueError):
    """A host that cannot be named like this, or that testinfra cannot carry to."""


@dataclass(frozen=True)
class Way:
    """How hosts are reached, as testinfra's options have it."""

    ssh_config: str = ""
    ssh_identity_file: str = ""
    ansible_inventory: str = ""


def host_specs(text: str, way: Way) -> list[str]:
    """The hosts of `--hosts`, an inventory's hosts one by one; raises `TransportError` for what cannot be carried."""
    specs: list[str] = []
    for spec in filter(None, (part.strip() for part in text.split(","))):
        scheme = _scheme(spec)
        specs += _inventory(spec, way) if scheme == "ansible" else [spec]
    if not specs:
        raise TransportError("--hosts names no host: write ssh://NAME, docker://NAME, podman://NAME or local://")
    twice = sorted({spec for spec in specs if specs.count(spec) > 1})
    if twice:
        raise TransportError(f"--hosts names {', '.join(twice)} twice: name each host once")
    return specs


def _scheme(spec: str) -> str:
    if "://" not in spec:
        raise TransportError(f"--hosts {spec}: say how to reach it, such as ssh://{spec}")
    scheme = spec.partition("://")[0]
    if scheme not in CARRIED:
        raise TransportError(f"--hosts {spec}: known ways are {', '.join(f'{name}://' for name in CARRIED)}")
    return scheme


def _inventory(spec: str, way: Way) -> list[str]:
    from testinfra.backend.ansible import AnsibleBackend

    try:
        names = AnsibleBackend.get_hosts(urlsplit(spec).netloc, ansible_inventory=way.ansible_inventory or None)
    except Exception as error:  # noqa: BLE001 - whatever ansible's own command or file raised
        raise TransportError(f"--hosts {spec}: the inventory cannot be read: {error}") from None
    if not names:
        raise TransportError(f"--hosts {spec}: the inventory has no such host or group")
    return [f"ansible://{name}" for name in names]


def host_name(spec: str) -> str:
    """The name by which reports call the host of a spec.

    >>> host_name("ssh://admin@gpu-7:2222"), host_name("kubectl://pod?namespace=x")
    ('gpu-7', 'pod')
    """
    place = urlsplit(spec).netloc.rpartition("@")[2]
    inside = re.fullmatch(r"\[(.+)\](:\d+)?", place)
    return inside.group(1) if inside else place.partition(":")[0]


class Transport:
    """One host that commands can be run on. `shared` keeps one ssh connection for several commands."""

    def __init__(self, spec: str, way: Way, *, shared: bool) -> None:
        self.spec, self._way, self._folder = spec, way, ""
        self._stop: threading.Event | None = None
        self._deadline = 0.0
        self._last: Recording | None = None
        self.backend = self._backend(shared=shared)
        self.backend.run_local = self._run_local

    def ask(self, argv: Sequence[str], deadline: float, stop: threading.Event | None = None) -> Recording:
        """Run a command line (first the text of a shell, then its arguments) on the host, within the deadline."""
        self._deadline, self._stop, self._last = deadline, stop, None
        with contextlib.suppress(RuntimeError):  # testinfra's word for ssh's 255; the recording says more
            self.backend.run("/bin/sh -c " + " ".join(["%s"] * len(argv)), *argv)
        if self._last is None:
            raise TransportError(f"{self.spec}: testinfra does not reach this host by a command line of its own")
        return self._last

    def close(self) -> None:
        """End the shared connection, and remove the folder of its socket."""
        if self._folder:
            if any(Path(self._folder).iterdir()):
                self._last = None
                build, arguments = self.backend._build_ssh_command("")  # noqa: SLF001 - the one place that has the options
                line = self.backend.quote(" ".join([*build[:-1], "-O exit %s"]), *arguments[:-1])
                run(Probe("ssh-exit", ("/bin/sh", "-c", f"exec {line}"), deadline=3.0))
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    def _run_local(self, command: str, *args: str) -> Any:
        line = self.backend.quote(command, *args)
        probe = Probe("transport", ("/bin/sh", "-c", f"exec {line}"), deadline=self._deadline)
        self._last = recording = run(probe, stop=self._stop, cap=MOST_BYTES)
        rc = 255 if recording.rc is None else recording.rc
        return self.backend.result(rc, line.encode(), recording.stdout, recording.stderr)

    def _backend(self, *, shared: bool) -> Any:
        import testinfra

        scheme = _scheme(self.spec)
        try:
            if scheme == "ansible":
                return self._behind_ansible()
            options = self._ssh_options(shared=shared) if scheme == "ssh" else {}
            return testinfra.get_host(self.spec, **options).backend
        except TransportError:
            raise
        except Exception as error:  # noqa: BLE001 - testinfra raises what its backends raise: it is a word on the spec
            raise TransportError(f"--hosts {self.spec}: {error}") from None

    def _ssh_options(self, *, shared: bool) -> dict[str, Any]:
        options: dict[str, Any] = {"ssh_extra_args": f"{_SSH} {_QUIET}", "controlpersist": 60}
        if self._way.ssh_config:
            options["ssh_config"] = str(Path(self._way.ssh_config).expanduser())
        if self._way.ssh_identity_file:
            options["ssh_identity_file"] = str(Path(self._way.ssh_identity_file).expanduser())
        if shared:
            self._folder = tempfile.mkdtemp(prefix="nodeready-")  # of mode 0700
            options["controlpath"] = f"{shlex.quote(self._folder)}/%%C"
        else:  # one command is all: nothing is shared, with whatever else the user has open neither
            options["ssh_extra_args"] += " -o ControlMaster=no -o ControlPath=none"
        return options

    def _behind_ansible(self) -> Any:
        """The backend that an inventory's host is reached by, where that is no module of ansible's own."""
        from testinfra.utils.ansible_runner import AnsibleRunner

        runner = AnsibleRunner.get_runner(self._way.ansible_inventory or None)
        host = runner.get_host(
            urlsplit(self.spec).netloc,
            ssh_config=self._way.ssh_config or None,
            ssh_identity_file=self._way.ssh_identity_file or None,
        )
        if host is None:
            raise TransportError(
                f"--hosts {self.spec}: its connection is neither ssh, docker nor podman; name the host itself, such as ssh://NAME"
            )
        return host.backend
