"""The PCI bus as a tree, and how GPUs and adapters lie to each other: rules that no single fault shows."""

import re
from dataclasses import replace

import pytest

from nodeready import baseline
from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.gate import terms_of
from nodeready.node import Node
from nodeready.node.places import matrix_of
from nodeready.node.terms import Terms
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.faults import faults
from nodeready.simulate.outputs.names import outputs
from nodeready.simulate.pci import LinkState

LINKS, LISTING, FILES, LATER = "sys/bus/pci/links", "lspci_-nnvvv", "pci-files", "pci-files-later"
GPUS, TOPO = "nvidia-smi_-q_-x", "nvidia-smi_topo_-m"


def evidence(node, without=(), **changed):
    found = {
        name: Recording(name, rc=output.rc, stdout=output.stdout, stderr=output.stderr)
        for name, output in outputs(node).items()
        if name not in without
    }
    for name, data in changed.items():
        found[name] = Recording(name, stdout=data)
    return found


def node_of(node, without=(), terms=None, **changed):
    terms = terms or Terms(len(node.gpus))
    return Node(Evidence("folder", "node", evidence(node, without, **changed)), terms)


def simulated(node_type="sxm", *names, count=None):
    node = build(node_type, 0, count)
    for fault in faults(node_type):
        if fault.name in names:
            fault.apply(node)
    return node


# ---- the tree ------------------------------------------------------------------------------------
@pytest.mark.parametrize("node_type", ["sxm", "sxm-4", "pcie", "nvl", "h200-nvl"])
def test_sysfs_and_lspci_tell_the_same_tree(node_type):
    node = simulated(node_type)
    by_sysfs, by_lspci = node_of(node, [LISTING]), node_of(node, [LINKS])
    assert isinstance(by_sysfs.pci_tree.listing, Unknown)
    for gpu in by_sysfs.gpus:
        path = by_sysfs.pci_tree.path(gpu.bus_id)
        assert path.value == by_lspci.pci_tree.path(gpu.bus_id).value
        assert len(path.value) == (3 if node.shape.rails else 1)
        links = by_sysfs.pci_tree.links_above(gpu.bus_id).value
        assert links == by_lspci.pci_tree.links_above(gpu.bus_id).value
        assert len(links) == (1 if node.shape.rails else 0)
        assert by_sysfs.pci_tree.slot(gpu.bus_id) == by_lspci.pci_tree.slot(gpu.bus_id)
    for prefix, name in (("02", "Ethernet controller"), ("0108", "Non-Volatile memory controller")):
        found = by_sysfs.pci_tree.of_class(prefix, name).value
        assert found == by_lspci.pci_tree.of_class(prefix, name).value
        assert found


def test_the_real_tree(captures):
    data = (captures / "lspci/01-hgx-h100x8-xe9680-lspci-vvv.txt").read_bytes()
    node = Node(Evidence("folder", "node", {"lspci_-vvv": Recording("lspci_-vvv", stdout=data)}), Terms(8))
    gpu = node.gpus[1]
    assert node.pci_tree.path(gpu.bus_id).value == ("0000:39:01.0", "0000:38:00.0", "0000:37:01.0")
    (link,) = node.pci_tree.links_above(gpu.bus_id).value
    assert (link.generation, link.width, link.trained_low) == (5, 16, False)
    assert [node.pci_tree.slot(each.bus_id) for each in node.gpus] == ["28", "24", "23", "27", "25", "21", "26", "22"]
    assert [each.path.bottlenecks.value for each in node.gpus] == [0] * 8
    assert [each.path.numa_node.value for each in node.gpus] == [0] * 4 + [1] * 4
    assert (node.pci.slow_adapters.value, node.pci.slow_drives.value) == (0, 0)
    assert "0000:01:00.0" not in node.pci.fast_adapters.value, "the on-board chip on one of its two lanes"
    assert (node.pci.redirecting.value, node.places.without_adapter.value) == (0, 0)


def test_a_missing_gpu_is_named_with_its_slot():
    node = node_of(simulated("sxm", "gpu-fell-off-the-bus"))
    assert "slot 25" in node.gpus_on_bus.note
    assert "slot 25" in node.gpu_count.note
    assert "slot 25" in node.label("gpu4")
    assert [row["slot"] for row in node.identity()["gpus"]][4] == "25"
    by_files = node_of(simulated("sxm", "gpu-fell-off-the-bus"), [LISTING])
    assert "slot 25" in by_files.gpus_on_bus.note


def test_gpus_that_read_all_ones_are_not_counted_without_lspci():
    node = node_of(simulated("sxm", "gpu-rev-ff"), [LISTING])
    assert node.gpus_on_bus.value == 7
    assert "all ones" in node.gpus_on_bus.note


# ---- links above -----------------------------------------------------------------------------------
def above(node, **states):
    """The state of the switch above gpu4, from both ends of its link."""
    node.pci.trained |= {"0000:98:00.0": states["lower"], "0000:97:01.0": states.get("upper", states["lower"])}
    return node_of(node).gpus[4].path.bottlenecks


