from nodeready.check import check


@check(
    "firmware.gsp",
    remedy="Install driver and firmware packages of one build (nvidia-firmware, linux-firmware-nvidia), then reboot.",
)
def test_gsp_firmware_is_the_drivers(gpu, expect):
    """The GPU's system processor runs a firmware that belongs to one driver build."""
    expect("firmware.gsp", gpu.firmware.gsp_matches_driver)


@check(
    "firmware.inforom",
    remedy="Power-cycle the node and read again; if the InfoROM stays corrupted, have the GPU exchanged.",
)
def test_inforom_can_be_read(gpu, expect):
    """A corrupted InfoROM forgets ECC errors and remapped rows: the GPU's history is no longer known."""
    expect("firmware.inforom", gpu.firmware.inforom)
