"""The outputs of a simulated node have the form of real ones, and say one thing in all their forms."""

import re

import pytest

from nodeready.evidence.recording import Recording
from nodeready.facts import (
    cdi,
    containerd,
    dmidecode,
    ibstat,
    ip_link,
    lscpu,
    lsmod,
    nvidia_smi,
    nvidia_smi_text,
    nvidia_smi_xml,
    nvlink,
    podman,
    topology,
)
from nodeready.facts import kernel_log as kernel_facts
from nodeready.facts import lspci as lspci_facts
from nodeready.node.catalogue import evidence_names
from nodeready.quantity import Quantity
from nodeready.reading import Known, Unknown
from nodeready.simulate.build import build
from nodeready.simulate.model import Engine
from nodeready.simulate.outputs import containers, host, kernel_log, lspci, memory, network, nvidia_smi_q, software
from nodeready.simulate.outputs import nvidia_smi as smi
from nodeready.simulate.outputs.names import outputs
from nodeready.simulate.releases import RELEASES
from nodeready.simulate.shapes import SHAPES

XML, TEXT = nvidia_smi_q.XML, nvidia_smi_q.TEXT
_SHORTENED = {"supported_mem_clock", "/supported_mem_clock", "supported_graphics_clock", "value"}


def only(captures, pattern):
    (path,) = captures.glob(pattern)
    return path.read_text(encoding="utf-8")


def tags(document):
    """Indentation and tag of every line of the first GPU, without the list of clocks that is shortened."""
    gpu = document.split("<gpu id", 1)[1].split("</gpu>", 1)[0]
    found = re.findall(r"^(\t*)<(/?\w+)", gpu, re.MULTILINE)
    return [(len(indent), tag) for indent, tag in found if tag not in _SHORTENED]


def labels(document):
    """Label and column of the colon in every line of the first GPU."""
    gpu = re.split(r"\nGPU 0000[^\n]*\n", document)[1]
    lines = [line for line in gpu.rstrip("\n").split("\n") if line]
    return [(line.partition(" : ")[0].rstrip(), line.find(" : ")) if " : " in line else (line, -1) for line in lines]


def xml(node):
    return nvidia_smi_q.documents(node)[XML]


def text(node):
    return nvidia_smi_q.documents(node)[TEXT]


def on_driver(version):
    node = build("sxm")
    node.driver.module = node.driver.library = version
    return node


def test_the_xml_has_the_tags_of_a_real_document_in_their_order(captures):
    real = only(captures, "nvidia-smi-q-xml/01-*")
    made = xml(build("sxm", driver="580.105.08")).stdout.decode()
    assert tags(made) == tags(real)
    assert made.split("\n")[:3] == real.split("\n")[:3]
    assert made.endswith("\t</gpu>\n\n</nvidia_smi_log>\n")
    assert real.endswith("\t</gpu>\n\n</nvidia_smi_log>\n")


@pytest.mark.parametrize(
    ("version", "capture"),
    [("590.48.01", "01-h100-590-idle"), ("550.54.14", "16-h100nvlx2"), ("535.161.08", "09-h100x8-535")],
)
def test_the_text_has_the_labels_and_the_column_of_each_driver_branch(captures, version, capture):
    real = only(captures, f"nvidia-smi-q/{capture}*")
    made = text(on_driver(version)).stdout.decode()
    assert labels(made) == labels(real)


def test_the_xml_of_the_newest_branch_has_the_tags_of_a_real_document(captures):
    real = only(captures, "nvidia-smi-q-xml/06-*")
    made = xml(build("pcie", driver="595.91.07")).stdout.decode()
    assert tags(made) == tags(real)
    assert "<power_state>Requested functionality has been deprecated</power_state>" in made
    assert made.split("\n")[1] == real.split("\n")[1]


def test_the_text_of_branch_570_has_both_forms_of_the_recovery_action_and_no_event_counters():
    made = text(build("sxm", driver="570")).stdout.decode()
    reset, gone = "        Reset Required                    : ", "Requested functionality has been deprecated"
    assert made.count(f"{reset}{gone}\n") == made.count("    GPU Recovery Action                   : None\n") == 8
    assert "Average Power Draw                : " in made
    assert "Clocks Event Reasons Counters" not in made


@pytest.mark.parametrize("branch", RELEASES)
@pytest.mark.parametrize("node_type", SHAPES)
def test_a_healthy_node_of_any_branch_misses_nothing_but_fixes(node_type, branch, verdicts):
    missed = {at[0]: verdict for at, verdict in verdicts(build(node_type, driver=branch)).items() if verdict != "pass"}
    late = branch in ("535", "550", "570")
    assert missed == (dict.fromkeys(("driver.branch-supported", "driver.security-floor"), "advisory") if late else {})


