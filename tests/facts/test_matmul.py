"""The parsers of the matmul and torch probes' documents: what is odd is unknown, nothing raises."""

import doctest
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts import matmul, probe_document, torch_info
from nodeready.facts.matmul import Matmul, matmul_probe, parse
from nodeready.probes import gpu_state
from nodeready.probes import matmul as probe
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown

READINGS = ("tflops", "p5", "cv", "verified", "repeatable", "digest")
READINGS += ("iterations", "clock", "power", "margin", "events")


def entry(**changes):
    """An entry as a healthy H100 SXM would give it."""
    spread = {"min": 1545.0, "median": 1710.0, "max": 1980.0}
    return {
        "device": "cuda:0",
        "uuid": "GPU-1",
        "bus_id": "0000:1B:00.0",
        "name": "NVIDIA H100 80GB HBM3",
        "dtype": "float16",
        "size": 8192,
        "tflops": 736.2,
        "p5": 728.9,
        "cv": 0.004,
        "iterations": 3360,
        "verified": True,
        "repeatable": True,
        "repeats": 650,
        "digest": "00c0ffee00c0ffee",
        "clocks": {"samples": 50, "sm_mhz": spread},
        "events": {
            "samples": 50,
            "reasons": {"0x4": 50, "0x20": 1},
            "power_w": {"min": 681.0, "median": 697.5, "max": 701.2},
            "temperature_c": None,
            "margin_c": {"min": -1, "median": 18, "max": 22},
        },
        "error": None,
        **changes,
    }


def document(*entries, **changes):
    head = {"probe": "matmul", "schema": 1, "torch": "2.7.0+cu126", "cublas": "12.6.4", "error": None}
    head["inputs"] = "normal, seeded"
    return json.dumps({**head, "results": list(entries), **changes}).encode()


def only(**changes):
    (result,) = parse(document(entry(**changes))).results.values()
    return result


@pytest.mark.parametrize(("module", "examples"), [(matmul, 4), (probe_document, 6)])
def test_the_examples_in_the_docstrings_hold(module, examples):
    assert doctest.testmod(module) == (0, examples)


def test_a_healthy_result_is_known_throughout():
    found = parse(document(entry()))
    assert found.results.keys() == {("0000:1b:00.0", "float16", 8192)}
    assert (found.cublas.value, found.torch.value) == ("12.6.4", "2.7.0+cu126")
    result = only()
    assert result.tflops.value == Quantity(736.2, "TFLOPS")
    assert result.p5.value == Quantity(728.9, "TFLOPS")
    assert (result.cv.value, result.verified.value, result.iterations.value, result.error) == (0.004, True, 3360, "")
    assert result.clock.value == Quantity(1710, "MHz")
    assert result.events.value == {0x4: 1.0, 0x20: 0.02}
    assert (result.repeatable.value, result.digest.value) == (True, "00c0ffee00c0ffee")
    assert (result.power.value, result.margin.value) == (Quantity(697.5, "W"), Quantity(-1, "degC"))
    assert result.uuid.value == "GPU-1"
    assert found.unplaced_wrong == 0


def test_a_product_that_wavers_is_known_to_and_keeps_its_rate():
    result = only(repeatable=False)
    assert result.repeatable.value is False
    assert isinstance(result.tflops, Known)


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"repeats": 0}, "repeatable", "repeats reads 0: the product was not made again"),
        ({"repeats": True}, "repeatable", "repeats reads true: the product was not made again"),
        ({"repeats": None, "repeatable": False}, "repeatable", "repeats reads null: the product was not made again"),
        ({"repeatable": "yes"}, "repeatable", 'repeatable reads "yes"'),
        ({"digest": "00C0FFEE"}, "digest", 'digest reads "00C0FFEE", no 16 hexadecimal digits'),
        ({"digest": None}, "digest", "digest reads null, no 16 hexadecimal digits"),
        ({"events": None}, "power", "power_w was not read during the run"),
        ({"events": {"power_w": {"median": -1}}}, "power", "power_w reads -1, which cannot be"),
        ({"events": {"margin_c": {"min": "-1"}}}, "margin", 'margin_c reads "-1", no number'),
    ],
)
def test_what_was_not_made_again_or_not_sampled_is_unknown(changes, field, reason):
    assert getattr(only(**changes), field).reason == reason


