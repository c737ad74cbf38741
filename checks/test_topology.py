from nodeready.check import check


@check(
    "topology.adapters",
    remedy="Look whether the adapter of the named GPU is gone from the bus, or sits in another slot than on the other nodes; "
    "then compare the BIOS settings, such as the NUMA nodes of a socket.",
)
def test_every_gpu_has_its_adapter_beside_it(node, expect):
    """A GPU whose adapter hangs off another switch or processor sends all its traffic the long way round."""
    expect("topology.adapters", node.places.without_adapter)
    expect("topology.adapters/matrix", node.places.differing)
