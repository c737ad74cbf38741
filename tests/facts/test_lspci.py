import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.lspci import LSPCI_NN, LSPCI_NNVVV, LSPCI_VVV, Listing, parse
from nodeready.reading import Known, Unknown

CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", Path(__file__).parents[3] / "shared" / "captures"))
READINGS = (
    "vendor_device",
    "link_generation",
    "link_generation_max",
    "link_width",
    "link_width_max",
    "numa_node",
)
LINKS = READINGS[1:5]
BRIDGE = """0c:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])
	Physical Slot: 21
	NUMA node: 1
	Capabilities: [68] Express (v2) Downstream Port (Slot-), MSI 00
		LnkCap:	Port #200, Speed 32GT/s, Width x16, ASPM L0s L1, Exit Latency L0s <4us, L1 <32us
		LnkSta:	Speed 16GT/s (downgraded), Width x16 (ok)
		LnkSta2: Current De-emphasis Level: -6dB, EqualizationComplete+

"""
GPU = """3b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
	Subsystem: NVIDIA Corporation Device 16c1
	NUMA node: 0
	Region 0: Memory at 200042000000 (64-bit, prefetchable) [size=16M]
	Capabilities: [60] Express (v2) Endpoint, MSI 00
		DevCap:	MaxPayload 256 bytes, PhantFunc 0, Latency L0s <64ns, L1 <1us
			ExtTag+ AttnBtn- AttnInd- PwrInd- RBE+ FLReset+ SlotPowerLimit 25.000W
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
		LnkCtl:	ASPM Disabled; RCB 64 bytes, Disabled- CommClk-
		LnkSta:	Speed 32GT/s (ok), Width x16 (ok)
			TrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-
		LnkCap2: Supported Link Speeds: 2.5-32GT/s, Crosslink- Retimer+ 2Retimers+ DRS-
		LnkCtl2: Target Link Speed: 32GT/s, EnterCompliance- SpeedDis-
		LnkSta2: Current De-emphasis Level: -6dB, EqualizationComplete+ EqualizationPhase1+
	Kernel driver in use: nvidia

"""
VERBOSE = (BRIDGE + GPU).encode()
NUMERIC = b"""3b:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev a1)
4c:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
83:00.0 Bridge [0680]: NVIDIA Corporation GH100 [H100 NVSwitch] [10de:22a3] (rev a1)
1f:00.2 SATA controller [0106]: Intel Corporation SATA Controller [AHCI mode] [8086:2922] (rev 02) (prog-if 01)
"""


def gpu(text):
    return parse(text.encode() if isinstance(text, str) else text).devices["0000:3b:00.0"]


def test_probes_say_what_a_plain_user_loses():
    assert [p.name for p in (LSPCI_VVV, LSPCI_NN, LSPCI_NNVVV)] == ["lspci_-vvv", "lspci_-nn", "lspci_-nnvvv"]
    assert {p.family for p in (LSPCI_VVV, LSPCI_NN, LSPCI_NNVVV)} == {"pci"}
    assert LSPCI_VVV.root_for
    assert LSPCI_NNVVV.root_for
    assert not LSPCI_NN.root_for


def test_a_gpu_of_a_verbose_listing():
    found = gpu(VERBOSE)
    assert (found.class_name, found.class_code, found.vendor, found.revision) == (
        "3D controller",
        None,
        "NVIDIA Corporation",
        "a1",
    )
    assert found.vendor_device.value == "10de:2330"
    assert [getattr(found, name).value for name in LINKS] == [5, 5, 16, 16]
    assert found.numa_node.value == 0
    assert found.readable
    assert found.whole
    assert found.is_gpu
    assert not found.is_nvswitch


def test_a_word_about_one_device_says_nothing_of_another():
    listing = parse(VERBOSE)
    bridge = listing.devices["0000:0c:00.0"]
    assert [getattr(bridge, name).value for name in LINKS] == [4, 5, 16, 16]
    assert bridge.physical_slot == "21"
    assert not bridge.is_gpu
    assert not bridge.is_nvswitch
    assert isinstance(bridge.vendor_device, Unknown)
    assert not listing.cut


@pytest.mark.parametrize(
    ("speed", "generation"),
    [("2.5GT/s", 1), ("5GT/s", 2), ("8GT/s", 3), ("16GT/s", 4), ("32GT/s", 5), ("64GT/s", 6)],
)
def test_each_speed_is_a_generation(speed, generation):
    assert gpu(GPU.replace("Speed 32GT/s (ok)", f"Speed {speed} (downgraded)")).link_generation.value == generation


@pytest.mark.parametrize("speed", ["unknown", "<unknown>", "G_unknown", "7GT/s", "32GT/s32GT/s"])
def test_a_speed_that_lspci_does_not_know_is_unknown(speed):
    found = gpu(GPU.replace("Speed 32GT/s (ok)", f"Speed {speed}"))
    assert isinstance(found.link_generation, Unknown)
    assert found.link_width.value == 16
    assert found.link_generation_max.value == 5


