"""The readings of a simulated node, of which single recordings are changed."""

import pytest

from nodeready import baseline
from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.gate import terms_of
from nodeready.node import Node
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs


@pytest.fixture(scope="session")
def node_of():
    """The node of a simulated one; changes by recording name: bytes, or None for not recorded."""

    def make(simulated=None, changes=None, node_type="sxm"):
        simulated = simulated or build(node_type)
        recordings = {
            name: Recording(name, rc=output.rc, stdout=output.stdout, stderr=output.stderr)
            for name, output in outputs(simulated).items()
        }
        for name, data in (changes or {}).items():
            recordings.pop(name, None)
            if data is not None:
                recordings[name] = Recording(name, stdout=data)
        settings = [f"gpu.count={len(simulated.gpus)}"]
        terms = terms_of(baseline.load(simulated.shape.node_type, "", settings))
        return Node(Evidence("folder", "node", recordings), terms)

    return make
