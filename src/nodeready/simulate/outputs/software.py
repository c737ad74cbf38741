"""What is installed: operating system, kernel module, toolkit, fabric manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.output import Output, no_such_file, not_installed, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

# cuda_MAJOR.MINOR: the full version of nvcc, and when it was built
_NVCC = {
    "11.5": ("11.5.119", "Thu_Nov_18_09:45:30_PST_2021", "30672275"),
    "12.2": ("12.2.140", "Tue_Aug_15_22:02:13_PDT_2023", "33191640"),
    "12.4": ("12.4.131", "Thu_Mar_28_02:18:24_PDT_2024", "34097967"),
    "12.8": ("12.8.93", "Fri_Feb_21_20:23:50_PST_2025", "35583870"),
    "13.0": ("13.0.88", "Wed_Aug_20_01:58:59_PM_PDT_2025", "36424714"),
    "13.2": ("13.2.51", "Mon_Mar_02_06:14:33_PM_PST_2026", "37668154"),
}


def os_release(node: Node) -> Output:
    """/etc/os-release of Ubuntu."""
    pretty, codename = node.os.pretty, node.os.codename.split()[0].lower()
    return text(
        f'PRETTY_NAME="{pretty}"',
        'NAME="Ubuntu"',
        f'VERSION_ID="{node.os.version}"',
        f'VERSION="{pretty.removeprefix("Ubuntu ")} ({node.os.codename})"',
        f"VERSION_CODENAME={codename}",
        "ID=ubuntu",
        "ID_LIKE=debian",
        'HOME_URL="https://www.ubuntu.com/"',
        'SUPPORT_URL="https://help.ubuntu.com/"',
        'BUG_REPORT_URL="https://bugs.launchpad.net/ubuntu/"',
        'PRIVACY_POLICY_URL="https://www.ubuntu.com/legal/terms-and-policies/privacy-policy"',
        f"UBUNTU_CODENAME={codename}",
        *(["LOGO=ubuntu-logo"] if node.os.version >= "24" else []),
    )


def environment(node: Node) -> Output:
    """The variables that CUDA and its like read, of the login and of /etc/environment."""
    inherited = [f"{name}={value}" for name, value in sorted(node.environment.items())]
    where = ("process", "file")
    return text(*(f"{place}:{variable}" for place in where for variable in inherited), "end")


def jobs(node: Node) -> Output | None:
    """`squeue` for this node, where there is Slurm."""
    return None if node.jobs is None else text(*map(str, node.jobs))


def module_version(node: Node) -> Output:
    """/proc/driver/nvidia/version, which is there while the module is loaded."""
    if not node.driver.loaded:
        return no_such_file("/proc/driver/nvidia/version")
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


def fabric_manager_version(node: Node) -> Output:
    """`nv-fabricmanager --version`, which nodes without NVSwitch do not have."""
    if node.fabric_manager is None or node.fabric_manager.version is None:
        return not_installed("nv-fabricmanager")
    return text(f"Fabric Manager version is : {node.fabric_manager.version}")


def fabric_manager_state(node: Node) -> Output:
    """`systemctl is-active nvidia-fabricmanager`; a unit that is not there is inactive too."""
    if node.fabric_manager is None or node.fabric_manager.version is None:
        return text("inactive", rc=node.os.inactive)
    return text(node.fabric_manager.state, rc=0 if node.fabric_manager.state == "active" else 3)
