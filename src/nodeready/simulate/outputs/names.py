"""Every output of a simulated node, under its evidence name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs import (
    board,
    containers,
    copies,
    diagnostic,
    drive_read,
    engine_parts,
    host,
    host_state,
    kernel_log,
    links,
    lspci,
    memory,
    memory_patterns,
    network,
    nvidia_smi,
    nvidia_smi_q,
    pci_files,
    rdma_write,
    reductions,
    software,
    storage,
    torch_probes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nodeready.simulate.model import Node
    from nodeready.simulate.outputs.output import Output

OUTPUTS: dict[str, Callable[[Node], Output | None]] = {
    "nvidia-smi_nvlink_-s": nvidia_smi.nvlink_status,
    "nvidia-smi_nvlink_-e": links.nvlink_errors,
    "nvidia-smi_nvlink_-e-later": links.nvlink_errors_later,
    "nvidia-smi_topo_-p2p_r": links.peer_status,
    "nvidia-smi_--query-gpu=pci.bus_id,compute_cap_--format=csv": nvidia_smi.compute_capabilities,
    "nvidia-smi_topo_-m": host.topology,
    "nvidia-smi_conf-compute_-f": nvidia_smi.confidential_computing,
    "environment": software.environment,
    "squeue": software.jobs,
    "lspci_-nnvvv": lspci.with_numbers,
    "sys/bus/pci/links": pci_files.links,
    "pci-files": pci_files.files,
    "pci-files-later": pci_files.files_later,
    "dmesg": kernel_log.render,
    "journalctl_-k_-b_--no-pager_-o_short-iso": kernel_log.asked_journal,
    "proc/meminfo": memory.meminfo,
    "proc/modules": host.modules,
    "device-files": host.device_files,
    "lscpu_-J": host.lscpu,
    "dmidecode_-t_memory": memory.dmidecode,
    "dmidecode_-t_39": board.rated_power,
    "edac": board.edac,
    "ipmitool_sdr_elist": board.sensors,
    "ipmitool_sel_elist": board.events,
    "host-files": host_state.host_files,
    "proc/self/limits": host_state.limits,
    "timedatectl_show": host_state.timedatectl,
    "processes": host_state.processes,
    "processes-later": host_state.processes_later,
    "df": storage.df,
    "proc/mounts": storage.mounts,
    "nvme-drives": storage.drives,
    "nvme-health": storage.health,
    "etc/os-release": software.os_release,
    "proc/driver/nvidia/version": software.module_version,
    "nvcc_--version": software.nvcc,
    "docker_info": containers.docker_info,
    "podman_info_--format_json": containers.podman_info,
    "ctr_version": containers.containerd_version,
    "nvidia-ctk_cdi_list": containers.cdi_list,
    "nvidia-ctk_--version": containers.toolkit_version,
    "crictl_version": engine_parts.cri_version,
    "crictl_info": engine_parts.cri_info,
    "enroot_version": engine_parts.enroot,
    "apptainer_--version": engine_parts.apptainer,
    "runc_--version": engine_parts.runc,
    "container-files": engine_parts.container_files,
    "nv-fabricmanager_--version": software.fabric_manager_version,
    "systemctl_is-active_nvidia-fabricmanager": software.fabric_manager_state,
    "ibstat": network.ibstat,
    "ip_-j_link": network.ip_link,
    "sys/class/net-speed": network.speeds,
    "rdma-files": links.rdma_files,
    "rdma-files-later": links.rdma_files_later,
    "container-gpus": containers.gpus_inside,
    "dcgmi_diag_-j": diagnostic.dcgm,
    "torch": torch_probes.torch,
    "matmul": torch_probes.matmul,
    "allreduce": reductions.allreduce,
    "patterns": memory_patterns.document,
    "copies": copies.copies,
    "rdma-write": rdma_write.document,
    "drive-read": drive_read.document,
}


# what a node gives besides, in other words: evidence need not hold it, a live run asks for it all the same
OTHER_FORMS: dict[str, Callable[[Node], Output]] = {
    "lspci_-vvv": lspci.verbose,
    "lspci_-nn": lspci.listing,
    "journalctl_-k_-b_--no-pager_-o_short-iso": kernel_log.journal,
}


def other_forms(node: Node) -> dict[str, Output]:
    """Further outputs of the node, by their evidence names."""
    return _arrived(node, {name: render(node) for name, render in OTHER_FORMS.items()})


def outputs(node: Node) -> dict[str, Output]:
    """What each command and file of the node gives; one that the node does not have is left out."""
    return _arrived(node, {**nvidia_smi_q.documents(node), **{name: render(node) for name, render in OUTPUTS.items()}})


def _arrived(node: Node, rendered: Mapping[str, Output | None]) -> dict[str, Output]:
    """What is left of the outputs after what spoils them."""
    found = {}
    for name, output in rendered.items():
        spoil = node.spoilers.get(name)
        arrived = spoil(output) if spoil is not None and output is not None else output
        if arrived is not None:
            found[name] = arrived
    return found
