from nodeready.check import check


@check(
    "frameworks.torch",
    remedy="Install a PyTorch build for CUDA 12 or newer in the environment that runs the jobs, and name it with --python.",
)
def test_torch_of_the_job_environment_uses_the_gpu(node, expect):
    """A CPU build, an old build or one without code for sm_90 reports the GPU and then fails, or never uses it."""
    expect("frameworks.torch", node.torch.version)
    expect("frameworks.torch/cuda", node.torch.cuda)
    expect("frameworks.torch/arch", node.torch.has_sm_90)
    expect("frameworks.torch/devices", node.torch.works_on_every_gpu)