def test_the_limiting_port_is_named():
    found = above(simulated(), lower=LinkState(5, 16, 5, 8))
    assert found.value == 1
    assert "0000:98:00.0 below 0000:97:01.0 runs at generation 5 x8 of generation 5 x16" in found.note


def test_a_switch_of_an_older_generation_is_a_bottleneck_in_any_state():
    node = simulated("sxm", "pcie-idle-link")
    found = above(node, lower=LinkState(4, 16, 4, 16), upper=LinkState(5, 16, 4, 16))
    assert (found.value, found.doubt) == (1, "")


def test_a_link_that_sleeps_with_its_gpu_proves_nothing():
    found = above(simulated("sxm", "pcie-idle-link"), lower=LinkState(5, 16, 1, 16))
    assert found.value == 1
    assert "read it under load" in found.doubt
    narrow = above(simulated("sxm", "pcie-idle-link"), lower=LinkState(5, 16, 1, 8))
    assert (narrow.value, narrow.doubt) == (1, "")


def test_a_host_of_generation_4_is_no_bottleneck_for_its_own_link():
    node = simulated()
    old = LinkState(4, 16, 4, 16)
    for gpu in node.gpus:
        gpu.link.port_generation = gpu.link.max_generation = gpu.link.generation = 4
        bus = int(gpu.bus_id[5:7], 16)
        node.pci.trained |= {f"0000:{bus - 3:02x}:00.0": old, f"0000:{bus - 4:02x}:01.0": old}
    assert [gpu.path.bottlenecks.value for gpu in node_of(node).gpus] == [0] * 8


def test_the_port_above_caps_the_generation():
    """nvidia-smi of some drivers names the GPU's own maximum only."""
    node = simulated("sxm", "pcie-capped-slot")
    node.gpus[4].link.max_generation = 5
    node.gpus[4].printed["performance_state"] = "P8"
    found = node_of(node, ["copies"]).gpus[4].pcie.generation  # nobody saw it under load
    assert (found.value, found.ceiling) == (4, 4)


def test_an_adapter_in_a_short_slot_is_limited_though_it_trained_as_it_can():
    node = simulated()
    node.pci.trained["0000:99:02.0"] = LinkState(5, 8, 5, 8)
    node.pci.trained["0000:9c:00.0"] = LinkState(5, 16, 5, 8)
    unrated = node_of(node, ["rdma-files"]).pci.slow_adapters
    assert "the rate of its ports is unknown" in unrated.reason
    assert node_of(simulated(), ["rdma-files"]).pci.slow_adapters.value == 0
    rates = (
        b"uptime:1.00\n/sys/class/infiniband/mlx5_4/hca_type:MT4129\n"
        b"/sys/class/infiniband/mlx5_4/device:0000:9c:00.0\n"
        b"/sys/class/infiniband/mlx5_4/ports/1/state:4: ACTIVE\n"
        b"/sys/class/infiniband/mlx5_4/ports/1/rate:%d Gb/sec (4X NDR)\nend:\n"
    )
    found = node_of(node, **{"rdma-files": rates % 400}).pci.slow_adapters
    assert found.value == 1
    assert "mlx5_4" in found.note
    assert "252 Gb/s" in found.note
    assert "0000:99:02.0" in found.note
    assert node_of(node, **{"rdma-files": rates % 200}).pci.slow_adapters.value == 0


# ---- errors -----------------------------------------------------------------------------------------
def test_counters_that_were_reset_tell_nothing():
    node = simulated()
    later = outputs(node)[LATER].stdout.replace(b"BadTLP 1\n", b"").replace(b"TOTAL_ERR_COR 7", b"TOTAL_ERR_COR 0")
    found = node_of(node, **{LATER: later}).gpus[4].path.corrected
    assert isinstance(found, Unknown)
    assert "reset" in found.reason


def test_samples_without_time_between_them_tell_nothing():
    node = simulated()
    later = re.sub(rb"uptime:.*\n", b"uptime:93841.00\n", outputs(node)[LATER].stdout)
    assert "not taken after" in node_of(node, **{LATER: later}).gpus[0].path.uncorrected.reason


def test_the_part_with_most_errors_is_named():
    node = simulated("sxm", "pcie-errors-corrected")
    found = node_of(node).gpus[4].path.corrected
    assert found.value == 885.0
    assert "0000:99:01.0 (slot 25) 60, BadTLP" in found.note


def test_an_unlisted_way_up_leaves_logged_errors_unplaced():
    node = simulated("sxm", "pcie-error-logged")
    assert node_of(node, [LISTING]).pci.log.uncorrected.value == 1
    assert isinstance(node_of(node, [LISTING, LINKS]).pci.log.uncorrected, Unknown)
    assert node_of(simulated(), [LISTING, LINKS]).pci.log.uncorrected.value == 0


# ---- access control and IOMMU -----------------------------------------------------------------------
def test_no_port_that_tells_is_no_proof():
    node = simulated("pcie")
    listing = outputs(node)[LISTING].stdout
    silent = re.sub(rb"\t\tACSC(?:ap|tl):.*\n", b"", listing)
    assert "none of these ports" in node_of(node, **{LISTING: silent}).pci.redirecting.reason


