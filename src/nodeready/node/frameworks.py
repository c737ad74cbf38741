"""What jobs compute with: their Python, its libraries, and whether the driver runs what they were built for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.evidence.recording import Ended
from nodeready.facts import nvcc, torch_info
from nodeready.node.catalogue import TORCH
from nodeready.reading import Known, Reading, Unknown, cite, explained_by

if TYPE_CHECKING:
    from nodeready.facts.torch_info import TorchInfo
    from nodeready.node.driver import Driver
    from nodeready.node.sources import Sources

FULL, MINOR, FORWARD, NONE = "full", "minor version", "forward", "none"


class Frameworks:
    """The environment of `--python`, as the torch probe found it."""

    def __init__(self, sources: Sources, driver: Driver) -> None:
        self._sources, self._driver = sources, driver

    @property
    def _info(self) -> TorchInfo | Unknown:
        found = self._sources.documents.read(TORCH, torch_info.parse)
        return explained_by(found, "driver.responds", "frameworks.torch") if isinstance(found, Unknown) else found

    @property
    def _environment(self) -> TorchInfo | Unknown:
        """The document also where it only says that there is no PyTorch: of the environment it tells all the same."""
        recording = self._sources.documents.evidence.get(TORCH.name)
        if recording is not None and recording.rc in TORCH.refusals and recording.ended is Ended.EXITED:
            return torch_info.parse(recording.stdout)
        return self._info

    @property
    def python(self) -> Reading[str]:
        """The version of the Python that runs the jobs."""
        info = self._environment
        return info if isinstance(info, Unknown) else cite(info.python, TORCH.name)

    @property
    def cudnn(self) -> Reading[str]:
        """The version of cuDNN that PyTorch has."""
        info = self._info
        return info if isinstance(info, Unknown) else cite(info.cudnn, TORCH.name)

    @property
    def nccl(self) -> Reading[str]:
        """The version of NCCL that PyTorch has."""
        info = self._info
        return info if isinstance(info, Unknown) else cite(info.nccl, TORCH.name)

    @property
    def tensorflow(self) -> Reading[str]:
        """The version of TensorFlow; an environment without it is asked for nothing."""
        info = self._environment
        if isinstance(info, Unknown):
            return Unknown(info.reason, recordings=info.recordings or (TORCH.name,), causes=info.causes)
        if isinstance(info.tensorflow, Unknown):
            return info.tensorflow if info.tensorflow.missing else cite(info.tensorflow, TORCH.name)
        return cite(info.tensorflow, TORCH.name)

    @property
    def torch_on_driver(self) -> Reading[str]:
        """How the driver runs what PyTorch was built for; a context that works in spite of an old driver tells why."""
        info = self._info
        if isinstance(info, Unknown):
            return info
        way = self._compatible(cite(info.cuda, TORCH.name))
        works = any(isinstance(reading, Known) for reading in info.devices.values())
        if isinstance(way, Known) and way.value == NONE and works:
            note = f"{way.note}, and CUDA works all the same: a forward compatibility package"
            return Known(FORWARD, note=note, recordings=way.recordings)
        return way

    @property
    def toolkit_on_driver(self) -> Reading[str]:
        """How the driver runs what this node's nvcc builds."""
        found = self._sources.documents.read(nvcc.NVCC, nvcc.parse)
        return self._compatible(cite(found, nvcc.NVCC.name))

    def _compatible(self, built: Reading[str]) -> Reading[str]:
        """`full`, `minor version` (no PTX), or `none`, by what the driver brings and the table of oldest drivers."""
        newest, version = self._driver.cuda_version, self._driver.version
        for reading in (built, newest, version):
            if isinstance(reading, Unknown):
                return reading
        recordings = tuple(dict.fromkeys((*built.recordings, *newest.recordings, *version.recordings)))
        if built.value == "none":
            return Unknown("it is built without CUDA", recordings=recordings, causes=("frameworks.torch",))
        note = f"CUDA {built.value} on driver {version.value} for CUDA {newest.value}"
        if _numbers(newest.value)[:2] >= _numbers(built.value)[:2]:
            return Known(FULL, note=note, recordings=recordings)
        oldest = self._sources.terms.tables.get("cuda-compatibility", {}).get("oldest-driver", {})
        major = built.value.partition(".")[0]
        if major not in oldest:
            return Unknown(f"the table of oldest drivers does not know CUDA {major}", recordings=recordings)
        if _numbers(version.value) >= _numbers(oldest[major]):
            return Known(MINOR, note=note, recordings=recordings)
        return Known(NONE, note=f"{note}, CUDA {major} needs {oldest[major]}", recordings=recordings)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
