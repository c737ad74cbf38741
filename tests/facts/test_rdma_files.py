"""The small files of RDMA adapters: the script over a made tree, a real tree, and cuts at every place."""

import subprocess

import pytest

from nodeready.facts.rdma_files import RDMA_FILES, RDMA_FILES_LATER, parse, parse_later
from nodeready.reading import Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.links import rdma_files, rdma_files_later


@pytest.fixture
def tree(tmp_path):
    """A /sys with one adapter whose port is up, and one whose port is down."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    for name, state in (("mlx5_0", "4: ACTIVE"), ("mlx5_1", "1: DOWN")):
        base = f"sys/class/infiniband/{name}"
        write(f"{base}/hca_type", "MT4129\n")
        write(f"{base}/fw_ver", "28.43.2566\n")
        write(f"{base}/board_id", "MT_0000000838\n")
        write(f"{base}/ports/1/state", f"{state}\n")
        write(f"{base}/ports/1/phys_state", "5: LinkUp\n")
        write(f"{base}/ports/1/rate", "400 Gb/sec (4X NDR)\n")
        write(f"{base}/ports/1/link_layer", "InfiniBand\n")
        write(f"{base}/ports/1/counters/link_downed", "3\n")
        write(f"{base}/ports/1/hw_counters/rnr_nak_retry_err", "7\n")
    place = tmp_path / "sys/devices/pci0000:37/0000:3b:00.0"
    place.mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/mlx5_0/device").symlink_to(place)
    write("sys/class/net/ibp59s0/mtu", "2044\n")
    write("sys/class/net/ibp59s0/carrier_down_count", "2\n")
    (tmp_path / "sys/class/net/ibp59s0/device").symlink_to(place)
    return tmp_path


def run(probe, root):
    script = probe.argv[2].replace("/sys/", f"{root}/sys/")
    out = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=20).stdout
    return out.replace(str(root).encode(), b"")


def test_the_script_reads_counters_of_ports_that_are_up_only(tree):
    found = parse(run(RDMA_FILES, tree))
    up, down = found.ports
    assert (up.name, up.active, up.rate, up.physical, up.layer) == ("mlx5_0/1", True, 400.0, "LinkUp", "InfiniBand")
    assert up.counters == {"link_downed": 3, "rnr_nak_retry_err": 7}
    assert (down.active, down.counters) == (False, {})
    adapter = found.adapters[0]
    assert (adapter.part, adapter.firmware, adapter.board) == ("MT4129", "28.43.2566", "MT_0000000838")
    assert (adapter.bus_id, adapter.mtus) == ("0000:3b:00.0", {"ibp59s0": 2044})
    assert found.carrier_losses == {"ibp59s0": 2}
    assert not found.registered
    assert found.uptime.value > 0


def test_the_second_script_reads_the_same_counters_again(tree):
    taken, counters = parse_later(run(RDMA_FILES_LATER, tree))
    assert taken.value > 0
    assert counters == {"mlx5_0/1": {"link_downed": 3, "rnr_nak_retry_err": 7}}
    assert RDMA_FILES_LATER.after == RDMA_FILES.name


def test_peer_memory_that_is_registered_is_seen(tree):
    (tree / "sys/kernel/mm/memory_peers/nv_mem").mkdir(parents=True)
    assert parse(run(RDMA_FILES, tree)).registered


def test_a_machine_without_adapters_is_known_to_have_none(tmp_path):
    (tmp_path / "sys/class/net").mkdir(parents=True)
    found = parse(run(RDMA_FILES, tmp_path))
    assert found.adapters == ()


def test_a_real_tree(captures):
    text = (captures / "infiniband-misc/04-sysfs-class-infiniband-h100-flattened.txt").read_text()
    lines = [line.replace(": ", ":", 1) for line in text.splitlines() if line.startswith("mlx5_")]
    data = "".join(f"/sys/class/infiniband/{line}\n" for line in lines) + "end:\n"
    found = parse(data.encode())
    assert len(found.adapters) == 9
    worst = max(found.ports, key=lambda port: port.counters.get("link_downed", 0))
    assert worst.counters["link_downed"] == 255
    assert {port.rate for port in found.ports} == {400.0, 200.0}
    assert all(port.active for port in found.ports)


@pytest.mark.parametrize("data", [b"", b"end\n", b"uptime:5.00\n", b"sh: 1: Syntax error\n"])
def test_other_output_is_unknown(data):
    assert isinstance(parse(data), Unknown)
    assert isinstance(parse_later(data), Unknown)


def test_a_port_without_a_state_is_unknown():
    data = b"/sys/class/infiniband/mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)\nend:\n"
    assert "state of mlx5_0 port 1" in parse(data).reason


def test_a_list_that_was_cut_is_unknown():
    node = build("sxm")
    whole, later = rdma_files(node).stdout, rdma_files_later(node).stdout
    assert not isinstance(parse(whole), Unknown)
    for end in range(0, len(whole), 7):
        assert isinstance(parse(whole[:end]), Unknown)
    for end in range(0, len(later), 7):
        assert isinstance(parse_later(later[:end]), Unknown)
