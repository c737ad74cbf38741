"""The container engine, by what the engine says and by what a container sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.facts import docker, nvidia_ctk, nvidia_smi_list
from nodeready.node.catalogue import CONTAINER_GPUS
from nodeready.reading import Known, Reading, Unknown, cite, explained_by

if TYPE_CHECKING:
    from nodeready.facts.docker import Docker
    from nodeready.node.sources import Sources


class Container:
    """Engine, toolkit and the GPUs inside a container."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def _docker(self) -> Docker | Unknown:
        return self._sources.documents.read(docker.DOCKER_INFO, docker.parse)

    @property
    def engine(self) -> Reading[str]:
        """The engine that answers."""
        info = self._docker
        if isinstance(info, Unknown):
            return info
        version = cite(info.server_version, docker.DOCKER_INFO.name)
        if isinstance(version, Unknown):
            return version
        return Known("docker", note=f"docker {version.value}", recordings=version.recordings)

    @property
    def gpu_support(self) -> Reading[bool]:
        """Whether the engine knows the nvidia runtime, or CDI devices of NVIDIA."""
        info = self._docker
        if isinstance(info, Unknown):
            return info
        runtimes, devices = info.runtimes, info.cdi_devices
        name = docker.DOCKER_INFO.name
        if isinstance(devices, Known) and any("nvidia.com/gpu" in device for device in devices.value):
            return Known(True, note="CDI devices nvidia.com/gpu", recordings=(name,))
        return cite(runtimes, name).map(lambda found: "nvidia" in found)

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
                uuids[uuid.value] = bus_id
            return Known(uuids, recordings=(name,))
        return Unknown("the host's GPUs are unknown", causes=("driver.responds",))
