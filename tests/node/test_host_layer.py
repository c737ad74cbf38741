"""Host, storage and BMC through the node's readings: nodes without a BMC, other forms, sites and guests."""

import dataclasses

import pytest

from nodeready import baseline
from nodeready.check import load_checks
from nodeready.engine import Judging
from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.gate import terms_of
from nodeready.node import Node
from nodeready.plan import Plan
from nodeready.simulate.build import build
from nodeready.simulate.outputs.names import outputs
from nodeready.simulate.outputs.output import Output, not_installed, text
from nodeready.simulate.write import faulty

CHECKS = load_checks()
SDR, SEL = "ipmitool_sdr_elist", "ipmitool_sel_elist"
BY_BMC = ("power.supplies", "thermal.fans", "thermal.inlet", "bmc.events")


def judged(node, changes=(), base=None):
    """The findings on a node, some of whose outputs are others."""
    plan = Plan(base or baseline.load(node.shape.node_type), "quick")
    made = {**outputs(node), **dict(changes)}
    recordings = {
        name: Recording(name, rc=o.rc, stdout=o.stdout, stderr=o.stderr) for name, o in made.items() if o is not None
    }
    judging = Judging(plan, Node(Evidence("folder", "n", recordings), terms_of(plan.baseline)))
    judging.run_all(CHECKS)
    assert judging.errors == {}
    return {f.key: f for f in judging.findings() if f.subject == "node"}, plan, judging


def site(tmp_path, content, node_type="sxm"):
    path = tmp_path / "site.toml"
    path.write_text(f'extends = "{node_type}@2026.12"\n{content}')
    return baseline.load(node_type, str(path))


def test_a_node_without_a_bmc_is_accepted_with_advisories_and_says_so_plainly():
    found, plan, judging = judged(faulty("sxm", ["no-bmc"], {}, 0))
    for key in BY_BMC:
        assert found[key].reason == "this node shows no BMC: the kernel has no IPMI device", key
    assert found["bmc.responds"].verdict.value == "advisory"
    assert plan.acceptance(judging.findings()).value == "accepted-with-advisories"


def test_a_bmc_that_the_firmware_names_and_the_kernel_cannot_reach_is_no_missing_bmc():
    files = outputs(build("sxm"))["host-files"]
    hidden = dataclasses.replace(files, stdout=files.stdout.replace(b"/sys/class/ipmi/ipmi0/dev:236:0\n", b""))
    refused = Output(b"", 1, b"Could not open device at /dev/ipmi0: No such file or directory\n")
    found, *_ = judged(build("sxm"), {"host-files": hidden, SDR: refused, SEL: refused})
    assert "load ipmi_si and ipmi_devintf" in found["thermal.fans"].reason
    assert found["bmc.responds"].verdict.value == "advisory"


def test_a_plain_user_who_cannot_open_the_device_is_not_told_that_there_is_none():
    refused = Output(b"", 1, b"Could not open device at /dev/ipmi0: Permission denied\n")
    found, *_ = judged(build("sxm"), {SDR: refused, SEL: refused})
    assert found["bmc.responds"].verdict.value == "unverified"
    assert "Permission denied" in found["thermal.fans"].reason


def test_freeipmi_is_asked_where_ipmitool_is_missing(captures):
    real = (captures / "ipmi/01-ipmi-sensors-psu-lost.txt").read_bytes()
    forms = {SDR: not_installed("ipmitool"), "ipmi-sensors": Output(real.rstrip(b"\n") + b"\nend:\n")}
    found, *_ = judged(build("sxm"), forms)
    assert found["power.supplies"].verdict.value == "fail"
    assert "PWR_PSU0: critical at 0 Watts" in found["power.supplies"].message
    assert found["power.supplies/redundancy"].verdict.value == "advisory"
    assert "no sensor of fans" in found["thermal.fans"].reason


def test_words_that_no_table_knows_are_neither_well_nor_a_fault():
    rows = text("PS1 Status       | 85h | ok  | 10.1 | Presence detected, Wobbly", "end:")
    found, *_ = judged(build("sxm"), {SDR: rows})
    assert found["power.supplies"].verdict.value == "unverified"
    assert "Wobbly" in found["power.supplies"].reason


def test_one_lost_feed_is_one_failure():
    found, *_ = judged(faulty("sxm", ["supply-without-input"], {}, 0))
    assert [key for key, f in found.items() if f.verdict.value == "fail"] == ["power.supplies"]
    assert "PS6 Status: Power Supply AC lost" in found["power.supplies"].message


def test_a_new_event_is_a_failure_only_where_it_is_known_to_be_new():
    node = faulty("sxm", ["bmc-event-memory"], {}, 0)
    files = outputs(node)["host-files"]
    timeless = dataclasses.replace(files, stdout=files.stdout.replace(b"btime:", b"bt:"))
    assert judged(node)[0]["bmc.events"].verdict.value == "fail"
    found = judged(node, {"host-files": timeless})[0]
    assert (found["bmc.events"].verdict.value, found["bmc.events/standing"].verdict.value) == ("unverified", "advisory")


@pytest.mark.parametrize(
    ("filled", "verdict", "note"), [(32, "pass", "32"), (31, "fail", "empty: B16"), (30, "fail", "empty: B15, B16")]
)
def test_one_dead_dimm_of_many_is_found_by_the_sites_count(tmp_path, filled, verdict, note):
    base = site(tmp_path, '["memory.dimms/count"]\nrequired = { equals = 32 }\n')
    node = build("sxm")
    for dimm in node.dimms[filled:]:
        dimm.size_gib = 0
    node.mem_total_kib = node.mem_total_kib * filled // 32
    found, *_ = judged(node, base=base)
    assert found["memory.installed"].verdict.value == "pass"
    assert found["memory.dimms/count"].verdict.value == verdict
    assert note in found["memory.dimms/count"].message
    # without the site's number only an odd one shows
    plain, *_ = judged(node)
    assert plain["memory.dimms"].verdict.value == ("advisory" if filled % 2 else "pass")
    assert plain["memory.dimms/count"].verdict.value == "not-applicable"


