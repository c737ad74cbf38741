"""What the fuzzer found (benchmarks/fuzz.py): each stays mended."""

import re
import time

import pytest

from nodeready.facts import (
    bmc_events,
    container_files,
    df,
    dmidecode,
    lspci,
    matmul,
    meminfo,
    nvlink,
    small_files,
    topology,
)
from nodeready.facts.text import word
from nodeready.reading import Unknown

LISTING = b"""3b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1
"""
BRIDGE = b"""3a:00.0 PCI bridge: Broadcom / LSI Device c030 (rev b0)
\tBus: primary=39, secondary=3b, subordinate=3b, sec-latency=0

"""


def seconds(parse, data):
    begin = time.process_time()
    parse(data)
    return time.process_time() - begin


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"\n\t", b" ", b"\t", "\u2028".encode(), b"\n "])
def test_blanks_inside_a_device_of_lspci_take_linear_time(blank):
    """65536 line ends after a device took 14 seconds, and four times as many four minutes."""
    assert seconds(lspci.parse, LISTING + blank * 65_536 + b"\n") < 2


def test_the_bus_below_a_bridge_is_still_found():
    assert lspci.parse(BRIDGE).devices["0000:3a:00.0"].below == 0x3B


def test_a_file_of_many_lines_takes_linear_time():
    """Each line of a file copied all lines before it."""
    data = b"/proc/mdstat:x\n" * 19_000 + b"end:\n"
    assert seconds(small_files.parse, data) < 0.5
    found = small_files.parse(data)
    assert found.whole
    assert len(found.values["/proc/mdstat"]) == 19_000


def test_a_run_of_blanks_in_a_row_of_df_takes_linear_time():
    """60000 blanks took 14 seconds."""
    row = b"/dev/sda1" + b"\t" * 60_000 + b"1000 400 600 40% /\n"
    table = b"Filesystem 1-blocks Used Available Capacity Mounted on\n" + row
    data = table + b"inodes:\n" + table + b"end:\n"
    assert seconds(df.parse, data) < 2
    assert [space.mount for space in df.parse(data)] == ["/"]
    assert seconds(df.parse, data.replace(b"1000", b"x")) < 2


NUMBERS = {
    "meminfo": (meminfo.parse, "MemTotal:       {} kB\n"),
    "lspci": (
        lspci.parse,
        "3b:00.0 3D controller: NVIDIA Corporation Device 2330\n\tLnkSta:\tSpeed {}GT/s, Width x16\n\n",
    ),
    "topology": (topology.parse, "\tGPU0\tNUMA Affinity\nGPU0\t X \t{}\n"),
    "dmidecode": (dmidecode.parse, "Handle 0x1, DMI type 17, 92 bytes\nMemory Device\n\tSize: {} GB\n\n"),
    "nvlink": (nvlink.parse, "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: {} GB/s\n"),
    "matmul": (
        matmul.parse,
        '{{"probe": "matmul", "schema": 1, "results": [{{"bus_id": "0000:3b:00.0", "tflops": {}}}]}}',
    ),
}


@pytest.mark.parametrize("tool", NUMBERS)
@pytest.mark.parametrize(
    "digits", ["9" * 100_000, "\u0665\u0665", "\xb2", "\uff15"], ids=["100000", "arabic", "2", "wide"]
)
def test_numbers_that_python_refuses_or_reads_otherwise_are_no_values(tool, digits):
    """int() raises for many digits and takes digits of every script."""
    parse, document = NUMBERS[tool]
    known = re.findall(r"Known\(value=(?:Quantity\(value=)?([0-9.]+)", repr(parse(document.format(digits).encode())))
    assert not {number for number in known if float(number[:50]) in (2, 5, 55) or number.startswith("999")}


@pytest.mark.parametrize("text", ["A" * 1_000_000, "Unknown Error " * 70_000])
def test_a_word_of_a_megabyte_is_no_value_and_its_reason_is_short(text):
    """It stood in results.json as a value and in a message, whole."""
    reading = word(text, "Default Runtime")
    assert isinstance(reading, Unknown)
    assert len(reading.reason) < 300


@pytest.mark.parametrize("blank", [b" ", b" a", b"\t"])
def test_a_run_of_blanks_in_an_event_of_the_bmc_takes_linear_time(blank):
    """32768 blanks took minutes: three repetitions shared them."""
    row = b" 2a | 11/30/2026 | 04:11:09 | Power Supply PS3 Status | Power Su" + blank * 32_768 + b" | Asserted\n"
    assert seconds(bmc_events.parse, row) < 2
    assert seconds(bmc_events.parse, row.replace(b" | Asserted", b"")) < 2
    (event,) = bmc_events.parse(b" 2a | 11/30/2026 |  | Fan 1 |    Failure detected   | Deasserted | x\n").entries
    assert (event.number, event.at, event.sensor, event.said, event.asserted) == (
        "2a",
        None,
        "Fan 1",
        "Failure detected",
        False,
    )


@pytest.mark.parametrize("link", ["195:*", "195:", "195:" + "9" * 5_000, "195:\xb2"])
def test_a_link_that_names_no_device_file_leaves_the_list_unknown(link):
    """The check of container.daemon-reload raised on it."""
    found = container_files.parse(f"link:195:0\nlink:{link}\ndevice:nvidia0\nend:\n".encode())
    assert isinstance(found, Unknown)
    assert len(found.reason) < 200
