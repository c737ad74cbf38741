from nodeready.check import check


@check(
    "container.runtime",
    remedy="Start the container engine; then `nvidia-ctk runtime configure` (or `nvidia-ctk cdi generate`) and restart the engine.",
)
def test_container_engine_runs_with_gpu_support(node, expect):
    """The engine itself says that it runs and that it can hand out GPUs; its configuration file proves nothing."""
    expect("container.runtime", node.container.engine)
    expect("container.runtime/gpu-support", node.container.gpu_support)


@check("container.gpu-toolkit", remedy="Install the newest NVIDIA Container Toolkit.")
def test_container_toolkit_is_new_enough(node, expect):
    """Older toolkits let a container out of its walls."""
    expect("container.gpu-toolkit", node.container.toolkit_version)


@check(
    "container.gpu-visible",
    remedy="Run the same container by hand and compare with `nvidia-smi -L`; a GPU lost after `systemctl daemon-reload` comes back with CDI.",
)
def test_container_sees_every_gpu(node, expect):
    """A container sees the GPUs that the host sees."""
    expect("container.gpu-visible", node.container.sees_all_gpus)