@pytest.mark.parametrize(
    ("options", "mode"),
    [("iommu=pt", "pass-through"), ("intel_iommu=off", "off"), ("amd_iommu=off", "off"), ("quiet", None)],
)
def test_the_options_tell_the_mode_where_the_groups_do_not(options, mode):
    node = simulated()
    node.pci.iommu, node.pci.options = "", options
    found = node_of(node).pci.iommu
    assert (found.value if isinstance(found, Known) else None) == mode


def test_the_groups_win_over_the_options():
    node = simulated("sxm", "iommu-translates")
    node.pci.options = "iommu=pt"
    assert node_of(node).pci.iommu.value == "translating"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("pci=realloc", "on"),
        ("pci=nocrs,realloc=on", "on"),
        ("pci=realloc=off", "off"),
        ("pci=realloc pci=realloc=off", "off"),
        ("pci=reallocated", "default"),
        ("quiet", "default"),
    ],
)
def test_reallocation(options, found):
    node = simulated()
    node.pci.options = options
    assert node_of(node).pci.reallocation.value == found


# ---- NUMA -------------------------------------------------------------------------------------------
def test_a_host_with_one_numa_node_need_not_name_it():
    node = simulated("sxm", "numa-node-unnamed")
    several = node_of(node).gpus[4].path.numa_node
    assert (several.value, several.note) == (-1, "the firmware names none of 2")
    one = outputs(node)["lscpu_-J"].stdout.replace(b'"NUMA node(s):",\n', b'"NUMA node(s):",\n')
    one = re.sub(rb'("NUMA node\(s\):",\s*"data": )"2"', rb'\1"1"', one)
    assert node_of(node, **{"lscpu_-J": one}).gpus[4].path.numa_node.value == 0
    assert isinstance(node_of(node, ["lscpu_-J"]).gpus[4].path.numa_node, Unknown)


# ---- topology ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("without", [[], [TOPO], [TOPO, LISTING], [TOPO, LINKS]])
def test_the_odd_gpu_is_found_by_the_driver_and_by_the_bus(without):
    found = node_of(simulated("sxm", "adapter-elsewhere"), without).places.without_adapter
    assert (found.value, found.note.partition(";")[0]) == (1, "gpu4 has 0 of 1")
    assert node_of(simulated(), without).places.without_adapter.value == 0


def test_a_node_without_rails_has_no_odd_gpu():
    node = simulated("sxm", "ethernet-alone")
    assert node_of(node).places.without_adapter.value == 0
    two = node_of(simulated("nvl")).places.without_adapter
    assert "too few GPUs" in two.note


def with_matrix(node, matrix):
    return node_of(node, terms=replace(Terms(len(node.gpus)), matrix=matrix)).places


def test_a_matrix_is_held_against_the_node_in_both_directions():
    node = simulated()
    own = matrix_of(node_of(node).places.as_setting.value)
    assert own["gpu4", "numa"] == "1"
    assert "PIX" in own.values()
    assert with_matrix(node, own).differing.value == 0
    less = {key: word for key, word in own.items() if key != ("gpu4", "mlx5_3")}
    assert with_matrix(node, less).differing.note == f"gpu4 mlx5_3 {own['gpu4', 'mlx5_3']} instead of none"
    more = {**own, ("gpu4", "mlx5_99"): "PIX"}
    assert with_matrix(node, more).differing.note == "gpu4 mlx5_99 is missing instead of PIX"
    moved = with_matrix(simulated("sxm", "adapter-elsewhere"), own).differing
    assert (moved.value, moved.note) == (1, "gpu4 mlx5_4 NODE instead of PIX")
    assert isinstance(with_matrix(node, {}).differing, Unknown)


def test_a_sites_overlay_demands_its_matrix(tmp_path, judge):
    from nodeready.simulate.write import simulate

    simulate("sxm", tmp_path / "node", [], {}, 0)
    rows = node_of(simulated()).places.as_setting.value.split(",")
    site = tmp_path / "site.toml"

    def run(rows):
        listed = ", ".join(f'"{row}"' for row in rows)
        site.write_text(
            f'extends = "sxm@2026.12"\n[settings]\n"topology.matrix" = [{listed}]\n'
            '["topology.adapters/matrix"]\nrequired = { max = 0 }\n'
        )
        return judge(tmp_path / "node", baseline=str(site))[1]["topology.adapters/matrix", "node"]

    assert run(rows)["verdict"] == "pass"
    assert run([rows[0].replace("numa=0", "numa=1"), *rows[1:]])["verdict"] == "fail"
    assert run([])["verdict"] == "unverified"


def test_a_matrix_that_is_not_understood_is_refused():
    with pytest.raises(baseline.BaselineError, match="one text for each GPU"):
        terms_of(baseline.load("sxm", "", ["topology.matrix=gpu0: PIX"]))
    assert terms_of(baseline.load("sxm")).matrix == {}
