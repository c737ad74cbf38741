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


@check(
    "container.cgroup", remedy="Boot with systemd.unified_cgroup_hierarchy=1, or move to a system that has cgroup v2."
)
def test_containers_run_under_cgroup_v2(node, expect):
    """Engines, Kubernetes and systemd give up the old hierarchies, and with them the limits of containers."""
    expect("container.cgroup", node.container_parts.cgroup_version)


@check(
    "container.daemon-reload",
    remedy="Generate a CDI specification (`nvidia-ctk cdi generate`) and use it, or make the links with `nvidia-ctk system create-dev-char-symlinks --create-all`.",
)
def test_containers_keep_their_gpus_over_a_reload(node, expect):
    """After `systemctl daemon-reload` running containers lose GPUs that systemd never learned of."""
    expect("container.daemon-reload", node.container_parts.survives_reload)
