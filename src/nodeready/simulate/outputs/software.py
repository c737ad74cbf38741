"""What is installed: operating system, kernel module, toolkit, fabric manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.output import Output, not_installed, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

# cuda_MAJOR.MINOR: the full version of nvcc, and when it was built
_NVCC = {
    "11.5": ("11.5.119", "Thu_Nov_18_09:45:30_PST_2021", "30672275"),
    "13.0": ("13.0.88", "Wed_Aug_20_01:58:59_PM_PDT_2025", "36424714"),
}


def os_release(node: Node) -> Output:
    """/etc/os-release of Ubuntu."""
    pretty, codename = node.os_pretty, node.os_codename.split()[0].lower()
    return text(
        f'PRETTY_NAME="{pretty}"',
        'NAME="Ubuntu"',
        f'VERSION_ID="{node.os_version}"',
        f'VERSION="{pretty.removeprefix("Ubuntu ")} ({node.os_codename})"',
        f"VERSION_CODENAME={codename}",
        "ID=ubuntu",
        "ID_LIKE=debian",
        'HOME_URL="https://www.ubuntu.com/"',
        'SUPPORT_URL="https://help.ubuntu.com/"',
        'BUG_REPORT_URL="https://bugs.launchpad.net/ubuntu/"',
        'PRIVACY_POLICY_URL="https://www.ubuntu.com/legal/terms-and-policies/privacy-policy"',
        f"UBUNTU_CODENAME={codename}",
    )


def module_version(node: Node) -> Output | None:
    """/proc/driver/nvidia/version, which is there while the module is loaded."""
    if not node.driver.loaded:
        return None
    return text(
        f"NVRM version: {module_name(node)}",
        "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04.2) ",
    )


def module_name(node: Node) -> str:
    """How the kernel module calls itself, in /proc and in the kernel log; the newer branches are open."""
    built = "Wed Oct 29 22:15:42 UTC 2025"
    if node.driver.major >= 560:
        name = f"NVIDIA UNIX Open Kernel Module for x86_64  {node.driver.module}  Release Build"
        return f"{name}  (dvs-builder@U22-I3-B01-03-1)  {built}"
    return f"NVIDIA UNIX x86_64 Kernel Module  {node.driver.module}  {built}"


def nvcc(node: Node) -> Output:
    """`nvcc --version`."""
    if node.cuda_toolkit is None:
        return not_installed("nvcc")
    version, built, build = _NVCC[node.cuda_toolkit]
    return text(
        "nvcc: NVIDIA (R) Cuda compiler driver",
        f"Copyright (c) 2005-{built[-4:]} NVIDIA Corporation",
        f"Built on {built}",
        f"Cuda compilation tools, release {node.cuda_toolkit}, V{version}",
        f"Build cuda_{node.cuda_toolkit}.r{node.cuda_toolkit}/compiler.{build}_0",
    )


def fabric_manager_version(node: Node) -> Output | None:
    """`nv-fabricmanager --version`; None on a board without NVSwitch."""
    if node.fabric_manager is None:
        return None
    return text(f"Fabric Manager version is : {node.fabric_manager.version}")


def fabric_manager_state(node: Node) -> Output | None:
    """`systemctl is-active nvidia-fabricmanager`; None on a board without NVSwitch."""
    if node.fabric_manager is None:
        return None
    return text(node.fabric_manager.state, rc=0 if node.fabric_manager.state == "active" else 3)