@pytest.mark.parametrize("width", ["x0", "x63", "x", "unknown", "x99999"])
def test_a_width_that_no_link_has_is_unknown(width):
    found = gpu(GPU.replace("Width x16 (ok)", f"Width {width}"))
    assert isinstance(found.link_width, Unknown)
    assert found.link_generation.value == 5


def test_two_link_states_of_one_device_that_differ_are_unknown():
    line = "		LnkSta:	Speed 32GT/s (ok), Width x16 (ok)\n"
    assert isinstance(gpu(GPU.replace(line, line + line.replace("32", "2.5"))).link_generation, Unknown)
    assert gpu(GPU.replace(line, line + line)).link_generation.value == 5


def test_old_lspci_writes_the_link_state_in_one_line():
    text = GPU.replace("Speed 32GT/s (ok), Width x16 (ok)", "Speed 16GT/s, Width x8, TrErr- Train- SlotClk+")
    assert (gpu(text).link_generation.value, gpu(text).link_width.value) == (4, 8)


def test_ids_of_a_numeric_listing():
    devices = parse(NUMERIC).devices
    ids = [d.vendor_device.value for d in devices.values()]
    assert ids == ["10de:2330", "10de:2330", "10de:22a3", "8086:2922"]
    assert [d.class_code for d in devices.values()] == ["0302", "0302", "0680", "0106"]
    assert [d.class_name for d in devices.values()] == ["3D controller", "3D controller", "Bridge", "SATA controller"]
    assert [d.is_gpu for d in devices.values()] == [True, True, False, False]
    assert [d.is_nvswitch for d in devices.values()] == [False, False, True, False]
    assert all(d.link_generation.missing for d in devices.values())
    assert not parse(NUMERIC).cut


@pytest.mark.parametrize(
    ("header", "vendor_device"),
    [
        ("3D controller: NVIDIA Corporation Device 2330", "10de:2330"),
        ("Infiniband controller: Mellanox Technologies Device 1021", "15b3:1021"),
        ("3D controller: Device 10de:2330 (rev a1)", "10de:2330"),
        ("0302: 10de:2330 (rev a1)", "10de:2330"),
    ],
)
def test_an_id_without_a_name_is_printed_as_a_number(header, vendor_device):
    assert gpu(f"3b:00.0 {header}\n").vendor_device.value == vendor_device


@pytest.mark.parametrize("name", ["NVIDIA Corporation GH100 [H100 SXM5 80GB]", "Nvidia Device 2330", "Device 2330"])
def test_a_name_from_pci_ids_is_no_identity(name):
    found = gpu(f"3b:00.0 3D controller: {name} (rev a1)\n")
    assert isinstance(found.vendor_device, Unknown)
    assert found.vendor_device.missing
    assert found.is_gpu is name.startswith("NVIDIA Corporation")


@pytest.mark.parametrize(
    "header",
    [
        "3D controller: NVIDIA Corporation Device 2330 (rev ff) (prog-if ff)\n	!!! Unknown header type 7f\n",
        "3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev ff)\n",
        "VGA compatible controller: NVIDIA Corporation Device 1\n	!!! Unknown header type 7f\n",
    ],
)
def test_a_device_that_does_not_answer_is_listed_and_not_readable(header):
    found = gpu(f"3b:00.0 {header}\n")
    assert not found.readable
    assert found.is_gpu
    assert all(isinstance(getattr(found, name), Unknown) for name in LINKS)


def test_a_plain_user_sees_no_links():
    found = gpu(GPU[: GPU.index("	Capabilities")] + "	Capabilities: <access denied>\n\n")
    assert found.link_generation.reason == "lspci needs root for this"
    assert found.link_width.missing
    assert found.vendor_device.value == "10de:2330"


def test_a_device_listed_twice_has_no_readings():
    found = gpu(VERBOSE + GPU.replace("32GT/s (ok)", "2.5GT/s").encode())
    assert all(isinstance(getattr(found, name), Unknown) for name in READINGS)


@pytest.mark.parametrize("domain", ["0000:", "00000000:"])
def test_bus_ids_are_normal(domain):
    assert list(parse(f"{domain}3b:00.0 Bridge: x\n".encode()).devices) == ["0000:3b:00.0"]
    assert list(parse(b"0019:01:00.0 Bridge: x\n").devices) == ["0019:01:00.0"]


def test_every_prefix_says_the_same_or_nothing():
    whole = parse(VERBOSE)
    known = dict.fromkeys(READINGS, 0)
    for end in range(len(VERBOSE)):
        found = parse(VERBOSE[:end])
        if isinstance(found, Unknown):
            assert found.reason
            continue
        for bus_id, device in found.devices.items():
            for name in READINGS:
                reading = getattr(device, name)
                if isinstance(reading, Known):
                    known[name] += 1
                    assert reading.value == getattr(whole.devices[bus_id], name).value
                else:
                    assert reading.reason
    assert all(known.values())


