"""Real and made-up outputs of BMC tools, SMBIOS, drives and kernel logs."""

import json

import pytest

from nodeready.facts import bmc_events, bmc_sensors, dmi_power, kernel_host, kernel_log, nvme_health
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs import board, storage

SXM = build("sxm")


def test_sensors_of_a_node_that_lost_a_supply(captures):
    data = (captures / "ipmi/01-ipmi-sensors-psu-lost.txt").read_bytes()
    found = bmc_sensors.parse_freeipmi(data)
    assert not found.whole
    assert [(s.name, s.kind, s.state) for s in found.listed[:2]] == [
        ("PWR_PSU0", "supply", "critical"),
        ("PWR_PSU1", "supply", "ok"),
    ]
    assert found.listed[1].value == 780.0
    assert found.listed[2].words == ("Presence detected",)
    assert "Redundancy Lost" in found.listed[-1].words


@pytest.mark.parametrize("name", ["03-dl380-g7-sdr.txt", "05-megarac-sensor-table.txt"])
def test_tables_of_other_commands_are_not_taken_for_one(captures, name):
    data = (captures / "ipmi" / name).read_bytes()
    assert isinstance(bmc_sensors.parse(data), Unknown)
    assert isinstance(bmc_sensors.parse_freeipmi(data), Unknown)


def test_sensors_by_name_entity_and_unit():
    found = bmc_sensors.parse(
        b"FAN1             | 41h | ok  | 29.1 | 8400 RPM\n"
        b"FAN2             | 42h | lcr | 29.2 | 0 RPM\n"
        b"Fan 3            | 43h | ns  | 29.3 | No Reading\n"
        b"PSU1 Status      | C8h | ok  | 10.1 | Presence detected, Power Supply AC lost\n"
        b"12V              | 30h | ok  |  7.1 | 12.18 Volts\n"
        b"CPU1 Temp        | 01h | ok  |  3.1 | 43 degrees C\n"
        b"end:\n"
    )
    assert found.whole
    assert [s.kind for s in found.listed] == ["fan", "fan", "fan", "supply", "other", "temperature"]
    assert [s.state for s in found.listed[:3]] == ["ok", "critical", "no reading"]
    assert found.listed[2].value is None
    assert found.listed[3].words == ("Presence detected", "Power Supply AC lost")


def test_events_that_were_taken_back_do_not_stand():
    log = bmc_events.parse(board.events(SXM).stdout)
    assert log.whole
    assert len(log.entries) == 4
    assert bmc_events.standing(log.entries) == []
    cut = bmc_events.parse(board.events(SXM).stdout.split(b"   3 |")[0])
    assert not cut.whole
    assert [event.said for event in bmc_events.standing(cut.entries)] == ["Power Supply AC lost"]


@pytest.mark.parametrize(
    ("line", "at", "critical"),
    [
        (" 1 | 12/01/2026 | 03:20:44 | Memory #0x02 | Uncorrectable ECC | Asserted", 1796095244, True),
        (" 1 | 12/01/26 | 03:20:44 UTC | Memory #0x02 | Uncorrectable ECC | Asserted", 1796095244, True),
        (" a | Pre-Init  |0000000042| Critical Interrupt PCIe Bus | Bus Fatal Error | Asserted", None, True),
        ("1f | 12/01/2026 | 03:20:44 | Memory #0x02 | Correctable ECC | Asserted", 1796095244, False),
        (" 1 | 12/01/2026 | 03:20:44 | Temperature Inlet | Upper Critical going high | Asserted", 1796095244, True),
    ],
)
def test_entries_of_several_versions(line, at, critical):
    (event,) = bmc_events.parse(f"{line}\nend:\n".encode()).entries
    assert (event.at, event.is_critical) == (at, critical)


def test_an_empty_log_holds_nothing_and_garbage_is_unknown():
    assert bmc_events.parse(b"SEL has no entries\nend:\n").entries == ()
    assert isinstance(bmc_events.parse(b"Get SEL Info command failed\n"), Unknown)


def test_rated_power_counts_only_whole_lists_and_says_what_is_there():
    node = build("sxm")
    node.host.supplies[5].present = False
    data = board.rated_power(node).stdout
    found = dmi_power.parse(data)
    assert [s.present for s in found] == [True] * 5 + [False]
    assert str(found[0].rated.value) == "2800 W"
    assert isinstance(dmi_power.parse(data[:-5]), Unknown)
    assert isinstance(dmi_power.parse(b"# dmidecode 3.3\nend:\n"), Unknown)


def drive(document, name="nvme9"):
    return f"drive:/dev/{name}\n{document}\nstatus:0\nend:\n".encode()


@pytest.mark.parametrize(
    ("name", "spare", "errors"), [("01-smartctl-xj-bad-nvme9.txt", 0, 0), ("03-smartctl-xj-bad-cache.txt", 100, 0)]
)
def test_real_documents_of_smartctl(captures, name, spare, errors):
    found = nvme_health.parse(drive((captures / "smartctl" / name).read_text()))["nvme9"]
    assert (found.spare.value, found.media_errors.value, found.warning.value) == (spare, errors, 0)
    assert found.spare_threshold.value > 0


