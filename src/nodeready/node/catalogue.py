"""All probes, and so all evidence names: what is asked of a node, and which checks need it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodeready import probes
from nodeready.evidence.probe import Probe
from nodeready.facts import (
    allreduce,
    bmc_events,
    bmc_sensors,
    cdi,
    conf_compute,
    container_files,
    containerd,
    copies,
    dcgm_diag,
    device_files,
    df,
    dmi_power,
    dmidecode,
    docker,
    drive_read,
    driver_module,
    edac,
    environment,
    fabric_manager,
    host_files,
    ibstat,
    infiniband_sysfs,
    ip_link,
    kernel_log,
    limits,
    lscpu,
    lsmod,
    lspci,
    matmul,
    meminfo,
    mounts,
    nvcc,
    nvidia_ctk,
    nvidia_smi_csv,
    nvidia_smi_table,
    nvidia_smi_text,
    nvidia_smi_xml,
    nvlink,
    nvlink_errors,
    nvme_health,
    nvme_sysfs,
    nvml,
    os_release,
    other_engines,
    patterns,
    pci_files,
    pci_sysfs,
    peer_status,
    podman,
    processes,
    query_gpu,
    rdma_files,
    rdma_write,
    timedatectl,
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


def rdma_write_by(python: str) -> Probe:
    """The probe that writes through all active RDMA ports; any Python of the target will do, it needs no torch."""
    return replace(rdma_write.rdma_write_probe(python, script("rdma_write")), refusals=NO_LIBRARY)


def drive_read_by(python: str) -> Probe:
    """The probe that reads all NVMe drives; any Python of the target will do, it needs no torch."""
    return drive_read.drive_read_probe(python, script("drive_read"))


def allreduce_by(python: str) -> Probe:
    """The all-reduce probe under the Python of the environment that runs jobs."""
    return replace(allreduce.allreduce_probe(python, script("allreduce")), refusals=NO_LIBRARY)


def torch_by(python: str) -> Probe:
    """The torch probe under the Python of the environment that runs jobs."""
    return replace(torch_info.torch_probe(python, script("torch_info")), refusals=NO_LIBRARY)


def copies_by(python: str) -> Probe:
    """The copies probe under the Python of the environment that runs jobs."""
    return replace(copies.copies_probe(python, script("copies")), refusals=NO_LIBRARY)


def patterns_by(python: str) -> Probe:
    """The memory patterns probe under the Python of the environment that runs jobs."""
    return replace(patterns.patterns_probe(python, script("patterns")), refusals=NO_LIBRARY)


def load_by(python: str) -> tuple[Probe, ...]:
    """What puts load on a node, in the order it is run: what most checks need first, what takes longest last."""
    of_gpus = (matmul_by(python), copies_by(python), allreduce_by(python), patterns_by(python))
    return (*of_gpus, rdma_write_by(sys.executable), drive_read_by(sys.executable))


NVML = replace(
    nvml.nvml_probe(sys.executable, script("nvml")), family="nvml", refusals=NO_LIBRARY
)  # a hung nvidia-smi does not stop it
MATMUL = matmul_by(sys.executable)
COPIES = copies_by(sys.executable)
ALLREDUCE = allreduce_by(sys.executable)
PATTERNS = patterns_by(sys.executable)
TORCH = torch_by(sys.executable)
RDMA_WRITE = rdma_write_by(sys.executable)
DRIVE_READ = drive_read_by(sys.executable)
SQUEUE = Probe("squeue", (), family="slurm", tier="acceptance", serves=("health.leftovers",))
CONTAINER_GPUS = Probe("container-gpus", (), family="container", tier="acceptance", serves=("container.gpu-visible",))

PROBES: tuple[Probe, ...] = (
    nvidia_smi_xml.SMI_XML,
    nvidia_smi_text.SMI_TEXT,
    nvlink.NVLINK_STATUS,
    nvlink_errors.NVLINK_ERRORS,
    nvlink_errors.NVLINK_ERRORS_LATER,
    peer_status.PEER_STATUS,
    query_gpu.COMPUTE_CAPABILITY,
    conf_compute.CONF_COMPUTE,
    environment.ENVIRONMENT,
    NVML,
    lspci.LSPCI_NNVVV,
    lspci.LSPCI_VVV,
    lspci.LSPCI_NN,
    pci_sysfs.PCI_LINKS,
    pci_files.PCI_FILES,
    pci_files.PCI_FILES_LATER,
    kernel_log.DMESG,
    kernel_log.JOURNAL,
    meminfo.MEMINFO,
    dmidecode.DMI_MEMORY,
    os_release.OS_RELEASE,
    host_files.HOST_FILES,
    limits.LIMITS,
    timedatectl.TIMEDATECTL,
    processes.PROCESSES,
    processes.PROCESSES_LATER,
    edac.EDAC,
    df.DF,
    mounts.MOUNTS,
    nvme_sysfs.NVME_SYSFS,
    nvme_health.NVME_HEALTH,
    bmc_sensors.IPMITOOL_SDR,
    bmc_sensors.IPMI_SENSORS,
    bmc_events.IPMITOOL_SEL,
    dmi_power.DMI_POWER,
    driver_module.MODULE_VERSION,
    nvcc.NVCC,
    docker.DOCKER_INFO,
    podman.PODMAN_INFO,
    containerd.CONTAINERD,
    cdi.CDI_LIST,
    cdi.CDI_SPEC,
    cdi.CDI_SPEC_RUN,
    nvidia_ctk.NVIDIA_CTK,
    other_engines.CRI_VERSION,
    other_engines.CRI_INFO,
    other_engines.ENROOT,
    other_engines.APPTAINER,
    other_engines.RUNC,
    container_files.CONTAINER_FILES,
    fabric_manager.FM_ACTIVE,
    fabric_manager.FM_VERSION,
    ibstat.IBSTAT,
    infiniband_sysfs.INFINIBAND_SYSFS,
    ip_link.IP_LINK,
    ip_link.NET_SPEED,
    rdma_files.RDMA_FILES,
    rdma_files.RDMA_FILES_LATER,
    topology.TOPO,
    lscpu.LSCPU,
    lscpu.LSCPU_TEXT,
    lsmod.LSMOD,
    lsmod.LSMOD_TEXT,
    device_files.DEVICE_FILES,
    SQUEUE,
    CONTAINER_GPUS,
    TORCH,
    MATMUL,
    PATTERNS,
    ALLREDUCE,
    RDMA_WRITE,
    DRIVE_READ,
    COPIES,
)

# what no run asks a node for, and is read where somebody hands it in
HANDED_IN: tuple[Probe, ...] = (nvidia_smi_csv.QUERY_GPU, nvidia_smi_table.TABLE, dcgm_diag.DCGM_DIAG)


# folders of sysfs that an evidence folder may hold as they are
TREES = {
    "sys/bus/pci/devices/": pci_sysfs.PCI_LINKS.name,
    "sys/class/infiniband/": infiniband_sysfs.INFINIBAND_SYSFS.name,
}


def evidence_names() -> dict[str, Probe]:
    """Every name that an evidence folder may hold."""
    return {probe.name: probe for probe in (*PROBES, *HANDED_IN)}


def quick_probes() -> Sequence[Probe]:
    """What a quick run asks of a live node."""
    return [probe for probe in PROBES if probe.tier == "quick"]
