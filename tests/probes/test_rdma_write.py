"""The rdma-write probe with a stand-in for ib_write_bw: RDMA itself needs an adapter, and soft ones a kernel module."""

import ast
import doctest
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodeready.evidence.script import runnable
from nodeready.facts.rdma_write import parse
from nodeready.probes import rdma_transfer, rdma_write

SCRIPT = Path(rdma_write.__file__)
STAND_IN = Path(__file__).with_name("ib_write_bw.py")
DOCUMENT = {"probe", "schema", "perftest", "cuda", "dmabuf", "python", "started", "seconds", "results", "error"}
ENTRY = {"device", "port", "link_layer", "rate_gbits", "numa", "gpu", "memory", "at_once", "tried", "error"}
ENTRY |= {"gbits", "peak", "bytes", "iterations"}
HEAD = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
ROW = " 8388608    11766            0.00               394.82\t\t     0.005883\n"
REFUSED = "server and client: Couldn't allocate MR with error=14, failed to create mr"


@pytest.fixture
def node(tmp_path):
    """A machine with two GPUs, an adapter below the switch of each, and one that has no GPU beside it."""
    return Machine(tmp_path)


class Machine:
    """A made-up sysfs, and a PATH with the stand-in."""

    def __init__(self, folder):
        self.folder, self.sysfs, self.starts = folder, folder / "sys", folder / "starts"
        self.tools = folder / "bin"
        self.tools.mkdir()
        self.environment = {
            "PATH": f"{self.tools}:/usr/bin:/bin",
            "STARTS": str(self.starts),
            "CUDA_VISIBLE_DEVICES": "1",
        }
        self.install()
        self.device("pci0000:15/0000:15:01.0/0000:19:00.0/0000:1a:00.0/0000:1b:00.0", gpu=True)
        self.device("pci0000:37/0000:37:01.0/0000:3b:00.0/0000:3c:00.0/0000:3e:00.0", gpu=True)
        # in another order than the GPUs: an adapter's number is not that of its GPU
        self.adapter("mlx5_0", "pci0000:37/0000:37:01.0/0000:3b:00.0/0000:3d:00.0/0000:3f:00.0", numa=0)
        self.adapter("mlx5_1", "pci0000:15/0000:15:01.0/0000:19:00.0/0000:1c:00.0/0000:1d:00.0")
        self.adapter("mlx5_10", "pci0000:ab/0000:ab:01.0/0000:ac:00.0", rate="100 Gb/sec (4X EDR)", layer="Ethernet")
        cpus = self.sysfs / "devices/system/node/node0/cpulist"
        cpus.parent.mkdir(parents=True)
        cpus.write_text(f"{min(os.sched_getaffinity(0))}\n")

    def install(self, python=sys.executable):
        tool = self.tools / "ib_write_bw"
        tool.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} -IS {shlex.quote(str(STAND_IN))} "$@"\n')
        tool.chmod(0o755)

    def device(self, place, *, gpu=False):
        at = self.sysfs / "devices" / place
        at.mkdir(parents=True)
        (at / "vendor").write_text("0x10de\n" if gpu else "0x15b3\n")
        (at / "class").write_text("0x030200\n" if gpu else "0x020700\n")
        link = self.sysfs / "bus/pci/devices" / at.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(at)
        return at

    def adapter(self, name, place, *, rate="400 Gb/sec (4X NDR)", layer="InfiniBand", numa=-1):
        at = self.device(place)
        (at / "numa_node").write_text(f"{numa}\n")
        port = at / "infiniband" / name / "ports/1"
        port.mkdir(parents=True)
        for file, value in (("state", "4: ACTIVE"), ("rate", rate), ("link_layer", layer)):
            (port / file).write_text(f"{value}\n")
        (at / "infiniband" / name / "device").symlink_to(at)
        link = self.sysfs / "class/infiniband" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(at / "infiniband" / name)

    def port(self, name):
        return self.sysfs / "class/infiniband" / name / "ports/1"

    def peermem(self):
        (self.sysfs / "kernel/mm/memory_peers/nv_mem").mkdir(parents=True)

    def argv(self, *options):
        return [sys.executable, str(SCRIPT), f"--sysfs={self.sysfs}", "--deadline=30", *options]

    def ran(self, *options, **environment):
        environment = {**self.environment, **environment}
        run = subprocess.run(
            self.argv(*options), capture_output=True, text=True, timeout=60, check=False, env=environment
        )
        return run, json.loads(run.stdout)

    def results(self, *options, behaves=None, **environment):
        run, document = self.ran(*options, BEHAVES=json.dumps(behaves or {}), **environment)
        assert (run.returncode, run.stderr, document["error"]) == (0, "", None)
        assert document.keys() == DOCUMENT
        assert all(entry.keys() == ENTRY for entry in document["results"])
        assert {f"{e['device']}/{e['port']}" for e in document["results"]} == parse(run.stdout.encode()).ports.keys()
        return {entry["device"]: entry for entry in document["results"]}

    def begun(self):
        return [json.loads(line) for line in self.starts.read_text().splitlines()]


