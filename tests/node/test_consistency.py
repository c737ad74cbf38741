"""The odd GPU is named; of one, or of none that leads, nobody is."""

import pytest

from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.node import Node
from nodeready.node.terms import Terms
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.nvidia_smi_q import documents


def node_of(change=lambda gpus: None, count=8, node_type="sxm"):
    simulated = build(node_type, 0, count)
    change(simulated.gpus)
    recordings = {name: Recording(name, rc=o.rc, stdout=o.stdout) for name, o in documents(simulated).items()}
    return Node(Evidence("folder", "node", recordings), Terms(count))


def vbios(*odd):
    def change(gpus):
        for index in odd:
            gpus[index].printed["vbios_version"] = "96.00.74.00.01"

    return change


def test_gpus_that_are_alike_are_one_kind():
    found = node_of().consistency.vbios
    assert (found.value, found.note) == (1, "96.00.99.00.01")
    assert node_of().consistency.vbios_version.value == "96.00.99.00.01"


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ((3,), "gpu3 (0000:5d:00.0) has 96.00.74.00.01, the others 96.00.99.00.01"),
        ((0, 7), "gpu0 (0000:19:00.0) has 96.00.74.00.01, gpu7 (0000:db:00.0) has 96.00.74.00.01, the others"),
        ((0, 1, 2, 3), "96.00.74.00.01 on gpu0 (0000:19:00.0), gpu1"),
    ],
)
def test_the_odd_ones_are_named(odd, words):
    found = node_of(vbios(*odd)).consistency.vbios
    assert found.value == 2
    assert words in found.note
    assert isinstance(node_of(vbios(*odd)).consistency.vbios_version, Unknown)


def test_one_unknown_hides_no_difference_and_proves_no_likeness():
    def unreadable(gpus):
        gpus[5].printed["vbios_version"] = "N/A"

    assert isinstance(node_of(unreadable).consistency.vbios, Unknown)

    def both(gpus):
        unreadable(gpus)
        vbios(3)(gpus)

    assert node_of(both).consistency.vbios.value == 2


def test_a_lost_gpu_is_the_counts_matter():
    def lose(gpus):
        gpus[4].in_driver = gpus[4].on_bus = False

    assert node_of(lose).consistency.vbios.value == 1


def test_boards_of_two_vendors_with_one_gpu_part_are_alike():
    def boards(gpus):
        gpus[2].printed["board_part_number"] = "965-2G520-A800-000"

    assert node_of(boards).consistency.gpu_part.value == 1


@pytest.mark.parametrize("count", [1, 2])
def test_of_two_none_is_the_odd_one(count):
    def heat(gpus):
        gpus[0].power_draw = 250.0

    found = node_of(heat, count).consistency.idle_power
    assert isinstance(found, Known)
    assert found.value.value == 0
    assert "none can be told" in found.note


def test_a_cool_gpu_is_no_fault_and_a_hot_one_is_the_margins():
    def cool(gpus):
        gpus[1].temperature = 5

    assert node_of(cool).consistency.idle_temperature.value.value < 10

    def hot(gpus):
        gpus[1].temperature, gpus[1].margin = 89, -2

    assert node_of(hot).consistency.idle_temperature.value.value < 10
