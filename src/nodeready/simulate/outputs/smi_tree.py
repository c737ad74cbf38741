"""What `nvidia-smi -q` says of one GPU, as one tree in the order of the real documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.smi_field import (
    DEPRECATED,
    NOT_AVAILABLE,
    Field,
    group,
    leaf,
    of_branch,
    paths,
    with_every_value,
    with_values,
)
from nodeready.simulate.outputs.smi_load import load_fields

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node

# what a driver knows of a GPU that answers nothing any more
_KEPT = frozenset({"pci_bus", "pci_device", "pci_domain", "pci_bus_id", "minor_number"})


def gpu_fields(node: Node, gpu: Gpu, minor: int) -> tuple[Field, ...]:
    """The fields of one GPU in the order of the document; `minor` is its device file's number."""
    fields = (
        *_identity(gpu, minor),
        *_firmware(node, gpu),
        _pci(gpu),
        *load_fields(gpu),
        group("fabric", "Fabric", *_fabric(gpu)),
        group("supported_clocks", "", *_supported_clocks(gpu)),
        Field("processes", "Processes", text="None"),
        Field("accounted_processes", ""),
        group("capabilities", "Capabilities", leaf("egm", "EGM", "disabled"), since=580),
    )
    branch = of_branch(fields, node.driver.major)
    if gpu.every_value:
        return with_every_value(branch, gpu.every_value, _KEPT)
    if not gpu.printed:
        return branch
    absent = gpu.printed.keys() - paths(branch)
    if absent:
        raise ValueError(f"nvidia-smi of driver {node.driver.library} prints no {', '.join(sorted(absent))}")
    return with_values(branch, gpu.printed)


def _identity(gpu: Gpu, minor: int) -> tuple[Field, ...]:
    return (
        leaf("product_name", "Product Name", gpu.product.name),
        leaf("product_brand", "Product Brand", "NVIDIA"),
        leaf("product_architecture", "Product Architecture", gpu.product.architecture),
        leaf("display_mode", "Display Mode", "Enabled", until=579),
        leaf("display_mode", "Display Mode", DEPRECATED, since=580),
        leaf("display_attached", "Display Attached", "Yes", since=580),
        leaf("display_active", "Display Active", "Disabled"),
        leaf("persistence_mode", "Persistence Mode", "Enabled"),
        leaf("addressing_mode", "Addressing Mode", "HMM"),
        group(
            "mig_mode",
            "MIG Mode",
            leaf("current_mig", "Current", gpu.mig),
            leaf("pending_mig", "Pending", gpu.mig_pending),
        ),
        Field("mig_devices", "", "None", children=()),
        leaf("accounting_mode", "Accounting Mode", "Disabled"),
        leaf("accounting_mode_buffer_size", "Accounting Mode Buffer Size", "4000"),
        group(
            "driver_model",
            "Driver Model",
            leaf("current_dm", "Current", NOT_AVAILABLE),
            leaf("pending_dm", "Pending", NOT_AVAILABLE),
        ),
        leaf("serial", "Serial Number", gpu.serial),
        leaf("uuid", "GPU UUID", gpu.uuid),
        leaf("pdi", "GPU PDI", gpu.pdi, since=580),
        leaf("minor_number", "Minor Number", minor),
        leaf("vbios_version", "VBIOS Version", gpu.product.vbios),
        leaf("multigpu_board", "MultiGPU Board", "No"),
        leaf("board_id", "Board ID", f"0x{int(gpu.bus_id[5:7], 16) << 8:x}"),
        leaf("board_part_number", "Board Part Number", gpu.product.board_part),
        leaf("gpu_part_number", "GPU Part Number", gpu.product.gpu_part),
        leaf("gpu_fru_part_number", "FRU Part Number", NOT_AVAILABLE),
        leaf("gpu_module_id", "Module ID", gpu.module_id, until=579),
        group(
            "platformInfo",
            "Platform Info",
            leaf("chassis_serial_number", "Chassis Serial Number", NOT_AVAILABLE),
            leaf("slot_number", "Slot Number", NOT_AVAILABLE),
            leaf("tray_index", "Tray Index", NOT_AVAILABLE),
            leaf("host_id", "Host ID", NOT_AVAILABLE),
            leaf("peer_type", "Peer Type", NOT_AVAILABLE),
            leaf("module_id", "Module Id", gpu.module_id),
            leaf("gpu_fabric_guid", "GPU Fabric GUID", NOT_AVAILABLE),
            since=580,
        ),
    )


