"""The parsers as targets: each with the outputs that it is fed, and the seeds that all targets share."""

import ast
import importlib
import inspect
import os
import pkgutil
import tempfile
from pathlib import Path

from mutation import FLOODS, flooded, mutated

from nodeready import facts
from nodeready.simulate.write import simulate

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = Path(os.environ.get("NODEREADY_CAPTURES", ROOT / "../shared/captures")).resolve()
LONG = 50_000  # bytes of a seed of which mostly excerpts are mutated
FLOOD_SIZES = (2**14, 2**17, 2**19)

# Every parser with the outputs that it is fed: evidence names of a simulated node, folders of captures. What stands as
# bytes in the examples of its module comes on top.
PARSERS = {
    "allreduce.parse": ("allreduce",),
    "bmc_events.parse": ("ipmi",),
    "bmc_sensors.parse": ("ipmi",),
    "bmc_sensors.parse_freeipmi": ("ipmi",),
    "cdi.parse": (),
    "cdi.parse_spec": ("container-runtime",),
    "conf_compute.parse": ("nvidia-smi_conf-compute_-f",),
    "container_files.parse": ("container-files",),
    "containerd.parse": ("container-runtime",),
    "copies.parse": ("copies",),
    "dcgm_diag.parse": ("dcgmi",),
    "device_files.parse": ("device-files",),
    "df.parse": ("df", "storage"),
    "dmi_power.parse": ("dmidecode", "sys-info"),
    "dmidecode.parse": ("dmidecode_-t_memory", "dmidecode"),
    "docker.parse": ("docker_info", "container-runtime"),
    "drive_read.parse": ("drive-read",),
    "driver_module.parse": ("proc/driver/nvidia/version",),
    "driver_module.parse_flavour": ("proc/driver/nvidia/version",),
    "edac.parse": (),
    "environment.parse": ("environment",),
    "fabric_manager.parse_state": ("systemctl_is-active_nvidia-fabricmanager",),
    "fabric_manager.parse_version": ("nv-fabricmanager_--version", "fabricmanager"),
    "host_files.parse": ("host-files",),
    "ibstat.parse": ("ibstat",),
    "infiniband_sysfs.parse": ("infiniband-misc",),
    "ip_link.parse": ("ip_-j_link", "infiniband-misc"),
    "ip_link.parse_speeds": ("sys/class/net-speed",),
    "kernel_log.parse": ("dmesg", "kernel-misc"),
    "limits.parse": (),
    "lscpu.parse": ("lscpu_-J", "lscpu"),
    "lsmod.parse": ("proc/modules", "kernel-misc"),
    "lspci.parse": ("lspci_-nnvvv", "lspci"),
    "matmul.parse": ("matmul",),
    "meminfo.parse": ("proc/meminfo", "meminfo"),
    "mounts.parse": ("proc/mounts",),
    "nvcc.parse": ("nvcc_--version",),
    "nvidia_ctk.parse": ("nvidia-ctk_--version",),
    "nvidia_smi_csv.parse": ("query-gpu-csv",),
    "nvidia_smi_list.parse": ("container-gpus", "nvidia-smi-L"),
    "nvidia_smi_table.parse": ("nvidia-smi-table",),
    "nvidia_smi_text.parse": ("nvidia-smi_-q", "nvidia-smi-q", "nvidia-smi-q-excerpt", "nvidia-smi-error"),
    "nvidia_smi_xml.parse": ("nvidia-smi_-q_-x", "nvidia-smi-q-xml"),
    "nvlink.parse": ("nvidia-smi_nvlink_-s", "nvlink-s", "nvlink-e"),
    "nvlink_errors.parse": ("nvidia-smi_nvlink_-e", "nvlink-e"),
    "nvme_health.parse": ("nvme", "smartctl"),
    "nvme_sysfs.parse": (),
    "nvml.parse": ("nvml",),
    "os_release.parse": ("etc/os-release", "os-release"),
    "other_engines.parse_apptainer": (),
    "other_engines.parse_cri_info": (),
    "other_engines.parse_cri_version": (),
    "other_engines.parse_enroot": (),
    "other_engines.parse_runc": (),
    "patterns.parse": ("patterns",),
    "pci_files.parse": ("pci-files", "pci-files-later"),
    "pci_sysfs.parse": (),
    "peer_status.parse": ("nvidia-smi_topo_-p2p_r",),
    "podman.parse": (),
    "processes.parse": (),
    "query_gpu.parse": ("nvidia-smi_--query-gpu=pci.bus_id,compute_cap_--format=csv", "query-gpu-csv"),
    "rdma_files.parse": ("rdma-files",),
    "rdma_files.parse_later": ("rdma-files-later",),
    "rdma_write.parse": ("rdma-write",),
    "small_files.parse": ("host-files",),
    "timedatectl.parse": (),
    "topology.parse": ("nvidia-smi_topo_-m", "topo-m"),
    "torch_info.parse": ("torch",),
}