def test_both_tools_and_both_versions_of_nvme_cli_say_the_same():
    old = nvme_health.parse(storage.health(SXM).stdout)["nvme0"]
    log = {"critical_warning": {"value": 4, "persistent_mem_ro": 0}, "avail_spare": 100, "media_errors": "7"}
    new = nvme_health.parse(drive(json.dumps(log)))["nvme9"]
    assert (old.warning.value, old.spare.value) == (0, 100)
    assert (new.warning.value, new.media_errors.value) == (4, 7)
    assert isinstance(new.used, Unknown)


def test_a_drive_that_refuses_is_unknown_and_hides_no_other():
    data = drive("identify controller: Permission denied", "nvme0").replace(b"end:\n", b"") + drive(
        '{"avail_spare": 9}'
    )
    found = nvme_health.parse(data)
    assert "Permission denied" in found["nvme0"].reason
    assert isinstance(found["nvme9"].spare, Known)
    assert isinstance(nvme_health.parse(data[:-5]), Unknown)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0", kernel_host.MEMORY_LOST),
        ("Memory failure: 0x40c1d2e: recovery action for dirty LRU page: Recovered", kernel_host.MEMORY_LOST),
        ("[Hardware Error]: Uncorrected, software containable error.", kernel_host.MEMORY_LOST),
        ("mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 8: be00000000800400", kernel_host.MEMORY_LOST),
        ("mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 8: 9c00000000800400", kernel_host.MEMORY_MENDED),
        ("[Hardware Error]: Corrected error, no action required.", kernel_host.MEMORY_MENDED),
        ("mce: [Hardware Error]: Machine check events logged", kernel_host.MEMORY_MENDED),
        ("EXT4-fs (sda2): Remounting filesystem read-only", kernel_host.READ_ONLY),
        ("I/O error, dev nvme0n1, sector 12 op 0x0:(READ)", kernel_host.DRIVE),
        ("XFS (dm-1): metadata I/O error in", kernel_host.DRIVE),
        ("nvme nvme2: Removing after probe failure status: -19", kernel_host.DRIVE),
        ("nvme nvme2: I/O 123 QID 4 timeout, aborting", kernel_host.DRIVE_RESET),
        ("nvme nvme3: controller is down; will reset: CSTS=0xffffffff", kernel_host.DRIVE_RESET),
        ("INFO: task cache_mgr_event:620917 blocked for more than 120 seconds.", kernel_host.HANG),
        ("watchdog: BUG: soft lockup - CPU#12 stuck for 22s!", kernel_host.HANG),
        # none of these is a fault of the host's own parts
        ("mce: CPU supports 22 MCE banks", None),
        ("EDAC MC0: Giving out device to module i10nm_edac", None),
        ("I/O error, dev sr0, sector 0", None),
        ("I/O error, dev fd0, sector 0", None),
        ("nvme nvme0: 128/0/0 default/read/poll queues", None),
        ("Memory failure: 0x40c1d2e: Unpoisoned page", None),
        ('audit: msg="I/O error, dev nvme0n1, sector 1"', None),
        ("EXT4-fs (dm-0): mounted filesystem with ordered data mode. Opts: errors=remount-ro", None),
    ],
)
def test_lines_of_the_kernel(line, kind):
    assert [event.kind for event in kernel_host.events([f"[  500.1] {line}"])] == ([kind] if kind else [])


def test_a_record_of_the_firmware_goes_by_its_own_weight_and_part():
    def record(severity, part):
        head = "{1}[Hardware Error]:"
        return [f"{head} event severity: {severity}", f"{head}   section_type: {part}"]

    def kinds(*records):
        return [event.kind for each in records for event in kernel_host.events(each)]

    assert kinds(record("corrected", "memory error")) == [kernel_host.MEMORY_MENDED]
    assert kinds(record("fatal", "memory error")) == [kernel_host.MEMORY_LOST]
    assert kinds(record("fatal", "PCIe error")) == []


def test_the_message_is_the_same_in_all_forms_of_a_log():
    said = "EDAC MC0: 1 CE memory read error on CPU_SrcID#0"
    forms = (f"[  812.5] {said}", f"2026-12-01T09:12:41+0000 node1 kernel: {said}", f"<4>[  812.5] {said}")
    assert {event.text for event in kernel_host.events(forms)} == {said}


def test_boot_logs_of_real_nodes_hold_no_fault_of_the_host(captures):
    for name in ("03-iso-log-1.txt", "05-kmsg-1.txt", "14-azure-journald.txt"):
        log = kernel_log.parse((captures / "dmesg" / name).read_bytes())
        assert isinstance(log, Unknown) or log.host == (), name


def test_a_real_drive_that_failed(captures):
    log = kernel_log.parse((captures / "dmesg/15-nvme-io-errors.txt").read_bytes())
    assert [event.kind for event in log.host] == [kernel_host.DRIVE] * 5
