import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.ibstat import IBSTAT, parse
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

READINGS = (
    "state",
    "physical_state",
    "rate",
    "link_layer",
    "firmware",
    "adapter_type",
    "base_lid",
    "sm_lid",
)
WHOLE = """CA 'mlx5_0'
	CA type: MT4129
	Number of ports: 1
	Firmware version: 28.39.1002
	Hardware version: 0
	Node GUID: 0x946dae0300a1b2c4
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
		Base lid: 75
		LMC: 0
		SM lid: 334
		Capability mask: 0xa751e848
		Link layer: InfiniBand
CA 'mlx5_1'
	CA type: MT4125
	Number of ports: 2
	Firmware version: 22.38.1002
	Port 1:
		State: Down
		Physical state: Disabled
		Rate: 40
		Base lid: 0
		SM lid: 0
		Link layer: Ethernet
	Port 2:
		State: Active
		Physical state: LinkUp
		Rate: 100
		Base lid: 0
		SM lid: 0
		Link layer: Ethernet
"""
STATUS = """Infiniband device 'mlx5_0' port 1 status:
	default gid:	 fe80:0000:0000:0000:0015:5dff:fd34:11eb
	base lid:	 0x33bf
	sm lid:		 0x1
	state:		 4: ACTIVE
	phys state:	 5: LinkUp
	rate:		 400 Gb/sec (4X NDR)
	link_layer:	 InfiniBand

"""
GB = "Gb/s"


def ports(text):
    found = parse(text.encode())
    assert isinstance(found, tuple), found.reason
    return {(port.adapter, port.port): port for port in found}


def test_probe_belongs_to_the_network():
    assert (IBSTAT.name, IBSTAT.family) == ("ibstat", "network")


def test_every_field_of_an_active_port():
    port = ports(WHOLE)["mlx5_0", 1]
    assert [getattr(port, name).value for name in READINGS] == [
        "Active",
        "LinkUp",
        Quantity(400, GB),
        "InfiniBand",
        "28.39.1002",
        "MT4129",
        75,
        334,
    ]


def test_a_port_that_is_down_has_no_rate():
    down = ports(WHOLE)["mlx5_1", 1]
    assert (down.state.value, down.physical_state.value) == ("Down", "Disabled")
    assert down.rate.reason == "mlx5_1 port 1 is Down, so 40 is not a rate at which it runs"
    assert ports(WHOLE)["mlx5_1", 2].rate.value == Quantity(100, GB)


@pytest.mark.parametrize("state", ["Initializing", "Armed", "Active"])
def test_a_trained_port_has_its_rate_before_a_subnet_manager_brings_it_up(state):
    port = ports(WHOLE.replace("State: Active", f"State: {state}", 1))["mlx5_0", 1]
    assert (port.state.value, port.rate.value) == (state, Quantity(400, GB))


def test_the_status_form_says_the_same():
    port, whole = ports(STATUS)["mlx5_0", 1], ports(WHOLE)["mlx5_0", 1]
    for name in ("state", "physical_state", "rate", "link_layer"):
        assert getattr(port, name).value == getattr(whole, name).value
    assert (port.base_lid.value, port.sm_lid.value) == (0x33BF, 1)
    assert isinstance(port.firmware, Unknown)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.5 Gb/sec (1X SDR)", 2.5),
        ("40 Gb/sec (4X QDR)", 40),
        ("40 (FDR10)", 40),
        ("800 Gb/sec (4X XDR)", 800),
        ("0", 0),
    ],
)
def test_rates_in_every_spelling(text, value):
    assert ports(WHOLE.replace("Rate: 400", f"Rate: {text}"))["mlx5_0", 1].rate.value == Quantity(value, GB)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("State", "???"),
        ("State", "4: <unknown>"),
        ("State", ""),
        ("Physical state", "No state change"),
        ("Rate", "fast"),
        ("Rate", "400000000"),
        ("Rate", "4 0"),
        ("Link layer", "Unspecified"),
        ("Base lid", "none"),
        ("CA type", ""),
    ],
)
def test_a_word_that_is_none_is_unknown(field, text):
    lines = WHOLE.split("\n")
    at = next(number for number, line in enumerate(lines) if line.strip().startswith(f"{field}: "))
    lines[at] = f"\t\t{field}: {text}"
    port = ports("\n".join(lines))["mlx5_0", 1]
    name = {"CA type": "adapter_type"}.get(field, field.lower().replace(" ", "_"))
    assert getattr(port, name).reason
    assert port.firmware.value == "28.39.1002"


def test_a_rate_counts_only_where_the_state_is_known():
    port = ports(WHOLE.replace("\t\tState: Active\n", "", 1))["mlx5_0", 1]
    assert isinstance(port.state, Unknown)
    assert "whether it runs is unknown" in port.rate.reason


