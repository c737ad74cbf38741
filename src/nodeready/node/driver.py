"""Driver, fabric manager and frameworks of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeready.evidence.recording import Ended, Recording
from nodeready.facts import driver_module, fabric_manager, lsmod, nvidia_smi_text, nvidia_smi_xml, support, torch_info
from nodeready.node.catalogue import NVML, TORCH
from nodeready.node.causes import FABRIC, STARTS_CUDA, waits_for_fabric
from nodeready.node.device_files import missing_device_files
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of, first_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from nodeready.facts.torch_info import TorchInfo
    from nodeready.node.sources import Sources

NOT_LOADED = 9
SMI_EXIT = {
    2: "an argument is not supported by this driver",
    3: "the operation is not supported on this device",
    4: "no permission",
    6: "the device was not found",
    8: "a GPU's external power cables are not attached",
    NOT_LOADED: "the kernel module is not loaded",
    10: "the kernel module sees an interrupt problem with a GPU",
    12: "libnvidia-ml.so.1 cannot be found or loaded",
    13: "the driver's library lacks a function",
    14: "a GPU's infoROM is corrupted",
    15: "a GPU has fallen off the bus or is not reachable",
    18: "kernel module and library are of different versions",
    255: "an error without a status of its own",
}


class Driver:
    """The NVIDIA driver: whether it answers, and its versions."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def responds(self) -> Reading[bool]:
        """Whether nvidia-smi answered: a missing command, an error status or silence is a no."""
        evidence = self._sources.documents.evidence
        answer: Reading[bool] | None = None
        for name, document in self._sources.smi:
            recording = evidence.get(name)
            if recording is None:
                continue
            refusal = _refusal(recording)
            if refusal:
                cause, logs = self._kernels_word(recording)
                return Known(False, note=refusal + cause, recordings=(name, *logs))
            if answer is None:
                said = Known(True, note=document.complaint if not isinstance(document, Unknown) else "")
                answer = document if isinstance(document, Unknown) else cite(said, name)
        return answer if answer is not None else Unknown("nvidia-smi -q was not recorded", missing=True)

    def _kernels_word(self, recording: Recording) -> tuple[str, tuple[str, ...]]:
        """Why the kernel did not take the module, and which log says so; nothing where the module is loaded."""
        if recording.rc != NOT_LOADED:
            return "", ()
        modules = self._sources.documents.read(lsmod.LSMOD, lsmod.parse)
        loaded = None if isinstance(modules, Unknown) else modules.loaded("nvidia")
        if isinstance(loaded, Known) and loaded.value:
            return "", ()
        for name, log in self._sources.kernel_logs:
            if not isinstance(log, Unknown) and log.refused:  # the last: a module may be tried again and again
                return f"; the kernel log says: {'; '.join(log.refused[-2:])}", (name,)
        return "", ()

    @property
    def version(self) -> Reading[str]:
        """The driver's version by nvidia-smi, and by the kernel module."""
        return first_of(*self._smi_versions(), self._by_nvml("driver_version"), self._module_version)

    def _by_nvml(self, field: str) -> Reading[str]:
        found = self._sources.nvml
        return found if isinstance(found, Unknown) else cite(getattr(found, field), NVML.name)

    def _smi_versions(self) -> list[Reading[str]]:
        return [
            explained_by(document, "driver.responds")
            if isinstance(document, Unknown)
            else cite(document.driver_version, name)
            for name, document in self._sources.smi
        ]

    @property
    def branch_supported(self) -> Reading[bool]:
        """Whether the branch still gets fixes, by the dated table."""
        return self._by_table("driver-branches", support.branch_supported)

    @property
    def meets_security_floor(self) -> Reading[bool]:
        """Whether it has all fixes that its branch got, by the dated table."""
        return self._by_table("driver-security", support.meets_security_floor)

    def _by_table(self, name: str, judge: Callable[[str, Mapping[str, Any], date], Reading[bool]]) -> Reading[bool]:
        version, terms = self.version, self._sources.terms
        if isinstance(version, Unknown):
            return version
        if name not in terms.tables:
            return Unknown(f"there is no table {name}")
        return cite(judge(version.value, terms.tables[name], terms.today), *version.recordings)

    @property
    def _module_version(self) -> Reading[str]:
        found = self._sources.documents.read(driver_module.MODULE_VERSION, driver_module.parse)
        return cite(found, driver_module.MODULE_VERSION.name)

    @property
    def cuda_version(self) -> Reading[str]:
        """The newest CUDA that the driver runs."""
        return first_of(
            *(
                explained_by(document, "driver.responds")
                if isinstance(document, Unknown)
                else cite(document.cuda_version, name)
                for name, document in self._sources.smi
            ),
            self._by_nvml("cuda_version"),
        )

    @property
    def matches_library(self) -> Reading[bool]:
        """Whether kernel module and library are of one version."""
        for probe in (nvidia_smi_xml.SMI_XML, nvidia_smi_text.SMI_TEXT):
            recording = self._sources.documents.evidence.get(probe.name)
            said = (
                (recording.stdout + recording.stderr).decode("utf-8", "replace") if recording and recording.rc else ""
            )
            if "library version mismatch" in said.lower():
                note = "; ".join(said.split("\n")[:2]).strip("; ")
                module = self._module_version
                if isinstance(module, Known):
                    note += f"; the loaded module is {module.value}"
                return Known(False, note=note, recordings=(probe.name, *module.recordings))
        module, library = self._module_version, first_of(*self._smi_versions())
        unknown = first_unknown(module, library)
        if unknown is not None:
            return explained_by(unknown, "driver.responds")
        note = f"module {module.value}, library {library.value}"
        return Known(module.value == library.value, note=note, recordings=(*module.recordings, *library.recordings))


