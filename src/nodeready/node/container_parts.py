"""What a container engine rests on: cgroups, device links, runc, the toolkit, and who may speak to its socket."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodeready.facts import container_files, container_support, docker, other_engines, podman
from nodeready.node.container import GPU_DEVICE
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from nodeready.facts.container_files import ContainerFiles
    from nodeready.node.container import Container
    from nodeready.node.sources import Sources

_NAME = container_files.CONTAINER_FILES.name
_NAMED = 4
_CONTROL = 255  # the number of nvidiactl, below which are the GPUs'
_DIRECT = ("enroot", "apptainer")  # they hand devices over without a cgroup of systemd


class ContainerParts:
    """The parts below the engine of one node."""

    def __init__(self, sources: Sources, container: Container) -> None:
        self._sources, self._container = sources, container

    @property
    def _files(self) -> ContainerFiles | Unknown:
        return self._sources.documents.read(container_files.CONTAINER_FILES, container_files.parse)

    def _docker(self, field: str) -> Reading[Any]:
        info = self._sources.documents.read(docker.DOCKER_INFO, docker.parse)
        return info if isinstance(info, Unknown) else cite(getattr(info, field), docker.DOCKER_INFO.name)

    # ---- cgroups --------------------------------------------------------------------------------
    @property
    def cgroup_version(self) -> Reading[int]:
        """1 or 2, by the kernel's own file system."""
        files = self._files
        if isinstance(files, Unknown):
            return files
        if files.cgroup is None:
            return Unknown("/sys/fs/cgroup is not there", recordings=(_NAME,))
        return Known(files.cgroup, recordings=(_NAME,))

    @property
    def survives_reload(self) -> Reading[bool]:
        """Whether containers keep their GPUs when systemd reloads.

        It takes them away where systemd has the cgroups, nothing in /dev/char leads to the device files,
        and no CDI specification names them.
        """
        files = self._files
        if isinstance(files, Unknown):
            return files
        if not files.devices:
            return Unknown("there is no device file of a GPU", recordings=(_NAME,), causes=("driver.responds",))
        linked = len([link for link in files.links if int(link.partition(":")[2] or -1) in range(_CONTROL)])
        if linked >= files.devices:
            return Known(True, note="/dev/char leads to the device files", recordings=(_NAME,))
        engine = self._container.engine
        if isinstance(engine, Unknown):
            return explained_by(engine, "container.runtime")
        return self._kept_by(engine.value, engine.recordings)

    def _kept_by(self, engine: str, recordings: tuple[str, ...]) -> Reading[bool]:
        """Whether an engine keeps GPUs in a container without the links in /dev/char."""
        if engine in _DIRECT:
            return Known(True, note=f"{engine} has no cgroup of its own", recordings=recordings)
        driver, devices = self._cgroup_driver(engine), self._cdi()
        if isinstance(driver, Known) and driver.value != "systemd":
            return Known(True, note=f"cgroup driver {driver.value}", recordings=driver.recordings)
        if isinstance(devices, Known) and devices.value:
            return Known(True, note="CDI names the device files", recordings=devices.recordings)
        if isinstance(driver, Unknown):
            return driver
        note = "systemd has the cgroups, /dev/char leads to no device file of the GPUs, and there is no CDI"
        return Known(False, note=note, recordings=(*driver.recordings, _NAME))

    def _cgroup_driver(self, engine: str) -> Reading[str]:
        if engine == "docker":
            return self._docker("cgroup_driver")
        if engine == "podman":
            info = self._sources.documents.read(podman.PODMAN_INFO, podman.parse)
            return info if isinstance(info, Unknown) else cite(info.cgroup_manager, podman.PODMAN_INFO.name)
        info_cri = self._sources.documents.read(other_engines.CRI_INFO, other_engines.parse_cri_info)
        if isinstance(info_cri, Unknown) or info_cri.systemd_cgroup is None:
            return Unknown(f"{engine} does not say who has its cgroups")
        word = "systemd" if info_cri.systemd_cgroup else "cgroupfs"
        return Known(word, recordings=(other_engines.CRI_INFO.name,))

    def _cdi(self) -> Reading[bool]:
        """Whether a specification names the GPUs: by the engine, by the toolkit, or by the files."""
        asked = self._docker("cdi_devices")
        if isinstance(asked, Known) and any(device.startswith(f"{GPU_DEVICE}=") for device in asked.value):
            return Known(True, recordings=asked.recordings)
        return self._container.cdi_devices

    # ---- security -------------------------------------------------------------------------------
    @property
    def toolkit_is_safe(self) -> Reading[bool]:
        """Whether the NVIDIA Container Toolkit has the fixes of all known bulletins."""
        return self._by_table(self._container.toolkit_version, container_support.toolkit_meets_floor)

    @property
    def runc_is_safe(self) -> Reading[bool]:
        """Whether runc has them; an engine that uses crun is asked for nothing."""
        info = self._sources.documents.read(podman.PODMAN_INFO, podman.parse)
        if not isinstance(info, Unknown) and isinstance(info.runtime, Known) and info.runtime.value != "runc":
            engine = self._container.engine
            if isinstance(engine, Known) and engine.value == "podman":
                return Known(True, note=f"podman uses {info.runtime.value}", recordings=(podman.PODMAN_INFO.name,))
        asked = self._sources.documents.read(other_engines.RUNC, other_engines.parse_runc)
        version = first_of(cite(asked, other_engines.RUNC.name), self._docker("runc_version"), agree=False)
        return self._by_table(version, container_support.runc_meets_floor)

    def _by_table(
        self, version: Reading[str], judge: Callable[[str, Mapping[str, Any], date], Reading[bool]]
    ) -> Reading[bool]:
        terms = self._sources.terms
        if isinstance(version, Unknown):
            return version
        if "container-security" not in terms.tables:
            return Unknown("there is no table container-security")
        found = cite(judge(version.value, terms.tables["container-security"], terms.today), *version.recordings)
        if isinstance(found, Unknown):
            return found
        return replace(found, note="; ".join(filter(None, [found.note, version.note])))

    @property
    def open_sockets(self) -> Reading[int]:
        """Sockets of container engines that every user may write to: whoever does is root."""
        files = self._files
        if isinstance(files, Unknown):
            return files
        note = ", ".join(files.open_sockets[:_NAMED]) or f"of {len(files.sockets)} sockets"
        return Known(len(files.open_sockets), note=note, recordings=(_NAME,))

    @property
    def open_ports(self) -> Reading[int]:
        """Addresses beyond this machine at which docker listens without TLS."""
        files = self._files
        if isinstance(files, Unknown):
            return files
        return Known(len(files.open_ports), note=", ".join(files.open_ports[:_NAMED]), recordings=(_NAME,))