def test_a_wrong_product_is_known_to_be_wrong_and_keeps_its_numbers():
    result = only(verified=False)
    assert result.verified.value is False
    assert result.tflops.value == Quantity(736.2, "TFLOPS")


def test_a_wrong_product_of_an_unplaced_gpu_is_not_lost():
    nowhere = entry(device="cuda:3", bus_id=None)
    wrong = [{**nowhere, "verified": False}, {**nowhere, "size": None, "verified": False}, {"verified": False}]
    assert parse(document(entry(), nowhere, *wrong, None)).unplaced_wrong == 3
    assert parse(document(entry(verified=False), nowhere, {**nowhere, "verified": 0})).unplaced_wrong == 0
    # where it stands, but not of which product
    assert parse(document(entry(verified=False, size=None))).unplaced_wrong == 1


@pytest.mark.parametrize("uuid", [None, "", 7])
def test_an_entry_without_a_uuid_has_none(uuid):
    assert only(uuid=uuid).uuid.reason.startswith("uuid reads ")


def test_an_entry_with_an_error_keeps_its_uuid():
    assert only(error="hung").uuid.value == "GPU-1"


def test_a_device_without_a_bus_id_goes_by_its_name():
    for bus_id in (None, "somewhere", 7):
        found = parse(document(entry(device="cuda:3", bus_id=bus_id)))
        assert found.results.keys() == {("cuda:3", "float16", 8192)}


def test_an_error_makes_all_readings_unknown_with_it_as_the_reason():
    result = only(error="CUDA error: uncorrectable ECC error encountered")
    assert result.error == "CUDA error: uncorrectable ECC error encountered"
    assert {getattr(result, name).reason for name in READINGS} == {result.error}
    for odd in ("", "  ", 7, False, {}):
        result = only(error=odd)
        assert all(isinstance(getattr(result, name), Unknown) for name in READINGS)
        assert "error reads" in result.tflops.reason


@pytest.mark.parametrize("field", ["tflops", "p5", "cv", "iterations"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), -1, "736.2", None, True, [], {}])
def test_what_is_no_number_is_unknown_and_says_what_it_read(field, bad):
    result = only(**{field: bad})
    reading = getattr(result, field)
    assert isinstance(reading, Unknown)
    assert reading.reason.startswith(f"{field} reads {json.dumps(bad)}")


@pytest.mark.parametrize("field", ["p5", "cv", "iterations"])
@pytest.mark.parametrize("bad", [None, -1, "3360", float("nan")])
def test_a_rate_is_unknown_where_what_stands_behind_it_is(field, bad):
    result = only(**{field: bad})
    assert result.tflops.reason == result.p5.reason == getattr(result, field).reason


@pytest.mark.parametrize("cv", [0.1, 0.31, 40])
def test_a_rate_that_was_not_steady_is_unknown(cv):
    result = only(cv=cv)
    assert result.tflops.reason == result.p5.reason == f"the rate was not steady (cv {cv:.3g})"
    assert isinstance(only(cv=0.099).tflops, Known)


def test_a_rate_that_still_moved_after_the_warm_up_is_unknown():
    result = only(steady=False)
    assert result.tflops.reason == result.p5.reason == "the rate was not steady: it still moved when the warm-up ended"
    assert result.verified.value is True  # the product is right or wrong at any rate
    assert isinstance(only(steady=True).tflops, Known)
    for odd in (None, 0, 1, "yes", {}):
        assert only(steady=odd).tflops.reason == f"steady reads {json.dumps(odd)}"


@pytest.mark.parametrize("inputs", ["zeros", "", "uniform, not normal", None, 7, ["normal"]])
def test_a_rate_of_other_than_random_numbers_is_unknown(inputs):
    (result,) = parse(document(entry(), inputs=inputs)).results.values()
    said = f"inputs were {json.dumps(inputs)}, not random"
    assert result.tflops.reason == result.p5.reason == result.verified.reason == said
    (result,) = parse(document(entry(verified=False), inputs=inputs)).results.values()
    assert result.verified.value is False


@pytest.mark.parametrize("field", ["tflops", "p5", "iterations"])
def test_zero_is_no_rate(field):
    assert getattr(only(**{field: 0}), field).reason == f"{field} reads 0, which cannot be"


