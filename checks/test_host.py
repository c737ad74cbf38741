from nodeready.check import check


@check(
    "host.cpu", remedy="Bring the processors online again, and look in the BIOS for disabled cores or a missing socket."
)
def test_all_processors_are_in_use(node, expect):
    """A processor that is offline leaves the GPUs beside it without their own cores."""
    expect("host.cpu", node.host.setting("offline"))
    expect("host.cpu/sockets", node.host.sockets)
    expect("host.cpu/cores", node.host.cores)


@check("host.governor", remedy="`cpupower frequency-set -g performance`, and make it last over a reboot.")
def test_processors_run_for_speed(node, expect):
    """A governor that saves power slows every launch of a kernel and every copy."""
    expect("host.governor", node.host.setting("governor"))


@check(
    "host.clocksource",
    remedy="Look in the kernel log for why tsc was given up; update the BIOS, or boot with tsc=reliable.",
)
def test_clock_source_is_a_fast_one(node, expect):
    """A slow clock source is asked at every time stamp."""
    expect("host.clocksource", node.host.setting("clocksource"))


@check("host.numa-balancing", remedy="`sysctl -w kernel.numa_balancing=0`, and put it into /etc/sysctl.d.")
def test_kernel_moves_no_pages_between_sockets(node, expect):
    """Pages that the kernel moves under a running job stall its copies."""
    expect("host.numa-balancing", node.host.setting("numa_balancing"))


@check("host.hugepages", remedy="Boot with transparent_hugepage=madvise, or set it in tuned's profile.")
def test_transparent_hugepages_are_not_forced(node, expect):
    """With always, the kernel compacts memory in the middle of an allocation."""
    expect("host.hugepages", node.host.setting("hugepages"))


@check("host.swap", remedy="`swapoff -a`, and take the swap out of /etc/fstab.")
def test_there_is_no_swap(node, expect):
    """A job that swaps is slower than one that ends, and nobody sees why."""
    expect("host.swap", node.host.swap)


@check("host.time-sync", remedy="Start chrony or systemd-timesyncd, and look at whether its servers can be reached.")
def test_clock_follows_a_time_server(node, expect):
    """Logs of several nodes cannot be put in order by clocks that drift."""
    expect("host.time-sync", node.host.clock_synchronised)


@check(
    "host.limits",
    remedy="Raise memlock and nofile in /etc/security/limits.d and in the units that start jobs (LimitMEMLOCK=infinity).",
)
def test_limits_leave_room_for_jobs(node, expect):
    """RDMA locks the memory that it registers, and a large job opens many files."""
    expect("host.limits/locked-memory", node.host.locked_memory)
    expect("host.limits/open-files", node.host.open_files)


@check(
    "host.processes",
    remedy="Find what the named process waits for (/proc/PID/stack); reboot the node where it does not end, restart the zombie's parent.",
)
def test_no_process_hangs_in_the_kernel(node, expect):
    """A process that cannot be interrupted waits for a driver or a disk that no longer answers."""
    expect("host.processes/stuck", node.host.stuck_processes)
    expect("host.processes/zombies", node.host.zombies)


@check(
    "host.hangs",
    remedy="Read the stack below the named line in the kernel log: it names the driver or disk that was waited for.",
)
def test_kernel_log_holds_no_hang(node, expect):
    """The kernel waited for a minute or more for a disk, a driver, or memory."""
    expect("host.hangs", node.host_log.hangs)
