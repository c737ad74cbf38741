"""What `nvidia-smi -q` says of one GPU, as one tree in the order of the real documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.smi_field import (
    DEPRECATED,
    NOT_AVAILABLE,
    Field,
    group,
    late_leaf,
    leaf,
    of_release,
    paths,
    with_every_value,
    with_values,
)
from nodeready.simulate.outputs.smi_load import load_fields

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node

# what a driver knows of a GPU that answers nothing any more
_NO_CLUSTER = "00000000-0000-0000-0000-000000000000"
_KEPT = frozenset({"pci_bus", "pci_device", "pci_domain", "pci_bus_id", "minor_number"})


def gpu_fields(node: Node, gpu: Gpu, minor: int) -> tuple[Field, ...]:
    """The fields of one GPU in the order of the document; `minor` is its device file's number."""
    fields = (
        *_identity(node, gpu, minor),
        *_firmware(node, gpu),
        _pci(gpu),
        *load_fields(gpu),
        group("fabric", "Fabric", *_fabric(gpu)),
        group("supported_clocks", "", *_supported_clocks(gpu)),
        _processes(gpu),
        Field("accounted_processes", ""),
        group("capabilities", "Capabilities", leaf("egm", "EGM", "disabled"), since=570),
    )
    printed = of_release(fields, node.driver.release)
    if gpu.every_value:
        return with_every_value(printed, gpu.every_value, _KEPT)
    if not gpu.printed:
        return printed
    absent = gpu.printed.keys() - paths(printed)
    if absent:
        raise ValueError(f"nvidia-smi of driver {node.driver.library} prints no {', '.join(sorted(absent))}")
    return with_values(printed, gpu.printed)


def _processes(gpu: Gpu) -> Field:
    """The list of processes, which the text calls None where it is empty."""
    if not gpu.processes:
        return Field("processes", "Processes", text="None")
    return group(
        "processes",
        "Processes",
        *(
            group(
                "process_info",
                "",
                leaf("gpu_instance_id", "GPU instance ID", NOT_AVAILABLE),
                leaf("compute_instance_id", "Compute instance ID", NOT_AVAILABLE),
                leaf("pid", "Process ID", process.pid),
                leaf("type", "Type", "C", deeper=1),
                leaf("process_name", "Name", process.name, deeper=1),
                leaf("used_memory", "Used GPU Memory", f"{process.memory_mib} MiB", deeper=1),
            )
            for process in gpu.processes
        ),
    )


def _identity(node: Node, gpu: Gpu, minor: int) -> tuple[Field, ...]:
    return (
        leaf("product_name", "Product Name", gpu.product.name),
        leaf("product_brand", "Product Brand", "NVIDIA"),
        leaf("product_architecture", "Product Architecture", gpu.product.architecture),
        leaf("display_mode", "Display Mode", "Enabled", until=574),
        leaf("display_mode", "Display Mode", DEPRECATED, since=575),
        leaf("display_attached", "Display Attached", "Yes", since=575),
        leaf("display_active", "Display Active", "Disabled"),
        leaf("persistence_mode", "Persistence Mode", "Enabled"),
        leaf("addressing_mode", "Addressing Mode", "None" if node.shape.virtual else "HMM"),
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
        leaf("board_id", "Board ID", f"0x{int(gpu.bus_id[5:7], 16) << 8 | int(gpu.bus_id[8:10], 16):x}"),
        leaf("board_part_number", "Board Part Number", gpu.product.board_part),
        leaf("gpu_part_number", "GPU Part Number", gpu.product.gpu_part),
        leaf("gpu_fru_part_number", "FRU Part Number", NOT_AVAILABLE),
        leaf("gpu_module_id", "Module ID", gpu.module_id, until=569),
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
            since=570,
        ),
    )