@pytest.mark.parametrize("branch", RELEASES)
def test_both_documents_of_any_branch_say_the_same(branch):
    node = build("h200-nvl", driver=branch)
    by_xml, by_text = nvidia_smi_xml.parse(xml(node).stdout), nvidia_smi_text.parse(text(node).stdout)
    for bus_id, fields in by_xml.gpus.items():
        for name in nvidia_smi.FIELDS:
            one, other = fields[name], by_text.gpus[bus_id][name]
            assert isinstance(one, Known) == isinstance(other, Known), name
            assert not isinstance(one, Known) or one.value == other.value, name


def test_both_documents_say_the_same_of_every_gpu():
    node = build("sxm", seed=7)
    by_xml = nvidia_smi_xml.parse(xml(node).stdout)
    by_text = nvidia_smi_text.parse(text(node).stdout)
    assert list(by_xml.gpus) == list(by_text.gpus) == [gpu.bus_id for gpu in node.gpus]
    assert by_xml.attached.value == by_text.attached.value == 8
    for bus_id, fields in by_xml.gpus.items():
        for name in nvidia_smi.FIELDS:
            one, other = fields[name], by_text.gpus[bus_id][name]
            if name.startswith("fabric_health_"):  # Hopper's boards report none
                assert "'N/A'" in one.reason
                assert "'N/A'" in other.reason
                continue
            assert isinstance(one, Known), (name, one)
            assert one.value == other.value, name


def test_values_differ_between_gpus_and_stay_within_healthy_ranges():
    gpus = build("sxm", seed=3).gpus
    for attribute in ("serial", "uuid", "pdi", "module_id", "bus_id"):
        assert len({getattr(gpu, attribute) for gpu in gpus}) == 8, attribute
    assert all(4 <= gpu.replays <= 150 and 27 <= gpu.temperature <= 33 for gpu in gpus)
    assert all(86 <= gpu.temperature + gpu.margin <= 88 for gpu in gpus)
    rates = [gpu.rates["float16", 8192].tflops for gpu in gpus]
    assert min(rates) / max(rates) > 0.95


def test_lspci_lists_the_board_and_prints_fields_that_lspci_prints(captures):
    made = lspci.with_numbers(build("sxm")).stdout
    listing = lspci_facts.parse(made)
    devices = listing.devices.values()
    assert not listing.cut
    assert sum(device.is_gpu for device in devices) == 8
    assert sum(device.is_nvswitch for device in devices) == 4
    assert sum(device.vendor_device.value == "15b3:1021" for device in devices) == 8
    assert b"Width x1 (downgraded)" in made
    assert made.count(b"CESta:\tRxErr+ BadTLP+") == 16  # sticky, on every GPU and the port above it
    real = only(captures, "lspci/01-*")

    def field_names(text):
        return set(re.findall(r"^\t+([A-Z!][A-Za-z0-9 ]+[:#])", text, re.MULTILINE))

    assert field_names(made.decode()) <= field_names(real)


def test_one_gpu_of_lspci_matches_a_real_one_where_it_is_judged(captures):
    def block(text):
        return re.search(r"^19:00\.0 3D controller.*?\n\n", text, re.MULTILINE | re.DOTALL)[0]

    made, real = block(lspci.with_numbers(build("sxm")).stdout.decode()), block(only(captures, "lspci/01-*"))
    for field in ("LnkSta", "CESta", "UESta", "CEMsk", "UESvrt", "LaneErrStat", "LnkCap2", "LnkCtl2"):
        (mine,), (theirs,) = (re.findall(rf"^\t\t{field}:.*$", text, re.MULTILINE) for text in (made, real))
        assert mine == theirs


def test_the_small_files_are_those_of_a_real_node(captures):
    node = build("sxm")
    assert software.os_release(node).stdout.decode().split() == only(captures, "os-release/01-*").split()
    keys = re.findall(r"^(\w+\S*):", memory.meminfo(node).stdout.decode(), re.MULTILINE)
    real_keys = re.findall(r"^(\w+\S*):", only(captures, "meminfo/01-*"), re.MULTILINE)
    assert [key for key in real_keys if key in keys] == keys
    real_slots = set(re.findall(r"^\s+([A-Z][\w -]+):", only(captures, "sys-info/02-*"), re.MULTILINE))
    assert set(re.findall(r"^\t([A-Z][\w -]+):", memory.dmidecode(node).stdout.decode(), re.MULTILINE)) <= real_slots
    links = smi.nvlink_status(node).stdout.decode().split("\n")[:19]
    assert links[1:] == only(captures, "nvlink-s/01-*").rstrip("\n").split("\n")[1:]