def _refusal(recording: Recording) -> str:
    """Why a recording shows a driver that does not answer; empty where it does, or where nothing is shown."""
    if recording.ended in (Ended.NOT_INSTALLED, Ended.TIMED_OUT, Ended.ABANDONED):
        return recording.reason or recording.ended.value
    if recording.ended is not Ended.EXITED or not recording.rc or recording.truncated:
        return ""
    meaning = SMI_EXIT.get(recording.rc, "")
    return (
        f"exit status {recording.rc}" + (f" ({meaning})" if meaning else "") + f": {recording.complaint or 'no word'}"
    )


class FabricManager:
    """The service that trains the NVSwitches."""

    def __init__(self, sources: Sources, driver: Driver) -> None:
        self._sources, self._driver = sources, driver

    @property
    def state(self) -> Reading[str]:
        """What systemd says of the service; one that ended for want of a driver is the driver's failure."""
        name = fabric_manager.FM_ACTIVE.name
        recording = self._sources.documents.evidence.get(name)
        found = cite(self._sources.documents.read(fabric_manager.FM_ACTIVE, fabric_manager.parse_state), name)
        if isinstance(found, Known) and found.value == "active" and recording is not None and recording.rc:
            return Unknown(f"systemctl says active and exits {recording.rc}", recordings=(name,))
        responds = self._driver.responds
        if isinstance(found, Known) and found.value != "active" and isinstance(responds, Known) and not responds.value:
            reason = f"the service is {found.value}, as it must be while the driver does not answer"
            return Unknown(reason, recordings=found.recordings, causes=("driver.responds",))
        return found

    @property
    def matches_driver(self) -> Reading[bool]:
        """Whether it is of exactly the driver's version."""
        found = self._sources.documents.read(fabric_manager.FM_VERSION, fabric_manager.parse_version)
        mine, driver = cite(found, fabric_manager.FM_VERSION.name), self._driver.version
        unknown = first_unknown(mine, driver)
        if unknown is not None:
            return unknown
        note = f"fabric manager {mine.value}, driver {driver.value}"
        return Known(mine.value == driver.value, note=note, recordings=(*mine.recordings, *driver.recordings))


class Torch:
    """PyTorch in the environment that runs jobs."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def _info(self) -> TorchInfo | Unknown:
        found = self._sources.documents.read(TORCH, torch_info.parse)
        return explained_by(found, "driver.responds") if isinstance(found, Unknown) else found

    @property
    def version(self) -> Reading[str]:
        """Its version."""
        info = self._info
        return info if isinstance(info, Unknown) else cite(info.version, TORCH.name)

    @property
    def cuda(self) -> Reading[str]:
        """The CUDA version it was built for; a CPU build has none and misses every demand."""
        info = self._info
        return info if isinstance(info, Unknown) else cite(info.cuda, TORCH.name)

    @property
    def works_on_every_gpu(self) -> Reading[bool]:
        """Whether CUDA made a context on each GPU that the driver lists."""
        info, sources = self._info, self._sources
        if isinstance(info, Unknown):
            return info
        listed = [bus_id for bus_id in sources.bus_ids if bus_id and sources.is_listed(bus_id)]
        if not listed:
            return Unknown("the driver lists no GPU", recordings=(TORCH.name,), causes=("driver.responds",))
        masked = info.visible is not None and len(info.visible.split(",")) < len(listed)
        if info.error or masked:
            reason = info.error or f"CUDA_VISIBLE_DEVICES={info.visible} hides GPUs from it"
            fabric = FABRIC if waits_for_fabric(info.error or "") else ()
            files = missing_device_files(sources)
            if info.error and isinstance(files, Known) and files.value != "none":
                reason += f"; {files.value} is missing"
            return Unknown(reason, recordings=(TORCH.name,), causes=(*STARTS_CUDA, *fabric))
        silent = [bus_id for bus_id in listed if isinstance(sources.torch_capability(bus_id), Unknown)]
        note = f"none on {', '.join(silent)}" if silent else f"on {len(listed)} GPUs"
        return Known(not silent, note=note, recordings=(TORCH.name,))

    @property
    def has_sm_90(self) -> Reading[bool]:
        """Whether it holds code for Hopper."""
        info = self._info
        if isinstance(info, Unknown):
            return info
        found = cite(info.arch_list, TORCH.name)
        if isinstance(found, Unknown):
            fabric = FABRIC if waits_for_fabric(info.error or "") else ()
            return explained_by(found, *STARTS_CUDA, *fabric)
        return found.map(lambda archs: bool({"sm_90", "sm_90a", "compute_90"} & set(archs)))