def _firmware(node: Node, gpu: Gpu) -> tuple[Field, ...]:
    image, oem, ecc = gpu.product.inforom
    rng = node.stream("bbx", gpu.place)
    flushed = f"2026/11/30 {rng.randint(10, 23)}:48:27.{rng.randint(100, 999)}"
    guest = node.shape.virtual
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
            leaf("latest_timestamp", "Latest Timestamp", NOT_AVAILABLE if guest else flushed),
            leaf("latest_duration", "Latest Duration", NOT_AVAILABLE if guest else f"{rng.randint(88000, 98000)} us"),
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
            leaf("virtualization_mode", "Virtualization Mode", "Pass-Through" if guest else "None"),
            leaf("host_vgpu_mode", "Host VGPU Mode", NOT_AVAILABLE),
            leaf("vgpu_heterogeneous_mode", "vGPU Heterogeneous Mode", NOT_AVAILABLE, since=550),
        ),
        *_recovery(gpu),
        leaf("gsp_firmware_version", "GSP Firmware Version", node.driver.module, since=550),
        group("ibmnpu", "IBMNPU", leaf("relaxed_ordering_mode", "Relaxed Ordering Mode", NOT_AVAILABLE)),
    )


def _recovery(gpu: Gpu) -> tuple[Field, ...]:
    """What the driver wants done: older branches have two fields for it, one branch has both forms."""

    def status(required: str, drain: str, since: int, until: int) -> Field:
        return group(
            "gpu_reset_status",
            "GPU Reset Status",
            leaf("reset_required", "Reset Required", required),
            leaf("drain_and_reset_recommended", "Drain and Reset Recommended", drain),
            since=since,
            until=until,
        )

    action = gpu.recovery_action
    return (
        status("Yes" if action == "Reset" else "No", "Yes" if "Drain" in action else "No", 525, 569),
        status(DEPRECATED, DEPRECATED, 570, 579),
        leaf("gpu_recovery_action", "GPU Recovery Action", action, since=570),
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
        leaf("atomic_caps_outbound", "Atomic Caps Outbound", NOT_AVAILABLE, since=560),
        leaf("atomic_caps_inbound", "Atomic Caps Inbound", NOT_AVAILABLE),
        leaf("atomic_caps_outbound", "Atomic Caps Outbound", NOT_AVAILABLE, until=559),
    )


def _fabric(gpu: Gpu) -> tuple[Field, ...]:
    routes = (
        ("route_recovery_in_progress", "Route Recovery in progress"),
        ("route_unhealthy", "Route Unhealthy"),
        ("access_timeout_recovery", "Access Timeout Recovery"),
    )
    none = gpu.fabric_state == NOT_AVAILABLE
    return (
        leaf("state", "State", gpu.fabric_state),
        leaf("status", "Status", gpu.fabric_status),
        leaf("cliqueId", "CliqueId", NOT_AVAILABLE if none else 0, since=550),
        leaf("clusterUuid", "ClusterUUID", NOT_AVAILABLE if none else _NO_CLUSTER, since=550),
        group(
            "health",
            "Health",
            leaf("summary", "Summary", NOT_AVAILABLE, since=580),
            leaf("bandwidth", "Bandwidth", NOT_AVAILABLE),
            *(leaf(tag, label, NOT_AVAILABLE, since=570) for tag, label in routes),
            leaf("incorrect_configuration", "Incorrect Configuration", NOT_AVAILABLE, since=580),
            *late_leaf("partition_assigned", NOT_AVAILABLE),
            since=550,
        ),
    )


def _supported_clocks(gpu: Gpu) -> tuple[Field, ...]:
    """Two of the hundred steps of each memory clock: nothing reads them."""
    steps = (gpu.product.sm_clock, gpu.product.sm_clock - 15)
    graphics = (leaf("supported_graphics_clock", "", f"{step} MHz") for step in steps)
    return (group("supported_mem_clock", "", leaf("value", "", f"{gpu.product.memory_clock} MHz"), *graphics),)
