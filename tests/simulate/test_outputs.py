"""The outputs of a simulated node have the form of real ones, and say one thing in all their forms."""

import re

import pytest

from nodeready.evidence.recording import Recording
from nodeready.facts import lspci as lspci_facts
from nodeready.facts import nvidia_smi, nvidia_smi_text, nvidia_smi_xml
from nodeready.node.catalogue import evidence_names
from nodeready.reading import Known, Unknown
from nodeready.simulate.model import build
from nodeready.simulate.outputs import lspci, memory, nvidia_smi_q, software
from nodeready.simulate.outputs import nvidia_smi as smi
from nodeready.simulate.outputs.names import outputs

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


def on_driver(version):
    node = build("sxm")
    node.driver.module = node.driver.library = version
    return node


def test_the_xml_has_the_tags_of_a_real_document_in_their_order(captures):
    real = only(captures, "nvidia-smi-q-xml/01-*")
    made = nvidia_smi_q.xml(build("sxm")).stdout.decode()
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
    made = nvidia_smi_q.text(on_driver(version)).stdout.decode()
    assert labels(made) == labels(real)


def test_both_documents_say_the_same_of_every_gpu():
    node = build("sxm", seed=7)
    by_xml = nvidia_smi_xml.parse(nvidia_smi_q.xml(node).stdout)
    by_text = nvidia_smi_text.parse(nvidia_smi_q.text(node).stdout)
    assert list(by_xml.gpus) == list(by_text.gpus) == [gpu.bus_id for gpu in node.gpus]
    assert by_xml.attached.value == by_text.attached.value == 8
    for bus_id, fields in by_xml.gpus.items():
        for name in nvidia_smi.FIELDS:
            one, other = fields[name], by_text.gpus[bus_id][name]
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
    made = lspci.render(build("sxm")).stdout
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

    made, real = block(lspci.render(build("sxm")).stdout.decode()), block(only(captures, "lspci/01-*"))
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


def test_every_output_has_an_evidence_name_and_answers():
    probes = evidence_names()
    for name, output in outputs(build("sxm")).items():
        recording = Recording(name, rc=output.rc, stdout=output.stdout)
        assert recording.rc in probes[name].answers
        assert not output.stderr
        assert recording.stdout.endswith(b"\n")


def test_the_kernel_log_of_a_healthy_node_starts_at_boot_and_holds_lines_that_only_look_bad():
    log = outputs(build("sxm"))["dmesg"].stdout.decode()
    assert log.startswith("[    0.000000] Linux version ")
    assert 140 <= log.count("\n") <= 180
    for harmless in ("EDAC MC: Ver: 3.0.0", "mce: CPU supports", "AER: enabled"):
        assert harmless in log
    times = [float(stamp) for stamp in re.findall(r"^\[ *([0-9.]+)\]", log, re.MULTILINE)]
    assert times == sorted(times)


def test_a_document_that_was_cut_is_not_read():
    node = build("sxm")
    whole = nvidia_smi_q.xml(node).stdout
    assert isinstance(nvidia_smi_xml.parse(whole[: len(whole) // 2]), Unknown)


def test_a_value_can_be_replaced_in_both_documents_and_a_misspelt_field_is_an_error():
    node = build("sxm")
    node.gpus[2].printed["remapped_rows/remapped_row_pending"] = "Yes"
    for made in (
        nvidia_smi_xml.parse(nvidia_smi_q.xml(node).stdout),
        nvidia_smi_text.parse(nvidia_smi_q.text(node).stdout),
    ):
        pending = [fields["row_remap_pending"].value for fields in made.gpus.values()]
        assert pending == ["No", "No", "Yes", "No", "No", "No", "No", "No"]
    node.gpus[2].printed["remapped_rows/pending"] = "Yes"
    with pytest.raises(ValueError, match="prints no remapped_rows/pending"):
        nvidia_smi_q.xml(node)
