"""What ports write, by corners that no simulated fault has."""

import json

import pytest

from nodeready.reading import Known, Unknown

REFUSED = "server and client: Couldn't allocate MR with error=14, failed to create mr"


def port(number, **changes):
    about = {"device": f"mlx5_{number}", "port": 1, "link_layer": "InfiniBand", "rate_gbits": 400.0, "numa": 0}
    figures = {"gbits": 392.0, "peak": None, "bytes": 8388608, "iterations": 11706, "tried": [], "error": None}
    return {**about, "gpu": f"0000:{0x19 + number:02x}:00.0", "memory": "cuda", "at_once": 8, **figures, **changes}


def silent(number, error="no answer", **changes):
    return port(number, gbits=None, bytes=None, iterations=None, error=error, **changes)


@pytest.fixture
def written(node_of):
    """The readings of a node whose ports wrote so."""

    def make(*ports, **head):
        document = {"probe": "rdma-write", "schema": 1, "cuda": True, "results": list(ports), "error": None, **head}
        changes = {"rdma-write": json.dumps(document).encode(), "rdma-files": None}
        return node_of(changes=changes).port_bandwidth

    return make


def test_the_slowest_port_by_its_share_decides_and_is_named(written):
    found = written(port(0), port(1, gbits=380.0), port(2, rate_gbits=200.0, gbits=194.0)).share
    assert (found.value, found.doubt) == (0.95, "")
    assert found.note == "mlx5_1/1 wrote 380 of 400 Gb/s through the memory of 0000:1a:00.0, the slowest of 3"


def test_a_port_without_a_figure_hides_no_slow_one(written):
    found = written(port(0, gbits=200.0), silent(1, "Completion with error at client"))
    assert found.share.value == 0.5
    assert found.every_port.reason == "mlx5_1/1: Completion with error at client"


def test_a_rate_that_is_not_told_leaves_the_share_unknown(written):
    found = written(port(0, rate_gbits=None))
    assert found.share.reason == found.every_port.reason == "mlx5_0/1: rate_gbits reads null, no number"


def test_ports_below_the_rate_that_counts_are_left_out(written):
    found = written(port(0), port(1, rate_gbits=25.0, gbits=3.0))
    assert (found.share.value, found.every_port.note) == (0.98, "1 of 1")


def test_host_memory_that_several_shared_is_in_doubt_and_a_sure_slow_port_is_the_ceiling(written):
    shared = {"memory": "host", "at_once": 2, "gbits": 240.0}
    found = written(port(0, **shared), port(1, **shared), port(2, gbits=300.0)).share
    assert (found.value, found.ceiling) == (0.6, 0.75)
    assert found.doubt == "2 ports shared the host's memory channels"
    assert written(port(0, **shared), port(1, **shared)).share.ceiling is None
    assert written(port(0, memory="host", at_once=1, gbits=240.0)).share.doubt == ""


def test_bonded_links_are_in_doubt(written):
    assert "two links" in written(port(0, device="mlx5_bond_0", gbits=200.0)).share.doubt


def test_an_active_port_that_did_not_write_is_named(node_of, written):
    node = node_of()
    document = json.loads(node.evidence.recordings["rdma-write"].stdout)
    missing = document["results"].pop()
    found = node_of(changes={"rdma-write": json.dumps(document).encode()}).port_bandwidth
    assert isinstance(found.share, Known)
    assert found.every_port.reason == f"{missing['device']}/1 is active and did not write"
    assert found.every_port.recordings == ("rdma-write", "rdma-files")


def test_entries_of_no_port_make_all_unknown(written):
    found = written(port(0), port(0))
    reasons = {reading.reason for reading in (found.share, found.every_port, found.through_gpu_memory)}
    assert reasons == {"1 entries of rdma-write do not say of which port"}


def test_without_any_port_the_network_is_the_cause(written):
    assert written().share.causes == written().every_port.causes == ("network.ports-active",)


def test_gpu_memory_that_was_refused_counts_where_the_port_wrote_otherwise(written):
    tried = [{"memory": "cuda", "error": REFUSED}]
    found = written(port(0), port(1, memory="host", tried=tried)).through_gpu_memory
    assert (found.value, found.note) == (False, f"mlx5_1/1 by host memory alone: {REFUSED}")
    # neither kind of memory: locked memory may be at fault
    unknown = written(port(0), silent(1, REFUSED, memory="host", tried=tried)).through_gpu_memory
    assert isinstance(unknown, Unknown)


def test_a_gpu_that_cuda_does_not_show_proves_nothing_of_its_port(written):
    tried = [{"memory": "cuda", "error": "server: cuDeviceGetByPCIBusId failed with error: 101"}]
    found = written(port(0), port(1, memory="host", tried=tried)).through_gpu_memory
    assert found.reason == "mlx5_1/1 did not write through it: server: cuDeviceGetByPCIBusId failed with error: 101"
    assert set(found.causes) == {"driver.responds", "gpu.count", "gpu.mig", "frameworks.torch"}


def test_ports_that_have_no_gpu_beside_them_are_no_matter_of_gpudirect(written):
    found = written(port(0), port(1, gpu=None, memory="host", at_once=1))
    assert (found.through_gpu_memory.value, found.through_gpu_memory.note) == (True, "1 by peermem")
    assert isinstance(written(port(1, gpu=None, memory="host")).through_gpu_memory, Unknown)


@pytest.mark.parametrize("cuda", [False, None])
def test_a_tool_without_cuda_tells_nothing_of_gpudirect(written, cuda):
    found = written(port(0, memory="host"), cuda=cuda).through_gpu_memory
    assert found.reason.endswith(": all data went through host memory")


def test_a_document_that_was_not_recorded_may_be_the_drivers_doing(node_of):
    found = node_of(changes={"rdma-write": None}).port_bandwidth
    for reading in (found.share, found.every_port, found.through_gpu_memory):
        assert (reading.reason, reading.causes) == ("rdma-write was not recorded", ("driver.responds",))
