"""Kernel log lines of NVLinks, network adapters and GPUDirect."""

import pytest

from nodeready.facts.kernel_links import ADAPTER, ADAPTER_WARNING, NVLINK, PEERMEM, link_events
from nodeready.facts.kernel_log import parse

BAD = [
    (NVLINK, "NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!"),
    (ADAPTER, "mlx5_core 0000:3c:00.0: poll_health:840:(pid 0): device's health compromised - reached miss count"),
    (
        ADAPTER,
        "mlx5_core 0000:3c:00.0: wait_func:1131:(pid 1024): CREATE_CQ(0x400) timeout. Will cause a leak of a command resource",
    ),
    (
        ADAPTER,
        "mlx5_core 0000:3c:00.0 mlx5_0: health recovery flow aborted since the nic state is invalid, unrecoverable",
    ),
    (
        ADAPTER_WARNING,
        "mlx5_core 0000:5c:00.0: mlx5_pcie_event:301:(pid 268269): Detected insufficient power on the PCIe slot (27W).",
    ),
    (ADAPTER_WARNING, "mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature"),
    (
        PEERMEM,
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
    ),
    (PEERMEM, "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)"),
]
GOOD = [
    "mlx5_core 0000:1a:00.0: firmware version: 28.43.2566",
    "mlx5_core 0000:1a:00.0: Port module event: module 0, Cable plugged",
    "mlx5_core 0000:1a:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
    "mlx5_core 0000:1a:00.0: mlx5_cmd_out_err:839:(pid 4711): ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2), syndrome (0x9a6171), err(-22)",
    "nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
    "nvidia_peermem: loading out-of-tree module taints kernel.",
    'audit: type=1400 msg="mlx5_core 0000:3c:00.0: device\'s health compromised"',
]
PREFIXES = ("[  812.100000] ", "2026-12-01T09:12:41+0000 node kernel: ")


@pytest.mark.parametrize(("kind", "line"), BAD)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_tells_of_a_fault(kind, line, prefix):
    (event,) = link_events([prefix + line])
    assert (event.kind, event.text) == (kind, line[:200])


@pytest.mark.parametrize("line", GOOD)
def test_what_tells_of_none(line):
    assert link_events([f"[  812.100000] {line}"]) == ()


@pytest.mark.parametrize(
    ("file", "count"), [("dmesg/06-kmsg-peermem-invalid-context.txt", 7), ("dmesg/07-dmesg-peermem-iso.txt", 5)]
)
def test_real_logs_of_gpudirect(captures, file, count):
    log = parse((captures / file).read_bytes())
    assert {event.kind for event in log.links} == {PEERMEM}
    assert len(log.links) >= count


def test_a_healthy_boot_has_none(healthy_files):
    assert parse(healthy_files["dmesg"]).links == ()
