"""Rule 1 by campaign: every reading of every healthy node is removed, emptied, garbled, refused and worsened.

A mutation is on the very text that a demand is judged by. Taken away or made no value, the demand is never passed;
made the worst value, or that of another product, it is never passed either. Nothing else than the findings decides.
"""

import json
import re
from collections import Counter
from xml.sax.saxutils import escape

from nodeready.facts.nvidia_smi import FIELDS

XML, TEXT = "nvidia-smi_-q_-x", "nvidia-smi_-q"
NOTHING = (
    "",
    "#?@!",
    "[N/A]",
    "N/A",
    "Unknown Error",
    "Requested functionality has been deprecated",
    "ERR!",
    "GPU is lost",
)

# key -> (fields of nvidia-smi's documents, worst values)
BY_SMI = {
    "gpu.product": (("device_id",), ("20B010DE", "10DE2330")),
    "gpu.memory": (("memory_total",), ("0 MiB", "40960 MiB", "-1 MiB")),
    "gpu.mig": (("mig_current",), ("Enabled",)),
    "gpu.mig/pending": (("mig_pending",), ("Enabled",)),
    "health.ecc-mode": (("ecc_mode_current",), ("Disabled",)),
    "health.ecc-mode/pending": (("ecc_mode_pending",), ("Disabled",)),
    "health.ecc-uncorrected/sram": (("ecc_sram_uncorrected_volatile",), ("1", "-1", "4294967295")),
    "health.ecc-uncorrected/dram": (("ecc_dram_uncorrected_volatile",), ("1", "18446744073709551615")),
    "health.ecc-uncorrected/sram-lifetime": (("ecc_sram_uncorrected_aggregate",), ("5",)),
    "health.ecc-uncorrected/dram-lifetime": (("ecc_dram_uncorrected_aggregate",), ("1",)),
    "health.row-remap-pending": (("row_remap_pending",), ("Yes",)),
    "health.row-remap-failure": (("row_remap_failure",), ("Yes",)),
    "health.row-remaps/uncorrected": (("row_remap_uncorrected",), ("1", "512", "-1")),
    "health.row-remaps/banks-low": (("row_remap_banks_low",), ("1 bank(s)", "-1 bank(s)")),
    "gpu.compute-mode": (("compute_mode",), ("Prohibited", "Exclusive_Process")),
    "gpu.telemetry": (("temperature",), ("0 C", "-40 C", "200 C")),
    "driver.persistence-mode": (("persistence",), ("Disabled",)),
    "firmware.gsp": (("gsp_firmware",), ("535.104.12",)),
    "health.recovery-action": (("recovery_action",), ("Reset", "Reboot", "Drain P2P")),
    "health.clock-events": (
        ("event_hw_slowdown", "event_hw_thermal", "event_power_brake", "event_sw_thermal"),
        ("Active",),
    ),
    "power.limit": (("power_limit",), ("200.00 W", "0 W", "-700 W")),
    "thermal.margin": (("margin",), ("-2 C", "0 C", "-8 C")),
    "pcie.gpu-link-generation": (("link_gen_current",), ("1", "4", "0")),
    "pcie.gpu-link-width": (("link_width_current",), ("8x", "0x", "1x")),
    "nvlink.fabric-state": (("fabric_state",), ("In Progress", "Not Started")),
}
# what else tells of it, and has to be taken away: a fabric of N/A is right on sxm-1 where CUDA works all the same, and a
# link that was fast under load is fast
TOLD_ELSEWHERE = {"nvlink.fabric-state": ("torch",), "pcie.gpu-link-generation": ("copies",)}


class Tally:
    def __init__(self):
        self.tried, self.caught, self.escaped = 0, Counter(), []

    def hold(self, bench, changes, key, subject, what):
        self.tried += 1
        finding = bench.finding(changes, key, subject)
        if finding.verdict.value in ("pass", "not-applicable"):
            self.escaped.append(
                f"{bench.node_type} {key} {subject}: {what} -> {finding.verdict.value}, {finding.message}"
            )
        else:
            self.caught[key.partition("/")[0], finding.verdict.value] += 1


def places(bench):
    """All GPUs, or on a board of eight the first, one in the middle and the last: their blocks are alike."""
    count = bench.plan.baseline.gpu_count
    return range(count) if count < 8 else (0, 4, count - 1)


def judged(bench, key, subject):
    finding = bench.healthy.get((key, subject))
    return finding is not None and finding.verdict.value != "not-applicable"