def test_numbers_beyond_a_float_are_unknown():
    data = document(entry(tflops=-736.2)).replace(b"-736.2", b"1" + b"0" * 400)
    (result,) = parse(data).results.values()
    assert "which cannot be" in result.tflops.reason
    assert "1000" in result.tflops.reason
    assert isinstance(only(iterations=3.5).iterations, Unknown)


def test_a_slow_end_above_the_median_makes_both_unknown():
    result = only(p5=736.3)
    assert result.tflops.reason == result.p5.reason == "p5 (736.3) is above the median (736.2)"


@pytest.mark.parametrize("bad", [None, 1, 0, "true", []])
def test_a_product_that_was_not_checked_is_unknown(bad):
    assert only(verified=bad).verified.reason == f"verified reads {json.dumps(bad)}: the product was not checked"


@pytest.mark.parametrize("clocks", [None, [], {}, {"sm_mhz": None}, {"sm_mhz": {}}, {"sm_mhz": {"median": "x"}}])
def test_clocks_that_were_not_read_are_unknown(clocks):
    result = only(clocks=clocks)
    assert isinstance(result.clock, Unknown)
    assert isinstance(result.tflops, Known)


@pytest.mark.parametrize(
    "events",
    [
        None,
        [],
        {},
        {"samples": 0, "reasons": {}},
        {"samples": 5, "reasons": None},
        {"samples": 5, "reasons": {"0x4": 6}},
        {"samples": 5, "reasons": {"power cap": 1}},
        {"samples": 5, "reasons": {"0x4": None}},
    ],
)
def test_events_that_were_not_read_are_unknown(events):
    assert isinstance(only(events=events).events, Unknown)


def test_no_event_is_known_to_be_none():
    assert only(events={"samples": 5, "reasons": {}}).events.value == {}


def test_two_entries_for_one_product_make_it_unknown():
    other = entry(device="cuda:1", bus_id="00000000:1b:00.0")
    found = parse(document(entry(), other, entry(size=16384), other))
    result = found.result("0000:1b:00.0", "float16", 8192)
    assert result.tflops.reason == "the matmul probe has two entries for float16 8192 of 0000:1b:00.0"
    assert isinstance(result.verified, Unknown)
    assert isinstance(found.result("0000:1b:00.0", "float16", 16384).tflops, Known)


def test_a_result_that_is_not_there_is_unknown_and_says_what_is_known_of_why():
    hung = entry(device="cuda:3", bus_id=None, error="no answer within 75 s")
    found = parse(document(entry(), hung, {"dtype": "float16"}))
    missing = found.result("0000:43:00.0", "float16", 8192)
    assert missing.verified.reason == (
        "the matmul probe has no float16 8192 of 0000:43:00.0; cuda:3, whose bus id is unknown: no answer within 75 s; "
        "1 of its entries name no device, dtype or size"
    )
    assert (
        parse(document(entry())).result("x", "float32", 8192).tflops.reason
        == "the matmul probe has no float32 8192 of x"
    )


@pytest.mark.parametrize(
    "bad",
    [None, 7, "x", [], {}, entry(device=""), entry(device=None), entry(dtype=16), entry(size=0), entry(size=True)],
)
def test_an_entry_that_does_not_say_what_it_measured_is_counted(bad):
    found = parse(document(bad, entry()))
    assert (found.unplaced, len(found.results)) == (1, 1)


