"""Section H: the host, containers, the scheduler and the checkers themselves."""

import json

import host_proofs
from edits import NVLINK, copied, document, failed, given, left_out, replaced, tag, together
from field_case import SCOPE, Proof, advises, cannot, case, fails, passes, scene, unverified

_DCGM = "dcgmi_diag_-j"
_EXIT_STATUSES = (124, 126, 127, 255)


def _diag(*statuses, name="memory"):
    """A document of the maker's diagnostic: one test with these results, one for each GPU."""
    results = [
        {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": status}
        for gpu, status in enumerate(statuses)
    ]
    tests = [{"name": name, "results": results}]
    return {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}}


def _handed_in(whole):
    return given(_DCGM, json.dumps(whole))


def _memory_of(gib):
    """A kernel that counts so much, and no list of DIMMs."""
    kib = round(gib * 2**20)
    return together(
        replaced("proc/meminfo", r"(MemTotal:\s+)\d+", rf"\g<1>{kib}"),
        failed("dmidecode_-t_memory", 1, error="/sys/firmware/dmi/tables/smbios_entry_point: Permission denied"),
    )


def _no_shared_memory(whole):
    """What NCCL says on every rank where /dev/shm is that of a container by default."""
    said = "NCCL error: unhandled system error; NCCL: Error while creating shared memory segment /dev/shm/nccl-x1Y2"
    for entry in whole["results"]:
        figures = {name: None for name in entry if name not in ("device", "uuid", "bus_id", "name", "size", "ranks")}
        entry.update(figures, error=f"{said} (size 9637888)")


