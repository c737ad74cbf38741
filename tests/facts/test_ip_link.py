import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.ip_link import IP_LINK, NET_SPEED, parse, parse_speeds
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

TABLE = {
    "ifindex": 7,
    "ifname": "ibp12s0",
    "mtu": 2044,
    "operstate": "UP",
    "link_type": "infiniband",
    "address": "02:6a",
}
SPEEDS = b"eth0/speed:100000\nib0/speed:400000\neth1/speed:-1\neth2/speed:2500\nlo/speed:\n"


def of(**changes):
    return parse(json.dumps([{**TABLE, **changes}]).encode())


def test_probes():
    assert (IP_LINK.name, IP_LINK.family) == ("ip_-j_link", "network")
    assert (NET_SPEED.name, NET_SPEED.family) == ("sys/class/net-speed", "network")


def test_an_interface():
    (found,) = of()
    assert (found.name, found.operstate.value, found.link_type.value) == ("ibp12s0", "UP", "infiniband")
    assert (found.mtu.value, found.address.value) == (2044, "02:6a")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("operstate", "UNKNOWN"),
        ("operstate", None),
        ("operstate", 1),
        ("link_type", ""),
        ("mtu", "1500"),
        ("mtu", True),
        ("mtu", 0),
        ("mtu", 1.5),
        ("address", []),
    ],
)
def test_a_value_that_is_none_is_unknown(key, value):
    (found,) = of(**{key: value})
    assert getattr(found, key).reason
    assert found.name == "ibp12s0"


def test_empty_tables_are_no_interfaces():
    found = parse(json.dumps([{}, TABLE, {}]).encode())
    assert [interface.name for interface in found] == ["ibp12s0"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"[]",
        b"[{}]",
        b"{}",
        b"[[]]",
        b'["eth0"]',
        b'[{"mtu":1500}]',
        b'[{"ifname":"eth0"},{"ifname":5}]',
        b"1: lo: <LOOPBACK,UP> mtu 65536\n",
        b"[" * 100_000,
        b"\xff",
        b"9" * 5000,
    ],
)
def test_what_is_no_list_of_interfaces_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


def test_a_real_node(captures):
    data = (captures / "infiniband-misc" / "02-ip-j-link-all-up.txt").read_bytes()
    found = parse(data)
    assert [interface.name for interface in found] == [f"ibp{n}s0" for n in (12, 18, 75, 84, 141, 148, 186, 204)]
    assert {interface.operstate.value for interface in found} == {"UP"}
    assert {(interface.link_type.value, interface.mtu.value) for interface in found} == {("infiniband", 2044)}
    for end in range(len(data.rstrip())):
        assert isinstance(parse(data[:end]), Unknown)


def test_speeds_by_name():
    found = parse_speeds(SPEEDS)
    assert list(found) == ["eth0", "ib0", "eth1", "eth2", "lo"]
    assert [found[name].value for name in ("eth0", "ib0", "eth2")] == [
        Quantity(100, "Gb/s"),
        Quantity(400, "Gb/s"),
        Quantity(2.5, "Gb/s"),
    ]
    assert isinstance(found["eth1"], Unknown)
    assert isinstance(found["lo"], Unknown)


@pytest.mark.parametrize("value", ["-1", "", "0", "4294967295", "fast", "1e5", "99999999999999999999"])
def test_a_speed_that_is_none_is_unknown(value):
    assert isinstance(parse_speeds(f"eth0/speed:{value}\n".encode())["eth0"], Unknown)


@pytest.mark.parametrize(
    "line", ["/sys/class/net/eth0/speed:100000", "eth0/speed: 100000", "sys/class/net/eth0/speed:100000"]
)
def test_paths_and_blanks_do_not_matter(line):
    assert parse_speeds(f"{line}\n".encode())["eth0"].value == Quantity(100, "Gb/s")


def test_two_different_speeds_are_unknown():
    assert isinstance(parse_speeds(SPEEDS + b"eth0/speed:25000\n")["eth0"], Unknown)


def test_every_prefix_of_the_speeds_says_the_same_or_nothing():
    whole = parse_speeds(SPEEDS)
    for end in range(len(SPEEDS)):
        found = parse_speeds(SPEEDS[:end])
        for name, reading in ({} if isinstance(found, Unknown) else found).items():
            if isinstance(reading, Known):
                assert reading.value == whole[name].value
            else:
                assert isinstance(whole[name], Unknown)
    assert isinstance(parse_speeds(SPEEDS[:10]), Unknown)


@pytest.mark.parametrize("data", [b"", b"\n", b"eth0\n", b"speed:5\n", b"/speed:5\n", b"eth0/mtu:1500\n"])
def test_what_names_no_speed_is_unknown(data):
    assert isinstance(parse_speeds(data), Unknown)


def run_script(root):
    shell, option, script = NET_SPEED.argv
    assert "/sys/class/net " in script
    return subprocess.run(
        [shell, option, script.replace("/sys/", f"{root}/sys/")], capture_output=True, check=False, timeout=20
    )


def test_the_script_gives_every_interface_a_line(tmp_path):
    for name, text in {"eth0": "100000\n", "eth1": "-1\n", "lo": ""}.items():
        folder = tmp_path / "sys/class/net" / name
        folder.mkdir(parents=True)
        (folder / "speed").write_text(text)
    (tmp_path / "sys/class/net/bonding_masters").write_text("\n")
    done = run_script(tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"eth0/speed:100000\neth1/speed:-1\nlo/speed:\n"


def test_the_script_without_the_folder(tmp_path):
    done = run_script(tmp_path)
    assert done.returncode != 0
    assert done.stderr


@given(st.binary(max_size=200), st.integers(0, len(SPEEDS)))
def test_garbage_never_raises(noise, at):
    assert isinstance(parse(noise), (tuple, Unknown))
    assert isinstance(parse_speeds(SPEEDS[:at] + noise + SPEEDS[at:]), (dict, Unknown))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["ifname", "mtu", "address"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_strange_documents_never_raise(document):
    assert isinstance(parse(json.dumps(document).encode()), (tuple, Unknown))
