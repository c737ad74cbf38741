"""Section G: InfiniBand, RoCE and RDMA."""

import json
import re

from edits import logged, replaced
from field_case import LOAD, NODES, advises, cannot, case, fails, passes, scene, unverified

_NDR = ("network.port-rate=400 Gb/s", "network.ports-active=8")


def _no_master(files):
    """No subnet manager: InfiniBand ports have a link, no identifier, and never get active."""
    ports = files["ibstat"].split(b"CA '")
    for place, port in enumerate(ports):
        if b"Link layer: InfiniBand" in port:
            port = re.sub(rb"(Base lid|SM lid): \d+", rb"\1: 0", port)
            ports[place] = port.replace(b"State: Active", b"State: Initializing")
    files["ibstat"] = b"CA '".join(ports)
    _without_carrier(files)


def _without_carrier(files):
    """The interfaces of InfiniBand ports are down."""
    interfaces = json.loads(files["ip_-j_link"])
    infiniband = [interface for interface in interfaces if interface["ifname"].startswith("ib")]
    assert infiniband
    for interface in infiniband:
        interface["operstate"] = "DOWN"
    files["ip_-j_link"] = json.dumps(interfaces).encode()


def _colours(files):
    """Terminal colours around words of ibstat, which is then all that tells of the ports."""
    files["ibstat"] = files["ibstat"].replace(b"LinkUp", b"\x1b[32mLinkUp\x1b[0m")
    _without_carrier(files)


CASES = (
    case(
        "G1",
        "a port is active at half of its rate",
        scene(
            fails("network.ports-active", "node", "is 7", "mlx5_1/1 400 Gb/s"),
            faults="port-rate-low",
            settings=_NDR,
            failing="network.ports-active",
        ),
        scene(advises("network.twins", "node", "mlx5_0/1", "200 Gb/s", "400"), faults="port-rate-low", failing=""),
    ),
    case(
        "G2",
        "a port is down, polls, and prints a rate",
        scene(
            advises("network.twins", "node", "mlx5_8/1", "DOWN", "Polling"),
            faults="one-port-down",
            failing="",
        ),
        scene(fails("network.ports-active", "node", "is 0", ">= 1"), faults="ports-down"),
    ),
    case(
        "G3",
        "too few ports are up, and nobody says which",
        scene(
            fails("network.ports-active", "node", "is 7", ">= 8", "mlx5_0/1"),
            advises("network.twins", "node", "mlx5_8/1"),
            faults="one-port-down",
            settings=_NDR,
        ),
    ),
    case(
        "G4",
        "the port runs at its rate, and its adapter has half of the lanes",
        scene(
            fails("pcie.adapter-links", "node", "mlx5_4", "x8"),
            passes("network.twins", "node", 0),
            faults="adapter-x8",
            failing="pcie.adapter-links",
        ),
    ),
    case(
        "G5",
        "ports in Ethernet mode, for storage, or unused are counted as ports for jobs",
        scene(passes("network.ports-active", "node", 8), settings=_NDR, acceptance="accepted"),
        scene(passes("network.ports-active", "node", 8), settings=_NDR, faults="unused-ports-down", failing=""),
        scene(
            passes("network.ports-active", "node", 8), settings=_NDR, faults="roce-instead-of-infiniband", failing=""
        ),
        scene(fails("network.ports-active", "node", "is 8"), settings=(_NDR[0], "network.ports-active=9")),
    ),
    case(
        "G6",
        "a port lost its link while it was plugged in, and is stable since",
        scene(passes("network.flaps", "node", 0.9, "lost its link 1 times"), acceptance="accepted"),
        scene(passes("network.errors", "node", 0), faults="port-old-errors", acceptance="accepted"),
        scene(fails("network.errors", "node", "mlx5_1/1", "+3"), faults="port-loses-integrity"),
    ),
    case(
        "G7",
        "a port that loses its link for ever and is up whenever somebody looks",
        scene(fails("network.errors", "node", "link_downed +1"), faults="port-flaps-now", failing="network.errors"),
        scene(advises("network.flaps", "node", "255 times"), faults="port-flapped-often", failing=""),
    ),
    cannot(
        "G8",
        "bit error rates are read too early",
        LOAD,
        "a rate of bit errors means something after two hours of traffic; the suite reads counters and how they grow",
    ),
    case(
        "G9",
        "the log is full of refusals that a checker earned by its own questions",
        scene(
            passes("network.log", "node", 0),
            passes("network.log/warning", "node", 0),
            faults="adapter-asked-too-much",
            acceptance="accepted",
        ),
        scene(fails("network.log", "node", "health compromised"), faults="adapter-gave-up"),
    ),
    cannot(
        "G10",
        "the network's monitor calls a port down that the host calls active",
        NODES,
        "the suite asks the node and no monitor of the network; what the host says decides",
    ),
    case(
        "G11",
        "ports have a link and no identifier: there is no subnet manager",
        scene(
            fails("network.ports-active", "node", "is 0"),
            edit=_no_master,
            settings=_NDR,
        ),
    ),
    case(
        "G12",
        "the peer memory module is loaded and was never registered",
        scene(advises("network.gpudirect", "node", "loaded and not registered"), faults="peermem-not-registered"),
        scene(passes("network.gpudirect", "node", "peermem"), faults="gpudirect-by-peermem", acceptance="accepted"),
        scene(passes("network.gpudirect", "node", "dma-buf"), acceptance="accepted"),
    ),
    case(
        "G13",
        "the peer memory module does not load",
        scene(
            advises("network.gpudirect", "node", "nvidia_peermem is not loaded"),
            passes("gpu.count", "node", 8),
            faults="gpudirect-off",
            edit=logged("nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client"),
            failing="",
        ),
    ),
    case(
        "G14",
        "the GPU can do GPUDirect, and the adapter can't",
        scene(
            passes("network.gpudirect", "node", "dma-buf"),
            advises("network.write-bandwidth/gpu-memory", "node", "Couldn't allocate MR", "host memory alone"),
            faults="gpu-memory-refused",
            acceptance="accepted-with-advisories",
        ),
        scene(passes("network.write-bandwidth/gpu-memory", "node", True), acceptance="accepted"),
    ),
    case(
        "G15",
        "colours of a terminal in an output",
        scene(
            passes("nvlink.peers", "gpu4", 0),
            passes("topology.adapters", "node", 0),
            edit=replaced("nvidia-smi_topo_-m", r"(NV18|PIX)", "\x1b[1m\\1\x1b[0m"),
        ),
        scene(unverified("network.ports-active", "node"), edit=_colours, settings=_NDR, failing=""),
    ),
    case(
        "G16",
        "dirty optics: an adapter is sent back where cleaning would have helped",
        scene(
            fails("network.errors", "node", "symbol_error", remedy=("Clean and reseat", "then exchange the cable")),
            faults="port-symbol-errors",
        ),
    ),
    cannot(
        "G17",
        "redundant links of the network are broken",
        NODES,
        "a node can't see links between switches; they show in congestion among many nodes",
    ),
)
