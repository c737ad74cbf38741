"""A real sshd in a network namespace of its own, with a simulated node's commands on the PATH of its sessions."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

SSHD = "/usr/sbin/sshd"
_NUMBERS = itertools.count()  # each server has a small network of its own
_CONFIG = """
ListenAddress {address}
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/sshd.pid
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
MaxStartups 500
MaxSessions 100
PermitUserEnvironment no
SetEnv PATH={path}
"""
_CLIENT = """
Host {names}
  HostName {address}
  User root
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
"""


class Sshd:
    """An sshd that is up; `config` is the ssh configuration with which `names` lead to it."""

    def __init__(self, names: str = "node*", path: str = "", extra: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nr-sshd-"))
        self.names, self.path, self.extra = names, path or os.environ["PATH"], extra
        self.space = f"nr{os.getpid()}x{time.monotonic_ns() % 100000}"
        subnet = f"10.253.{os.getpid() % 250}"
        first = 4 * (next(_NUMBERS) % 64)
        self.address, self._near = f"{subnet}.{first + 2}", f"{subnet}.{first + 1}"
        self.config = self.folder / "ssh_config"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self):
        try:
            return self._up()
        except BaseException:
            self.__exit__()
            raise

    def _up(self) -> Sshd:
        if not Path(SSHD).exists():
            raise FileNotFoundError(f"{SSHD}: these tests need Debian's openssh-server")
        Path("/run/sshd").mkdir(exist_ok=True)
        for key in ("host_key", "user_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key))
        _run("ip", "netns", "add", self.space)
        veth = self.space[-9:]
        _run("ip", "link", "add", f"v{veth}", "type", "veth", "peer", "name", "eth0", "netns", self.space)
        _run("ip", "addr", "add", f"{self._near}/30", "dev", f"v{veth}")
        _run("ip", "link", "set", f"v{veth}", "up")
        self._inside("ip", "addr", "add", f"{self.address}/30", "dev", "eth0")
        self._inside("ip", "link", "set", "eth0", "up")
        self._inside("ip", "link", "set", "lo", "up")
        values = {"address": self.address, "folder": self.folder, "path": self.path, "names": self.names}
        (self.folder / "sshd_config").write_text(_CONFIG.format(**values) + self.extra)
        self.config.write_text(_CLIENT.format(**values))
        self.start()
        return self

    def start(self) -> None:
        """Start sshd and wait until it answers."""
        command = ("ip", "netns", "exec", self.space, SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config"))
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + 10
        while self.ssh("true").returncode != 0:
            if time.monotonic() > end:
                raise TimeoutError((self.folder / "log").read_text())
            time.sleep(0.05)

    def kill(self) -> None:
        """End sshd and every session of it at once, as a node that loses power does."""
        listed = map(int, self._inside("pgrep", "-x", "sshd", check=False).stdout.split())
        for pid in [pid for pid in listed if self._is_mine(pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _is_mine(self, pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/ns/net").readlink() == Path(f"/proc/{self._pid()}/ns/net").readlink()
        except OSError:
            return False

    def _pid(self) -> int:
        return self.process.pid if self.process else 0

    def ssh(self, *command: str, name: str = "") -> subprocess.CompletedProcess[bytes]:
        """Run a command by plain ssh."""
        name = name or self.names.split()[0].replace("*", "1")
        argv = ("ssh", "-F", str(self.config), "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", name, *command)
        return subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=False)

    def _inside(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return _run("ip", "netns", "exec", self.space, *argv, check=check)

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.kill()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        _run("ip", "netns", "del", self.space, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def _run(*argv: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.decode()}")
    return done
