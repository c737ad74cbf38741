import subprocess

from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.pci_files import PCI_FILES, PCI_FILES_LATER, parse
from nodeready.reading import Known, Unknown

GPU = "/sys/bus/pci/devices/0000:3b:00.0"
WHOLE = f"""uptime:93841.27
/proc/cmdline:BOOT_IMAGE=/vmlinuz-5.15 root=/dev/sda1 ro iommu=pt pci=realloc=off console=ttyS0:115200
/sys/bus/pci/slots/24/address:0000:3b:00
/sys/bus/pci/slots/0-1/address:0000:3C:00
/sys/bus/pci_express/devices/0000:37:01.0:pcie002:yes
{GPU}/aer_dev_correctable:RxErr 2
{GPU}/aer_dev_correctable:BadTLP 1
{GPU}/aer_dev_correctable:TOTAL_ERR_COR 3
{GPU}/aer_dev_fatal:TOTAL_ERR_FATAL 0
{GPU}/aer_dev_nonfatal:CmpltTO 4
{GPU}/aer_dev_nonfatal:TOTAL_ERR_NONFATAL 4
end:
""".encode()


def test_one_sample():
    found = parse(WHOLE)
    assert found.uptime.value == 93841.27
    assert "iommu=pt" in found.options.value
    assert "console=ttyS0:115200" in found.options.value
    assert found.slots == {"0000:3b:00": "24", "0000:3c:00": "0-1"}
    assert found.reporting == {"0000:37:01.0"}
    errors = found.errors["0000:3b:00.0"]
    assert (errors.correctable, errors.nonfatal, errors.fatal) == (3, 4, 0)
    assert errors.kinds == {"RxErr": 2, "BadTLP": 1, "CmpltTO": 4}


def test_every_prefix_is_unknown():
    assert all(isinstance(parse(WHOLE[:end]), Unknown) for end in range(len(WHOLE)))


def test_a_device_with_a_part_of_its_counters_has_none():
    data = WHOLE.replace(f"{GPU}/aer_dev_fatal:TOTAL_ERR_FATAL 0\n".encode(), b"")
    assert parse(data).errors == {}


def test_counts_that_are_none_are_left_out():
    for bad in (b"TOTAL_ERR_FATAL -1", b"TOTAL_ERR_FATAL", b"TOTAL_ERR_FATAL 0x1", b"TOTAL_ERR_FATAL one"):
        assert parse(WHOLE.replace(b"TOTAL_ERR_FATAL 0", bad)).errors == {}


def test_a_sample_without_options_or_clock():
    found = parse(b"end:\n")
    assert isinstance(found.options, Unknown)
    assert isinstance(found.uptime, Unknown)
    assert found.errors == {}


@given(st.binary(max_size=200), st.integers(0, len(WHOLE)))
def test_garbage_never_raises(noise, at):
    found = parse(WHOLE[:at] + noise + WHOLE[at:])
    assert isinstance(found, Unknown) or isinstance(found.options, (Known, Unknown))


def run(probe, root):
    shell, option, script = probe.argv
    script = script.replace("/sys/", f"{root}/sys/").replace("/proc/cmdline", f"{root}/proc/cmdline")
    done = subprocess.run([shell, option, script], capture_output=True, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.replace(str(root).encode(), b"")


def test_the_scripts_read_a_tree(tmp_path):
    files = {
        "proc/cmdline": "ro iommu=pt\n",
        "sys/bus/pci/slots/24/address": "0000:3b:00\n",
        "sys/bus/pci/devices/0000:3b:00.0/aer_dev_correctable": "RxErr 0\nBadTLP 10\nTOTAL_ERR_COR 10\n",
        "sys/bus/pci/devices/0000:3b:00.0/aer_dev_nonfatal": "Undefined 0\nTOTAL_ERR_NONFATAL 0\n",
        "sys/bus/pci/devices/0000:3b:00.0/aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0\n",
        "sys/bus/pci/devices/0000:3b:00.0/aer_rootport_total_err_cor": "77\n",
        "sys/bus/pci_express/devices/0000:37:01.0:pcie002/uevent": "\n",
        "sys/bus/pci_express/devices/0000:37:01.0:pcie001/uevent": "\n",
    }
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    first, second = (parse(run(probe, tmp_path)) for probe in (PCI_FILES, PCI_FILES_LATER))
    assert first.options.value == ("ro", "iommu=pt")
    assert (first.slots, first.reporting) == ({"0000:3b:00": "24"}, {"0000:37:01.0"})
    assert first.errors == second.errors
    assert first.errors["0000:3b:00.0"].kinds == {"BadTLP": 10}
    assert first.uptime.value > 0


def test_the_scripts_on_a_machine_without_any_of_it(tmp_path):
    found = parse(run(PCI_FILES, tmp_path))
    assert (found.slots, found.reporting, found.errors) == ({}, frozenset(), {})
