"""The parser of the rdma-write probe's document: what is odd is unknown, a part is never a value, nothing raises."""

import doctest
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeready.facts import rdma_write
from nodeready.facts.rdma_write import RdmaWrite, parse, rdma_write_probe
from nodeready.probes import rdma_write as probe
from nodeready.reading import Known, Unknown

REFUSED = "server and client: Couldn't allocate MR with error=14, failed to create mr"


def entry(**changes):
    """An entry as a port at NDR beside a GPU would give it."""
    return {
        "device": "mlx5_0",
        "port": 1,
        "link_layer": "InfiniBand",
        "rate_gbits": 400.0,
        "numa": 0,
        "gpu": "0000:1B:00.0",
        "memory": "cuda-dmabuf",
        "at_once": 8,
        "gbits": 392.84,
        "peak": None,
        "bytes": 8388608,
        "iterations": 11706,
        "tried": [{"memory": "cuda", "error": REFUSED}],
        "error": None,
        **changes,
    }


def document(*entries, **changes):
    head = {"probe": "rdma-write", "schema": 1, "perftest": "6.20", "cuda": True, "dmabuf": True, "error": None}
    return json.dumps({**head, "results": list(entries), **changes}).encode()


def only(**changes):
    (port,) = parse(document(entry(**changes))).ports.values()
    return port


def test_the_examples_in_the_docstring_hold():
    assert doctest.testmod(rdma_write) == (0, 4)


def test_a_healthy_port_is_known_throughout():
    found = parse(document(entry()))
    port = found.ports["mlx5_0/1"]
    assert (found.cuda.value, found.unplaced) == (True, 0)
    assert (port.written.value, port.rate.value, port.gpu, port.memory) == (
        392.84,
        400.0,
        "0000:1b:00.0",
        "cuda-dmabuf",
    )
    assert (port.layer, port.at_once, port.tried, port.error) == ("InfiniBand", 8, (("cuda", REFUSED),), "")


def test_the_names_are_those_that_the_probe_gives():
    port = probe.Port("mlx5_0", 1, "InfiniBand", 400.0, 0, ())
    assert port.entry("out of time").keys() == entry().keys()
    assert probe.new_document().keys() >= json.loads(document()).keys()


def test_an_error_of_a_port_is_the_reason_of_what_it_wrote():
    port = only(error="client: Completion with error at client", gbits=None, bytes=None, iterations=None)
    assert port.written.reason == port.error == "client: Completion with error at client"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gbits": None}, "gbits reads null, no number"),
        ({"gbits": "392"}, 'gbits reads "392", no number'),
        ({"gbits": True}, "gbits reads true, no number"),
        ({"gbits": 0}, "gbits reads 0, which cannot be"),
        ({"gbits": -1.0}, "gbits reads -1.0, which cannot be"),
        ({"gbits": float("nan")}, "gbits reads NaN, which cannot be"),
        ({"gbits": 47066.21}, "gbits reads 47066.21, which cannot be"),  # MiB/sec
        ({"bytes": 65536}, "bytes reads 65536, the floors are of messages of 8388608"),
        ({"bytes": None}, "bytes reads null, the floors are of messages of 8388608"),
        ({"iterations": 0}, "iterations reads 0, which cannot be"),
        ({"memory": None}, "memory reads null: what the data went through is unknown"),
        ({"memory": "rocm"}, 'memory reads "rocm": what the data went through is unknown'),
        ({"error": ""}, 'the entry\'s error reads ""'),
        ({"error": 7}, "the entry's error reads 7"),
    ],
)
def test_what_proves_nothing_is_unknown_and_says_why(changes, reason):
    assert only(**changes).written.reason == reason


@pytest.mark.parametrize("rate", [None, "400", 0, -1, True])
def test_a_rate_that_is_none_is_unknown(rate):
    assert isinstance(only(rate_gbits=rate).rate, Unknown)


@pytest.mark.parametrize("changes", [{"device": None}, {"device": ""}, {"port": "1"}, {"port": True}])
def test_an_entry_that_names_no_port_is_counted(changes):
    found = parse(document(entry(**changes), entry(device="mlx5_1")))
    assert (list(found.ports), found.unplaced) == (["mlx5_1/1"], 1)


def test_a_second_entry_of_a_port_is_counted_and_not_taken():
    found = parse(document(entry(gbits=100.0), entry()))
    assert (found.ports["mlx5_0/1"].written.value, found.unplaced) == (100.0, 1)


@pytest.mark.parametrize("cuda", [None, "yes", 1])
def test_whether_cuda_is_built_in_has_to_be_said(cuda):
    assert isinstance(parse(document(entry(), cuda=cuda)).cuda, Unknown)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the rdma-write probe printed nothing"),
        (document(entry(), error="no ib_write_bw"), "no ib_write_bw"),
        (document(entry(), error=" "), 'error of the rdma-write probe reads " "'),
        (document(entry(), results=None), "results of the rdma-write probe reads null, no list"),
        (document(entry(), probe="matmul"), "the output is not a document of the rdma-write probe"),
        (document(entry(), schema=2), "the rdma-write probe's document has schema 2, known is 1"),
    ],
)
def test_a_document_without_results_says_why(data, reason):
    assert parse(data).reason == reason


def test_no_part_of_a_document_is_a_value():
    whole = document(entry(), entry(device="mlx5_1", gbits=300.0))
    assert isinstance(parse(whole), RdmaWrite)
    assert all(isinstance(parse(whole[:length]), Unknown) for length in range(len(whole)))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(entry())), anything, anything)
def test_nothing_raises_and_a_port_has_a_number_or_a_reason(name, value, results):
    for data in (document(entry(**{name: value})), document(results=results), document(results=[value])):
        found = parse(data)
        for port in () if isinstance(found, Unknown) else found.ports.values():
            assert isinstance(port.written, Unknown) or 0 < port.written.value <= 2000
            assert isinstance(port.rate, Unknown) or port.rate.value > 0
            assert isinstance(port.written, Unknown) or port.error == ""


def test_the_probe_leaves_its_script_time_to_end_its_transfers():
    asked = rdma_write_probe("python3", "rdma_write.py")
    assert asked.argv == ("python3", "rdma_write.py", "--deadline", "120")
    assert (asked.deadline, asked.family, asked.tier, asked.answers) == (140.0, "load", "acceptance", (0, 3))
    assert isinstance(parse(document()).cuda, Known)
