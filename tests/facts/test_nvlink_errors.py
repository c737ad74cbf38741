"""`nvidia-smi nvlink -e` in two samples: real and made outputs, cut at every place."""

import pytest

from nodeready.facts import nvlink_errors
from nodeready.facts.nvlink_errors import Counters, parse
from nodeready.reading import Known, Unknown

HEAD = "GPU {}: NVIDIA H100 80GB HBM3 (UUID: GPU-6065b0d7-2a0b-56bf-432f-8c9f35b5a69{})"


def listing(gpus, counters=(0, 0, 0), clock="uptime:93841.27"):
    lines = [clock] if clock else []
    for gpu in range(gpus):
        lines.append(HEAD.format(gpu, gpu))
        for link in range(3):
            lines += [
                f"\t Link {link}: {kind} Errors: {n}"
                for kind, n in zip(("Replay", "Recovery", "CRC"), counters, strict=True)
            ]
    return "".join(f"{line}\n" for line in lines).encode()


def test_probe_asks_hoppers_own_counters_twice():
    assert nvlink_errors.NVLINK_ERRORS.argv[2].endswith("exec nvidia-smi nvlink -e")
    assert nvlink_errors.NVLINK_ERRORS_LATER.after == nvlink_errors.NVLINK_ERRORS.name == "nvidia-smi_nvlink_-e"
    assert nvlink_errors.NVLINK_ERRORS_LATER.argv[2].endswith("exec nvidia-smi nvlink -e")
    assert nvlink_errors.NVLINK_ERRORS.argv != nvlink_errors.NVLINK_ERRORS_LATER.argv


def test_counters_by_link():
    found = parse(listing(2, (4, 1, 12)))
    assert found.uptime.value == 93841.27
    assert found.gpus[1].links.value == dict.fromkeys(range(3), Counters(4, 1, 12))
    assert found.gpus[1].uuid.value.endswith("91")


def test_a_hand_made_output_has_no_clock():
    assert "does not say when" in parse(listing(1, clock="")).uptime.reason


def test_a_capture_that_its_author_shortened_is_unknown(captures):
    data = (captures / "nvlink-e/01-stas00-compute_accelerator_nvidia_debug-7.txt").read_bytes()
    assert "'[...]'" in parse(data).gpus[0].links.reason


def test_inactive_links_have_no_counters():
    text = f"{HEAD.format(0, 0)}\n\t Link 0: <inactive>\n\t Link 1: Replay Errors: 0\n\t Link 1: Recovery Errors: 0\n\t Link 1: CRC Errors: 0\n"
    assert parse(text.encode()).gpus[0].links.value == {1: Counters(0, 0, 0)}
    sentence = f"{HEAD.format(0, 0)}\nNVML: Unable to retrieve NVLink information as all links are inActive\n"
    assert parse(sentence.encode()).gpus[0].links.value == {}


@pytest.mark.parametrize(
    "line",
    [
        "Nvlink queries are not supported for Devices in MIG mode",
        "\t Link 0: Replay Errors: N/A",
        "\t Link 0: Replay Errors: -1",
        "\t Link 0: Replay Errors: 99999999999999999999",
        "\t Link 0: Replay Errors: 0",
    ],
)
def test_what_is_no_full_set_of_counters_is_unknown(line):
    assert isinstance(parse(f"{HEAD.format(0, 0)}\n{line}\n".encode()).gpus[0].links, Unknown)


def test_a_gpu_that_is_listed_twice_has_no_counters():
    twice = listing(1) + listing(1, clock="")
    assert "listed twice" in parse(twice).gpus[0].links.reason


@pytest.mark.parametrize("data", [b"", b"\n", b"No devices were found\n", b"uptime:5.00\n", b"GPU 0: NVIDIA"])
def test_other_output_is_unknown(data):
    assert isinstance(parse(data), Unknown)


def test_any_prefix_gives_the_same_counters_or_none():
    whole = listing(2, (4, 1, 12))
    for end in range(len(whole)):
        found = parse(whole[:end])
        if isinstance(found, Unknown):
            continue
        for gpu in found.gpus.values():
            # links that are missing at the end are caught where they are held against the links that are up
            assert isinstance(gpu.links, Unknown) or set(gpu.links.value.values()) <= {Counters(4, 1, 12)}


def test_crc_errors_of_flits_are_crc_errors():
    text = f"{HEAD.format(0, 0)}\n Link 0: Replay Errors: 0\n Link 0: Recovery Errors: 0\n Link 0: CRC FLIT Errors: 7\n Link 0: CRC Data Errors: 9\n"
    assert isinstance(parse(text.encode()).gpus[0].links, Known)
    assert parse(text.encode()).gpus[0].links.value[0].crc == 7
