"""What podman can hand out is what the toolkit lists; a count of none is an answer, silence is not."""

import pytest

from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.node import Node
from nodeready.node.terms import Terms
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.model import Engine
from nodeready.simulate.outputs import containers

LIST = "nvidia-ctk_cdi_list"
COUNTED = 'time="2026-12-01T09:12:41Z" level=info msg="Found {} CDI devices"\n'


def gpu_support(**changes):
    """The reading on a node with podman, of which the toolkit's list is changed."""
    node = build("sxm", 0, 1)
    node.engine = Engine("podman", "5.4.2")
    info = containers.podman_info(node)
    listed = Recording(**{"name": LIST, "stdout": b"", "stderr": COUNTED.format(0).encode(), **changes})
    recordings = {"podman_info_--format_json": Recording("podman_info_--format_json", stdout=info.stdout), LIST: listed}
    return Node(Evidence("folder", "node", recordings), Terms(1)).container.gpu_support


def test_a_list_that_counts_none_says_that_there_is_none():
    found = gpu_support()
    assert isinstance(found, Known)
    assert found.value is False
    assert found.recordings == (LIST,)


@pytest.mark.parametrize(
    "changes",
    [
        {"stderr": b""},
        {"stderr": COUNTED.format(10).encode()},
        {"stderr": COUNTED.format(0).encode(), "rc": 1},
        {"stderr": b"Found 0 CDI devices\n", "rc": 127},
    ],
)
def test_a_list_that_is_empty_for_another_reason_says_nothing(changes):
    assert isinstance(gpu_support(**changes), Unknown)


def test_devices_that_are_listed_count():
    listed = b"nvidia.com/gpu=0\nnvidia.com/gpu=all\n"
    assert gpu_support(stdout=listed, stderr=COUNTED.format(2).encode()).value is True
    assert gpu_support(stdout=b"vendor.example/net=0\n", stderr=COUNTED.format(1).encode()).value is False