def _firmware(node: Node, gpu: Gpu) -> tuple[Field, ...]:
    image, oem, ecc = gpu.product.inforom
    rng = node.stream("bbx", gpu.place)
    virtualization = node.shape.virtualization
    return (
        group(
            "inforom_version",
            "Inforom Version",
            leaf("img_version", "Image Version", image),
            leaf("oem_object", "OEM Object", oem),
            leaf("ecc_object", "ECC Object", ecc),
            leaf("pwr_object", "Power Management Object", NOT_AVAILABLE),
        ),
        group(
            "inforom_bbx_flush",
            "Inforom BBX Object Flush",
            leaf(
                "latest_timestamp",
                "Latest Timestamp",
                f"2026/11/30 {rng.randint(10, 23)}:48:27.{rng.randint(100, 999)}",
            ),
            leaf("latest_duration", "Latest Duration", f"{rng.randint(88000, 98000)} us"),
        ),
        group(
            "gpu_operation_mode",
            "GPU Operation Mode",
            leaf("current_gom", "Current", NOT_AVAILABLE),
            leaf("pending_gom", "Pending", NOT_AVAILABLE),
        ),
        leaf("c2c_mode", "GPU C2C Mode", "Disabled", since=550),
        leaf("gsp_firmware_version", "GSP Firmware Version", node.driver.module, until=549),
        group(
            "gpu_virtualization_mode",
            "GPU Virtualization Mode",
            leaf("virtualization_mode", "Virtualization Mode", virtualization),
            leaf("host_vgpu_mode", "Host VGPU Mode", NOT_AVAILABLE),
            leaf("vgpu_heterogeneous_mode", "vGPU Heterogeneous Mode", NOT_AVAILABLE, since=550),
        ),
        group(
            "gpu_reset_status",
            "GPU Reset Status",
            leaf("reset_required", "Reset Required", "No" if gpu.recovery_action == "None" else "Yes"),
            leaf("drain_and_reset_recommended", "Drain and Reset Recommended", "No"),
            since=525,
            until=579,
        ),
        leaf("gpu_recovery_action", "GPU Recovery Action", gpu.recovery_action, since=580),
        leaf("gsp_firmware_version", "GSP Firmware Version", node.driver.module, since=550),
        group("ibmnpu", "IBMNPU", leaf("relaxed_ordering_mode", "Relaxed Ordering Mode", NOT_AVAILABLE)),
    )


def _pci(gpu: Gpu) -> Field:
    domain, bus, rest = gpu.bus_id.split(":")
    device = f"{gpu.product.device}10DE".upper()
    subsystem = f"{gpu.product.subsystem}10DE".upper()
    return group(
        "pci",
        "PCI",
        leaf("pci_bus", "Bus", bus.upper(), text=f"0x{bus.upper()}"),
        leaf("pci_device", "Device", rest[:2], text=f"0x{rest[:2]}"),
        leaf("pci_domain", "Domain", domain, text=f"0x{domain}"),
        leaf("pci_base_class", "Base Classcode", "3", text="0x3", since=550),
        leaf("pci_sub_class", "Sub Classcode", "2", text="0x2", since=550),
        leaf("pci_device_id", "Device Id", device, text=f"0x{device}"),
        leaf("pci_bus_id", "Bus Id", f"0000{gpu.bus_id}".upper()),
        leaf("pci_sub_system_id", "Sub System Id", subsystem, text=f"0x{subsystem}"),
        group(
            "pci_gpu_link_info",
            "GPU Link Info",
            group(
                "pcie_gen",
                "PCIe Generation",
                leaf("max_link_gen", "Max", gpu.link.max_generation),
                leaf("current_link_gen", "Current", gpu.link.generation),
                leaf("device_current_link_gen", "Device Current", gpu.link.generation),
                leaf("max_device_link_gen", "Device Max", gpu.link.device_generation),
                leaf("max_host_link_gen", "Host Max", NOT_AVAILABLE),
            ),
            group(
                "link_widths",
                "Link Width",
                leaf("max_link_width", "Max", f"{gpu.link.max_width}x"),
                leaf("current_link_width", "Current", f"{gpu.link.width}x"),
            ),
        ),
        group(
            "pci_bridge_chip",
            "Bridge Chip",
            leaf("bridge_chip_type", "Type", NOT_AVAILABLE),
            leaf("bridge_chip_fw", "Firmware", NOT_AVAILABLE),
        ),
        leaf("replay_counter", "Replays Since Reset", gpu.replays),
        leaf("replay_rollover_counter", "Replay Number Rollovers", 0),
        leaf("tx_util", "Tx Throughput", f"{500 + gpu.place * 2} KB/s"),
        leaf("rx_util", "Rx Throughput", f"{410 + gpu.replays} KB/s"),
        leaf("atomic_caps_outbound", "Atomic Caps Outbound", NOT_AVAILABLE, since=580),
        leaf("atomic_caps_inbound", "Atomic Caps Inbound", NOT_AVAILABLE),
        leaf("atomic_caps_outbound", "Atomic Caps Outbound", NOT_AVAILABLE, until=579),
    )


def _fabric(gpu: Gpu) -> tuple[Field, ...]:
    health = (
        ("summary", "Summary"),
        ("bandwidth", "Bandwidth"),
        ("route_recovery_in_progress", "Route Recovery in progress"),
        ("route_unhealthy", "Route Unhealthy"),
        ("access_timeout_recovery", "Access Timeout Recovery"),
        ("incorrect_configuration", "Incorrect Configuration"),
    )
    return (
        leaf("state", "State", gpu.fabric_state),
        leaf("status", "Status", gpu.fabric_status),
        leaf("cliqueId", "CliqueId", 0, since=550),
        leaf("clusterUuid", "ClusterUUID", "00000000-0000-0000-0000-000000000000", since=550),
        group("health", "Health", leaf("bandwidth", "Bandwidth", NOT_AVAILABLE), since=550, until=579),
        group("health", "Health", *(leaf(tag, label, NOT_AVAILABLE) for tag, label in health), since=580),
    )


def _supported_clocks(gpu: Gpu) -> tuple[Field, ...]:
    """Two of the hundred steps of each memory clock: nothing reads them."""
    steps = (gpu.product.sm_clock, gpu.product.sm_clock - 15)
    graphics = (leaf("supported_graphics_clock", "", f"{step} MHz") for step in steps)
    return (group("supported_mem_clock", "", leaf("value", "", f"{gpu.product.memory_clock} MHz"), *graphics),)