def is_alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def within(seconds, holds):
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def test_the_script_imports_the_standard_library_and_its_sibling_alone():
    for path in (SCRIPT, Path(rdma_transfer.__file__)):
        tree = ast.parse(path.read_text())
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {n.partition(".")[0] for n in names} - {"nodeready", "rdma_transfer"} <= sys.stdlib_module_names


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(rdma_write) == (0, 1)
    assert doctest.testmod(rdma_transfer) == (0, 2)


def test_ports_beside_a_gpu_write_through_its_memory_all_at_once_and_others_through_the_hosts_alone(node):
    found = node.results()
    assert list(found) == ["mlx5_0", "mlx5_1", "mlx5_10"]
    gpus = {name: (entry["gpu"], entry["memory"], entry["at_once"]) for name, entry in found.items()}
    assert gpus == {
        "mlx5_0": ("0000:3e:00.0", "cuda-dmabuf", 2),
        "mlx5_1": ("0000:1b:00.0", "cuda-dmabuf", 2),
        "mlx5_10": (None, "host", 1),
    }
    first = found["mlx5_0"]
    assert (first["gbits"], first["peak"], first["bytes"], first["iterations"]) == (392.84, None, 8388608, 11785)
    assert (first["port"], first["link_layer"], first["rate_gbits"], first["numa"]) == (1, "InfiniBand", 400.0, 0)
    assert (found["mlx5_10"]["link_layer"], found["mlx5_10"]["rate_gbits"], found["mlx5_10"]["numa"]) == (
        "Ethernet",
        100.0,
        None,
    )
    assert [entry["tried"] for entry in found.values()] == [[], [], []]


def test_processes_are_bound_to_the_adapters_numa_node_and_see_all_gpus_by_bus_id(node):
    node.results()
    cpus = {start["device"]: start["cpus"] for start in node.begun()}
    everywhere = sorted(os.sched_getaffinity(0))
    assert cpus == {"mlx5_0": everywhere[:1], "mlx5_1": everywhere, "mlx5_10": everywhere}
    assert {(start["order"], start["visible"]) for start in node.begun()} == {("PCI_BUS_ID", None)}
    assert {s["device"]: s["gpu"] for s in node.begun()} == {"mlx5_0": "1", "mlx5_1": "0", "mlx5_10": None}


def test_peermem_goes_first_where_the_rdma_stack_has_taken_it(node):
    node.peermem()
    assert [entry["memory"] for entry in node.results().values()] == ["cuda", "cuda", "host"]


def test_refused_gpu_memory_is_told_beside_what_host_memory_gave(node):
    node.peermem()
    found = node.results(behaves={"mlx5_0:cuda": "refused", "mlx5_0:cuda-dmabuf": "refused", "mlx5_1:cuda": "refused"})
    told = [{"memory": "cuda", "error": REFUSED}, {"memory": "cuda-dmabuf", "error": REFUSED}]
    assert (found["mlx5_0"]["memory"], found["mlx5_0"]["tried"], found["mlx5_0"]["gbits"]) == ("host", told, 392.84)
    assert (found["mlx5_1"]["memory"], found["mlx5_1"]["tried"], found["mlx5_1"]["at_once"]) == (
        "cuda-dmabuf",
        told[:1],
        2,
    )
    assert found["mlx5_0"]["at_once"] == 1


def test_a_tool_without_cuda_writes_through_host_memory_one_port_after_another(node):
    run, document = node.ran(PLAIN="1")
    assert (run.returncode, document["cuda"], document["dmabuf"], document["perftest"]) == (0, False, False, "6.20")
    assert [(e["memory"], e["gpu"], e["error"]) for e in document["results"]] == [
        ("host", "0000:3e:00.0", None),
        ("host", "0000:1b:00.0", None),
        ("host", None, None),
    ]
    clients = [start["at"] for start in node.begun() if start["client"]]
    assert all(later - earlier >= 0.2 for earlier, later in itertools.pairwise(clients))


def test_a_port_that_breaks_has_its_error_and_the_others_their_figures(node):
    found = node.results(behaves={"mlx5_0": "broken"})
    assert found["mlx5_0"]["error"].startswith("server: ethernet_read_keys: Couldn't read remote address")
    assert "client: Completion with error at client, Failed status 12" in found["mlx5_0"]["error"]
    assert found["mlx5_0"]["gbits"] is None
    assert [attempt["memory"] for attempt in found["mlx5_0"]["tried"]] == ["cuda-dmabuf"]
    assert found["mlx5_1"]["gbits"] == 392.84


def test_memory_of_another_gpu_than_was_meant_does_not_count(node):
    found = node.results(behaves={"mlx5_0:cuda-dmabuf": "elsewhere"})
    assert found["mlx5_0"]["tried"] == [
        {"memory": "cuda-dmabuf", "error": "ib_write_bw took the memory of the GPU at 1B:00, not of 0000:3e:00.0"}
    ]
    assert found["mlx5_0"]["memory"] == "host"