def xml_mutants(data, gpu, paths, values):
    """The document with the element that a path leads to set to each value, and without it."""
    blocks = [m.start() for m in re.finditer(rb"<gpu id=", data)]
    for path in (part for spelling in paths for part in spelling.split(" + ")):
        start, end = blocks[gpu], [*blocks, len(data)][gpu + 1]
        for tag in path.split("/"):
            found = re.compile(rb"(?m)^(\t+)<%b>(.*?)</%b>" % (tag.encode(), tag.encode()), re.DOTALL).search(
                data, start, end
            )
            if found is None:
                break
            start, end = found.span(2)
        else:
            for value in values:
                yield f"{path} = {value!r}", data[:start] + escape(value).encode() + data[end:]
            yield f"{path} removed", data[: found.start()] + data[found.end() :]


def text_mutants(data, gpu, paths, values):
    """The same in the text form: the line that the path leads to."""
    lines = data.decode().split("\n")
    wanted = {part for spelling in paths for part in spelling.split(" + ")}
    number, stack = -1, []
    for index, line in enumerate(lines):
        if re.match(r"GPU [0-9A-F]{8}:", line):
            number, stack = number + 1, []
            continue
        depth = len(line) - len(line.lstrip())
        label, colon, _ = line.strip().partition(" : ")
        stack = [(d, text) for d, text in stack if d < depth] + [(depth, label.strip())]
        if number != gpu or "/".join(text for _, text in stack) not in wanted or not colon:
            continue
        for value in values:
            changed = [*lines]
            changed[index] = line[: line.index(" : ") + 3] + value
            yield f"{label.strip()} = {value!r}", "\n".join(changed).encode()
        yield f"{label.strip()} removed", "\n".join(lines[:index] + lines[index + 1 :]).encode()


def smi_campaign(bench, tally):
    forms = ((XML, TEXT, xml_mutants, "xml"), (TEXT, XML, text_mutants, "text"))
    for name, other, mutants, spelling in forms:
        data = bench.evidence.recordings[name].stdout
        for gpu in places(bench):
            for key, (fields, worst) in BY_SMI.items():
                if not judged(bench, key, f"gpu{gpu}"):
                    continue
                for field in fields:
                    for what, mutant in mutants(data, gpu, getattr(FIELDS[field], spelling), (*NOTHING, *worst)):
                        changes = {name: mutant, other: None, **dict.fromkeys(TOLD_ELSEWHERE.get(key, ()))}
                        tally.hold(bench, changes, key, f"gpu{gpu}", what)


# evidence name, pattern of the value in its line, worst values, the keys that hang on it
BY_LINE = (
    ("etc/os-release", rb'(?m)^VERSION_ID="?([^"\n]*)', (b"18.04",), ("platform.os",)),
    ("etc/os-release", rb"(?m)^ID=(.*)$", (b"plan9",), ("platform.os",)),
    ("proc/meminfo", rb"MemTotal:\s+(\d+ kB)", (b"1024 kB", b"0 kB", b"-5 kB"), ("memory.installed",)),
    ("dmidecode_-t_memory", rb"(?m)^\tSize: (.+)$", (b"Unknown", b"?"), ("memory.installed",)),
    ("proc/driver/nvidia/version", rb"Module.*?  ([\d.]+)", (b"470.1",), ("driver.matches-library",)),
    ("nvcc_--version", rb"release ([\d.]+)", (b"11.8",), ("cuda.toolkit-version",)),
    ("docker_info", rb"Server Version: (.*)", (), ("container.runtime",)),
    ("docker_info", rb"(?m)^ Runtimes: (.*)$", (b"runc io.containerd.runc.v2",), ("container.runtime/gpu-support",)),
    ("nvidia-ctk_--version", rb"version ([\d.]+)", (b"1.2.0",), ("container.gpu-toolkit",)),
    ("nv-fabricmanager_--version", rb"is : ([\d.]+)", (b"1.2.3",), ("nvlink.fabric-manager/version",)),
    ("systemctl_is-active_nvidia-fabricmanager", rb"^(\w+)", (b"inactive", b"failed"), ("nvlink.fabric-manager",)),
)


