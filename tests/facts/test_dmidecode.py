import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.dmidecode import DMI_MEMORY, Memory, parse
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))


def slot(handle, size, locator="A1", array="0x0010", **more):
    fields = {
        "Array Handle": array,
        "Size": size,
        "Locator": locator,
        "Speed": "4800 MT/s",
        "Part Number": "HMCG94 ",
        **more,
    }
    body = "".join(f"\t{key}: {value}\n" for key, value in fields.items() if value is not None)
    return (
        f"Handle {handle}, DMI type 17, 92 bytes\nMemory Device\n{body}\tVolatile Size: 99 GB\n\tCache Size: 7 GB\n\n"
    )


def array(count, handle="0x0010", use="System Memory"):
    return (
        f"Handle {handle}, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: {use}\n"
        f"\tMaximum Capacity: 4 TB\n\tNumber Of Devices: {count}\n\n"
    )


HEAD = "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\nSMBIOS 3.3.0 present.\n\n"
HEALTHY = (
    HEAD
    + array(3)
    + slot("0x0011", "64 GB", Serial_Number="x")
    + slot("0x0012", "65536 MB", "A2", **{"Configured Memory Speed": "4400 MT/s", "Serial Number": "80AD01"})
    + slot("0x0013", "No Module Installed", "A3", Speed="Unknown")
).encode()


def installed(*parts):
    return parse("".join(parts).encode()).installed


def test_probe_says_what_a_plain_user_loses():
    assert DMI_MEMORY.name == "dmidecode_-t_memory"
    assert DMI_MEMORY.root_for


def test_sizes_of_all_slots_are_summed_and_other_sizes_are_not():
    found = parse(HEALTHY)
    assert found.installed.value == Quantity(128, "GiB")
    assert found.installed.note == "2 of 3 DIMM slots filled"
    assert [d.locator for d in found.dimms] == ["A1", "A2", "A3"]
    assert [d.size.value for d in found.dimms] == [Quantity(64, "GiB"), Quantity(64, "GiB"), Quantity(0, "GiB")]
    assert (found.dimms[1].speed.value, found.dimms[1].configured_speed.value) == (4800, 4400)
    assert (found.dimms[1].part, found.dimms[1].serial) == ("HMCG94", "80AD01")
    assert isinstance(found.dimms[2].speed, Unknown)


@pytest.mark.parametrize(
    ("size", "value"),
    [("32 GiB", "32 GiB"), ("32 GB", "32 GiB"), ("65536 MB", "64 GiB"), ("1 TB", "1 TiB"), ("1048576 kB", "1 GiB")],
)
def test_every_unit_of_dmidecode_is_a_power_of_two(size, value):
    assert installed(array(1), slot("0x0011", size)).value == Quantity.parse(value)


@pytest.mark.parametrize("size", ["Unknown", "", None, "64", "64 PB", "-1 GB", "9" * 5000 + " GB", "64 GB\x00"])
def test_one_size_that_is_not_known_makes_the_sum_unknown(size):
    reading = installed(array(2), slot("0x0011", "64 GB"), slot("0x0012", size, "B1"))
    assert isinstance(reading, Unknown)
    assert "B1" in reading.reason


def test_fewer_slots_than_announced_is_a_cut_output():
    reading = installed(array(4), slot("0x0011", "64 GB"), array(2, "0x0020"), slot("0x0012", "64 GB"))
    assert isinstance(reading, Unknown)
    assert "announces 6 DIMM slots and lists 2" in reading.reason


def test_without_a_memory_array_the_sum_is_unknown():
    assert "type 16" in installed(slot("0x0011", "64 GB")).reason


def test_a_number_of_devices_that_is_no_number_makes_the_sum_unknown():
    assert isinstance(installed(array("many"), slot("0x0011", "64 GB")), Unknown)


def test_the_same_output_twice_is_not_twice_the_memory():
    assert isinstance(parse(HEALTHY + HEALTHY).installed, Unknown)


def test_devices_of_a_flash_array_do_not_count():
    parts = (
        array(1),
        slot("0x0011", "64 GB"),
        array(1, "0x0020", "Flash Memory"),
        slot("0x0021", "16 MB", array="0x0020"),
    )
    assert installed(*parts).value == Quantity(64, "GiB")


def test_every_prefix_says_the_same_or_nothing():
    whole = parse(HEALTHY).installed.value
    sizes = [d.size.value for d in parse(HEALTHY).dimms]
    for end in range(len(HEALTHY)):
        found = parse(HEALTHY[:end])
        if isinstance(found, Unknown):
            assert found.reason
            continue
        assert isinstance(found.installed, Unknown) or found.installed.value == whole
        for dimm, size in zip(found.dimms, sizes, strict=False):
            assert isinstance(dimm.size, Unknown) or dimm.size.value == size


def test_an_excerpt_that_lists_one_of_four_slots():
    found = parse((CAPTURES / "dmidecode" / "02-type17-ddr5-downclocked-4200of5600.txt").read_bytes())
    assert found.dimms[0].size.value == Quantity(32, "GiB")
    assert (found.dimms[0].speed.value, found.dimms[0].configured_speed.value) == (5600, 4200)
    assert "announces 4 DIMM slots and lists 1" in found.installed.reason


def test_an_excerpt_without_its_array():
    found = parse((CAPTURES / "dmidecode" / "04-type17-server-downclocked-2133of2400.txt").read_bytes())
    assert (found.dimms[0].locator, found.dimms[0].configured_speed.value) == ("P2-DIMME2", 2133)
    assert isinstance(found.installed, Unknown)


def test_an_output_about_the_system_only_is_unknown_as_a_whole():
    data = (CAPTURES / "dmidecode" / "01-xe9680-system.txt").read_bytes()
    assert "cut" in parse(data).reason
    assert "no memory array" in parse(data + b"\n").reason


def test_the_whole_tables_of_a_real_workstation():
    data = (CAPTURES / "sys-info" / "02-rtx4090x2-sys_info-dmidecode.txt").read_bytes()
    start = data.index(b"# dmidecode")
    found = parse(data[start : data.index(b"# dmidecode", start + 1)])
    assert found.installed.value == Quantity(192, "GiB")
    assert len(found.dimms) == 8


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "nothing"),
        (b"# dmidecode 3.3\nScanning /dev/mem for entry point.\n/dev/mem: Permission denied\n", "Permission denied"),
        (b"# No SMBIOS nor DMI entry point found, sorry.\n", "No SMBIOS"),
        (b"\xff\x00\n", "no memory array"),
    ],
)
def test_what_is_no_answer_is_unknown_with_its_words(data, words):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert words in found.reason
    assert not found.missing


@given(st.binary(max_size=300), st.integers(0, len(HEALTHY)))
def test_garbage_never_raises(noise, at):
    for data in (noise + b"\n", HEALTHY[:at] + noise + HEALTHY[at:]):
        found = parse(data)
        assert isinstance(found, Unknown) or (
            isinstance(found, Memory) and isinstance(found.installed, (Known, Unknown))
        )


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    size = b"\tSize: " + b"1" * 3_000_000 + b" GB\n"
    found = parse(array(1).encode() + b"Handle 0x0011, DMI type 17, 92 bytes\n" + size + b" " * 3_000_000 + b"\n")
    assert isinstance(found.installed, Unknown)
    assert time.process_time() - started < 5