CASES = (
    case(
        "H1",
        "the kernel counts less memory than was bought",
        scene(
            passes("memory.installed", "node", 125.0, "MemTotal"), node_type="sxm-1", edit=_memory_of(125), failing=""
        ),
        scene(
            advises("memory.installed", "node", "503 GiB", "recommended >= 1 TiB", "97%"),
            edit=_memory_of(503),
            failing="",
        ),
        scene(fails("memory.installed", "node", "is 480 GiB", ">= 512 GiB"), edit=_memory_of(480)),
    ),
    case(
        "H2",
        "one DIMM of many is dead, which a tolerance of the sum hides",
        scene(advises("memory.dimms", "node", "31 DIMMs", "B16"), faults="dimm-missing", failing=""),
        scene(fails("memory.installed", "node", "less than 97%"), faults="memtotal-gap"),
    ),
    cannot(
        "H3",
        "hosts with memory of several kinds count it otherwise",
        SCOPE,
        "no node type of this suite has host memory of several kinds",
    ),
    case(
        "H4",
        "the list of DIMMs is for root only",
        scene(
            unverified("memory.dimms", "node", "Permission denied"),
            passes("memory.installed", "node", 2015.1075, "MemTotal"),
            faults="dmidecode-denied",
            failing="",
        ),
    ),
    case("H5", "one check takes most of the time of a run", Proof(host_proofs.probes_have_budgets)),
    case("H6", "a watchdog over all checks blames the last one", Proof(host_proofs.the_one_that_hangs_is_named)),
    case(
        "H7",
        "the toolkit is installed, and docker does not know it",
        scene(
            fails("container.runtime/gpu-support", "node", "False", remedy=("restart",)),
            passes("container.gpu-toolkit", "node", "1.19.1"),
            unverified("container.gpu-visible", "node", "could not select device driver", by="container.runtime@node"),
            faults="docker-without-nvidia",
            failing="container.runtime/gpu-support",
        ),
        scene(
            fails("container.runtime/gpu-support", "node", "False"),
            captures={"docker_info": "container-runtime/07-docker-info-nvidia-missing.txt"},
            edit=left_out("container-gpus"),
        ),
    ),
    case(
        "H8",
        "one way into a container fails, another works",
        scene(passes("container.runtime/gpu-support", "node", True), faults="containerd-with-cdi", failing=""),
        scene(passes("container.runtime/gpu-support", "node", True), faults="podman-with-cdi", acceptance="accepted"),
        scene(
            passes("container.runtime/gpu-support", "node", True),
            passes("container.gpu-visible", "node", True),
            edit=together(
                replaced("docker_info", " nvidia runc", " runc"),
                replaced(
                    "docker_info",
                    "( Swarm: inactive)",
                    " Discovered Devices:\n"
                    + "".join(f"  cdi: nvidia.com/gpu={index}\n" for index in range(8))
                    + r"\1",
                ),
            ),
            failing="",
        ),
        scene(
            fails("container.runtime/gpu-support", "node", "no CDI device"),
            faults="podman-without-cdi",
            failing="container.runtime/gpu-support",
        ),
    ),
    case(
        "H9",
        "a container loses its GPUs when systemd reloads",
        scene(advises("container.daemon-reload", "node", "/dev/char"), faults="gpus-lost-at-reload", failing=""),
        scene(
            passes("container.daemon-reload", "node", True),
            faults="no-links-and-cgroupfs",
            acceptance="accepted",
        ),
    ),
    case(
        "H10",
        "a container's shared memory is too small for a collective",
        # the node's NVLink is not called broken for it
        scene(
            unverified("nvlink.all-reduce", "node", "Error while creating shared memory segment"),
            passes("nvlink.bandwidth", "gpu4", 395.077),
            edit=document("allreduce", _no_shared_memory),
            acceptance="incomplete",
            failing="",
        ),
    ),
    case(
        "H11",
        "the image for the test can't be had",
        scene(
            unverified("container.gpu-visible", "node", "No such image"),
            passes("container.runtime", "node", "docker"),
            passes("container.runtime/gpu-support", "node", True),
            faults="container-image-missing",
            failing="",
        ),
    ),
    case(
        "H12",
        "memory of a GPU is in use, and no process owns it",
        scene(advises("health.leftovers/memory", "gpu4", "6412 MiB"), faults="leftover-memory", failing=""),
    ),
    case(
        "H13",
        "a few MiB in use on each GPU",
        scene(
            passes("health.leftovers/memory", "gpu4", 3),
            edit=tag("used", "3 MiB", within="fb_memory_usage"),
            acceptance="accepted",
        ),
        scene(
            advises("health.leftovers/memory", "gpu4", "512 MiB"),
            edit=tag("used", "512 MiB", within="fb_memory_usage"),
        ),
    ),
    case(
        "H14",
        "load is started on a node that runs a job",
        Proof(host_proofs.a_busy_node_is_left_alone, ("gate_run", "machine_of")),
    ),
    case(
        "H15",
        "MIG is on for one GPU",
        scene(
            fails("gpu.mig", "gpu4", "Enabled", "demanded Disabled"),
            passes("gpu.mig", "gpu3", "Disabled"),
            faults="mig-on",
        ),
    ),
    case(
        "H16",
        "MIG is off, and will be on after the next reset",
        scene(
            fails("gpu.mig/pending", "gpu4", "Enabled"),
            passes("gpu.mig", "gpu4", "Disabled"),
            faults="mig-pending",
            failing="gpu.mig/pending",
        ),
    ),
    case(
        "H17",
        "the maker's diagnostic skips its tests, and the node has passed",
        scene(
            unverified("health.dcgm-diag", "node", "8 were skipped"),
            advises("health.dcgm-diag/skipped", "node", "8"),
            edit=_handed_in(_diag(*["Skip"] * 8)),
            failing="",
            acceptance="incomplete",
        ),
        scene(advises("health.dcgm-diag/skipped", "node", "targeted_power"), faults="dcgm-test-skipped", failing=""),
    ),
    case(
        "H18",
        "the maker's diagnostic failed, and who called it said healthy",
        scene(
            fails("health.dcgm-diag", "node", "pcie", "GPU 4"),
            edit=_handed_in(_diag(*["Pass"] * 4, "Fail", *["Pass"] * 3, name="pcie")),
            failing="health.dcgm-diag",
        ),
        scene(fails("health.dcgm-diag", "node", "memory"), faults="dcgm-test-failed"),
    ),
    case(
        "H19",
        "a later and lighter check overwrites an earlier failure",
        scene(
            fails("health.dcgm-diag", "node", "memory", "GPU 1"),
            edit=_handed_in({"iterations": [_diag("Pass", "Fail"), _diag("Pass", "Pass")]}),
            failing="health.dcgm-diag",
        ),
    ),
    case(
        "H20",
        "the maker's diagnostic was ended in the middle",
        scene(
            unverified("health.dcgm-diag", "node"),
            edit=together(
                given(_DCGM, json.dumps(_diag("Pass"))[:90]), lambda files: files.update({f"{_DCGM}.rc": b"124"})
            ),
            failing="",
        ),
    ),
    case(
        "H21",
        "logs of a scheduled diagnostic fill the disk",
        scene(fails("storage.space", "node", "2 %", "/"), faults="disk-full", failing="storage.space"),
    ),
    case(
        "H22",
        "a file system that does not answer, or is of a kind that was not thought of",
        scene(unverified("storage.space", "node"), faults="df-cut", failing=""),
        scene(
            passes("storage.read-only", "node", 0),
            edit=lambda files: files.update(
                {
                    "proc/mounts": files["proc/mounts"]
                    + b"/dev/nvme0n1p1 /boot/efi vfat rw,relatime 0 0\n"
                    + b"/dev/md0 /scratch xfs rw,relatime 0 0\n"
                    + b"filer:/home /home nfs4 ro,relatime 0 0\n"
                }
            ),
            acceptance="accepted",
        ),
        scene(fails("storage.read-only", "node", "/ ("), faults="root-read-only"),
    ),
    case(
        "H23",
        "drives are counted among arrays and boot disks",
        scene(
            passes("storage.drives/count", "node", 8),
            passes("storage.raid", "node", 0),
            faults="array-whole",
            acceptance="accepted",
        ),
        scene(
            fails("storage.raid", "node", "md0 runs on 1 of 2"),
            passes("storage.drives/count", "node", 8),
            faults="array-degraded",
        ),
        scene(advises("storage.errors/resets", "node", "resetting controller"), faults="drive-reset", failing=""),
    ),
    case(
        "H24",
        "nothing keeps the GPUs initialised",
        scene(advises("driver.persistence-mode", "gpu0", "Disabled"), faults="persistence-off", failing=""),
    ),
    case(
        "H25",
        "a failure two layers below is told as one of the layer above",
        scene(
            unverified("gpu.count", "node", by="driver.responds@node"),
            unverified("frameworks.torch/devices", "node", by="driver.responds@node"),
            unverified("container.gpu-visible", "node", by="driver.responds@node"),
            faults="driver-not-loaded",
            failing="driver.responds",
        ),
    ),
    case(
        "H26",
        "another container engine than the one that was thought of",
        scene(
            passes("container.runtime", "node", "cri-o"),
            passes("container.runtime/gpu-support", "node", True),
            faults="cri-o-with-cdi",
            failing="",
        ),
        scene(passes("container.runtime", "node", "containerd"), faults="containerd-with-nvidia", failing=""),
    ),
    case(
        "H27",
        "documentation and configuration hold different floors",
        Proof(host_proofs.results_name_their_baseline, ("judge", "healthy")),
    ),
    case(
        "H28",
        "the same data gives other verdicts from run to run",
        Proof(host_proofs.the_same_evidence_gives_the_same_verdicts, ("judge", "healthy", "tmp_path")),
    ),
    case("H29", "a misspelt key switches a rule off", Proof(host_proofs.a_misspelt_key_is_refused, ("tmp_path",))),
    case(
        "H30",
        "a measurement of bandwidth prints N/A for pairs that it does not support",
        scene(
            unverified("nvlink.bandwidth", "gpu4", 'gb_s reads "N/A"'),
            edit=copied(4, "to-peer", peer="cuda:5", gb_s="N/A"),
            failing="",
        ),
    ),
    case(
        "H31",
        "decimals with a comma, and translated words",
        Proof(host_proofs.children_speak_plainly, ("monkeypatch",)),
        scene(
            unverified("power.limit", "gpu4", "700,00 W"),
            edit=tag("current_power_limit", "700,00 W", within="gpu_power_readings"),
            failing="",
        ),
        scene(
            unverified("memory.installed", "node"),
            edit=together(
                given("proc/meminfo", "Mémoire totale : 2 000 000 ko\n"),
                failed("dmidecode_-t_memory", 1, error="Permission non accordée"),
            ),
            failing="",
        ),
    ),
    case(
        "H32",
        "a command that could not be run is taken for one with nothing to report",
        *(
            scene(
                unverified("nvlink.links-active", "gpu4", f"exited {status}"),
                edit=failed(NVLINK, status),
                failing="",
                acceptance="incomplete",
            )
            for status in _EXIT_STATUSES
        ),
        scene(fails("driver.responds", "node", "127"), faults="nvidia-smi-missing", failing="driver.responds"),
    ),
)
