import pytest

from nodeready.render import clock, words


@pytest.mark.parametrize(
    ("observed", "text"),
    [
        ({"value": 81559, "unit": "MiB"}, "81559 MiB"),
        ({"value": 26.562000001, "unit": "GB/s"}, "26.562 GB/s"),
        ({"value": True, "unit": ""}, "yes"),
        ({"value": False, "unit": None}, "no"),
        ({"value": [0, 18], "unit": ""}, "0, 18"),
        ({"value": [], "unit": ""}, "none"),
        ({"value": "", "unit": ""}, "(empty)"),
        ({"value": None, "unit": ""}, "none"),
        ({"value": 0, "unit": "W"}, "0 W"),
    ],
)
def test_a_quantity_in_words(observed, text):
    assert words.quantity(observed) == text


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        ({"min": {"value": 512, "unit": "GiB"}}, ">= 512 GiB"),
        ({"max": {"value": 0, "unit": ""}}, "<= 0"),
        ({"equals": {"value": "enabled", "unit": ""}}, "enabled"),
        ({"one_of": {"value": [0, 18], "unit": ""}}, "one of 0, 18"),
        ({"one_of": {"value": [18], "unit": ""}}, "18"),
        ({"between": {"value": [600, 700], "unit": "W"}}, "600 to 700 W"),
        ({"matches": {"value": "^9\\.", "unit": ""}}, "matches ^9\\."),
        ({"min": {"value": 1, "unit": "W"}, "max": {"value": 2, "unit": "W"}}, ">= 1 W and <= 2 W"),
        (None, "-"),
    ],
)
def test_a_bound_in_words(bound, text):
    assert words.bound_text(bound) == text


@pytest.mark.parametrize("verdict", ["unverified", "waived"])
def test_without_an_observation_the_words_say_so(sample, verdict):
    assert words.observed_text(sample.finding("a.b", verdict=verdict, observed=None)) == "not measured"


def test_the_bound_that_an_advisory_misses_is_named(sample):
    finding = sample.finding(
        "a.b", verdict="advisory", required=sample.bound("min", 512, "GiB"), recommended=sample.bound("min", 1, "TiB")
    )
    assert words.demanded_text(finding) == ">= 512 GiB; recommended >= 1 TiB"
    assert words.demanded_text(finding | {"required": None}) == ">= 1 TiB (recommended)"


def test_a_part_is_named_by_what_is_known_of_it():
    known = {"gpu3": {"bus_id": "0000:9b:00.0", "serial": "1653", "slot": None}, "gpu4": {"bus_id": None}}
    assert words.part("gpu3", known) == "gpu3 (0000:9b:00.0, serial 1653)"
    assert words.part("gpu3", known, "bus_id") == "gpu3 (0000:9b:00.0)"
    assert words.part("gpu4", known) == "gpu4"
    assert words.part("node", known) == "node"


def test_runs_of_subjects_become_ranges_and_long_lists_are_counted():
    assert words.subjects_text(["gpu0", "gpu1", "gpu2", "gpu5", "gpu6", "node"]) == "gpu0-gpu2, gpu5, gpu6, node"
    assert words.subjects_text(["nvme1", "gpu2", "gpu3"]) == "nvme1, gpu2, gpu3"
    assert words.subjects_text([f"port:mlx5_{i}" for i in range(9)], 2) == "port:mlx5_0, port:mlx5_1, and 7 more"


def test_the_join_of_verdicts():
    assert words.worst(["pass", "advisory", "unverified", "waived"]) == "unverified"
    assert words.worst(["not-applicable", "pass"]) == "pass"
    assert words.worst(["unverified", "fail"]) == "fail"


@pytest.mark.parametrize(
    ("took", "text"),
    [(0.44, "0.4 s"), (9.97, "10 s"), (119.6, "2 min 0 s"), (3599.7, "60 min 0 s"), (7500, "2 h 5 min")],
)
def test_a_duration_in_the_unit_that_suits_it(took, text):
    assert clock.duration_text(took) == text


def test_a_time_without_a_zone_is_refused():
    assert clock.moment("2026-12-01T09:15:00Z").timestamp() == 1796116500
    with pytest.raises(ValueError, match="time zone"):
        clock.moment("2026-12-01T09:15:00")
