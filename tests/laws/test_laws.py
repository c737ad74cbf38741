"""Laws that no evidence breaks: prefixes, order, names, forms."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

XML, TEXT = "nvidia-smi_-q_-x", "nvidia-smi_-q"
# what was measured of GPUs under load
LOADS = ("matmul", "copies", "patterns", "allreduce")
QUIET = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
OPEN_ENDED = (
    "dmesg",
    "journalctl_-k_-b_--no-pager_-o_short-iso",
)  # a log that ends earlier is a log of an earlier moment


def observed(findings):
    return {(f.key, f.subject): f.observed for f in findings}


def verdicts(findings):
    return {(f.key, f.subject): f.verdict.value for f in findings}


@pytest.mark.parametrize(
    "faults",
    [(), ("row-remap-pending", "pcie-x8-link", "nvlink-link-down", "docker-without-nvidia")],
    ids=["healthy", "sick"],
)
def test_any_prefix_gives_the_same_value_or_none_that_passes(bench, faults):
    node = bench("sxm", *faults)
    whole = observed(node.healthy.values())
    names = sorted(name for name, r in node.evidence.recordings.items() if name not in OPEN_ENDED and r.stdout)

    @QUIET
    @given(st.data())
    def law(data):
        name = data.draw(st.sampled_from(names))
        output = node.evidence.recordings[name].stdout
        cut = data.draw(
            st.one_of(
                st.integers(0, len(output) - 1), st.sampled_from([m.end() for m in re.finditer(rb"\n", output)] or [0])
            )
        )
        for finding in node.findings({name: output[:cut], **({TEXT: None} if name == XML else {})}):
            if finding.verdict.value in ("pass", "advisory") and name in finding.evidence:
                at = (finding.key, finding.subject)
                assert finding.observed == whole[at], f"{name} cut at {cut}: {at} {finding.message}"

    law()


def _shuffled(document, order):
    """An XML document with its GPU blocks in another order."""
    head, *blocks = re.split(r"(?=\t<gpu id=)", document)
    last, tail = blocks[-1].split("</nvidia_smi_log>")
    blocks[-1] = last
    return head + "".join(blocks[i] for i in order) + "</nvidia_smi_log>" + tail


@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.permutations(range(8)))
def test_the_order_of_gpus_in_a_document_changes_nothing(bench, order):
    node = bench("sxm", "ecc-off")
    document = node.evidence.recordings[XML].stdout.decode()
    changed = node.findings({XML: _shuffled(document, order).encode()})
    assert verdicts(changed) == verdicts(node.healthy.values())
    assert observed(changed) == observed(node.healthy.values())


@pytest.mark.parametrize(("one", "other"), [(0, 7), (2, 5)])
def test_swapping_two_gpus_changes_verdicts_by_their_subject_only(bench, one, other):
    """Every bus id of one GPU becomes the other's, in all evidence: the findings change places, and nothing else."""
    node = bench("sxm", "ecc-off", "pcie-x8-link")
    ids = [gpu.bus_id for gpu in node.judging({}).node.gpus]
    a, b = ids[one][5:7], ids[other][5:7]

    def swap(data):
        text = data.decode()
        for x, y in ((a, "\0"), (b, a), ("\0", b)):
            text = re.sub(rf"(?i)(?<![0-9a-f]){x}(?=:00\.0|</pci_bus>|\r?\n *Device  )", y, text)
        return text.encode()

    changes = {
        name: swap(r.stdout)
        for name, r in node.evidence.recordings.items()
        if name in (XML, TEXT, "lspci_-nnvvv", "dmesg", "torch", *LOADS) or "query-gpu" in name
    }
    found, before = verdicts(node.findings(changes)), verdicts(node.healthy.values())
    places = {f"gpu{one}": f"gpu{other}", f"gpu{other}": f"gpu{one}"}
    assert {(key, places.get(subject, subject)): verdict for (key, subject), verdict in before.items()} == found


