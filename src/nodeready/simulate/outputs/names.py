"""Every output of a simulated node, under its evidence name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs import (
    containers,
    host,
    kernel_log,
    lspci,
    memory,
    network,
    nvidia_smi,
    nvidia_smi_q,
    software,
    torch_probes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeready.simulate.model import Node
    from nodeready.simulate.outputs.output import Output

OUTPUTS: dict[str, Callable[[Node], Output | None]] = {
    "nvidia-smi_nvlink_-s": nvidia_smi.nvlink_status,
    "nvidia-smi_--query-gpu=pci.bus_id,compute_cap_--format=csv": nvidia_smi.compute_capabilities,
    "nvidia-smi_topo_-m": host.topology,
    "lspci_-nnvvv": lspci.with_numbers,
    "dmesg": kernel_log.render,
    "journalctl_-k_-b_--no-pager_-o_short-iso": kernel_log.asked_journal,
    "proc/meminfo": memory.meminfo,
    "proc/modules": host.modules,
    "lscpu_-J": host.lscpu,
    "dmidecode_-t_memory": memory.dmidecode,
    "etc/os-release": software.os_release,
    "proc/driver/nvidia/version": software.module_version,
    "nvcc_--version": software.nvcc,
    "docker_info": containers.docker_info,
    "podman_info_--format_json": containers.podman_info,
    "ctr_version": containers.containerd_version,
    "nvidia-ctk_cdi_list": containers.cdi_list,
    "nvidia-ctk_--version": containers.toolkit_version,
    "nv-fabricmanager_--version": software.fabric_manager_version,
    "systemctl_is-active_nvidia-fabricmanager": software.fabric_manager_state,
    "ibstat": network.ibstat,
    "ip_-j_link": network.ip_link,
    "sys/class/net-speed": network.speeds,
    "container-gpus": containers.gpus_inside,
    "torch": torch_probes.torch,
    "matmul": torch_probes.matmul,
}


# what a node gives besides, in other words: evidence need not hold it, a live run asks for it all the same
OTHER_FORMS: dict[str, Callable[[Node], Output]] = {
    "lspci_-vvv": lspci.verbose,
    "lspci_-nn": lspci.listing,
    "journalctl_-k_-b_--no-pager_-o_short-iso": kernel_log.journal,
}


def other_forms(node: Node) -> dict[str, Output]:
    """Further outputs of the node, by their evidence names."""
    return {name: render(node) for name, render in OTHER_FORMS.items()}


def outputs(node: Node) -> dict[str, Output]:
    """What each command and file of the node gives; one that the node does not have is left out."""
    rendered = {**nvidia_smi_q.documents(node), **{name: render(node) for name, render in OUTPUTS.items()}}
    found = {}
    for name, output in rendered.items():
        spoil = node.spoilers.get(name)
        arrived = spoil(output) if spoil is not None and output is not None else output
        if arrived is not None:
            found[name] = arrived
    return found
