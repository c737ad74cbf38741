"""Adapters beside their twins, by corners that no simulated fault has."""

import pytest

from nodeready.node.adapters import NO_ADAPTER
from nodeready.reading import Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs


def files(*cards, uptime="93842.00"):
    """The small files of some adapters: (name, address, state, physical, rate, counters)."""
    lines = [f"uptime:{uptime}"]
    for name, address, state, physical, rate, counters in cards:
        base = f"/sys/class/infiniband/{name}"
        lines += [f"{base}/hca_type:MT4129", f"{base}/fw_ver:28.43.2566", f"{base}/board_id:MT_0000000838"]
        lines += [f"{base}/ports/1/state:{state}", f"{base}/ports/1/phys_state:{physical}"]
        lines += [f"{base}/ports/1/rate:{rate} Gb/sec (4X NDR)", f"{base}/ports/1/link_layer:InfiniBand"]
        lines += [f"{base}/ports/1/counters/{counter}:{value}" for counter, value in counters.items()]
        lines.append(f"{base}/device:{address}")
    return "".join(f"{line}\n" for line in [*lines, "end:"]).encode()


UP, DOWN, OFF = ("4: ACTIVE", "5: LinkUp", 400), ("1: DOWN", "2: Polling", 10), ("1: DOWN", "3: Disabled", 10)


@pytest.fixture
def adapters(node_of):
    """The adapters of a node with these cards."""

    def make(*cards, later=None):
        changes = {"rdma-files": files(*cards), "nvidia-smi_topo_-m": None, "rdma-files-later": later}
        return node_of(changes=changes).adapters

    return make


def card(number, how, function=0, counters=None):
    return (f"mlx5_{number}", f"0000:{0x1A + number:02x}:00.{function}", *how, counters or {"link_downed": 0})


def test_two_functions_of_one_device_are_one_card_with_two_ports(adapters):
    cards = [
        (f"mlx5_{2 * n + f}", f"0000:{0x1A + n:02x}:00.{f}", *UP, {"link_downed": 0}) for n in range(3) for f in (0, 1)
    ]
    assert adapters(*cards).behind_twins.value == 0
    cards[5] = ("mlx5_5", "0000:1c:00.1", *DOWN, {})
    found = adapters(*cards).behind_twins
    assert (found.value, "mlx5_4/1, mlx5_5/1 (0000:1c:00)" in found.note) == (1, True)


def test_ports_that_are_switched_off_are_not_behind(adapters):
    assert adapters(card(0, UP), card(1, UP), card(2, UP), card(3, OFF)).behind_twins.value == 0
    assert adapters(card(0, UP), card(1, UP), card(2, UP), card(3, DOWN)).behind_twins.value == 1


def test_of_two_cards_none_is_the_odd_one(adapters):
    assert adapters(card(0, UP), card(1, DOWN)).behind_twins.value == 0


def test_half_against_half_has_no_odd_one(adapters):
    assert adapters(card(0, UP), card(1, UP), card(2, DOWN), card(3, DOWN)).behind_twins.value == 0


def test_a_node_without_adapters_has_no_fault_in_them(adapters):
    found = adapters()
    assert (found.behind_twins.value, found.firmware_kinds.value, found.mtu_kinds.value) == (0, 0, 0)
    assert (found.growing_faults.value, found.flaps.value, found.gpudirect.value) == (0, 0.0, NO_ADAPTER)
    assert found.firmware_is_new_enough.value is True


def test_a_port_that_is_up_and_tells_no_counter_is_unknown(adapters):
    later = b"uptime:93846.00\nend:\n"
    bare = ("mlx5_0", "0000:1a:00.0", *UP, {})
    assert adapters(bare, later=later).growing_faults.reason.endswith("mlx5_0/1 is up and tells no counter")
    assert "tells no link_downed" in adapters(bare, later=later).flaps.reason
    one = card(0, UP)
    assert adapters(one, later=later).growing_faults.reason.endswith("has no link_downed of mlx5_0/1")


@pytest.mark.parametrize(
    ("counter", "by", "faults", "warnings"),
    [
        ("symbol_error", 1, 0, 0),
        ("symbol_error", 2, 1, 0),
        ("link_downed", 1, 1, 0),
        ("local_link_integrity_errors", 1, 1, 0),
        ("link_error_recovery", 1, 0, 0),
        ("link_error_recovery", 2, 0, 1),
        ("roce_slow_restart", 41, 0, 0),
        ("roce_slow_restart", 42, 0, 1),
    ],
)
def test_which_growth_in_four_seconds_is_too_much(counter, by, faults, warnings, adapters):
    later = f"uptime:93846.00\n/sys/class/infiniband/mlx5_0/ports/1/counters/{counter}:{5 + by}\nend:\n".encode()
    found = adapters(card(0, UP, counters={counter: 5}), later=later)
    assert (found.growing_faults.value, found.growing_warnings.value) == (faults, warnings)


@pytest.mark.parametrize(
    ("uptime", "lost", "a_day"), [("3600.00", 2, 2.0), ("864000.00", 30, 3.0), ("864000.00", 255, 25.5)]
)
def test_lost_links_are_counted_by_the_day(uptime, lost, a_day, node_of):
    changes = {"rdma-files": files(card(0, UP, counters={"link_downed": lost}), uptime=uptime)}
    assert node_of(changes=changes).adapters.flaps.value == a_day


def test_rails_are_the_ports_beside_a_gpu(node_of):
    node = node_of()
    assert node.adapters.rails.value == 8
    assert len(node.adapters._files.ports) == 9
    cut = outputs(build("sxm"))["nvidia-smi_topo_-m"].stdout[:60]
    assert isinstance(node_of(changes={"nvidia-smi_topo_-m": cut}).adapters.rails, Unknown)


def test_gpudirect_by_dma_buf_needs_the_open_module_and_a_kernel_that_has_it(node_of):
    node = build("sxm")
    assert node_of(node).adapters.gpudirect.value == "dma-buf"
    assert "open kernel module" in node_of(node).adapters.gpudirect.note


def test_gpudirect_of_a_node_without_a_driver_is_the_drivers_matter(node_of):
    found = node_of(changes={"proc/driver/nvidia/version": None, "proc/modules": None}).adapters.gpudirect
    assert isinstance(found, Unknown)
