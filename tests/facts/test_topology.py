import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeready.facts.topology import TOPO, Topology, parse
from nodeready.reading import Known, Unknown

TABBED = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPIX\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\t56-111,168-223\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\n"
    "NIC Legend:\n"
    "\n"
    "  NIC0: mlx5_0\n"
)
SPACED = """$ nvidia-smi topo -m
        GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity
GPU0     X      NV12    PXB     0-31,64-95      0
GPU1    NV12     X      SYS     32-63,96-127    1
mlx5_0  PXB     SYS      X

Legend:

  PIX  = Connection traversing at most a single PCIe bridge
"""


def known(topology):
    """Everything that a matrix says, as plain values."""
    said = {("link", *pair): value for pair, value in topology.links.items()}
    said |= {("cpu", gpu): r.value for gpu, r in topology.cpu_affinity.items() if isinstance(r, Known)}
    said |= {("numa", gpu): r.value for gpu, r in topology.numa_node.items() if isinstance(r, Known)}
    return said | {("nic", nic): name for nic, name in topology.nics.items()}


def all_pairs(topology):
    return {topology.link(a, b).value for a, b in itertools.combinations(topology.gpus, 2)}


def test_probe():
    assert (TOPO.name, TOPO.family) == ("nvidia-smi_topo_-m", "nvidia")


def test_a_matrix_between_tabs():
    found = parse(TABBED.encode())
    assert (found.devices, found.gpus) == (("GPU0", "GPU1", "NIC0"), ("GPU0", "GPU1"))
    assert len(found.links) == 9
    assert found.link("GPU0", "GPU1").value == "NV18"
    assert found.link("GPU0", "GPU0").value == "X"
    assert found.link("NIC0", "GPU1").value == "SYS"
    assert {gpu: reading.value for gpu, reading in found.numa_node.items()} == {"GPU0": 0, "GPU1": 1}
    assert found.cpu_affinity["GPU1"].value == "56-111,168-223"
    assert found.nics == {"NIC0": "mlx5_0"}


def test_a_matrix_between_blanks():
    found = parse(SPACED.encode())
    assert found.devices == ("GPU0", "GPU1", "mlx5_0")
    assert found.link("GPU1", "mlx5_0").value == "SYS"
    assert [found.numa_node[gpu].value for gpu in found.gpus] == [0, 1]


def test_a_cut_row_is_left_out_and_read_from_the_other_side():
    cut = TABBED.replace("GPU0\t X \tNV18\tPIX\t0-55,112-167\t0\t\tN/A\n", "GPU0\t X \tNV\n")
    found = parse(cut.encode())
    assert found.link("GPU0", "GPU1").value == "NV18"
    assert isinstance(found.link("GPU0", "GPU0"), Unknown)
    assert "GPU0" not in found.numa_node
    none = parse(TABBED[: TABBED.index("GPU1\tNV18")].encode())
    assert none.link("GPU0", "GPU1").value == "NV18"
    assert "no whole row" in none.link("GPU1", "NIC0").reason


def test_rows_that_differ_are_unknown():
    found = parse(TABBED.replace("GPU1\tNV18", "GPU1\tNV17").encode())
    assert "by NV17 and by NV18" in found.link("GPU0", "GPU1").reason


@pytest.mark.parametrize("word", ["???", "NV", "nv18", "18", "ERR!", "NV18x"])
def test_a_word_that_is_no_connection_leaves_its_row_out(word):
    found = parse(TABBED.replace("GPU0\t X \tNV18", f"GPU0\t X \t{word}").encode())
    assert ("GPU0", "GPU1") not in found.links
    assert ("GPU1", "GPU0") in found.links


def test_an_empty_cell_does_not_shift_the_others():
    found = parse(TABBED.replace("GPU0\t X \tNV18\tPIX", "GPU0\t X \t\tPIX").encode())
    assert ("GPU0", "NIC0") not in found.links


def test_what_is_not_available_is_unknown_alone():
    found = parse(TABBED.replace("GPU0\t X \tNV18", "GPU0\t X \tN/A").replace("GPU1\tNV18", "GPU1\tN/A").encode())
    assert isinstance(found.link("GPU0", "GPU1"), Unknown)
    assert found.link("GPU0", "NIC0").value == "PIX"


@pytest.mark.parametrize(("cell", "known"), [("0", True), ("0-1", False), ("N/A", False), ("", False)])
def test_a_numa_node_is_one_number(cell, known):
    found = parse(TABBED.replace("0-55,112-167\t0\t", f"0-55,112-167\t{cell}\t").encode())
    assert isinstance(found.numa_node["GPU0"], Known) is known
    assert found.numa_node["GPU1"].value == 1


