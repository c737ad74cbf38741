"""All probes, and so all evidence names: what is asked of a node, and which checks need it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodeready import probes
from nodeready.evidence.probe import Probe
from nodeready.facts import (
    cdi,
    containerd,
    dmidecode,
    docker,
    driver_module,
    fabric_manager,
    ibstat,
    infiniband_sysfs,
    ip_link,
    kernel_log,
    lscpu,
    lsmod,
    lspci,
    matmul,
    meminfo,
    nvcc,
    nvidia_ctk,
    nvidia_smi_text,
    nvidia_smi_xml,
    nvlink,
    nvml,
    os_release,
    pci_sysfs,
    podman,
    query_gpu,
    topology,
    torch_info,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


NO_LIBRARY = (3,)  # the status of a probe script that lacks the library it asks by


def script(name: str) -> str:
    """The path of a stand-alone probe script."""
    return str(Path(probes.__file__).parent / f"{name}.py")


def matmul_by(python: str) -> Probe:
    """The matmul probe under the Python of the environment that runs jobs."""
    return replace(matmul.matmul_probe(python, script("matmul")), refusals=NO_LIBRARY)


def torch_by(python: str) -> Probe:
    """The torch probe under the Python of the environment that runs jobs."""
    return replace(torch_info.torch_probe(python, script("torch_info")), refusals=NO_LIBRARY)


NVML = replace(
    nvml.nvml_probe(sys.executable, script("nvml")), family="nvml", refusals=NO_LIBRARY
)  # a hung nvidia-smi does not stop it
MATMUL = matmul_by(sys.executable)
TORCH = torch_by(sys.executable)
CONTAINER_GPUS = Probe("container-gpus", (), family="container", tier="acceptance", serves=("container.gpu-visible",))

PROBES: tuple[Probe, ...] = (
    nvidia_smi_xml.SMI_XML,
    nvidia_smi_text.SMI_TEXT,
    nvlink.NVLINK_STATUS,
    query_gpu.COMPUTE_CAPABILITY,
    NVML,
    lspci.LSPCI_NNVVV,
    lspci.LSPCI_VVV,
    lspci.LSPCI_NN,
    pci_sysfs.PCI_LINKS,
    kernel_log.DMESG,
    kernel_log.JOURNAL,
    meminfo.MEMINFO,
    dmidecode.DMI_MEMORY,
    os_release.OS_RELEASE,
    driver_module.MODULE_VERSION,
    nvcc.NVCC,
    docker.DOCKER_INFO,
    podman.PODMAN_INFO,
    containerd.CONTAINERD,
    cdi.CDI_LIST,
    cdi.CDI_SPEC,
    cdi.CDI_SPEC_RUN,
    nvidia_ctk.NVIDIA_CTK,
    fabric_manager.FM_ACTIVE,
    fabric_manager.FM_VERSION,
    ibstat.IBSTAT,
    infiniband_sysfs.INFINIBAND_SYSFS,
    ip_link.IP_LINK,
    ip_link.NET_SPEED,
    topology.TOPO,
    lscpu.LSCPU,
    lscpu.LSCPU_TEXT,
    lsmod.LSMOD,
    lsmod.LSMOD_TEXT,
    CONTAINER_GPUS,
    TORCH,
    MATMUL,
)


# folders of sysfs that an evidence folder may hold as they are
TREES = {
    "sys/bus/pci/devices/": pci_sysfs.PCI_LINKS.name,
    "sys/class/infiniband/": infiniband_sysfs.INFINIBAND_SYSFS.name,
}


def evidence_names() -> dict[str, Probe]:
    """Every name that an evidence folder may hold."""
    return {probe.name: probe for probe in PROBES}


def quick_probes() -> Sequence[Probe]:
    """What a quick run asks of a live node."""
    return [probe for probe in PROBES if probe.tier == "quick"]