def test_a_site_says_how_many_sockets_cores_drives_and_supplies_it_has(tmp_path):
    content = "".join(
        f'["{key}"]\nrequired = {{ {bound} }}\n'
        for key, bound in {
            "host.cpu/sockets": "equals = 2",
            "host.cpu/cores": "equals = 112",
            "storage.drives/count": "equals = 9",
            "power.supplies/count": "equals = 6",
            "memory.dimms/speed": "min = 4800",
        }.items()
    )
    found, *_ = judged(build("sxm"), base=site(tmp_path, content))
    assert {
        key: found[key].verdict.value for key in found if key.count("/") and found[key].verdict.value == "fail"
    } == {
        "storage.drives/count": "fail",
        "memory.dimms/speed": "fail",
    }
    assert "8480+" in found["host.cpu/cores"].message
    assert "made for 4800" in found["memory.dimms/speed"].message


def test_a_guest_of_eight_gpus_is_judged_without_what_only_its_host_can_see(tmp_path):
    base = site(tmp_path, "virtual = true\n")
    node = build("sxm")
    node.host.hypervisor = "KVM"
    gone = dict.fromkeys((SDR, SEL, "edac", "nvme-drives", "nvme-health", "dmidecode_-t_39"))
    found, plan, judging = judged(node, gone, base=base)
    assert [f.message for f in judging.findings() if f.verdict.value not in ("pass", "not-applicable")] == []
    assert found["platform.hypervisor"].verdict.value == "not-applicable"
    assert "the memory controllers are the host's" in found["memory.errors/corrected"].message
    found, plan, judging = judged(node, gone)
    assert plan.acceptance(judging.findings()).value == "accepted-with-advisories"
    assert found["memory.errors/corrected"].verdict.value == "unverified"


def test_a_virtual_baseline_still_judges_what_it_gives_bounds_to_itself(tmp_path):
    base = site(tmp_path, 'virtual = true\n["storage.drives/count"]\nrequired = { equals = 8 }\n')
    assert base.demands["storage.drives/count"].required is not None
    assert base.demands["storage.drives"].absent
    with pytest.raises(baseline.BaselineError, match="virtual = False: write true"):
        site(tmp_path, "virtual = false\n")


def test_supplies_are_held_against_the_gpus_that_are_planned_and_the_sites_own_margin():
    base = baseline.load("pcie", "", ["gpu.count=8", "power.host=9500 W"])
    found, *_ = judged(build("pcie", 0, 8), base=base)
    assert found["power.supply-rating"].verdict.value == "fail"
    assert "4 supplies of 10800 W in all, 9500 W of it for the host" in found["power.supply-rating"].message
    with pytest.raises(baseline.BaselineError, match="not a power"):
        terms_of(baseline.load("pcie", "", ["power.host=9500 GB/s"]))


@pytest.mark.parametrize(
    ("rows", "stuck"),
    [
        (["/dev/sda2 / ext4 rw 0 0", "/dev/sdb1 /data xfs ro 0 0"], 1),
        (["/dev/sda2 / ext4 rw 0 0", "/dev/sda2 /var/lib/kubelet/x ext4 ro 0 0"], 0),
        (["/dev/sda2 / ext4 rw 0 0", "/dev/sda3 /boot ext4 ro 0 0", "/dev/sda4 /usr btrfs ro 0 0"], 0),
        (["overlay / overlay rw 0 0", "/dev/loop3 /snap/core squashfs ro 0 0"], 0),
        (["/dev/sda2 / ext4 ro 0 0", "/dev/sda2 /mnt/x ext4 ro 0 0"], 1),
        (["/dev/sda2 / ext4 rw 0 0", "nas:/home /home nfs4 ro 0 0"], 0),
    ],
)
def test_read_only_is_a_fault_of_local_file_systems_that_are_written_nowhere(rows, stuck):
    found, *_ = judged(build("sxm"), {"proc/mounts": text(*rows)})
    assert found["storage.read-only"].observed == {"value": stuck, "unit": ""}


def test_a_drive_over_the_network_is_not_this_nodes():
    output = outputs(build("sxm"))["nvme-drives"]
    far = b"/sys/class/nvme/nvme9/state:connecting\n/sys/class/nvme/nvme9/transport:tcp\n"
    found, *_ = judged(build("sxm"), {"nvme-drives": dataclasses.replace(output, stdout=far + output.stdout)})
    assert found["storage.drives"].verdict.value == "pass"
    assert found["storage.drives/count"].observed == {"value": 8, "unit": ""}


def test_a_drive_without_a_health_log_leaves_the_health_unknown():
    node = faulty("sxm", ["drive-worn"], {}, 0)
    output = outputs(node)["nvme-health"]
    short = output.stdout[output.stdout.index(b"drive:/dev/nvme1") :]
    found, *_ = judged(node, {"nvme-health": dataclasses.replace(output, stdout=short)})
    assert found["storage.health/wear"].verdict.value == "unverified"
    assert "nvme0" in found["storage.health/wear"].reason


def test_wear_of_a_node_in_service_is_no_news():
    node = faulty("sxm", ["drive-worn", "drive-media-errors"], {}, 0)
    found, *_ = judged(node, base=baseline.load("sxm", in_service=True))
    assert found["storage.health/wear"].verdict.value == "pass"
    assert found["storage.health/media-errors"].verdict.value == "advisory"
