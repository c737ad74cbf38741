import pytest

from nodeready.facts.kernel_log import parse
from nodeready.facts.kernel_pcie import CORRECTED, UNCORRECTED, pcie_events

PORT, GPU = "0000:37:01.0", "0000:3b:00.0"


@pytest.mark.parametrize(
    ("line", "weight", "bus_id"),
    [
        (f"[ 9.2] pcieport {PORT}: PCIe Bus Error: severity=Corrected, type=Physical Layer", CORRECTED, PORT),
        (f"[ 9.2] pcieport {PORT}: AER: PCIe Bus Error: severity=Correctable, type=Data Link", CORRECTED, PORT),
        (f"[ 9.2] nvidia {GPU}: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=T", UNCORRECTED, GPU),
        (f"[ 9.2] nvidia {GPU}: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=T", UNCORRECTED, GPU),
        (f"[ 9.2] pcieport {PORT}: pciehp: Slot(24): Link Down", UNCORRECTED, PORT),
        (f"[ 9.2] pcieport {PORT}: pciehp: Slot(24-1): Card not present", UNCORRECTED, PORT),
        (f"[ 9.2] pcieport {PORT}: DPC: containment event, status:0x1f01 source:0x0000", UNCORRECTED, PORT),
        (f"2026-11-30T10:11:12+0000 n1 kernel: nvidia {GPU}: PCIe Bus Error: severity=Fatal", UNCORRECTED, GPU),
    ],
)
def test_a_line_is_an_event_of_its_device(line, weight, bus_id):
    assert [(event.weight, event.bus_id) for event in pcie_events([line])] == [(weight, bus_id)]


@pytest.mark.parametrize(
    "line",
    [
        f"pcieport {PORT}: AER: Corrected error received: {GPU}",
        f"pcieport {PORT}: AER: enabled with IRQ 144",
        "acpi PNP0A08:29: _OSC: platform does not support [SHPCHotplug AER DPC]",
        f"pcieport {PORT}: pciehp: Slot #24 AttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- HotPlug+ Surprise-",
        f"pcieport {PORT}: pciehp: Slot(24): Link Up",
        f"pcieport {PORT}: DPC: error containment capabilities: Int Msg #0, RPExt+ PoisonedTLP+ SwTrigger+ RP PIO Log 4",
        f'audit: type=1400 msg="nvidia {GPU}: PCIe Bus Error: severity=Corrected, type=Physical Layer"',
        "PCIe Bus Error: severity=Corrected, type=Physical Layer",
    ],
)
def test_what_is_no_event(line):
    assert pcie_events([line]) == ()


def record(severity, section="PCIe error", device=GPU):
    return [
        f"{{1}}[Hardware Error]: event severity: {severity}",
        f"{{1}}[Hardware Error]:  Error 0, type: {severity}",
        f"{{1}}[Hardware Error]:   section_type: {section}",
        f"{{1}}[Hardware Error]:   device_id: {device}",
    ]


@pytest.mark.parametrize(
    ("severity", "weight"),
    [("corrected", CORRECTED), ("info", CORRECTED), ("recoverable", UNCORRECTED), ("fatal", UNCORRECTED)],
)
def test_a_record_of_the_firmware(severity, weight):
    assert [(event.weight, event.bus_id) for event in pcie_events(record(severity))] == [(weight, GPU)]


def test_a_record_of_another_kind_is_none():
    assert pcie_events(record("fatal", "memory error")) == ()


def test_a_record_whose_severity_was_cut_away_is_the_worse():
    assert [event.weight for event in pcie_events(record("corrected")[2:])] == [UNCORRECTED]


def test_boot_logs_of_real_nodes_hold_no_event(captures):
    for path in sorted((captures / "dmesg").glob("*.txt")):
        log = parse(path.read_bytes())
        assert getattr(log, "pcie", ()) == (), path.name