def test_an_empty_affinity_between_blanks_can_not_be_told():
    found = parse(SPACED.replace("0-31,64-95      0", "0").encode())
    assert isinstance(found.numa_node["GPU0"], Unknown)
    assert isinstance(found.cpu_affinity["GPU0"], Unknown)
    assert found.link("GPU0", "GPU1").value == "NV12"


@pytest.mark.parametrize("text", [TABBED, SPACED])
def test_every_prefix_says_the_same_or_nothing(text):
    data = text.encode()
    whole = known(parse(data))
    most = 0
    for end in range(len(data)):
        found = parse(data[:end])
        if isinstance(found, Topology):
            said = known(found)
            assert said.items() <= whole.items()
            most = max(most, len(said))
    assert most >= len(whole) - 1


@pytest.mark.parametrize(
    ("name", "gpus", "links", "between"),
    [
        ("01-h100-590-cap.txt", 1, 1, set()),
        ("02-h100-mig-590-cap.txt", 1, 1, set()),
        ("04-h200-mig-590-cap.txt", 1, 1, set()),
        ("05-b200x8-gke-2.txt", 8, 256, {"NV18"}),
        ("07-stas00-network_README-2.txt", 8, 64, {"NV18"}),
        ("08-stas00-training_performance_README-2.txt", 8, 64, {"NV18"}),
        ("09-gh200-nics.txt", 1, 9, set()),
        ("11-h100-class-x8-18nics-tabs.txt", 8, 208, {"NV18"}),
    ],
)
def test_real_nodes(captures, name, gpus, links, between):
    data = (captures / "topo-m" / name).read_bytes()
    found = parse(data)
    assert found.gpus == tuple(f"GPU{number}" for number in range(gpus))
    assert len(found.links) == links
    assert all_pairs(found) == between
    assert {found.link(gpu, gpu).value for gpu in found.gpus} == {"X"}
    assert [found.numa_node[gpu].value for gpu in found.gpus] == ([0] * 4 + [1] * 4 if gpus == 8 else [0])
    whole = known(found)
    for end in range(0, len(data), 7):
        part = parse(data[:end])
        if isinstance(part, Topology):
            assert known(part).items() <= whole.items()


def test_nics_of_real_nodes(captures):
    found = parse((captures / "topo-m" / "05-b200x8-gke-2.txt").read_bytes())
    assert found.nics == {f"NIC{number}": f"mlx5_{number}" for number in range(8)}
    assert [found.link("GPU0", f"NIC{number}").value for number in range(8)] == ["PIX"] * 2 + ["NODE"] * 2 + ["SYS"] * 4
    tabs = parse((captures / "topo-m" / "11-h100-class-x8-18nics-tabs.txt").read_bytes())
    near = [nic for nic in tabs.devices if tabs.link("GPU7", nic).value == "PXB"]
    assert near == ["NIC16", "NIC17"]
    assert isinstance(tabs.link("NIC0", "NIC1"), Unknown)
    grace = parse((captures / "topo-m" / "09-gh200-nics.txt").read_bytes())
    assert (grace.link("NIC0", "NIC1").value, grace.link("GPU0", "NIC0").value) == ("PIX", "SYS")


def test_every_capture_of_the_folder_is_tested(captures):
    assert len(list((captures / "topo-m").iterdir())) == 8


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"Failed to initialize NVML: Driver/library version mismatch\n",
        b"\tGPU0\tGPU1\tCPU Aff",
        b"\tGPU0\tGPU1\n",
        TABBED.encode() * 2,
        (TABBED.partition("\n")[0] + "\n" + TABBED).encode(),
        TABBED.replace("GPU1\tNIC0\tCPU", "GPU0\tNIC0\tCPU").encode(),
        TABBED.replace("NIC0\tPIX", "GPU1\tPIX").encode(),
        b"\xff\x00\n",
    ],
)
def test_what_is_no_matrix_is_unknown(data):
    found = parse(data)
    assert isinstance(found, Unknown)
    assert found.reason
    assert not found.missing


def test_two_headings_are_two_matrices():
    assert "2 headings" in parse(TABBED.encode() * 2).reason


@given(st.binary(max_size=200), st.integers(0, len(TABBED)))
def test_garbage_never_raises(noise, at):
    text = TABBED.encode()
    for data in (noise + b"\n", text[:at] + noise + text[at:]):
        assert isinstance(parse(data), (Topology, Unknown))


def test_lines_of_megabytes_take_linear_time():
    started = time.process_time()
    text = TABBED.encode() + b"GPU0x " * 500_000 + b"\n" + b"\x1b[" * 1_000_000 + b"\n" + b" " * 3_000_000 + b"\n"
    assert len(parse(text).links) == 9
    assert time.process_time() - started < 5
