"""The document of the copies probe: what is no number, cut or contradicts itself is unknown, never a rate."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts.copies import TO_DEVICE, TO_PEER, WITHIN, Copies, copies_probe, parse
from nodeready.probes import copies as probe
from nodeready.probes import gpu_state
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.outputs.copies import copies as simulated

ONE = "0000:1b:00.0"
SAME = {"min": 5.0, "median": 5.0, "max": 5.0}


def entry(**changes):
    healthy = {
        "device": "cuda:0",
        "uuid": "GPU-1",
        "bus_id": "00000000:1B:00.0",
        "copy": "to-device",
        "peer": None,
        "bytes": 268435456,
        "counted": 1,
        "gb_s": 55.4,
        "p5": 55.3,
        "cv": 0.001,
        "iterations": 120,
        "verified": True,
        "peer_access": None,
        "host_cpus": "0-55",
        "link": {"generation": SAME, "width": {**SAME, "min": 16.0}},
        "error": None,
    }
    return {**healthy, **changes}


def document(*entries, **changes):
    head = {"probe": "copies", "schema": 1, "torch": "2.7.0+cu126", "error": None, "results": list(entries)}
    return json.dumps({**head, **changes}).encode()


def only(**changes):
    (result,) = parse(document(entry(**changes))).results.values()
    return result


def to_peer(**changes):
    return entry(copy="to-peer", peer="00000000:43:00.0", peer_device="cuda:1", peer_access=True, **changes)


def test_a_copy_is_found_by_bus_id_kind_and_peer():
    found = parse(document(entry(), entry(copy="device", counted=2, gb_s=2950.0), to_peer(gb_s=396.0)))
    assert str(found.copy(ONE, TO_DEVICE).rate.value) == "55.4 GB/s"
    assert str(found.copy(ONE, WITHIN).rate.value) == "2950 GB/s"
    pair = found.copy(ONE, TO_PEER, "0000:43:00.0")
    assert (str(pair.rate.value), pair.peer_access.value) == ("396 GB/s", True)
    one = found.copy(ONE, TO_DEVICE)
    assert (one.generation.value, one.width.value, one.cpus.value, one.uuid.value) == (5, 16, "0-55", "GPU-1")


def test_any_prefix_of_a_document_gives_nothing():
    data = document(entry(), to_peer())
    for end in range(len(data)):
        assert isinstance(parse(data[:end]), Unknown)


@pytest.mark.parametrize("field", ["gb_s", "p5", "cv", "bytes", "iterations"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, "55.4", None, True, [], {}])
def test_a_rate_is_unknown_where_a_figure_is_no_number(field, bad):
    assert only(**{field: bad}).rate.reason.startswith(f"{field} reads {json.dumps(bad)}")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gb_s": 0}, "gb_s reads 0, which cannot be"),
        ({"p5": 55.5}, "p5 (55.5) is above the median (55.4)"),
        ({"cv": 0.2}, "the rate was not steady (cv 0.2)"),
        ({"counted": 2}, "counted reads 2: bytes are to be counted 1 times"),
        ({"counted": True}, "counted reads true: bytes are to be counted 1 times"),
        ({"copy": "device", "counted": 1}, "counted reads 1: bytes are to be counted 2 times"),
    ],
)
def test_figures_that_contradict_each_other_are_no_rate(changes, reason):
    assert only(**changes).rate.reason == reason


@pytest.mark.parametrize("bad", [None, 1, 0, "true", []])
def test_what_was_not_compared_is_neither_right_nor_wrong(bad):
    assert only(verified=bad).verified.reason == f"verified reads {json.dumps(bad)}: what arrived was not compared"


def test_the_least_generation_counts_and_an_odd_one_is_unknown():
    assert only(link={"generation": {**SAME, "min": 1.0}, "width": None}).generation.value == 1
    for odd in (0, 4.5, 99, "5", None, -5):
        assert isinstance(only(link={"generation": {**SAME, "min": odd}}).generation, Unknown)
    for odd in (3, 15.9, 0):
        assert isinstance(only(link={"width": {**SAME, "min": odd}}).width, Unknown)
    for none in (None, [], {}, {"generation": None}, {"generation": {}}):
        assert isinstance(only(link=none).generation, Unknown)
    assert isinstance(only(link=None).rate, Known)


def test_an_error_makes_all_readings_unknown_with_it_as_the_reason():
    result = only(error="CUDA error: uncorrectable ECC error encountered", skipped=True)
    assert result.rate.reason == result.verified.reason == result.generation.reason == result.error
    assert result.skipped
    assert result.uuid.value == "GPU-1"
    for odd in ("", " ", 7, False, {}):
        assert "error reads" in only(error=odd).rate.reason


def test_two_entries_for_one_copy_make_it_unknown():
    found = parse(document(entry(), entry(device="cuda:1")))
    assert found.copy(ONE, TO_DEVICE).rate.reason == f"the copies probe has two entries to device of {ONE}"


def test_a_copy_that_is_not_there_is_unknown_and_says_what_is_known_of_why():
    hung = entry(device="cuda:3", bus_id=None, error="no answer within 12 s")
    found = parse(document(entry(), hung, {"copy": "device"}))
    assert found.copy("0000:43:00.0", TO_DEVICE).rate.reason == (
        "the copies probe has no copy to device of 0000:43:00.0; cuda:3, whose bus id is unknown: no answer within "
        "12 s; 1 of its entries name no device, copy or peer"
    )


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        {},
        entry(device="", bus_id=None),
        entry(copy="sideways"),
        entry(copy=None),
        entry(copy="to-peer"),
        entry(copy="to-peer", peer="00000000:1B:00.0"),  # to itself
    ],
)
def test_an_entry_that_does_not_say_what_it_measured_is_counted(bad):
    found = parse(document(bad, entry()))
    assert (found.unplaced, len(found.results)) == (1, 1)


def test_wrong_bytes_of_an_unknown_gpu_are_counted():
    found = parse(document(entry(bus_id=None, verified=False), {"verified": False}, entry(verified=False)))
    assert found.unplaced_wrong == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the copies probe printed nothing"),
        (b"[]", "the output is not a document of the copies probe"),
        (document(probe="matmul"), "the output is not a document of the copies probe"),
        (document(schema=2), "the copies probe's document has schema 2, known is 1"),
        (document(results=None), "results of the copies probe reads null, no list"),
        (document(error="this Python has no torch"), "this Python has no torch"),
        (document(error=5), "error of the copies probe reads 5"),
    ],
)
def test_what_is_not_the_whole_document_is_unknown(data, reason):
    assert parse(data).reason == reason


def test_the_probe_s_own_entries_and_the_simulator_s_are_read():
    line = "1980, 300, 45, 5, 16, 40, 0x0"
    figures = {
        **probe.rate_figures([0.05, 0.051, 0.05], batch=10, moved=1 << 28),
        **gpu_state.sample_figures([gpu_state.smi_sample(line)]),
        "bytes": 1 << 28,
        "counted": 1,
        "verified": True,
        "host_cpus": "0-55",
    }
    made = {**probe.blank_entry((TO_DEVICE, 0)), "device": "cuda:0", "bus_id": ONE, **figures}
    whole = {**probe.new_document(), "results": [made]}
    one = parse(json.dumps(whole).encode()).copy(ONE, TO_DEVICE)
    assert one.rate.value.value == pytest.approx((1 << 28) * 10 / 0.05 / 1e9)
    assert (one.generation.value, one.width.value, one.verified.value) == (5, 16, True)
    node = build("nvl")
    found = parse(simulated(node).stdout)
    assert len(found.results) == 8
    assert found.unplaced == 0
    assert set(made) <= set(json.loads(simulated(node).stdout)["results"][0]) | {"batch", "measured_s"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(entry())), JSON))
def test_no_value_makes_the_parser_raise_or_a_reading_lie(changes):
    found = parse(document(entry(**changes)))
    assert isinstance(found, Copies)
    assert found.unplaced + len(found.results) == 1
    for result in found.results.values():
        assert not isinstance(result.rate, Known) or 0 < result.rate.value.value < float("inf")
        assert not isinstance(result.verified, Known) or result.verified.value is changes.get("verified", True)


def test_the_probe_runs_on_all_gpus_and_ends_before_its_deadline():
    made = copies_probe("/opt/jobs/bin/python", "/x/copies.py")
    assert made.argv == ("/opt/jobs/bin/python", "/x/copies.py", "--device", "all", "--deadline", "120")
    assert (made.name, made.family, made.tier, made.deadline) == ("copies", "load", "acceptance", 140)
    assert 3 in made.answers
    assert probe.parse_options(made.argv[2:]).deadline == 120
