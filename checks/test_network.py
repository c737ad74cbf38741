from nodeready.check import check


@check(
    "network.ports-active",
    remedy="Look at cable, transceiver and switch port of each port that is down; Polling means the far side.",
)
def test_network_ports_are_up_at_rate(node, expect):
    """Jobs over several nodes run at the speed of the slowest node's network."""
    expect("network.ports-active", node.network.ports_at_rate)
    expect("network.ports-active/rails", node.adapters.rails)


@check(
    "network.twins",
    remedy="Plug, clean or exchange cable and transceiver of the port that is named; Polling means that the far side is silent.",
)
def test_no_adapter_falls_behind_its_twins(node, expect):
    """Of eight equal adapters one without a link, or with a slower one, was forgotten or is broken."""
    expect("network.twins", node.adapters.behind_twins)


@check("network.firmware", remedy="Bring all adapters of one part to one firmware release, and reboot.")
def test_adapters_run_one_firmware(node, expect):
    """Two firmware releases on equal adapters behave differently under congestion, and old ones are known to hang."""
    expect("network.firmware", node.adapters.firmware_kinds)
    expect("network.firmware/floor", node.adapters.firmware_is_new_enough)


@check("network.mtu", remedy="Set the MTU of the interface that is named to that of its twins.")
def test_interfaces_of_twins_have_one_mtu(node, expect):
    """One interface with a smaller MTU fragments or drops what its twins send."""
    expect("network.mtu", node.adapters.mtu_kinds)


@check(
    "network.errors",
    remedy="Clean and reseat the transceiver of the port that is named, then exchange the cable, then the adapter.",
)
def test_port_errors_do_not_grow(node, expect):
    """A port that is up at its rate and counts errors slows every job that sends through it."""
    expect("network.errors", node.adapters.growing_faults)
    expect("network.errors/warning", node.adapters.growing_warnings)


@check(
    "network.flaps",
    remedy="Clean and reseat the transceiver, exchange the cable, and ask for the switch port's own log.",
)
def test_ports_keep_their_links(node, expect):
    """A port that loses its link now and then is up whenever somebody looks."""
    expect("network.flaps", node.adapters.flaps)


@check(
    "network.gpudirect",
    remedy="Load nvidia_peermem after the RDMA stack, or install the open kernel module on a kernel with DMA-BUF.",
)
def test_adapters_reach_gpu_memory(node, expect):
    """Without GPUDirect every byte between nodes goes through host memory, and no error says so."""
    expect("network.gpudirect", node.adapters.gpudirect)


@check(
    "network.write-bandwidth",
    remedy="Look at the PCIe link of the adapter that is named, then at its firmware, ACS and IOMMU; then exchange it.",
)
def test_ports_write_at_their_rate(node, expect):
    """A port that is up at its rate moves less where its PCIe link, or the way to the GPU's memory, is slow."""
    expect("network.write-bandwidth", node.port_bandwidth.share)
    expect("network.write-bandwidth/every-port", node.port_bandwidth.every_port)
    expect("network.write-bandwidth/gpu-memory", node.port_bandwidth.through_gpu_memory)


@check(
    "network.log", remedy="Reset or power-cycle the adapter that the line names; update its firmware, then exchange it."
)
def test_kernel_found_no_broken_adapter(node, expect):
    """An adapter whose firmware gave up stays on the bus and in every list."""
    expect("network.log", node.adapters.log.adapter_faults)
    expect("network.log/warning", node.adapters.log.adapter_warnings)
