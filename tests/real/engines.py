"""A real podman and a real docker daemon, with containers that stand for nodes; nothing of the machine's own is used."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

_CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
"""
_STORAGE = """
[storage]
driver = "vfs"
runroot = "{folder}/run"
graphroot = "{folder}/graph"
"""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")


def _run(*argv: str, env: dict[str, str], check: bool = True) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(argv, capture_output=True, env=env, stdin=subprocess.DEVNULL, timeout=60, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.decode()}")
    return done


def _needs(program: str, package: str) -> None:
    if not shutil.which(program):
        raise FileNotFoundError(f"{program}: these tests need Debian's {package}")


class Podman:
    """podman with storage of its own; `env` is the environment in which its client finds it."""

    scheme = "podman"

    def __enter__(self):
        _needs("podman", "podman")
        _needs("runc", "runc")
        self.folder = Path(tempfile.mkdtemp(prefix="nr-podman-"))
        (self.folder / "containers.conf").write_text(_CONTAINERS)
        (self.folder / "storage.conf").write_text(_STORAGE.format(folder=self.folder))
        self.env = {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }
        self._names: list[str] = []
        return self

    def start(self, name: str, path: str, mounts: tuple[str, ...]) -> None:
        """A container of the machine's own root with that PATH."""
        volumes = [word for mount in mounts for word in ("--volume", f"{mount}:{mount}:ro")]
        self._names.append(name)
        where = ("--rootfs", "/:O", "sleep", "600")
        _run("podman", "run", "--detach", f"--name={name}", f"--env=PATH={path}", *volumes, *where, env=self._all())

    def _all(self) -> dict[str, str]:
        return {**os.environ, **self.env}

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            _run("podman", "rm", "--force", "--time=0", name, env=self._all(), check=False)
        _run("podman", "system", "prune", "--force", env=self._all(), check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


class Docker:
    """A docker daemon with data and socket of its own."""

    scheme = "docker"

    def __init__(self, more: tuple[str, ...] = (), path_first: str = "") -> None:
        """`more` are options of the daemon, `path_first` a folder that stands first on its PATH."""
        self.more, self.path_first = more, path_first

    def __enter__(self):
        _needs("dockerd", "docker.io")
        _needs("busybox", "busybox-static")
        self.folder = Path(tempfile.mkdtemp(prefix="nr-docker-"))
        socket = f"unix://{self.folder}/docker.sock"
        self.env = {"DOCKER_HOST": socket}
        options = ("--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs")
        places = (f"--data-root={self.folder}/data", f"--exec-root={self.folder}/exec", f"--pidfile={self.folder}/pid")
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                ("dockerd", *options, *self.more, *places, "-H", socket),
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PATH": f"{self.path_first or '/usr/sbin'}:{os.environ['PATH']}"},
            )
        try:
            self._await()
            self._import_busybox()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _await(self) -> None:
        end = time.monotonic() + 30
        while _run("docker", "info", env=self._all(), check=False).returncode:
            if time.monotonic() > end:
                raise TimeoutError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.1)

    def _import_busybox(self) -> None:
        """An image with a busybox and nothing else: what comes from nowhere but this machine."""
        bin_folder = self.folder / "root" / "bin"
        bin_folder.mkdir(parents=True)
        shutil.copy(shutil.which("busybox") or "", bin_folder / "busybox")
        listed = _run("busybox", "--list", env=self._all()).stdout.decode().split()
        for applet in set(listed) - {"busybox"}:
            (bin_folder / applet).hardlink_to(bin_folder / "busybox")
        archive = self.folder / "root.tar"
        _run("tar", "-C", str(self.folder / "root"), "-cf", str(archive), ".", env=self._all())
        _run("docker", "import", str(archive), "busybox:nodeready", env=self._all())

    def start(self, name: str, path: str, mounts: tuple[str, ...], *, system: bool = True) -> None:
        """A container with that PATH: with the machine's programs, or (`system` false) with busybox alone."""
        places = (*mounts, *(SYSTEM if system else ()))
        volumes = [word for mount in places for word in ("--volume", f"{Path(mount).resolve()}:{mount}:ro")]
        image = ("--network=none", "busybox:nodeready", "/bin/sleep" if not system else "sleep", "600")
        _run("docker", "run", "--detach", f"--name={name}", f"--env=PATH={path}", *volumes, *image, env=self._all())

    def _all(self) -> dict[str, str]:
        return {**os.environ, **self.env}

    def __exit__(self, *_: object) -> None:
        listed = _run("docker", "ps", "--all", "--quiet", env=self._all(), check=False).stdout.decode().split()
        if listed:
            _run("docker", "rm", "--force", *listed, env=self._all(), check=False)
        self.process.terminate()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for mount in Path("/proc/self/mounts").read_text().splitlines():
            place = mount.split()[1]
            if place.startswith(str(self.folder)):
                _run("umount", "--lazy", place, env=self._all(), check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