def parsers_there_are():
    """`module.function` of every public function of nodeready.facts that makes a document of bytes and nothing else."""
    found = set()
    for module in pkgutil.iter_modules(facts.__path__):
        loaded = importlib.import_module(f"nodeready.facts.{module.name}")
        for name, function in vars(loaded).items():
            if name.startswith("_") or not inspect.isfunction(function) or function.__module__ != loaded.__name__:
                continue
            signature = inspect.signature(function)
            needed = [p for p in signature.parameters.values() if p.default is p.empty]
            takes_bytes = len(needed) == 1 and needed[0].annotation in ("bytes", bytes)
            if takes_bytes and signature.return_annotation not in ("bool", "list[str]"):
                found.add(f"{module.name}.{name}")
    return found


def _excerpt(rng, data):
    """The first lines of a long output, and some two hundred from anywhere; XML stays whole."""
    if data.startswith(b"<?xml"):
        return data
    lines = data.splitlines(keepends=True)
    start = rng.randrange(len(lines))
    return b"".join([*lines[:5], *lines[start : start + 200]])


class Parser:
    """One parser: documents of its own kind, and now and then those of another."""

    def __init__(self, name, material):
        module, _, function = name.partition(".")
        self.name = name
        self.parse = getattr(importlib.import_module(f"nodeready.facts.{module}"), function)
        self.seeds = material.seeds(name)
        self.others = material.any
        self.first = sum(name.encode()) % FLOODS  # short runs then see other floods for each parser

    def case(self, rng, number):
        """The bytes of a case."""
        if number % 4 == 3 and number < 4 * FLOODS:  # every flood once, then some of them larger
            return flooded(rng, self.seeds, 2**15, number // 4 + self.first)
        if number % 40 == 39:
            return flooded(rng, self.seeds, rng.choice(FLOOD_SIZES), rng.randrange(FLOODS))
        if not rng.randrange(12):
            return mutated(rng, self.others)
        seed = min(rng.choice(self.seeds), rng.choice(self.seeds), key=len)  # short ones make more cases
        return mutated(rng, [_excerpt(rng, seed), *self.seeds[:3]] if len(seed) > LONG else [seed, *self.seeds[:3]])

    def run(self, data):
        """Parse twice; the words of an Unknown are a sentence, not a document."""
        one = repr(self.parse(data))
        if one != repr(self.parse(bytes(bytearray(data)))):
            raise AssertionError("the same bytes give two documents")


class Material:
    """The seeds: outputs of simulated nodes, captures of real ones, bytes in the examples of the modules."""

    def __init__(self):
        self.files = {}
        with tempfile.TemporaryDirectory() as scratch:
            for node_type in ("sxm", "nvl"):
                folder = Path(scratch, node_type)
                simulate(node_type, folder, [], {}, 0)
                found = {
                    p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
                }
                self.files = {**found, **self.files}
        self.captured = {}
        for path in sorted(CAPTURES.glob("*/*.txt")):
            self.captured.setdefault(path.parent.name, []).append(path.read_bytes())
        real = [data for found in self.captured.values() for data in found]
        self.any = sorted([*self.files.values(), *real], key=lambda data: (len(data), data))[:-10]

    def seeds(self, name):
        """The seeds of a parser; never empty."""
        module = importlib.import_module(f"nodeready.facts.{name.partition('.')[0]}")
        found = [self.files[key] for key in PARSERS[name] if key in self.files]
        found += [data for key in PARSERS[name] for data in self.captured.get(key, ())]
        return found + _examples(module)


def _examples(module):
    """The bytes in the doctests of a module's functions."""
    import doctest

    found = []
    for test in doctest.DocTestFinder().find(module):
        for example in test.examples:
            literals = (n.value for n in ast.walk(ast.parse(example.source)) if isinstance(n, ast.Constant))
            found += [value for value in literals if isinstance(value, bytes) and value]
    return found
