"""What the board of a simulated node tells: memory controllers, the BMC's sensors and log, rated power."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.output import Output, text

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_CONTROLLERS = 8
_NO_DEVICE = "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or directory\n"


def edac(node: Node) -> Output | None:
    """The memory controllers' counts, each line behind its path; all errors are of one DIMM of the third."""
    host = node.host
    if node.shape.virtual:
        return None
    if host.uncorrected is None:
        return text("end:")
    lines = []
    for field, count in (("mc_name", None), ("ue_count", host.uncorrected), ("ce_count", host.corrected)):
        for number in range(_CONTROLLERS):
            value = f"Intel_10nm Socket#{number // 4} IMC#{number % 4}" if count is None else count * (number == 2)
            lines.append(f"/sys/devices/system/edac/mc/mc{number}/{field}:{value}")
    for field in ("dimm_label", "dimm_ue_count", "dimm_ce_count"):
        for number in range(_CONTROLLERS):
            label = f"CPU_SrcID#{number // 4}_MC#{number % 4}_Chan#0_DIMM#0"
            count = {"dimm_ue_count": host.uncorrected, "dimm_ce_count": host.corrected}.get(field, 0) * (number == 2)
            path = f"/sys/devices/system/edac/mc/mc{number}/dimm0/{field}"
            lines.append(f"{path}:{label if field == 'dimm_label' else count}")
    return text(*lines, "end:")


def sensors(node: Node) -> Output | None:
    """`ipmitool sdr elist`."""
    host = node.host
    if node.shape.virtual:
        return None
    if not host.bmc:
        return Output(b"", 1, _NO_DEVICE.encode())
    rows = [
        ("Inlet Temp", "05", "ok", "7.1", f"{host.inlet} degrees C"),
        ("Exhaust Temp", "06", "ok", "7.1", "34 degrees C"),
    ]
    rows += [
        (f"Fan{number + 1}", f"{0x30 + number:02X}", "cr" if speed < 600 else "ok", f"7.{1}", f"{speed} RPM")
        for number, speed in enumerate(host.fans)
    ]
    rows.append(("Fan Redundancy", "75", "ok", "7.1", "Fully Redundant"))
    for number, supply in enumerate(host.supplies, 1):
        said = ", ".join(filter(None, ("Presence detected" if supply.present else "", supply.fault)))
        rows.append((f"PS{number} Status", f"{0x85 + number:02X}", "ok", f"10.{number}", said))
        volts = "No Reading" if supply.fault or not supply.present else "232 Volts"
        rows.append(
            (f"Voltage {number}", f"{0x6C + number:02X}", "ns" if "No" in volts else "ok", f"10.{number}", volts)
        )
    rows.append(("PS Redundancy", "77", "ok", "7.1", host.redundancy))
    return text(
        *(f"{name:<16} | {at}h | {state:<3} | {entity:>4} | {said}" for name, at, state, entity, said in rows), "end:"
    )


def events(node: Node) -> Output | None:
    """The last entries of `ipmitool sel elist`: a supply that was plugged in late, then what happened."""
    if node.shape.virtual:
        return None
    if not node.host.bmc:
        return Output(b"", 1, _NO_DEVICE.encode())
    rows = [
        ("10/02/2026", "08:11:52", "Event Logging Disabled SEL", "Log area reset/cleared", "Asserted"),
        ("10/02/2026", "08:40:03", "Power Supply PS2 Status", "Power Supply AC lost", "Asserted"),
        ("10/02/2026", "08:41:17", "Power Supply PS2 Status", "Power Supply AC lost", "Deasserted"),
        ("10/02/2026", "08:44:50", "System Boot Initiated", "Initiated by power up", "Asserted"),
        *node.host.events,
    ]
    return text(*(f"{number:>4x} | {' | '.join(row)}" for number, row in enumerate(rows, 1)), "end:")


def rated_power(node: Node) -> Output | None:
    """`dmidecode -t 39`."""
    if node.shape.virtual:
        return None
    lines = ["# dmidecode 3.3", "Getting SMBIOS data from sysfs.", "SMBIOS 3.3.0 present.", ""]
    for number, supply in enumerate(node.host.supplies, 1):
        lines += [
            f"Handle 0x{0x2700 + number - 1:04X}, DMI type 39, 22 bytes",
            "System Power Supply",
            f"\tPower Unit Group: {number}",
            f"\tLocation: PSU.Slot.{number}",
            f"\tName: PWR SPLY,{supply.watts}W,RDNT",
            f"\tMax Power Capacity: {f'{supply.watts} W' if supply.watts else 'Unknown'}",
            f"\tStatus: {'Present, OK' if supply.present else 'Not Present'}",
            "\tType: Switching",
            "\tPlugged: Yes",
            "\tHot Replaceable: Yes",
            "",
        ]
    return text(*lines, "end:")