@pytest.mark.parametrize("node_type", SHAPES)
def test_every_output_has_an_evidence_name_and_answers(node_type):
    probes = evidence_names()
    for name, output in outputs(build(node_type)).items():
        if output.rc == 127:
            assert not SHAPES[node_type].fabric_manager
            assert name == "nv-fabricmanager_--version"
            continue
        recording = Recording(name, rc=output.rc, stdout=output.stdout)
        assert recording.rc in probes[name].answers
        assert not output.stderr
        assert recording.stdout.endswith(b"\n")


@pytest.mark.parametrize(
    ("node_type", "device", "memory_mib", "watts", "clocks", "links"),
    [
        ("sxm", "10de:2330", 81559, 700, (1980, 2619), 18),
        ("sxm-4", "10de:2330", 81559, 700, (1980, 2619), 18),
        ("sxm-1", "10de:2330", 81559, 700, (1980, 2619), 18),
        ("pcie", "10de:2331", 81559, 350, (1755, 1593), 0),
        ("nvl", "10de:2321", 95830, 400, (1785, 2619), 12),
        ("h200-sxm", "10de:2335", 143771, 700, (1980, 3201), 18),
        ("h200-nvl", "10de:233b", 143771, 600, (1785, 3201), 18),
    ],
)
def test_each_type_holds_its_product(node_type, device, memory_mib, watts, clocks, links):
    node = build(node_type)
    document = nvidia_smi_xml.parse(xml(node).stdout)
    shown = nvlink.parse(smi.nvlink_status(node).stdout)
    assert len(document.gpus) == len(shown.gpus) == SHAPES[node_type].gpus
    for fields, status in zip(document.gpus.values(), shown.gpus.values(), strict=True):
        assert fields["device_id"].value == device
        assert (fields["memory_total"].value, fields["power_limit"].value) == (
            Quantity(memory_mib, "MiB"),
            Quantity(watts, "W"),
        )
        assert fields["sm_clock_max"].value == Quantity(clocks[0], "MHz")
        assert sum(link.speed is not None for link in status.links.value) == links
    assert f"<mem_clock>{clocks[1]} MHz</mem_clock>" in xml(node).stdout.decode()
    assert document.gpus[node.gpus[0].bus_id]["virtualization"].value == (
        "Pass-Through" if node_type == "sxm-1" else "None"
    )


def test_only_boards_with_nvswitches_have_a_fabric_of_their_own():
    for node_type, shape in SHAPES.items():
        node = build(node_type)
        listing = lspci_facts.parse(lspci.with_numbers(node).stdout)
        switches = sum(device.is_nvswitch for device in listing.devices.values())
        assert switches == (4 if node_type in ("sxm", "h200-sxm") else 0)
        assert (software.fabric_manager_state(node).stdout == b"active\n") == bool(switches)
        state = nvidia_smi_xml.parse(xml(node).stdout).gpus[node.gpus[0].bus_id]["fabric_state"]
        assert isinstance(state, Known) == (shape.fabric[0] == "Completed")
        assert isinstance(state, Known) or "'N/A'" in state.reason


def test_a_card_without_a_bridge_says_what_real_ones_say():
    assert smi.nvlink_status(build("pcie")).stdout.decode().split("\n")[1:] == [
        "NVML: Unable to retrieve NVLink information as all links are inActive",
        "",
    ]


@pytest.mark.parametrize("node_type", SHAPES)
def test_all_forms_of_lspci_list_the_same_devices(node_type):
    node = build(node_type)
    full, plain, short = (
        lspci_facts.parse(form(node).stdout) for form in (lspci.with_numbers, lspci.verbose, lspci.listing)
    )
    assert list(full.devices) == list(plain.devices) == list(short.devices)
    assert not full.cut
    assert not plain.cut
    for bus_id, device in full.devices.items():
        assert short.devices[bus_id].vendor_device.value == device.vendor_device.value
        if device.is_gpu:
            assert plain.devices[bus_id].vendor_device.value == device.vendor_device.value
            assert plain.devices[bus_id].link_generation.value == device.link_generation.value == 5


def test_ibstat_has_the_form_of_a_real_one_and_names_what_the_kernel_shows(captures):
    node = build("sxm")
    made = network.ibstat(node).stdout.decode()

    def skeleton(document):
        return {re.sub(r":.*", ":", line) for line in document.split("\n") if line and line[:3] != "CA "}

    assert skeleton(made) == skeleton(only(captures, "ibstat/03-*"))
    ports = ibstat.parse(made.encode())
    assert [str(port.rate.value) for port in ports].count("400 Gb/s") == 8
    assert sorted({(str(p.rate.value), p.link_layer.value) for p in ports}) == [
        ("100 Gb/s", "Ethernet"),
        ("400 Gb/s", "InfiniBand"),
    ]
    speeds = ip_link.parse_speeds(network.speeds(node).stdout)
    interfaces = ip_link.parse(network.ip_link(node).stdout)
    up = {i.name for i in interfaces if isinstance(i.operstate, Known) and i.operstate.value == "UP"}
    assert {port.interface for port in node.ports} <= up
    assert sum(isinstance(speed, Known) and speed.value >= Quantity(400, "Gb/s") for speed in speeds.values()) == 8
    assert len(ibstat.parse(network.ibstat(build("h200-nvl")).stdout)) == 4
    assert network.ibstat(build("pcie")) is None
    virtual = ip_link.parse_speeds(network.speeds(build("sxm-1")).stdout)
    assert virtual["eth0"].reason == "speed of eth0 reads '-1'"