@pytest.mark.parametrize("cublas", [None, "", "twelve", "12", 12.4, "12.4.5-rc"])
def test_a_cublas_without_a_version_is_unknown(cublas):
    assert parse(document(entry(), cublas=cublas)).cublas.reason.startswith("cuBLAS version reads ")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the matmul probe printed nothing"),
        (b" \n", "the matmul probe printed nothing"),
        (document(entry())[:-1], "the output of the matmul probe is no whole JSON document"),
        (document(entry()) * 2, "the output of the matmul probe is no whole JSON document"),
        (b"\xff\xfe\x00", "the output of the matmul probe is no whole JSON document"),
        (b"[" * 100_000, "the output of the matmul probe is no whole JSON document"),
        (b"1" * 10_000, "the output of the matmul probe is no whole JSON document"),
        (b"[]", "the output is not a document of the matmul probe"),
        (b"{}", "the output is not a document of the matmul probe"),
        (document(probe="torch"), "the output is not a document of the matmul probe"),
        (document(schema=2), "the matmul probe's document has schema 2, known is 1"),
        (document(schema=True), "the matmul probe's document has schema true, known is 1"),
        (document(results=None), "results of the matmul probe reads null, no list"),
        (document(error="this Python has no torch"), "this Python has no torch"),
        (document(error=5), "error of the matmul probe reads 5"),
        (document(entry(), error="torch does not load: x"), "torch does not load: x"),
        (document(entry(), error=" "), 'error of the matmul probe reads " "'),
        (document(entry(), error=False), "error of the matmul probe reads false"),
        (document(results=None, error="hung"), "hung"),
        (
            document(entry()).replace(b'"verified": true', b'"verified": false, "verified": true'),
            'the output of the matmul probe holds the key "verified" twice',
        ),
        (
            document(entry()).replace(b'"schema": 1', b'"schema": 1, "results": []'),
            'the output of the matmul probe holds the key "results" twice',
        ),
    ],
)
def test_what_is_not_the_whole_document_is_unknown(data, reason):
    assert parse(data).reason == reason


def test_the_probe_s_own_documents_are_read():
    blank = {
        **probe.new_document(),
        "results": [{**probe.blank_entry(("float16", 8192)), "device": "cuda:0", "error": "hung"}],
    }
    found = parse(json.dumps(blank).encode())
    assert found.result("cuda:0", "float16", 8192).tflops.reason == "hung"
    taken = probe.rate_figures([0.05, 0.051, 0.05], batch=33, size=8192)
    sample = gpu_state.smi_sample("1755, 698, 61, 5, 16, 21, 0x4")
    figures = {**taken, **gpu_state.sample_figures([sample]), "verified": True}
    figures |= {"device": "cuda:0", "repeatable": True, "repeats": 3, "digest": "0" * 16}
    blank["results"] = [{**probe.blank_entry(("float16", 8192)), **figures}]
    result = parse(json.dumps(blank).encode()).result("cuda:0", "float16", 8192)
    assert all(isinstance(getattr(result, name), Known) for name in READINGS)
    assert result.tflops.value.value == pytest.approx(2 * 8192**3 * 33 / 0.05 / 1e12)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
DEVICE = {"index": 0, "bus_id": "0000:1B:00.0", "name": "H", "capability": "9.0", "error": None}


@settings(deadline=None)  # other load must not fail it
@given(st.binary())
def test_no_bytes_make_a_parser_raise(data):
    assert isinstance(parse(data), Unknown | Matmul)
    assert isinstance(torch_info.parse(data), Unknown | torch_info.TorchInfo)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(entry())), JSON), st.dictionaries(st.sampled_from(["torch", "cublas"]), JSON)
)
def test_no_value_makes_the_parser_raise_or_a_reading_lie(changes, head):
    found = parse(document(entry(**changes), **head))
    assert found.unplaced + len(found.results) == 1
    for result in found.results.values():
        if isinstance(result.tflops, Known):
            assert 0 < result.tflops.value.value < float("inf")
        if isinstance(result.verified, Known):
            assert changes.get("verified", True) is result.verified.value


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["torch", "python", "cuda", "arch_list", "devices", "visible", "error"]), JSON),
    st.dictionaries(st.sampled_from(sorted(DEVICE)), JSON),
)
def test_no_value_makes_the_torch_parser_raise(head, device):
    whole = {"probe": "torch", "schema": 1, "torch": "2.7", "devices": [{**DEVICE, **device}], **head}
    info = torch_info.parse(json.dumps(whole).encode())
    assert isinstance(info, torch_info.TorchInfo)
    assert all(isinstance(reading, Known | Unknown) for reading in info.devices.values())


def test_the_probe_runs_on_all_gpus_and_ends_before_its_deadline():
    made = matmul_probe("/opt/jobs/bin/python", "/x/matmul.py")
    assert made.argv == ("/opt/jobs/bin/python", "/x/matmul.py", "--device", "all", "--deadline", "240")
    assert (made.name, made.family, made.tier, made.deadline) == ("matmul", "load", "acceptance", 300)
    assert {"compute.matmul-fp16", "compute.matmul-fp8", "compute.repeatable", "power.draw"} < set(made.serves)
    assert 3 in made.answers
    assert probe.parse_options(made.argv[2:]).deadline == 240
