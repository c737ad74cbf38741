"""What belongs to a driver besides its version: kernel modules, environment, firmware, confidential computing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.facts import conf_compute, environment, lsmod, support
from nodeready.node.catalogue import TORCH
from nodeready.node.device_files import missing_device_files
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodeready.facts.lsmod import Modules
    from nodeready.node.driver import Driver
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

_MODULES = ("nvidia", "nvidia_uvm")
_ON_DEMAND = "nvidia_uvm"  # the first CUDA program has it loaded
_NAMED = 6


class DriverParts:
    """The driver's parts on one node, and what stands in its way."""

    def __init__(self, sources: Sources, gpus: tuple[Gpu, ...], driver: Driver) -> None:
        self._sources, self._gpus, self._driver = sources, gpus, driver

    def _modules(self) -> tuple[str, Modules | Unknown]:
        read = self._sources.documents.read
        found = read(lsmod.LSMOD, lsmod.parse)
        if isinstance(found, Unknown) and found.missing:
            return lsmod.LSMOD_TEXT.name, read(lsmod.LSMOD_TEXT, lsmod.parse)
        return lsmod.LSMOD.name, found

    @property
    def missing_modules(self) -> Reading[str]:
        """The driver's kernel modules that are not loaded, `none` where all are."""
        name, modules = self._modules()
        if isinstance(modules, Unknown):
            return modules
        loaded = {module: modules.loaded(module) for module in _MODULES}
        unknown = first_unknown(*loaded.values())
        if unknown is not None:
            return cite(unknown, name)
        missing = [module for module, reading in loaded.items() if isinstance(reading, Known) and not reading.value]
        if "nvidia" in missing:
            return Unknown("the module nvidia is not loaded", recordings=(name,), causes=("driver.responds",))
        if _ON_DEMAND in missing and any(isinstance(gpu.cuda_works, Known) for gpu in self._gpus):
            return Known("none", note="nvidia_uvm was loaded by the first CUDA program", recordings=(name, TORCH.name))
        return Known(", ".join(missing) or "none", recordings=(name,))

    @property
    def missing_device_files(self) -> Reading[str]:
        """The driver's device files that are not there, `none` where all are."""
        return missing_device_files(self._sources)

    @property
    def nouveau(self) -> Reading[bool]:
        """Whether the distribution's own module for NVIDIA's GPUs is loaded."""
        name, modules = self._modules()
        return modules if isinstance(modules, Unknown) else cite(modules.loaded("nouveau"), name)

    @property
    def known_problems(self) -> Reading[str]:
        """Whether the driver's version is known to be bad, by the dated table."""
        version, terms = self._driver.version, self._sources.terms
        if isinstance(version, Unknown):
            return version
        table = terms.tables.get("driver-known-bad")
        if table is None:
            return Unknown("there is no table driver-known-bad")
        products = {gpu.product.value for gpu in self._gpus if isinstance(gpu.product, Known)}
        product = next(iter(sorted(products)), "")
        return cite(support.known_problems(version.value, product, table, terms.today), *version.recordings)

    @property
    def harmful_environment(self) -> Reading[str]:
        """The harmful variables that are set, `none` where none is; which are harmful is data."""
        found = self._sources.documents.read(environment.ENVIRONMENT, environment.parse)
        if isinstance(found, Unknown):
            return found
        table: Mapping[str, Mapping[str, str]] = self._sources.terms.tables.get("harmful-environment", {})
        if not table:
            return Unknown("there is no table harmful-environment")
        set_here = [v for v in found if v.name in table and v.value not in table[v.name].get("harmless", "").split(",")]
        note = "; ".join(f"{v.name}={v.value[:40]} ({v.where}): {table[v.name]['why']}" for v in set_here[:_NAMED])
        names = ", ".join(dict.fromkeys(v.name for v in set_here))
        return Known(names or "none", note=note, recordings=(environment.ENVIRONMENT.name,))

    @property
    def confidential_computing(self) -> Reading[str]:
        """ON or OFF."""
        probe = conf_compute.CONF_COMPUTE
        found = self._sources.documents.read(probe, conf_compute.parse)
        return explained_by(found, "driver.responds") if isinstance(found, Unknown) else cite(found, probe.name)