def test_two_different_answers_make_a_field_unknown():
    port = ports(WHOLE + WHOLE.replace("Rate: 400", "Rate: 200"))["mlx5_0", 1]
    assert "twice" in port.rate.reason
    assert port.state.value == "Active"


def test_an_announced_port_that_is_not_listed_is_unknown_and_not_lost():
    found = ports(WHOLE[: WHOLE.index("\tPort 2:")])
    assert list(found) == [("mlx5_0", 1), ("mlx5_1", 1), ("mlx5_1", 2)]
    assert isinstance(found["mlx5_1", 2].state, Unknown)
    only_name = ports(WHOLE[: WHOLE.index("CA 'mlx5_1'")] + "CA 'mlx5_1'\n")
    assert isinstance(only_name["mlx5_1", 1].state, Unknown)


@pytest.mark.parametrize("text", [WHOLE, STATUS, WHOLE + STATUS.replace("mlx5_0", "mlx5_9")])
def test_every_prefix_says_the_same_or_nothing(text):
    whole, data = ports(text), text.encode()
    known = 0
    for end in range(len(data)):
        found = parse(data[:end])
        if isinstance(found, Unknown):
            assert found.reason
            continue
        for port in found:
            for name in READINGS:
                reading = getattr(port, name)
                if isinstance(reading, Known):
                    known += 1
                    assert reading.value == getattr(whole[port.adapter, port.port], name).value
    assert known > len(data) / 4


def count(captures, name):
    """How many ports run at which rate, and how many are in which other state."""
    found = parse((captures / "ibstat" / name).read_bytes())
    tally = {}
    for port in found:
        active = port.state.value == "Active"
        key = str(port.rate.value) if active else f"{port.state.value}/{port.physical_state.value}"
        assert active == isinstance(port.rate, Known)
        tally[key] = tally.get(key, 0) + 1
    return found, tally


@pytest.mark.parametrize(
    ("name", "tally"),
    [
        ("01-h100-mt4129-all-active-0.txt", {"400 Gb/s": 8, "100 Gb/s": 4}),
        ("03-h100-some-down-0.txt", {"400 Gb/s": 8, "100 Gb/s": 1, "Down/Disabled": 3}),
        (
            "05-h100-some-down-polling.txt",
            {"400 Gb/s": 6, "100 Gb/s": 4, "Down/Polling": 1, "Down/Disabled": 1},
        ),
        ("06-a100-all-active.txt", {"200 Gb/s": 9}),
        ("08-a100-ibstatus-all-active.txt", {"200 Gb/s": 8, "40 Gb/s": 1}),
    ],
)
def test_real_nodes_have_the_ports_that_the_index_names(captures, name, tally):
    found, counted = count(captures, name)
    assert counted == tally
    # most of these files lack their last newline, after a line that is whole: nothing is unknown for that
    assert [port.adapter for port in found if isinstance(port.link_layer, Unknown)] == []
    assert all(isinstance(port.state, Known) for port in found)


def test_link_layers_of_real_nodes(captures):
    roce, _ = count(captures, "01-h100-mt4129-all-active-0.txt")
    assert {port.link_layer.value for port in roce[:-1]} == {"Ethernet"}
    fabric, _ = count(captures, "03-h100-some-down-0.txt")
    assert {port.link_layer.value for port in fabric[:-1] if port.adapter_type.value == "MT4129"} == {"InfiniBand"}
    assert {port.firmware.value for port in fabric if port.adapter_type.value == "MT4129"} == {"28.39.1002"}


def test_names_only_are_no_ports(captures):
    found = parse((captures / "ibstat" / "09-stas00-network_debug_README-1.txt").read_bytes())
    assert isinstance(found, Unknown)
    assert found.reason.startswith("only names of adapters, nothing of their ports: mlx5_0, ")


def test_every_capture_of_the_folder_is_tested(captures):
    assert len(list((captures / "ibstat").iterdir())) == 6


@pytest.mark.parametrize(
    "data", [b"", b"\n \n", b"mlx5_0\nmlx5_1\n", b"ibpanic: main: stat of IB device failed\n", b"\xff\n"]
)
def test_what_lists_no_port_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


@given(st.binary(max_size=200), st.integers(0, len(WHOLE)))
def test_garbage_never_raises(noise, at):
    text = WHOLE.encode()
    for data in (noise, text[:at] + noise + text[at:], b"CA '" + noise + b"'\nPort 1:\n" + noise + b"\n"):
        assert isinstance(parse(data), (tuple, Unknown))


def test_megabytes_take_linear_time():
    started = time.process_time()
    many = b"".join(b"CA 'a%d'\n\tPort 1:\n\t\tState: Active\n" % number for number in range(10_000))
    assert len(parse(many)) == 10_000
    long = WHOLE.encode() + b"State:" + b" x" * 1_000_000 + b" " * 3_000_000 + b"\n"
    assert len(parse(long)) == 3
    assert time.process_time() - started < 5