def test_a_virtual_machine_is_one_in_every_output():
    node = build("sxm-1")
    assert lscpu.parse(host.lscpu(node).stdout).hypervisor.value == "KVM"
    assert lscpu.parse(host.lscpu(build("sxm")).stdout).hypervisor.value == lscpu.BARE_METAL
    found = dmidecode.parse(memory.dmidecode(node).stdout)
    assert str(found.installed.value) == "240 GiB"
    assert b"Manufacturer: QEMU" in memory.dmidecode(node).stdout
    assert b"Hypervisor detected: KVM" in kernel_log.render(node).stdout


@pytest.mark.parametrize(
    ("node_type", "link"),
    [("sxm", "NV18"), ("sxm-4", "NV6"), ("nvl", "NV12"), ("h200-nvl", "NV6")],
)
def test_the_matrix_joins_what_nvlink_joins(node_type, link):
    found = topology.parse(host.topology(build(node_type)).stdout)
    gpus = found.gpus
    assert len(gpus) == SHAPES[node_type].gpus
    assert {found.link(one, other).value for one in gpus for other in gpus if one != other} == {link}
    assert set(found.nics.values()) == {port.rdma_name for port in build(node_type).ports}


def test_the_modules_are_those_of_the_driver_that_has_the_gpus():
    node = build("sxm")
    assert lsmod.parse(host.modules(node).stdout).loaded("nvidia_uvm").value is True
    node.driver.bound = "nouveau"
    loaded = lsmod.parse(host.modules(node).stdout)
    assert (loaded.loaded("nvidia").value, loaded.loaded("nouveau").value) == (False, True)


def test_other_engines_answer_in_their_own_form():
    node = build("pcie", gpu_count=2)
    assert containers.podman_info(node) is None
    node.engine = Engine("podman", "5.4.2", cdi=True)
    assert podman.parse(containers.podman_info(node).stdout).version.value == "5.4.2"
    listed = cdi.parse(containers.cdi_list(node).stdout).value
    assert listed[:2] == ("nvidia.com/gpu=0", "nvidia.com/gpu=1")
    assert listed[-1] == "nvidia.com/gpu=all"
    assert containers.docker_info(node).rc == 127
    node.engine = Engine("containerd", "v2.1.4")
    assert containerd.parse(containers.containerd_version(node).stdout).server_version.value == "2.1.4"


def test_the_journal_holds_what_dmesg_holds():
    node = build("nvl")
    log, same = kernel_facts.parse(kernel_log.render(node).stdout), kernel_facts.parse(kernel_log.journal(node).stdout)
    assert log.line_count == same.line_count
    assert log.starts_at_boot
    assert same.starts_at_boot
    assert kernel_log.journal(node).stdout.startswith(b"2026-11-30T07:08:40+0000 nvl-0000 kernel: Linux version")


def test_the_kernel_log_of_a_healthy_node_starts_at_boot_and_holds_lines_that_only_look_bad():
    log = outputs(build("sxm"))["dmesg"].stdout.decode()
    assert log.startswith("[    0.000000] Linux version ")
    assert 140 <= log.count("\n") <= 190
    for harmless in ("EDAC MC: Ver: 3.0.0", "mce: CPU supports", "AER: enabled"):
        assert harmless in log
    times = [float(stamp) for stamp in re.findall(r"^\[ *([0-9.]+)\]", log, re.MULTILINE)]
    assert times == sorted(times)


def test_a_document_that_was_cut_is_not_read():
    node = build("sxm")
    whole = xml(node).stdout
    assert isinstance(nvidia_smi_xml.parse(whole[: len(whole) // 2]), Unknown)


def test_a_value_can_be_replaced_in_both_documents_and_a_misspelt_field_is_an_error():
    node = build("sxm")
    node.gpus[2].printed["remapped_rows/remapped_row_pending"] = "Yes"
    for made in (
        nvidia_smi_xml.parse(xml(node).stdout),
        nvidia_smi_text.parse(text(node).stdout),
    ):
        pending = [fields["row_remap_pending"].value for fields in made.gpus.values()]
        assert pending == ["No", "No", "Yes", "No", "No", "No", "No", "No"]
    node.gpus[2].printed["remapped_rows/pending"] = "Yes"
    with pytest.raises(ValueError, match="prints no remapped_rows/pending"):
        xml(node)
