"""The container engine, by what the engine says and by what a container sees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.evidence.recording import Ended, Recording
from nodeready.facts import (
    cdi,
    container_files,
    containerd,
    docker,
    nvidia_ctk,
    nvidia_smi_list,
    other_engines,
    podman,
)
from nodeready.node.catalogue import CONTAINER_GPUS
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of

if TYPE_CHECKING:
    from nodeready.node.sources import Sources

GPU_DEVICE = "nvidia.com/gpu"
_NONE_FOUND = re.compile(rb"\bFound 0 CDI devices\b")
_VERSION = re.compile(r"\d+(\.\d+)+\S*")


class Container:
    """Engine, toolkit and the GPUs inside a container."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def engine(self) -> Reading[str]:
        """The first engine that answers: docker, podman, containerd, CRI-O, enroot, apptainer."""
        return first_of(*(engine for engine, _ in self._engines()), agree=False)

    @property
    def gpu_support(self) -> Reading[bool]:
        """Whether that engine can hand out GPUs, by its own runtimes or by the CDI devices of the node."""
        engines = self._engines()
        for engine, support in engines:
            if isinstance(engine, Known) or not engine.missing:
                return support
        return first_of(*(support for _, support in engines))

    def _engines(self) -> list[tuple[Reading[str], Reading[bool]]]:
        asked = (self._docker, self._podman, self._containerd, self._cri, self._enroot, self._apptainer)
        return [ask() for ask in asked]

    def _docker(self) -> tuple[Reading[str], Reading[bool]]:
        name = docker.DOCKER_INFO.name
        info = self._sources.documents.read(docker.DOCKER_INFO, docker.parse)
        if isinstance(info, Unknown):
            return info, info
        engine = cite(info.server_version, name)
        devices = info.cdi_devices
        support = cite(info.runtimes, name).map(lambda found: "nvidia" in found)
        if isinstance(devices, Known) and any(GPU_DEVICE in device for device in devices.value):
            support = Known(True, note=f"CDI devices {GPU_DEVICE}", recordings=(name,))
        return _named("docker", engine), support

    def _podman(self) -> tuple[Reading[str], Reading[bool]]:
        info = self._sources.documents.read(podman.PODMAN_INFO, podman.parse)
        if isinstance(info, Unknown):
            return info, info
        return _named("podman", cite(info.version, podman.PODMAN_INFO.name)), self.cdi_devices

    def _containerd(self) -> tuple[Reading[str], Reading[bool]]:
        info = self._sources.documents.read(containerd.CONTAINERD, containerd.parse)
        if isinstance(info, Unknown):
            return info, info
        return _named("containerd", cite(info.server_version, containerd.CONTAINERD.name)), self._by_cri_service()

    def _cri(self) -> tuple[Reading[str], Reading[bool]]:
        """What answers at the socket of Kubernetes: CRI-O takes CDI devices as they are."""
        name = other_engines.CRI_VERSION.name
        cri = self._sources.documents.read(other_engines.CRI_VERSION, other_engines.parse_cri_version)
        if isinstance(cri, Unknown):
            return cri, cri
        if isinstance(cri.engine, Known) and cri.engine.value == "cri-o":
            return _named("cri-o", cite(cri.version, name)), self.cdi_devices
        if isinstance(cri.engine, Known) and cri.engine.value == "containerd":
            return _named("containerd", cite(cri.version, name)), self._by_cri_service()
        return cite(cri.engine, name), Unknown("it does not say whether it can hand out GPUs", recordings=(name,))

    def _by_cri_service(self) -> Reading[bool]:
        """Whether containerd has an nvidia runtime, or takes CDI devices that are there, by the service's own word."""
        name = other_engines.CRI_INFO.name
        info = self._sources.documents.read(other_engines.CRI_INFO, other_engines.parse_cri_info)
        if isinstance(info, Unknown):
            reason = "containerd does not say whether it can hand out GPUs; its configuration file proves nothing"
            return Unknown(f"{reason} ({info.reason})", recordings=info.recordings)
        if any(runtime.startswith("nvidia") for runtime in info.runtimes):
            return Known(True, note="runtime nvidia", recordings=(name,))
        if info.cdi is None:
            return Unknown("crictl info does not say whether containerd takes CDI devices", recordings=(name,))
        return self.cdi_devices if info.cdi else Known(False, note="neither runtime nor CDI", recordings=(name,))

    def _enroot(self) -> tuple[Reading[str], Reading[bool]]:
        """It has no daemon: what its hook finds on the disk is what is in effect."""
        name, files = other_engines.ENROOT.name, container_files.CONTAINER_FILES
        version = self._sources.documents.read(other_engines.ENROOT, other_engines.parse_enroot)
        if isinstance(version, Unknown):
            return version, version
        found = self._sources.documents.read(files, container_files.parse)
        if isinstance(found, Unknown):
            return _named("enroot", cite(version, name)), found
        missing = [
            word
            for word, there in (("its hook 98-nvidia.sh", found.enroot_hook), ("nvidia-container-cli", found.gpu_tool))
            if not there
        ]
        note = f"{' and '.join(missing)} missing" if missing else "its hook and nvidia-container-cli"
        return _named("enroot", cite(version, name)), Known(not missing, note=note, recordings=(files.name,))

    def _apptainer(self) -> tuple[Reading[str], Reading[bool]]:
        """`--nv` needs nothing but the host's driver."""
        name = other_engines.APPTAINER.name
        version = self._sources.documents.read(other_engines.APPTAINER, other_engines.parse_apptainer)
        if isinstance(version, Unknown):
            return version, version
        return _named("apptainer", cite(version, name)), Known(True, note="--nv", recordings=(name,))

    @property
    def cdi_devices(self) -> Reading[bool]:
        """Whether CDI devices of NVIDIA are there; podman takes them as they are."""
        read = self._sources.documents.read
        forms = (
            self._listed_cdi_devices(),
            cite(read(cdi.CDI_SPEC, cdi.parse_spec), cdi.CDI_SPEC.name),
            cite(read(cdi.CDI_SPEC_RUN, cdi.parse_spec), cdi.CDI_SPEC_RUN.name),
        )
        found = first_of(*forms, agree=False)
        return found.map(lambda devices: any(device.startswith(f"{GPU_DEVICE}=") for device in devices))

    def _listed_cdi_devices(self) -> Reading[tuple[str, ...]]:
        """What the toolkit lists; it prints nothing where it found none, and counts on standard error."""
        name = cdi.CDI_LIST.name
        recording = self._sources.documents.evidence.get(name)
        if recording is not None and _counted_none(recording):
            return Known((), note="nvidia-ctk found no CDI device", recordings=(name,))
        return cite(self._sources.documents.read(cdi.CDI_LIST, cdi.parse), name)

    @property
    def toolkit_version(self) -> Reading[str]:
        """The NVIDIA Container Toolkit's version."""
        return cite(self._sources.documents.read(nvidia_ctk.NVIDIA_CTK, nvidia_ctk.parse), nvidia_ctk.NVIDIA_CTK.name)

    @property
    def sees_all_gpus(self) -> Reading[bool]:
        """Whether the GPUs inside a container are those that the host's driver lists."""
        inside = self._sources.documents.read(CONTAINER_GPUS, nvidia_smi_list.parse)
        if isinstance(inside, Unknown):
            return explained_by(inside, "driver.responds", "container.runtime")
        host = self._host_uuids()
        if isinstance(host, Unknown):
            return host
        missing = [place for uuid, place in host.value.items() if uuid not in inside]
        extra = [uuid for uuid in inside if uuid not in host.value]
        note = f"{len(inside)} inside, {len(host.value)} on the host"
        note += f"; missing inside: {', '.join(missing)}" if missing else ""
        note += f"; not the host's: {', '.join(extra)}" if extra else ""
        return Known(not missing and not extra, note=note, recordings=(CONTAINER_GPUS.name, *host.recordings))

    def _host_uuids(self) -> Reading[dict[str, str]]:
        """UUID and place of every GPU that the driver lists."""
        for name, document in self._sources.smi:
            if isinstance(document, Unknown):
                if document.missing:
                    continue
                return explained_by(document, "driver.responds")
            uuids: dict[str, str] = {}
            for bus_id, fields in document.gpus.items():
                uuid = fields["uuid"]
                if isinstance(uuid, Unknown):
                    return Unknown(f"the UUID of {bus_id} is unknown: {uuid.reason}", recordings=(name,))
                if uuid.value in uuids:
                    return Unknown(f"{uuids[uuid.value]} and {bus_id} have one UUID", recordings=(name,))
                uuids[uuid.value] = bus_id
            return Known(uuids, recordings=(name,))
        return Unknown("the host's GPUs are unknown", causes=("driver.responds",))


def _counted_none(recording: Recording) -> bool:
    ended_well = recording.ended is Ended.EXITED and recording.rc == 0
    return ended_well and not recording.stdout.strip() and _NONE_FOUND.search(recording.stderr) is not None


def _named(engine: str, version: Reading[str]) -> Reading[str]:
    if isinstance(version, Unknown):
        return version
    if not _VERSION.fullmatch(version.value):
        return Unknown(f"{engine} gives its version as {version.value!r}", recordings=version.recordings)
    return Known(engine, note=f"{engine} {version.value}", recordings=version.recordings)
