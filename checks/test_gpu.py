from nodeready.check import check


@check(
    "gpu.count",
    remedy="Find the missing bus id in `lspci -d 10de:` and the kernel log; reset or power-cycle the node, then exchange the GPU.",
)
def test_driver_lists_every_gpu(node, expect):
    """The driver lists as many GPUs as were bought."""
    expect("gpu.count", node.gpu_count)


@check(
    "gpu.product",
    remedy="Compare the GPU's part number with the order; the node may be of another type than --node-type says.",
)
def test_gpu_is_what_was_bought(gpu, expect):
    """The product is told by its PCI device id; names differ between drivers and do not say SXM."""
    expect("gpu.product", gpu.product)


@check("gpu.memory", remedy="Reset the GPU and read again; if memory stays missing, exchange it.")
def test_gpu_shows_all_its_memory(gpu, expect):
    """A GPU that shows less memory than its siblings has lost part of it, or is another product."""
    expect("gpu.memory", gpu.memory)


@check(
    "gpu.compute-capability",
    remedy="The GPU is not of the Hopper generation, or the driver does not know it: compare with the order.",
)
def test_gpu_is_compute_capability_9(gpu, expect):
    """Code built for sm_90 runs on nothing else."""
    expect("gpu.compute-capability", gpu.compute_capability)


@check("gpu.mig", remedy="`nvidia-smi -i INDEX -mig 0`, then reset the GPU.")
def test_mig_is_off(gpu, expect):
    """With MIG on, whole-GPU jobs see a slice, and NVLink and throughput cannot be judged."""
    expect("gpu.mig", gpu.mig_mode)
    expect("gpu.mig/pending", gpu.mig_mode_pending)


@check("gpu.compute-mode", remedy="`nvidia-smi -i INDEX -c DEFAULT`.")
def test_gpu_lets_processes_in(gpu, expect):
    """An exclusive GPU lets in one process only, a prohibited one none."""
    expect("gpu.compute-mode", gpu.compute_mode)


@check("gpu.application-clocks", remedy="`nvidia-smi -i INDEX -rac` and `-rgc`, then read again.")
def test_clocks_are_not_set_lower(gpu, expect):
    """Clocks that the tenant before set look like weak hardware."""
    expect("gpu.application-clocks", gpu.application_clocks)


@check(
    "gpu.confidential-computing",
    remedy="Switch it off (gpu-admin-tools: --set-cc-mode=off) and reset the GPUs, or demand ON where it is wanted.",
)
def test_confidential_computing_is_as_demanded(node, expect):
    """Switched on it encrypts all transfers and takes peer-to-peer away; a site that wants it demands ON."""
    expect("gpu.confidential-computing", node.driver_parts.confidential_computing)


@check(
    "gpu.telemetry",
    remedy="Reset the GPU; if the sensor goes on answering so, have the GPU exchanged: it cannot be watched.",
)
def test_sensors_answer_with_what_a_gpu_can_have(gpu, expect):
    """Utilisation, memory, power and temperature are there and are numbers that a GPU can have."""
    expect("gpu.telemetry", gpu.health.telemetry)


@check(
    "gpu.memory-bandwidth",
    remedy="Compare memory clock and power limit with the sibling GPUs, reset it and measure again; then exchange the GPU.",
)
def test_memory_is_fast_and_keeps_what_it_holds(gpu, expect):
    """Memory below its rate slows nearly every layer of a model, and is not seen in matrix products."""
    expect("gpu.memory-bandwidth", gpu.copies.memory_rate)
    expect("gpu.memory-bandwidth/correct", gpu.copies.memory_correct)


@check(
    "gpu.memory-patterns",
    remedy="Wrong words or uncorrected errors: reset the GPU, run again, and have it exchanged if they come back. "
    "A small share: end what holds the GPU's memory, then run again.",
)
def test_memory_gives_back_what_was_written(gpu, expect):
    """Memory that loses bits spoils results in silence; a few gigabytes in use never show it."""
    expect("gpu.memory-patterns", gpu.memory_patterns.wrong_words)
    expect("gpu.memory-patterns/share", gpu.memory_patterns.share)
    expect("gpu.memory-patterns/ecc", gpu.memory_patterns.uncorrected)
    expect("gpu.memory-patterns/ecc-corrected", gpu.memory_patterns.corrected)