def test_a_device_that_the_tool_does_not_find_is_an_error_of_its_port(node):
    found = node.results(behaves={"mlx5_10": "absent"})
    told = "server: IB device mlx5_10 not found, Unable to find the Infiniband/RoCE device"
    assert (found["mlx5_10"]["error"], found["mlx5_10"]["gbits"]) == (told, None)


@pytest.mark.parametrize(
    ("behaves", "doing"),
    [("deaf", "its server, which did not listen"), ("hung", "the transfer"), ("stubborn", "the transfer")],
)
def test_a_port_that_does_not_answer_costs_its_own_entry_and_is_not_tried_again(node, behaves, doing):
    began = time.monotonic()
    found = node.results("--deadline=10", "--seconds=3", behaves={"mlx5_0": behaves})
    assert time.monotonic() - began < 11
    told = rf"no answer within [345] s of {doing}: its processes were ended"
    assert re.fullmatch(told, found["mlx5_0"]["error"])
    assert (found["mlx5_0"]["memory"], found["mlx5_0"]["tried"]) == ("cuda-dmabuf", [])
    assert found["mlx5_1"]["gbits"] == 392.84
    # the time was spent: what was not measured says so
    assert (found["mlx5_10"]["gbits"], found["mlx5_10"]["error"]) == (None, "the 10 s were over before its turn")
    assert not [start["pid"] for start in node.begun() if is_alive(start["pid"])]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_probe(node, number):
    environment = {**node.environment, "BEHAVES": json.dumps({"mlx5_0": "hung"})}
    process = subprocess.Popen(node.argv(), stdout=subprocess.DEVNULL, env=environment)
    assert within(10, lambda: node.starts.exists() and len([s for s in node.begun() if s["client"]]) == 2)
    process.send_signal(number)
    process.wait(10)
    assert within(5, lambda: not [start["pid"] for start in node.begun() if is_alive(start["pid"])])


def test_ports_that_are_down_are_left_out(node):
    for name in ("mlx5_0", "mlx5_10"):
        (node.port(name) / "state").write_text("1: DOWN\n")
    assert list(node.results()) == ["mlx5_1"]


def test_a_rate_that_the_kernel_does_not_tell_is_null(node):
    (node.port("mlx5_1") / "rate").unlink()
    assert node.results()["mlx5_1"]["rate_gbits"] is None


def test_several_ports_below_one_switch_share_its_gpus_out(node):
    node.device("pci0000:15/0000:15:01.0/0000:19:00.0/0000:1a:00.0/0000:1e:00.0", gpu=True)
    node.adapter("mlx5_2", "pci0000:15/0000:15:01.0/0000:19:00.0/0000:1c:00.0/0000:1f:00.0")
    found = node.results(GPUS="1B:00 1E:00 3E:00")
    assert [entry["gpu"] for entry in found.values()] == ["0000:3e:00.0", "0000:1b:00.0", "0000:1e:00.0", None]


def test_a_node_without_adapters_gives_an_empty_document(node):
    run, document = node.ran(f"--sysfs={node.folder}")
    assert (run.returncode, document["results"], document["error"]) == (0, [], None)


def test_without_ib_write_bw_the_document_says_so_and_the_exit_status_is_3(node):
    (node.tools / "ib_write_bw").unlink()
    run, document = node.ran()
    assert (run.returncode, document["error"]) == (3, "there is no ib_write_bw on PATH: install perftest")
    assert document.keys() == DOCUMENT


def test_an_ib_write_bw_that_does_not_run_is_an_error_of_the_document(node):
    tool = node.tools / "ib_write_bw"
    tool.write_text("#!/bin/sh\necho 'error while loading shared libraries: libibverbs.so.1' >&2\nexit 127\n")
    run, document = node.ran()
    assert (run.returncode, document["results"]) == (0, [])
    assert document["error"].endswith(
        "does not know --report_gbits: error while loading shared libraries: libibverbs.so.1"
    )


def test_as_it_travels_to_a_target_it_measures_all_the_same(node, tmp_path):
    zipped = tmp_path / "travelled"
    zipped.write_bytes(runnable("rdma_write.py", lambda name: text(SCRIPT.with_name(name))))
    argv = [sys.executable, str(zipped), f"--sysfs={node.sysfs}"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True, env=node.environment)
    assert [entry["gbits"] for entry in json.loads(run.stdout)["results"]] == [392.84] * 3


def text(path):
    return path.read_text() if path.is_file() else None


@pytest.mark.parametrize("options", [["--seconds=2"], ["--deadline=5"], ["--deadline=nan"], ["--deadline=inf"]])
def test_options_that_make_no_sense_exit_2(options):
    run = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, timeout=20, check=False)
    assert run.returncode == 2


@pytest.mark.parametrize(
    "said",
    [
        "",
        HEAD,
        HEAD.replace("Gb/sec", "MiB/sec") + ROW,  # other numbers
        ROW,
        f"{HEAD} 8388608    0            0.00               0.00\t\t     0.000000\n",
        HEAD + ROW[:30],
    ],
)
def test_what_holds_no_rate_in_gbits_gives_none(said):
    assert rdma_transfer.rates(said) is None
    assert rdma_transfer.rates(HEAD + ROW)["gbits"] == 394.82
