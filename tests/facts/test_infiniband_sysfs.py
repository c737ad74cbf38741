import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts import ibstat
from nodeready.facts.infiniband_sysfs import INFINIBAND_SYSFS, parse
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

READINGS = ("state", "physical_state", "rate", "link_layer", "firmware", "adapter_type", "base_lid")
WHOLE = b"""mlx5_0/hca_type:MT4129
mlx5_1/hca_type:MT4125
mlx5_0/fw_ver:28.41.1000
mlx5_1/fw_ver:22.38.1002
mlx5_0/ports/1/state:4: ACTIVE
mlx5_1/ports/1/state:1: DOWN
mlx5_0/ports/1/phys_state:5: LinkUp
mlx5_1/ports/1/phys_state:2: Polling
mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)
mlx5_1/ports/1/rate:40 Gb/sec (4X QDR)
mlx5_0/ports/1/link_layer:InfiniBand
mlx5_1/ports/1/link_layer:Ethernet
"""


def run_script(root):
    """The probe's own script over a made tree."""
    shell, option, script = INFINIBAND_SYSFS.argv
    assert "/sys/class/infiniband" in script
    return subprocess.run(
        [shell, option, script.replace("/sys/", f"{root}/sys/")], capture_output=True, check=False, timeout=20
    )


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_probe_stands_in_for_ibstat():
    assert (INFINIBAND_SYSFS.name, INFINIBAND_SYSFS.family) == ("sys/class/infiniband", "network")
    assert INFINIBAND_SYSFS.instead_of == ibstat.IBSTAT.name
    assert not INFINIBAND_SYSFS.is_file


def test_ports_are_those_of_ibstat():
    up, down = parse(WHOLE)
    assert (up.adapter, up.port, up.state.value, up.physical_state.value) == ("mlx5_0", 1, "Active", "LinkUp")
    assert (up.rate.value, up.link_layer.value) == (Quantity(400, "Gb/s"), "InfiniBand")
    assert (up.firmware.value, up.adapter_type.value) == ("28.41.1000", "MT4129")
    assert (down.state.value, down.physical_state.value) == ("Down", "Polling")
    assert "mlx5_1 port 1 is Down" in down.rate.reason


@pytest.mark.parametrize("prefix", [b"", b"/sys/class/infiniband/", b"./", b"sys/class/infiniband/"])
@pytest.mark.parametrize("blank", [b"", b" "])
def test_paths_and_blanks_do_not_matter(prefix, blank):
    lines = [prefix + line.replace(b":", b":" + blank, 1) for line in WHOLE.splitlines()]
    found = parse(b"\n".join(lines) + b"\n")
    assert [(port.adapter, port.state.value) for port in found] == [("mlx5_0", "Active"), ("mlx5_1", "Down")]


def test_every_prefix_says_the_same_or_nothing(captures):
    capture = (captures / "infiniband-misc" / "04-sysfs-class-infiniband-h100-flattened.txt").read_bytes()
    for text, step in ((WHOLE, 1), (capture, 37)):
        whole = {port.adapter: port for port in parse(text)}
        known = 0
        for end in range(0, len(text), step):
            found = parse(text[:end])
            for port in found if isinstance(found, tuple) else ():
                for name in READINGS:
                    reading = getattr(port, name)
                    if isinstance(reading, Known):
                        known += 1
                        assert reading.value == getattr(whole[port.adapter], name).value
        assert known


def test_an_adapter_without_its_ports_is_not_lost():
    start = WHOLE.index(b"mlx5_1/ports/1/state")
    first, second = parse(WHOLE[:start])
    assert first.state.value == "Active"
    assert isinstance(second.state, Unknown)
    assert "only names" in parse(WHOLE[: WHOLE.index(b"mlx5_0/ports")]).reason


def test_a_file_that_refused_leaves_its_reading_unknown():
    port, _ = parse(WHOLE.replace(b"400 Gb/sec (4X NDR)", b""))
    assert port.rate.reason == "rate of mlx5_0 port 1 is empty"
    assert port.state.value == "Active"


def test_a_real_node(captures):
    found = parse((captures / "infiniband-misc" / "04-sysfs-class-infiniband-h100-flattened.txt").read_bytes())
    assert len(found) == 9
    assert {(port.state.value, port.physical_state.value) for port in found} == {("Active", "LinkUp")}
    fabric = [port for port in found if port.link_layer.value == "InfiniBand"]
    assert [port.rate.value for port in fabric] == [Quantity(400, "Gb/s")] * 8
    (bond,) = [port for port in found if port not in fabric]
    assert (bond.adapter, bond.rate.value, bond.adapter_type.value) == ("mlx5_bond_0", Quantity(200, "Gb/s"), "MT41692")


def test_a_map_of_the_fabric_is_no_tree(captures):
    found = parse((captures / "infiniband-misc" / "01-ibnetdiscover-superbench.txt").read_bytes())
    assert isinstance(found, Unknown)


def test_the_script_reads_a_tree_and_no_counters(tmp_path):
    files = {}
    for adapter in ("mlx5_0", "mlx5_1"):
        base = f"sys/devices/{adapter}"
        files[f"{base}/hca_type"] = "MT4129\n"
        files[f"{base}/fw_ver"] = "28.41.1000\n"
        files[f"{base}/ports/1/state"] = "4: ACTIVE\n"
        files[f"{base}/ports/1/phys_state"] = "5: LinkUp\n"
        files[f"{base}/ports/1/rate"] = "400 Gb/sec (4X NDR)\n"
        files[f"{base}/ports/1/link_layer"] = "InfiniBand\n"
        files[f"{base}/ports/1/counters/link_downed"] = "255\n"
    files["sys/devices/mlx5_1/ports/1/rate"] = ""
    write(tmp_path, files)
    (tmp_path / "sys/class/infiniband").mkdir(parents=True)
    for adapter in ("mlx5_0", "mlx5_1"):
        (tmp_path / "sys/class/infiniband" / adapter).symlink_to(f"../../devices/{adapter}")
    done = run_script(tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"counters" not in done.stdout
    first, second = parse(done.stdout)
    assert (first.rate.value, first.firmware.value) == (Quantity(400, "Gb/s"), "28.41.1000")
    assert (second.state.value, second.rate.reason) == ("Active", "rate of mlx5_1 port 1 is empty")


def test_the_script_without_adapters(tmp_path):
    absent = run_script(tmp_path)
    assert absent.returncode != 0
    assert absent.stderr
    (tmp_path / "sys/class/infiniband").mkdir(parents=True)
    empty = run_script(tmp_path)
    assert (empty.returncode, empty.stdout) == (0, b"")
    assert parse(empty.stdout).reason == "/sys/class/infiniband lists no adapter"


def test_other_files_do_not_count():
    others = b"mlx5_0/ports/1/gid_attrs/1/state:1: DOWN\nmlx5_0/device/infiniband_verbs/1/rate:40\nmlx5_7/ports/x/state:4: ACTIVE\n"
    found = parse(WHOLE + others)
    assert [(port.adapter, port.state.value) for port in found] == [("mlx5_0", "Active"), ("mlx5_1", "Down")]


@given(st.binary(max_size=200), st.integers(0, len(WHOLE)))
def test_garbage_never_raises(noise, at):
    for data in (noise + b"\n", WHOLE[:at] + noise + WHOLE[at:], b"a/ports/1/" + noise + b"\n"):
        assert isinstance(parse(data), (tuple, Unknown))
