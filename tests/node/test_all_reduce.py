"""The node's all-reduce: the slowest rank counts, one wrong sum is enough, and a rank that is missing is no rate."""

import json

import pytest

from nodeready import baseline
from nodeready.expectation import judge
from nodeready.gate import terms_of
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs

SIZE = 8 << 30


@pytest.fixture
def reading(node_of):
    """The all-reduce of a node whose document is changed by a function of each large entry."""

    def make(change=lambda entry: entry, node_type="sxm", count=None, **state):
        node = build(node_type, 0, count)
        for name, value in state.items():
            setattr(node.reduction, name, value)
        document = json.loads(outputs(node)["allreduce"].stdout)
        for entry in document["results"]:
            if entry["size"] == SIZE:
                change(entry)
        return node_of(node, {"allreduce": json.dumps(document).encode()}).all_reduce

    return make


def verdict(found, node_type="sxm", count=None, part=""):
    settings = [f"gpu.count={count}"] if count else []
    key = f"nvlink.all-reduce{part}"
    kind = {"": "rate", "/correct": "correct", "/nvls": "algorithm"}[part]
    return judge(baseline.load(node_type, "", settings).demands[key], getattr(found, kind))


def on(device, **changes):
    return lambda entry: entry.update(changes if entry["device"] == device else {})


def test_the_slowest_rank_is_the_node_s_rate(reading):
    rate = reading(on("cuda:5", busbw_gb_s=440.0, p5_gb_s=439.0)).rate
    assert (rate.value.value, rate.note) == (440.0, "slowest gpu5, 8 GPUs, NVLS, NCCL 2.27.7")


def test_a_ring_is_told_with_the_variable_that_asked_for_it(reading):
    found = reading(nvls=False, busbw=367.4)
    assert found.algorithm.value == "RING"
    assert "NCCL_NVLS_ENABLE=0" in found.algorithm.note
    assert verdict(found).verdict.value == "fail"
    assert verdict(found, part="/nvls").verdict.value == "fail"


@pytest.mark.parametrize(
    ("count", "rate", "expected"),
    [
        (8, 431.0, "advisory"),
        (7, 419.0, "advisory"),
        (4, 331.0, "advisory"),
        (4, 325.0, "fail"),
        (2, 160.0, "advisory"),
        (2, 140.0, "fail"),
    ],
)
def test_fewer_gpus_are_held_against_as_much_less(reading, count, rate, expected):
    assert verdict(reading(count=count, busbw=rate / 0.998), count=count).verdict.value == expected


def test_a_number_of_gpus_without_a_floor_is_not_judged_low(reading):
    found = reading(node_type="sxm-4", count=4)
    assert verdict(found, "sxm-4").verdict.value == "pass"
    other = reading(node_type="sxm-4", count=3, busbw=100.0)
    judged = verdict(other, "sxm-4", 3)
    assert (judged.verdict.value, judged.reason) == ("unverified", "no floor is known for 3 GPUs, only for 4")


@pytest.mark.parametrize(("rate", "expected"), [(16.0, "pass"), (14.0, "fail")])
def test_cards_without_a_bridge_are_held_against_pcie(reading, node_of, rate, expected):
    found = reading(node_type="nvl", count=4, busbw=rate / 0.998)
    assert "NVLink does not join GPU0 and GPU2" in found.rate.note
    assert verdict(found, "nvl", 4).verdict.value == expected


def test_bridged_cards_are_held_against_their_links(reading):
    assert verdict(reading(node_type="nvl", busbw=200.0), "nvl").verdict.value == "fail"
    assert verdict(reading(node_type="nvl"), "nvl").verdict.value == "pass"


def test_a_short_message_proves_nothing_when_it_is_slow(reading):
    def short(entry):
        entry["bytes"] = 1 << 30

    judged = verdict(reading(short, busbw=400.0))
    assert judged.verdict.value == "unverified"
    assert "memory was short for a message of 8 GiB, and one of 1 GiB is slower" in judged.reason
    assert verdict(reading(short)).verdict.value == "pass"


def test_one_wrong_sum_is_enough_even_where_a_rank_gave_no_answer(reading):
    def change(entry):
        if entry["device"] == "cuda:2":
            entry["verified"] = False
        if entry["device"] == "cuda:3":
            entry["error"] = "no answer"

    found = reading(change)
    assert isinstance(found.rate, Unknown)
    assert (found.correct.value, verdict(found, part="/correct").verdict.value) == (False, "fail")
    assert "at 8 GiB" in found.correct.note


def test_sums_that_were_not_compared_on_one_gpu_are_not_right(reading):
    assert isinstance(reading(on("cuda:7", verified=None)).correct, Unknown)
    assert reading().correct == Known(True, recordings=("allreduce",))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"error": "no answer within 96 s"}, "gpu3: no answer within 96 s"),
        ({"bus_id": None}, "gpu3: the allreduce probe has no rank on it"),
        ({"ranks": 7}, "7 or 8 GPUs took part, 8 are planned"),
        ({"ranks": None}, "ranks reads null"),
        ({"uuid": "GPU-other"}, "allreduce measured GPU-other, the driver lists GPU-"),
        ({"cv": 0.3}, "not steady"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_one_rank_that_is_not_known_leaves_the_rate_unknown(reading, changes, reason):
    rate = reading(on("cuda:3", **changes)).rate
    assert isinstance(rate, Unknown)
    assert reason in rate.reason
    assert rate.recordings[0] == "allreduce"


def test_the_rank_that_failed_is_named_and_not_those_that_were_let_go(reading):
    def change(entry):
        entry["error"] = "no all-reduce of 8192 MiB without cuda:6, which took no part: ECC"
        if entry["device"] == "cuda:6":
            entry["error"] = "ECC"

    assert reading(change).rate.reason == "gpu6: ECC"


def test_half_of_the_gpus_are_not_the_node(node_of):
    node = build("sxm")
    node.torch.visible = "0,1,2,3"
    rate = node_of(node).all_reduce.rate
    assert rate.reason == "gpu4: the allreduce probe has no rank on it"
    assert {"gpu.count", "frameworks.torch", "gpu.mig"} <= set(rate.causes)


def test_a_log_without_an_algorithm_tells_only_what_was_not(reading):
    old = reading(logged=False)
    assert old.algorithm.reason == "NCCL 2.27.7 names no algorithm in its log; 2.20 and newer do"
    without = reading(logged=False, nvls=False)
    assert without.algorithm.value == "not NVLS"
    assert verdict(without, part="/nvls").verdict.value == "fail"


def test_with_four_gpus_a_ring_is_no_fault(reading):
    judged = verdict(reading(count=4, nvls=False), count=4, part="/nvls")
    assert (judged.verdict.value, judged.reason) == (
        "unverified",
        "with 4 GPUs a ring is as fast, and NCCL may choose it",
    )


def test_one_gpu_has_nothing_to_add_up_with():
    for node_type in ("sxm", "nvl", "pcie"):
        demands = baseline.load(node_type, "", ["gpu.count=1"]).demands
        assert demands["nvlink.all-reduce"].absent == "one GPU: there is no other that it could add up with"
        assert not baseline.load(node_type, "", ["gpu.count=2"]).demands["nvlink.all-reduce/correct"].absent


@pytest.mark.parametrize("text", ["8", "8=2", "8=0", "x=1", "8=0.9;4=0.7", "0=1"])
def test_shares_that_make_no_sense_are_refused(text):
    base = baseline.load("sxm", "", [f"nvlink.all-reduce-shares={text}"])
    with pytest.raises(baseline.BaselineError, match="write parts such as"):
        terms_of(base)
