"""`lspci` as root, in three forms: every function with its links, its sticky error bits and its ACS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.outputs.output import Output, not_installed
from nodeready.simulate.pci import RATES, LinkState, PciDevice
from nodeready.simulate.pci_tree import devices

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_CORRECTABLE = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "AdvNonFatalErr")
_UNCORRECTABLE = (
    "DLP",
    "SDES",
    "TLP",
    "FCP",
    "CmpltTO",
    "CmpltAbrt",
    "UnxCmplt",
    "RxOF",
    "MalfTLP",
    "ECRC",
    "UnsupReq",
    "ACSViol",
)
_MASKED = frozenset({"UnxCmplt"})
_SEVERE = frozenset(_UNCORRECTABLE) - {"UnxCmplt", "UnsupReq", "ACSViol"}
_REDIRECTING = frozenset({"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"})
_ACS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")


def with_numbers(node: Node) -> Output:
    """`lspci -nnvvv`."""
    return _verbose(node, numbers=True)


def verbose(node: Node) -> Output:
    """`lspci -vvv`: names alone, numbers where pci.ids has no name."""
    return _verbose(node, numbers=False)


def listing(node: Node) -> Output:
    """`lspci -nn`: one line for each function."""
    if "lspci" in node.absent:
        return not_installed("lspci")
    return Output("".join(f"{_head(device, numbers=True)}\n" for device in devices(node)).encode())


def _verbose(node: Node, *, numbers: bool) -> Output:
    if "lspci" in node.absent:
        return not_installed("lspci")
    blocks = ("\n".join(_block(device, numbers=numbers)) + "\n\n" for device in devices(node))
    return Output("".join(blocks).encode())


def _head(device: PciDevice, *, numbers: bool) -> str:
    kind = f"{device.kind} [{device.class_code}]" if numbers else device.kind
    name = f"{device.vendor} {device.name}".strip()
    revision = "" if device.revision == "00" else f" (rev {device.revision})"
    return f"{device.bus_id} {kind}: {_named(f'{name} [{device.ids}]', numbers=numbers)}{revision}"


def _named(text: str, *, numbers: bool) -> str:
    """A name with its ids, `NVIDIA Corporation Device [10de:2330]`, as it is shown without them too."""
    if numbers:
        return text
    name, _, ids = text.removesuffix("]").rpartition(" [")
    if name == "Device":
        return f"Device {ids}"
    return f"{name} {ids.partition(':')[2]}" if name.endswith(" Device") else name


def _block(device: PciDevice, *, numbers: bool) -> list[str]:
    programming = f" (prog-if {device.programming})" if device.programming else ""
    lines = [f"{_head(device, numbers=numbers)}{programming}"]
    if device.device_name and device.answers:
        lines.append(f"\tDeviceName: {device.device_name}")
    if not device.answers:
        lines.append("\t!!! Unknown header type 7f")
    else:
        lines += [f"\tSubsystem: {_named(device.subsystem, numbers=numbers)}"] if device.subsystem else []
        lines += _header(device)
        lines += _power_management(device) if device.link else []
        lines += _express(device, device.link) if device.link else []
        lines += _errors(device) if device.link else []
        lines += _access_control(device) if device.acs else []
    if device.driver:
        lines.append(f"\tKernel driver in use: {device.driver}")
    if device.modules:
        lines.append(f"\tKernel modules: {device.modules}")
    return lines


def _header(device: PciDevice) -> list[str]:
    lines = [f"\tPhysical Slot: {device.slot}"] if device.slot else []
    masked = "DisINTx+" if device.link else "DisINTx-"
    lines += [
        f"\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- {masked}",
        "\tStatus: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-",
        "\tLatency: 0",
        f"\tInterrupt: pin A routed to IRQ {device.irq}",
    ]
    lines += [f"\tNUMA node: {device.numa}"] if device.numa >= 0 else []
    for number, (address, size) in enumerate(device.memory):
        lines.append(f"\tRegion {2 * number}: Memory at {address:x} (64-bit, prefetchable) [size={size}]")
    if device.secondary:
        first, last = device.secondary
        primary = device.bus_id[:2]
        lines += [
            f"\tBus: primary={primary}, secondary={first:02x}, subordinate={last:02x}, sec-latency=0",
            "\tI/O behind bridge: 0000f000-00000fff [disabled]",
            "\tSecondary status: 66MHz- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- <SERR- <PERR-",
            "\tBridgeCtl: Parity+ SERR+ NoISA- VGA- VGA16- MAbort- >Reset- FastB2B-",
            "\t\tPriDiscTmr- SecDiscTmr- DiscTmrStat- DiscTmrSERREn-",
        ]
    return lines


def _power_management(device: PciDevice) -> list[str]:
    wakes = "+" if device.secondary else "-"
    return [
        "\tCapabilities: [40] Power Management version 3",
        f"\t\tFlags: PMEClk- DSI- D1- D2- AuxCurrent=0mA PME(D0{wakes},D1-,D2-,D3hot{wakes},D3cold{wakes})",
        "\t\tStatus: D0 NoSoftRst+ PME-Enable- DSel=0 DScale=0 PME-",
    ]


def _express(device: PciDevice, link: LinkState) -> list[str]:
    corrected = "+" if device.sticky else "-"
    active = "+" if link.width and device.secondary else "-"
    speed = f"{RATES[link.generation]} ({_grade(link.generation, link.max_generation)})"
    width = f"x{link.width} ({_grade(link.width, link.max_width)})"
    lines = [
        f"\tCapabilities: [60] Express (v2) {device.port}",
        "\t\tDevCap:\tMaxPayload 256 bytes, PhantFunc 0",
        "\t\t\tExtTag+ RBE+",
        "\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq+",
        "\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop-",
        "\t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes",
        f"\t\tDevSta:\tCorrErr{corrected} NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-",
        f"\t\tLnkCap:\tPort #0, Speed {RATES[link.max_generation]}, Width x{link.max_width}, ASPM not supported",
        "\t\t\tClockPM- Surprise- LLActRep- BwNot- ASPMOptComp+",
        "\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, Disabled- CommClk-",
        "\t\t\tExtSynch- ClockPM- AutWidDis- BWInt- AutBWInt-",
        f"\t\tLnkSta:\tSpeed {speed}, Width {width}",
        f"\t\t\tTrErr- Train- SlotClk+ DLActive{active} BWMgmt- ABWMgmt-",
    ]
    if device.slot and device.secondary:
        lines += [
            "\t\tSltCap:\tAttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- HotPlug- Surprise-",
            f"\t\t\tSlot #{device.slot}, PowerLimit 25.000W; Interlock- NoCompl+",
        ]
    return [
        *lines,
        f"\t\tLnkCap2: Supported Link Speeds: 2.5-{RATES[link.max_generation]}, Crosslink- Retimer+ 2Retimers+ DRS-",
        f"\t\tLnkCtl2: Target Link Speed: {RATES[link.max_generation]}, EnterCompliance- SpeedDis-",
        "\t\t\t Transmit Margin: Normal Operating Range, EnterModifiedCompliance- ComplianceSOS-",
        "\t\t\t Compliance De-emphasis: -6dB",
        "\t\tLnkSta2: Current De-emphasis Level: -6dB, EqualizationComplete+ EqualizationPhase1+",
        "\t\t\t EqualizationPhase2+ EqualizationPhase3+ LinkEqualizationRequest-",
        "\t\t\t Retimer- 2Retimers- CrosslinkRes: unsupported",
        "\tCapabilities: [100 v1] Secondary PCI Express",
        "\t\tLnkCtl3: LnkEquIntrruptEn- PerformEqu-",
        f"\t\tLaneErrStat: {_lanes(link.width) if device.lane_errors else '0'}",
    ]


def _grade(now: int, best: int) -> str:
    return "ok" if now >= best else "downgraded"


def _lanes(width: int) -> str:
    return f"LaneErr at lane: {' '.join(map(str, range(width)))}"


def _bits(names: tuple[str, ...], on: frozenset[str]) -> str:
    return " ".join(f"{name}{'+' if name in on else '-'}" for name in names)


def _errors(device: PciDevice) -> list[str]:
    return [
        "\tCapabilities: [1b8 v2] Advanced Error Reporting",
        f"\t\tUESta:\t{_bits(_UNCORRECTABLE, frozenset())}",
        f"\t\tUEMsk:\t{_bits(_UNCORRECTABLE, _MASKED)}",
        f"\t\tUESvrt:\t{_bits(_UNCORRECTABLE, _SEVERE)}",
        f"\t\tCESta:\t{_bits(_CORRECTABLE, device.sticky)}",
        f"\t\tCEMsk:\t{_bits(_CORRECTABLE, frozenset(_CORRECTABLE))}",
        "\t\tAERCap:\tFirst Error Pointer: 00, ECRCGenCap+ ECRCGenEn- ECRCChkCap+ ECRCChkEn-",
        "\t\t\tMultHdrRecCap- MultHdrRecEn- TLPPfxPres- HdrLogCap-",
        "\t\tHeaderLog: 00000000 00000000 00000000 00000000",
    ]


def _access_control(device: PciDevice) -> list[str]:
    able = frozenset(_ACS) - {"EgressCtrl"} - (frozenset({"DirectTrans"}) if "Root" in device.port else frozenset())
    return [
        "\tCapabilities: [220 v1] Access Control Services",
        f"\t\tACSCap:\t{_bits(_ACS, able)}",
        f"\t\tACSCtl:\t{_bits(_ACS, _REDIRECTING if device.redirects else frozenset())}",
    ]
