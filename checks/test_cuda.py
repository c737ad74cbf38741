from nodeready.check import check


@check("cuda.driver-version", remedy="Install a newer driver: the CUDA version that nvidia-smi prints is the driver's.")
def test_driver_supports_cuda_12(node, expect):
    """Programs built for CUDA 12 do not start on an older driver."""
    expect("cuda.driver-version", node.driver.cuda_version)


@check("cuda.toolkit-version", remedy="Install a CUDA 12 toolkit or newer, or remove the old one from PATH.")
def test_toolkit_is_cuda_12(node, expect):
    """Where nvcc is on the node it compiles for Hopper; nodes that run only containers have none."""
    expect("cuda.toolkit-version", node.toolkit_version)
    expect("cuda.toolkit-version/driver", node.frameworks.toolkit_on_driver)