DECOYS = (
    "<note>\n\t\t\t<ecc_mode><current_ecc>Disabled</current_ecc></ecc_mode>\n\t\t</note>",
    "<module_power_readings><current_power_limit>100.00 W</current_power_limit></module_power_readings>",
    "<mig_device><fb_memory_usage><total>1 MiB</total></fb_memory_usage></mig_device>",
    "<process_info><process_name>Product Name : NVIDIA A100 | current_link_gen 1</process_name></process_info>",
)


@pytest.mark.parametrize("decoy", DECOYS, ids=range(len(DECOYS)))
def test_readings_never_come_from_a_tag_that_is_not_about_them(bench, decoy):
    node = bench("sxm")
    document = node.evidence.recordings[XML].stdout.decode()
    for place in ("\t\t<product_name>", "\t</gpu>"):
        changed = document.replace(place, f"\t\t{decoy}\n{place}")
        assert observed(node.findings({XML: changed.encode(), TEXT: None})) == observed(node.findings({TEXT: None}))


LINES = (
    "    Module Power Readings\n        Current Power Limit                            : 100.00 W\n",
    "    Note on ECC Mode\n        Current                                        : Disabled\n",
    "    Other Memory Usage\n        Total                                          : 1 MiB\n",
)


@pytest.mark.parametrize("decoy", LINES, ids=range(len(LINES)))
def test_readings_never_come_from_a_line_that_is_not_about_them(bench, decoy):
    node = bench("sxm")
    text = node.evidence.recordings[TEXT].stdout.decode()
    changed = re.sub(r"(?m)^    Processes ", lambda m: decoy + m[0], text)
    assert changed != text
    found = node.findings({XML: None, TEXT: changed.encode()})
    for key, value in observed(found).items():
        assert value in (None, observed(node.healthy.values())[key]), key


HOST_DECOYS = {
    "proc/meminfo": b"HardwareCorrupted: 99999999 kB\nMemTotalFake:  1 kB\n",
    "etc/os-release": b'X_VERSION_ID="1.0"\nDOCS_ID=plan9\n',
    "docker_info": b"",
    "dmidecode_-t_memory": b"Handle 0x9999, DMI type 7, 27 bytes\nCache Information\n\tSocket Designation: L3\n\tInstalled Size: 105 MB\n\tMaximum Size: 4 TB\n\n",
    "dmesg": b'[  500.000000] audit: comm="NVRM: Xid" exe="/x" msg=\'Xid 79 is what we test for\'\n',
}


@pytest.mark.parametrize("name", sorted(HOST_DECOYS))
def test_host_facts_never_come_from_a_line_that_is_not_about_them(bench, name):
    node = bench("sxm")
    data = node.evidence.recordings[name].stdout + HOST_DECOYS[name]
    assert observed(node.findings({name: data})) == observed(node.healthy.values())


def test_the_two_forms_of_one_node_say_the_same(bench, node_type):
    """What the text of nvidia-smi says of a GPU is what its XML says, field by field."""
    from nodeready.facts.nvidia_smi import FIELDS
    from nodeready.facts.nvidia_smi_text import parse as parse_text
    from nodeready.facts.nvidia_smi_xml import parse as parse_xml
    from nodeready.reading import Known

    recordings = bench(node_type).evidence.recordings
    by_xml, by_text = parse_xml(recordings[XML].stdout), parse_text(recordings[TEXT].stdout)
    assert set(by_xml.gpus) == set(by_text.gpus)
    compared = 0
    for bus_id, fields in by_xml.gpus.items():
        for field in FIELDS:
            one, other = fields[field], by_text.gpus[bus_id][field]
            assert isinstance(one, Known) == isinstance(other, Known), (bus_id, field, one, other)
            if isinstance(one, Known):
                compared += 1
                assert one.value == other.value, (bus_id, field)
    assert compared > 30 * len(by_xml.gpus)
