"""One node two ways: NVML, asked by the real probe on a fake library, says what nvidia-smi says, and is judged alike.

Both are rendered from one model: the configuration of tests/fake_nvml by simulate/nvml_config, the documents by
simulate/outputs. What differs must be in the lists below, with its reason; what is in the lists must differ.
"""

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from nodeready.baseline import load, node_types
from nodeready.check import load_checks
from nodeready.engine import Judging
from nodeready.evidence.capture import Evidence
from nodeready.evidence.recording import Recording
from nodeready.facts import nvidia_smi_xml, nvlink, nvml, query_gpu, topology
from nodeready.facts.nvidia_smi import FIELDS
from nodeready.gate import terms_of
from nodeready.node import Node
from nodeready.node.catalogue import NVML
from nodeready.plan import Plan
from nodeready.reading import Unknown
from nodeready.simulate.build import build
from nodeready.simulate.faults import faults
from nodeready.simulate.model import EccCounts, Link, Remap
from nodeready.simulate.nvml_config import render
from nodeready.simulate.outputs.names import outputs
from nodeready.simulate.releases import RELEASES

spec = importlib.util.spec_from_file_location("fake_nvml_build", Path(__file__).parents[1] / "fake_nvml" / "build.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)

SMI = "nvidia-smi_"
XML, LINKS, CAPABILITY, TOPOLOGY = (
    probe.name for probe in (nvidia_smi_xml.SMI_XML, nvlink.NVLINK_STATUS, query_gpu.COMPUTE_CAPABILITY, topology.TOPO)
)
CHECKS = load_checks()

# fields that only one of the two gives, of any GPU
NO_CALL = {
    "gpu_part": "NVML has a call for the board's part number only",
    "inforom_image": "the probe asks for what accepts a node, not for what names its firmware",
    "memory_clock_max": "as above: clocks are compared between GPUs of one document",
}
_CLOCKS = "as above; newer documents do not print them either"
_REPAIR = "words of the document, for which the library has no call that older ones know"
_HEALTH = "no platform of the fake reports fabric health, and no document of its node prints it"
NEITHER = dict.fromkeys(
    [f"fabric_health_{word}" for word in ["summary", "bandwidth", "recovery", "route", "timeout", "configuration"]],
    _HEALTH,
)
# of drivers of some branches
LACKING = {
    **dict.fromkeys(
        ["channel_repair_pending", "tpc_repair_pending", "unrepairable_memory"], (range(580, 900), _REPAIR)
    ),
    **dict.fromkeys(
        [f"application_{memory}clock{default}" for memory in ("", "memory_") for default in ("", "_default")],
        (range(590), _CLOCKS),
    ),
    "recovery_action": (range(525, 570), "nvidia-smi has a reset status instead, which NVML has no call for"),
    "margin": (range(570), "the library has no nvmlDeviceGetMarginTemperature"),
    "fabric_state": (range(525), "the library has no nvmlDeviceGetGpuFabricInfo"),
    "fabric_status": (range(525), "the library has no nvmlDeviceGetGpuFabricInfo"),
}
# fields that only one of the two gives, of the GPU that a fault befalls
OF_THE_VICTIM = {
    "fabric-bandwidth-degraded": {"fabric_health_bandwidth": "the fake's platform reports no fabric health"},
    "field-not-available": {"memory_used": "one call gives both amounts, so that it refuses both"},
    "one-gpu-unknown-error": {
        "device_id": "NVML gives the ids with the PCI address",
        "subsystem_id": "NVML gives the ids with the PCI address",
        "minor": "nvidia-smi lists the GPU by it",
        "processes": "nvidia-smi has no words for a list that it could not get",
        "nvlinks": "nvidia-smi has no other words for links that do not answer than that all are inactive",
    },
}
# what NVML says where nvidia-smi has no document
NO_DOCUMENT = {
    "driver-not-loaded": "nvmlInit: DRIVER_NOT_LOADED",
    "secure-boot": "nvmlInit: DRIVER_NOT_LOADED",
    "nouveau-loaded": "nvmlInit: DRIVER_NOT_LOADED",
    "gpu-missing-since-boot": "nvmlInit: DRIVER_NOT_LOADED",
    "driver-library-mismatch": "nvmlInit: LIB_RM_VERSION_MISMATCH",
    "nvidia-smi-hangs": "nvmlInit: no answer in 2 s",
}
# keys that NVML alone leaves unverified on a healthy node
NOT_BY_NVML = {
    "driver.responds": "it is nvidia-smi that must answer",
    "driver.matches-library": "NVML tells one version, that of the kernel's module",
    "container.gpu-visible": "the GPUs inside are compared with those that nvidia-smi lists",
    "firmware.inforom": "the probe does not ask for it",
    "gpu.application-clocks": "the probe does not ask for them",
    "gpu.confidential-computing": "nvidia-smi has a command of its own for it",
    "consistency.gpu-part": "the probe does not ask for it",
    "consistency.inforom": "the probe does not ask for it",
    "nvlink.peers": "the kinds of links between pairs stand in nvidia-smi's matrix only",
}
# on node types whose cards NVLink need not join, what else hangs on that matrix
BY_MATRIX = {"nvl": {"nvlink.bandwidth"}, "h200-nvl": {"nvlink.bandwidth"}}
# keys that are judged otherwise by NVML alone: the fault, and the verdict by nvidia-smi and by NVML
JUDGED_OTHERWISE = {
    "one-gpu-unknown-error": {"gpu.product": ("unverified", "pass")},
}
# and those that hang on a field which the library of an older driver lacks
BY_FIELD = {
    "margin": "thermal.margin",
    "recovery_action": "health.recovery-action",
    "fabric_state": "nvlink.fabric-state",
}


def make(node_type, fault="", **settings):
    """The model of a node, with a fault."""
    node = build(node_type, seed=1, **settings)
    for found in faults(node_type):
        if found.name == fault:
            found.apply(node)
    return node


def recorded(node):
    """What the commands of a node print, before anything is lost on the way; nvidia-smi is installed."""
    node = replace(node, absent=set(), spoilers={})
    return {name: Recording(name, rc=o.rc, stdout=o.stdout, stderr=o.stderr) for name, o in outputs(node).items()}


def of_gpus(recordings):
    """What nvidia-smi prints of GPUs; its matrix shows network adapters too."""
    return {name: found for name, found in recordings.items() if name.startswith(SMI) and name != TOPOLOGY}


def values(recordings):
    """All that is read of nvidia-smi's documents, by GPU and field; there is more in them, such as event counters."""
    smi = nvidia_smi_xml.parse(recordings[XML].stdout)
    fields = {(bus_id, name): shown(reading) for bus_id, gpu in smi.gpus.items() for name, reading in gpu.items()}
    fields = {at: value for at, value in fields.items() if at[1] not in {*NO_CALL, *LACKING}}
    return fields, [recordings[name].stdout for name in (LINKS, CAPABILITY)]


@pytest.fixture(scope="session")
def ask(tmp_path_factory):
    """Starts the nvml probe on a node: a future of its recording, so that what nvidia-smi says can be judged meanwhile."""
    library = fake.build(tmp_path_factory.getbasetemp() / "fake_nvml")
    folder, known = tmp_path_factory.mktemp("nodes"), {}

    def run(text, path):
        path.write_text(text)
        deadline = ("--deadline", 2) if "hang" in text else ()
        document, process = fake.run_probe(library, path, *deadline)
        assert process.stderr == ""
        return Recording(NVML.name, rc=process.returncode, stdout=json.dumps(document).encode())

    def start(node):
        text = render(node)
        if text not in known:
            known[text] = pool.submit(run, text, folder / f"{len(known)}.conf")
        return known[text]

    with ThreadPoolExecutor(2) as pool:
        yield start


def same(name, one, other):
    """Whether two readings say the same, or both nothing; nvidia-smi prints power to two decimals."""
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return isinstance(one, Unknown) and isinstance(other, Unknown)
    if name == "power_draw":
        return one.value.unit == other.value.unit and abs(one.value.value - other.value.value) < 0.0051
    return one.value == other.value


def shown(reading):
    return f"unknown ({reading.reason})" if isinstance(reading, Unknown) else str(reading.value)


def differences(recordings, library):
    """(bus id, field): what nvidia-smi says, what NVML says."""
    smi, links = nvidia_smi_xml.parse(recordings[XML].stdout), nvlink.parse(recordings[LINKS].stdout)
    capability = query_gpu.parse(recordings[CAPABILITY].stdout)
    pairs = {
        ("node", "driver_version"): (smi.driver_version, library.driver_version),
        ("node", "cuda_version"): (smi.cuda_version, library.cuda_version),
        ("node", "gpu_count"): (smi.attached, library.device_count),
    }
    assert list(smi.gpus) == list(library.gpus)
    for index, (bus_id, fields) in enumerate(smi.gpus.items()):
        mine = library.gpus[bus_id]
        pairs |= {(bus_id, name): (fields[name], mine[name]) for name in FIELDS}
        pairs[bus_id, "compute_capability"] = capability[bus_id], mine["compute_capability"]
        pairs[bus_id, "nvlinks"] = up(links.gpus[index].links), up(mine["nvlinks"])
    return {at: tuple(map(shown, pair)) for at, pair in pairs.items() if not same(at[1], *pair)}


def lacking_of(node):
    """The fields that the library of the node's driver lacks, or the document alone prints."""
    names = [name for name, (branches, _) in LACKING.items() if node.driver.major in branches]
    printed_since = tuple(map(int, node.driver.library.split("."))) >= (580, 173)
    return [name for name in names if name != "unrepairable_memory" or printed_since]


def up(links):
    """The links that are up, by number and speed: where none is, nvidia-smi does not list them."""
    return links.map(lambda found: [(link.index, link.speed) for link in found if link.speed is not None])


def expected(node, of_victim=()):
    """The differences that the lists above know of a node."""
    lacking = lacking_of(node)
    answering = [gpu.bus_id for gpu in node.listed_gpus if gpu.answers_queries]
    listed = {(bus_id, name) for bus_id in answering for name in (*NO_CALL, *lacking)}
    return listed | {(node.gpus[len(node.gpus) // 2].bus_id, name) for name in of_victim}


@cache
def a_plan(node_type, tier):
    """What a node of a type has to show at a tier, and what its readings are taken by."""
    baseline = load(node_type)
    return Plan(baseline, tier), terms_of(baseline)


def verdicts(node_type, recordings, checks=NVML.serves, tier=NVML.tier):
    """The verdicts of some checks on a node, by key and subject."""
    plan, terms = a_plan(node_type, tier)
    judging = Judging(plan, Node(Evidence("folder", "h", recordings), terms))
    for check_id in checks:
        for subject in judging.plan.subjects(CHECKS[check_id].per):
            judging.run(CHECKS[check_id], subject)
    assert not judging.errors
    return {(f.key, f.subject): f.verdict.value for f in judging.findings() if f.check in checks}


def with_nvml_alone(recordings, probed):
    return {**{n: r for n, r in recordings.items() if not n.startswith(SMI)}, NVML.name: probed}


def test_a_healthy_node_says_the_same_two_ways(node_type, ask):
    node = make(node_type)
    library = nvml.parse(ask(node).result().stdout)
    found = differences(recorded(node), library)
    assert found.keys() == expected(node), found
    no_fabric = {"fabric_state", "fabric_status"} if node.shape.fabric[0] == "N/A" else set()
    for fields in library.gpus.values():
        lacking = set(lacking_of(node))
        none = {name for name in FIELDS if isinstance(fields[name], Unknown)}
        assert none == {*NO_CALL, *NEITHER, *lacking, *no_fabric}


@pytest.mark.parametrize(
    ("kind", "count"), [("sxm", 8), ("sxm-4", 4), ("pcie", 2), ("nvl", 2), ("nvl", 4), ("h200-nvl", 4), ("h200-nvl", 8)]
)
def test_pairs_of_gpus_are_joined_two_ways(kind, count, ask):
    node = make(kind, gpu_count=count)
    matrix = topology.parse(recorded(node)[TOPOLOGY].stdout)
    library = nvml.parse(ask(node).result().stdout)
    joined = {
        (one, other): library.gpus[gpu.bus_id]["p2p_nvlink"].value[peer.bus_id] == "OK"
        for one, gpu in enumerate(node.gpus)
        for other, peer in enumerate(node.gpus)
        if one != other
    }
    printed = {(a, b): matrix.link(f"GPU{a}", f"GPU{b}").value.startswith("NV") for a, b in joined}
    assert joined == printed
    assert sum(joined.values()) == count * max(0, node.shape.joined - 1)


def test_nvml_alone_gives_the_verdicts_of_a_healthy_node(node_type, ask):
    node = make(node_type)
    recordings = recorded(node)
    whole = verdicts(node_type, recordings, tuple(CHECKS), "acceptance")
    alone = verdicts(node_type, with_nvml_alone(recordings, ask(node).result()), tuple(CHECKS), "acceptance")
    changed = {at: verdict for at, verdict in alone.items() if whole[at] != verdict}
    untold = NOT_BY_NVML.keys() | BY_MATRIX.get(node_type, set())
    assert changed == {at: "unverified" for at, verdict in whole.items() if at[0] in untold and verdict == "pass"}
    assert {"pass"} == {whole[at] for at in changed}


def test_no_number_stands_for_another(ask):
    node = make("pcie")
    (gpu,) = node.gpus
    gpu.volatile, gpu.aggregate = EccCounts(1, 2, 4, 8, 16), EccCounts(32, 64, 128, 256, 512)
    gpu.remap = Remap(3, 5, "Yes", "No", [2555, 11, 7, 6, 1])
    gpu.link = Link(generation=2, max_generation=3, device_generation=5, port_generation=3, width=4, max_width=8)
    gpu.ecc_pending, gpu.mig_pending, gpu.recovery_action = "Disabled", "Enabled", "Drain P2P"
    gpu.active_events = {"sw_power_cap", "hw_thermal_slowdown"}
    library = nvml.parse(ask(node).result().stdout)
    found = differences(recorded(node), library)
    assert found.keys() == expected(node), found
    assert library.gpus[gpu.bus_id]["row_remap_banks"].value == (2555, 11, 7, 6, 1)


@pytest.mark.parametrize("branch", [branch for branch in RELEASES if branch != "580"])
def test_every_driver_branch_says_the_same_two_ways(branch, ask):
    node = make("sxm-1", driver=branch)
    found = differences(recorded(node), nvml.parse(ask(node).result().stdout))
    assert found.keys() == expected(node), found


def cases():
    """Every fault once, on sxm or on the first type that can have it; and some on a GPU that is alone."""
    found = {}
    for node_type in ("sxm", *node_types()):
        for fault in faults(node_type):
            found.setdefault(fault.name, node_type)
    alone = ("gpu-fell-off-the-bus", "gpu-missing-since-boot", "gpu-rev-ff", "one-gpu-unknown-error")
    pairs = [*((node_type, name) for name, node_type in found.items()), *(("pcie", name) for name in alone)]
    return [pytest.param(*pair, id=":".join(pair)) for pair in pairs]


@cache
def a_healthy(node_type):
    """The configuration and the recordings of a healthy node."""
    node = make(node_type)
    return render(node), recorded(node)


@pytest.mark.parametrize(("kind", "fault"), cases())
def test_a_fault_says_the_same_two_ways(kind, fault, ask):
    node = make(kind, fault)
    recordings, (config, healthy) = recorded(node), a_healthy(kind)
    if render(node) == config:  # not one that NVML sees; then nvidia-smi does not either
        assert of_gpus(recordings) == of_gpus(healthy) or values(recordings) == values(healthy)
        return
    assert of_gpus(recordings) != of_gpus(healthy)
    probe, by_smi = ask(node), verdicts(kind, recordings)
    library = nvml.parse(probe.result().stdout)
    served = (by_smi, verdicts(kind, with_nvml_alone(recordings, probe.result())))
    if recordings[XML].rc:
        without_document(node, fault, library, served)
        return
    found = differences(recordings, library)
    assert found.keys() == expected(node, OF_THE_VICTIM.get(fault, {})), found
    otherwise = {at: (served[0][at], verdict) for at, verdict in served[1].items() if served[0][at] != verdict}
    otherwise = {at: pair for at, pair in otherwise.items() if at[0] not in NOT_BY_NVML or pair[1] != "unverified"}
    lacking = lacking_of(node)
    lost = {BY_FIELD[name]: ("pass", "unverified") for name in lacking if name in BY_FIELD}
    assert {key: pair for (key, _), pair in otherwise.items()} == {**lost, **JUDGED_OTHERWISE.get(fault, {})}


def without_document(node, fault, library, served):
    """nvidia-smi refused: NVML says why, or knows of the other GPUs."""
    if fault == "lost-gpu-hides-all":
        one_is_lost(node, library, served[1])
        return
    if node.driver.loaded and not node.listed_gpus:
        assert (library.device_count.value, library.gpus) == (0, {})
        assert {key for (key, _), verdict in served[1].items() if verdict == "fail"} == {"gpu.count"}
    else:
        assert (library.reason, library.missing) == (NO_DOCUMENT[fault], True)
        assert served[0] == served[1]


def one_is_lost(node, library, judged):
    """nvidia-smi gave up at it: NVML knows all others, and they are judged as those of a healthy node."""
    victim = node.gpus[len(node.gpus) // 2]
    answering = replace(node, driver=replace(node.driver, refusal="", refusal_status=0))
    smi = nvidia_smi_xml.parse(recorded(answering)[XML].stdout)
    assert library.unplaced == {victim.place: "nvmlDeviceGetHandleByIndex: GPU_IS_LOST"}
    assert set(library.gpus) == set(smi.gpus) - {victim.bus_id}
    for bus_id, fields in library.gpus.items():
        found = {name for name in FIELDS if not same(name, smi.gpus[bus_id][name], fields[name])}
        lacking = set(lacking_of(node))
        assert found == {*NO_CALL, *lacking}, bus_id
    well = verdicts("sxm", a_healthy("sxm")[1])
    for (key, subject), verdict in judged.items():
        if subject == f"gpu{victim.place}":
            assert verdict == "unverified", key
        elif subject != "node" and key not in NOT_BY_NVML:
            assert verdict == well[key, subject], (key, subject)


def test_a_node_without_a_driver_has_no_library():
    node = make("sxm", "driver-not-loaded")
    assert "init-error 9" in render(node)
    node.absent.add("nvidia-smi")
    assert render(node) is None


def test_a_value_that_nvml_has_no_number_for_is_refused():
    node = make("pcie")
    node.gpus[0].printed["ecc_errors/unheard_of"] = "1"
    with pytest.raises(ValueError, match="ecc_errors/unheard_of"):
        render(node)
