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
    expect("frameworks.torch/driver", node.frameworks.torch_on_driver)
    expect("frameworks.torch/cudnn", node.frameworks.cudnn)
    expect("frameworks.torch/nccl", node.frameworks.nccl)


@check("frameworks.python", remedy="Install Python 3.9 or newer for the jobs, and name it with --python.")
def test_python_of_the_job_environment_is_new_enough(node, expect):
    """Current frameworks have no packages for an older Python."""
    expect("frameworks.python", node.frameworks.python)


@check(
    "frameworks.tensorflow",
    remedy="Install TensorFlow 2.12 or newer, with its CUDA packages, in the environment of the jobs.",
)
def test_tensorflow_where_it_is_installed_is_new_enough(node, expect):
    """TensorFlow is built for CUDA 12, and with it for this GPU, from 2.12 on."""
    expect("frameworks.tensorflow", node.frameworks.tensorflow)
