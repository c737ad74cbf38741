from nodeready.check import check


@check(
    "storage.space", remedy="Clear logs, images and left-over job data on the named file system, or give it more space."
)
def test_file_systems_have_room(node, expect):
    """A full file system ends jobs, loses logs and stops container engines."""
    expect("storage.space", node.storage.free_space)
    expect("storage.space/inodes", node.storage.free_inodes)


@check(
    "storage.read-only",
    remedy="Read the kernel log for the drive's error; check the file system, exchange the drive, reboot.",
)
def test_local_file_systems_can_be_written(node, expect):
    """The kernel makes a file system read-only after an error of its drive."""
    expect("storage.read-only", node.storage.read_only)
    expect("storage.read-only/remounted", node.host_log.read_only)


@check(
    "storage.errors",
    remedy="Exchange the named drive; where several are named, look at their cable, backplane and power.",
)
def test_kernel_log_holds_no_drive_error(node, expect):
    """A drive that loses writes once loses them again."""
    expect("storage.errors", node.host_log.drive_errors)
    expect("storage.errors/resets", node.host_log.drive_resets)


@check("storage.drives", remedy="Reseat the named drive and look at its slot; exchange it where it does not come up.")
def test_all_nvme_drives_work(node, expect):
    """A drive that is on the bus and does not work is a place less for data and checkpoints."""
    expect("storage.drives", node.storage.dead_drives)
    expect("storage.drives/count", node.storage.drives)


@check("storage.health", remedy="Copy what is on the named drive and exchange it.")
def test_nvme_drives_call_themselves_healthy(node, expect):
    """Spare, wear and media errors tell of a failing drive; its overall `passed` does not."""
    expect("storage.health", node.storage.warning_drives)
    expect("storage.health/wear", node.storage.wear)
    expect("storage.health/media-errors", node.storage.media_errors)


@check(
    "storage.read-rate",
    remedy="Exchange a drive that failed to read. Where one is slow, look at its link and temperature, then exchange it.",
)
def test_nvme_drives_read_at_the_rate_of_their_link(node, expect):
    """A slow drive holds up every job that loads data, and calls itself healthy."""
    expect("storage.read-rate", node.drive_rates.share)
    expect("storage.read-rate/errors", node.drive_rates.failed)


@check("storage.raid", remedy="`mdadm --detail` the named array; exchange the failed member and let the array rebuild.")
def test_software_arrays_are_whole(node, expect):
    """An array that runs short of a member loses everything with the next one."""
    expect("storage.raid", node.storage.bad_arrays)