def test_a_verbose_listing_is_cut_unless_it_ends_between_devices():
    ends = {len(BRIDGE), len(VERBOSE)}
    # a first line alone could be a listing of one line per device
    first = BRIDGE.index("\n") + 1
    for end in range(first + 1, len(VERBOSE)):
        listing = parse(VERBOSE[:end])
        assert listing.cut is (end not in ends)
        last = list(listing.devices.values())[-1]
        if not last.whole:
            assert all(isinstance(getattr(last, name), Unknown) for name in LINKS)


def test_the_whole_real_listing_of_an_eight_gpu_board():
    data = (CAPTURES / "lspci" / "01-hgx-h100x8-xe9680-lspci-vvv.txt").read_bytes()
    listing = parse(data)
    gpus = [d for d in listing.devices.values() if d.is_gpu and d.vendor == "NVIDIA Corporation"]
    assert [d.vendor_device.value for d in gpus] == ["10de:2330"] * 8
    assert {tuple(getattr(d, name).value for name in LINKS) for d in gpus} == {(5, 5, 16, 16)}
    assert [d.numa_node.value for d in gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    switches = [d for d in listing.devices.values() if d.is_nvswitch]
    assert [d.vendor_device.value for d in switches] == ["10de:22a3"] * 4
    assert {tuple(getattr(d, name).value for name in LINKS) for d in switches} == {(4, 4, 2, 2)}
    slower = [
        d.bus_id
        for d in listing.devices.values()
        if isinstance(d.link_generation, Known)
        and isinstance(d.link_generation_max, Known)
        and d.link_generation.value < d.link_generation_max.value
    ]
    assert slower
    assert not set(slower) & {d.bus_id for d in gpus}
    assert len(listing.devices) == data.count(b"\n\n") == 517
    assert not listing.cut
    assert all(d.readable for d in listing.devices.values())


def test_prefixes_of_the_real_listing_at_line_boundaries():
    data = (CAPTURES / "lspci" / "01-hgx-h100x8-xe9680-lspci-vvv.txt").read_bytes()
    start = data.index(b"19:00.0 3D controller")
    part = data[start - 3000 : start + 9000]
    part = part[part.index(b"\n\n") + 2 :]
    whole = parse(part).devices["0000:19:00.0"]
    assert whole.link_generation.value == 5
    boundaries = [at + 1 for at, byte in enumerate(part) if byte == 10]
    for end in boundaries:
        found = parse(part[:end])
        device = found.devices.get("0000:19:00.0") if isinstance(found, Listing) else None
        for name in READINGS if device else ():
            reading = getattr(device, name)
            assert isinstance(reading, Unknown) or reading.value == getattr(whole, name).value


def test_the_real_listing_costs_little():
    data = (CAPTURES / "lspci" / "01-hgx-h100x8-xe9680-lspci-vvv.txt").read_bytes()
    spent = []
    for _ in range(5):
        started = time.process_time()
        parse(data)
        spent.append(time.process_time() - started)
    # about 25 ms; ten times that would be felt by a quick run
    assert min(spent) < 0.25


def test_real_listings_without_their_last_newline_lose_their_last_device():
    for name, gpus, last in (
        ("02-gb200-lspci.txt", {"10de:2941"}, False),
        ("04-a10-lspci-nn.txt", {"10de:2236"}, False),
    ):
        data = (CAPTURES / "lspci" / name).read_bytes()
        cut, whole = parse(data), parse(data + b"\n")
        assert cut.cut
        assert whole.cut is last
        assert len(whole.devices) == len(cut.devices) + 1
        assert {d.vendor_device.value for d in whole.devices.values() if d.is_gpu} == gpus


def test_real_excerpts():
    grep = parse((CAPTURES / "lspci" / "05-a100-relaxed-ordering-grep.txt").read_bytes())
    assert sum(d.is_gpu for d in grep.devices.values()) == 4
    assert all(isinstance(d.link_generation, Unknown) for d in grep.devices.values())
    assert grep.cut
    lines = parse((CAPTURES / "lspci" / "06-rtx4090-gen1-idle-two-lines.txt").read_bytes())
    assert isinstance(lines, Unknown)
    assert "names a device" in lines.reason


@pytest.mark.parametrize(
    "data", [b"", b"\n \n", b"bash: lspci: command not found\n", b"\xff\x00\n", b"3b:00.0 3D contr"]
)
def test_what_lists_no_device_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@given(st.binary(max_size=300), st.integers(0, len(VERBOSE)))
def test_garbage_never_raises(noise, at):
    for data in (noise, b"3b:00.0 " + noise + b"\n", VERBOSE[:at] + noise + VERBOSE[at:]):
        assert isinstance(parse(data), (Listing, Unknown))


@pytest.mark.parametrize(
    "line",
    [
        b"\tLnkSta:" * 400_000,
        b" " * 4_000_000,
        b"3b:00.0 " * 500_000,
        b"\tNUMA node: " + b"1" * 4_000_000,
        b"\x00" * 4_000_000,
    ],
)
def test_lines_of_megabytes_take_linear_time(line):
    started = time.process_time()
    found = parse(b"3b:00.0 3D controller: NVIDIA Corporation Device 2330\n" + line + b"\n" + line)
    assert isinstance(found.devices["0000:3b:00.0"].link_generation, Unknown)
    assert time.process_time() - started < 5