def line_campaign(bench, tally):
    for name, pattern, worst, keys in BY_LINE:
        recording = bench.evidence.recordings.get(name)
        if recording is None or recording.rc:
            continue
        for match in re.finditer(pattern, recording.stdout):
            if match[1] == b"No Module Installed":
                continue
            for value in (*(n.encode() for n in NOTHING), *worst):
                mutant = recording.stdout[: match.start(1)] + value + recording.stdout[match.end(1) :]
                for key in keys:
                    if judged(bench, key, "node"):
                        tally.hold(bench, {name: mutant}, key, "node", f"{match[0]!r} -> {value!r}")


def per_gpu_lines(bench, tally):
    """Rows about one GPU each: compute capability (torch taken away), NVLink lines, GPUs inside a container."""
    name = "nvidia-smi_--query-gpu=pci.bus_id,compute_cap_--format=csv"
    data = bench.evidence.recordings[name].stdout
    for gpu, match in enumerate(re.finditer(rb", (\d\.\d)", data)):
        for value in (*(n.encode() for n in NOTHING), b"8.0", b"10.0", b"90"):
            mutant = data[: match.start(1)] + value + data[match.end(1) :]
            tally.hold(
                bench, {name: mutant, "torch": None}, "gpu.compute-capability", f"gpu{gpu}", f"capability {value!r}"
            )
    name = "nvidia-smi_nvlink_-s"
    data = bench.evidence.recordings[name].stdout if name in bench.evidence.recordings else b""
    for block in re.finditer(rb"GPU (\d+):.*\n((?:\t.*\n)*)", data):
        subject = f"gpu{int(block[1])}"
        links = list(re.finditer(rb"Link \d+: (.*)\n", block[2]))
        for link in links[:: max(1, len(links) // 3)]:
            for value in (*(n.encode() for n in NOTHING), b"<inactive>", b"inActive", b"2.5 GB/s"):
                at = block.start(2) + link.start(1)
                mutant = data[:at] + value + data[at + len(link[1]) :]
                key = "nvlink.links-active/slow" if value == b"2.5 GB/s" else "nvlink.links-active"
                tally.hold(bench, {name: mutant}, key, subject, f"link {value!r}")
    name = "container-gpus"
    data = bench.evidence.recordings[name].stdout
    for line in re.finditer(rb".*\n", data):
        for value in (
            b"",
            b"GPU 0: [N/A]\n",
            b"Unknown Error\n",
            line[0] + line[0],
            line[0].replace(b"GPU-", b"GPU-f"),
        ):
            mutant = data[: line.start()] + value + data[line.end() :]
            tally.hold(bench, {name: mutant}, "container.gpu-visible", "node", f"{value!r}")


def torch_campaign(bench, tally):
    document = json.loads(bench.evidence.recordings["torch"].stdout)
    for field, key, values in (
        ("torch", "frameworks.torch", (None, "", "1.13.1", 2.1, "[N/A]", "two", Ellipsis)),
        ("cuda", "frameworks.torch/cuda", (None, "", "11.8", 13.0, "none", Ellipsis)),
        ("arch_list", "frameworks.torch/arch", (None, [], ["sm_80"], "sm_90", {"sm_90": 1}, [90], Ellipsis)),
    ):
        for value in values:
            changed = {k: v for k, v in document.items() if k != field or value is not Ellipsis}
            if value is not Ellipsis:
                changed[field] = value
            tally.hold(bench, {"torch": json.dumps(changed).encode()}, key, "node", f"{field} {value!r}")


TALLIES = {}


def test_no_mutation_is_accepted(bench, node_type):
    tally = TALLIES[node_type] = Tally()
    healthy = bench(node_type)
    for campaign in (smi_campaign, line_campaign, per_gpu_lines, torch_campaign):
        campaign(healthy, tally)
    print(f"{node_type}: {tally.tried} mutations, {sum(tally.caught.values())} caught")
    assert not tally.escaped, "\n".join(tally.escaped[:30]) + f"\n... {len(tally.escaped)} in all"


def test_the_campaign_was_large(capsys):
    tried = sum(tally.tried for tally in TALLIES.values())
    caught = Counter()
    for tally in TALLIES.values():
        caught += tally.caught
    with capsys.disabled():
        print(f"\ncampaign: {tried} mutations over {len(TALLIES)} node types, {sum(caught.values())} caught")
        for check in sorted({check for check, _ in caught}):
            print(
                f"  {check:28} {caught[check, 'fail']:6} fail {caught[check, 'unverified']:6} unverified {caught[check, 'advisory']:6} advisory"
            )
    assert tried >= 10_000
