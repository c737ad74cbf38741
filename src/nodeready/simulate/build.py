"""A healthy node of a type, made from its shape: the same arguments give the same node to the last byte."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.simulate.adapters import CONNECTX_6_DX, CONNECTX_7
from nodeready.simulate.host_state import host_of
from nodeready.simulate.model import (
    INACTIVE,
    Dimm,
    Driver,
    Engine,
    FabricManager,
    Gpu,
    Link,
    Node,
    Port,
    Rate,
    Remap,
    stream,
)
from nodeready.simulate.releases import LATEST, RELEASES, install
from nodeready.simulate.shapes import SHAPES, Shape

if TYPE_CHECKING:
    import random

    from nodeready.simulate.adapters import Adapter


class NoSuchNodeError(ValueError):
    """A node type, a number of GPUs or a driver that no shape has."""


def build(node_type: str, seed: int = 0, gpu_count: int | None = None, driver: str = LATEST) -> Node:
    """A healthy node; `driver` is a branch such as 550, or one build of it such as 550.54.14.

    Raises `NoSuchNodeError` for a type without a shape, a driver branch that is not known, or more
    GPUs than its machine has places.
    """
    shape = SHAPES.get(node_type)
    if shape is None:
        raise NoSuchNodeError(f"no node of type {node_type!r} can be simulated; known: {', '.join(sorted(SHAPES))}")
    count = shape.gpus if gpu_count is None else gpu_count
    if not 1 <= count <= len(shape.places):
        raise NoSuchNodeError(f"a node of type {node_type} has 1 to {len(shape.places)} GPUs, not {count}")
    branch, dot, rest = driver.partition(".")
    if branch not in RELEASES or (dot and not all(part.isascii() and part.isdigit() for part in rest.split("."))):
        raise NoSuchNodeError(f"there is no driver {driver!r}; known branches: {', '.join(RELEASES)}")
    release = RELEASES[branch]
    node = Node(
        shape=shape,
        seed=seed,
        gpus=[_gpu(shape, seed, place, count) for place in range(count)],
        ports=_ports(shape, seed, count),
        dimms=_dimms(shape, seed),
        mem_total_kib=kernel_memory(
            shape.machine.dimms[0] * shape.machine.dimms[1], stream(node_type, seed, "meminfo")
        ),
        driver=Driver(release.version, release.version, release.cuda),
        fabric_manager=FabricManager("active", release.version) if shape.fabric_manager else None,
        engine=Engine("docker", "28.5.1", ("io.containerd.runc.v2", "nvidia", "runc")),
        container_toolkit="1.19.1",
        cuda_toolkit=release.toolkit,
        torch=replace(release.torch),
        os=shape.machine.os,
    )
    install(node, branch, driver if dot else "")
    node.host = host_of(node)
    return node


def kernel_memory(installed_gib: int, rng: random.Random) -> int:
    """MemTotal in KiB for so much installed memory: page structs and firmware keep 1.6 %."""
    return int(installed_gib * 2**20 * 0.9841) - rng.randrange(0, 400_000, 4)


def _gpu(shape: Shape, seed: int, place: int, count: int) -> Gpu:
    rng, product = stream(shape.node_type, seed, "gpu", place), shape.product
    temperature = rng.randint(27, 33)
    draw = product.power[1] * rng.uniform(0.0936, 0.1021)
    joined = shape.board or bool(shape.joined and (place // shape.joined + 1) * shape.joined <= count)
    return Gpu(
        place=place,
        bus_id=f"0000:{shape.places[place]}",
        numa=place * 2 // len(shape.places),
        module_id=shape.module_ids[place],
        product=product,
        serial=f"165{rng.randrange(10**10):010d}",
        uuid=f"GPU-{uuid.UUID(int=rng.getrandbits(128))}",
        pdi=f"0x{rng.getrandbits(64):016x}",
        link=Link(
            generation=product.link_generation,
            max_generation=product.link_generation,
            device_generation=product.link_generation,
            port_generation=product.link_generation,
            width=product.link_width,
            max_width=product.link_width,
        ),
        replays=rng.randint(4, 150),
        temperature=temperature,
        margin=product.headroom - temperature + rng.randint(-1, 1),
        memory_temperature=temperature + rng.randint(7, 9),
        power_draw=draw,
        memory_power_draw=draw * rng.uniform(0.48, 0.62),
        power_limit=float(product.power[1]),
        memory_mib=product.memory_mib,
        links=[
            product.link_speed if joined and number not in product.unwired else INACTIVE
            for number in range(product.links)
        ],
        remap=Remap(0, 0, "No", "No", [product.banks, 0, 0, 0, 0]),
        rates={
            key: Rate(typical * rng.uniform(0.988, 1.012), rng.uniform(0.003, 0.007))
            for key, typical in product.rates.items()
        },
        fabric_state=shape.fabric[0],
        fabric_status=shape.fabric[1],
        event_counters={"sw_power_cap": rng.randrange(10**9, 9 * 10**9)},
    )


def _ports(shape: Shape, seed: int, count: int) -> list[Port]:
    """A port beside each GPU, and the one to the front-end network, named in the order of their addresses."""
    at: dict[str, tuple[Adapter, int]] = {}
    if shape.rails:
        for place in range(count):
            bus = int(shape.places[place].partition(":")[0], 16)
            at[f"{bus + 1:02x}:00.0"] = (CONNECTX_7, place * 2 // len(shape.places))
    if shape.frontend:
        at[shape.frontend] = (CONNECTX_6_DX, 1)
    return [
        port(address, number, *at[address], stream(shape.node_type, seed, "port", address))
        for number, address in enumerate(sorted(at))
    ]


def port(address: str, number: int, adapter: Adapter, numa: int, rng: random.Random) -> Port:
    """A port of an adapter at a PCI address, up at its full rate."""
    bus = int(address.partition(":")[0], 16)
    infiniband = adapter.layer == "InfiniBand"
    return Port(
        adapter=adapter,
        rdma_name=f"mlx5_{number}",
        interface=f"ibp{bus}s0" if infiniband else f"enp{bus}s0np0",
        address=address,
        numa=numa,
        # a locally administered number, of which the hardware address is a part
        guid=0x0200_5E00_0000_0000 | rng.getrandbits(40),
        lid=rng.randint(2, 950) if infiniband else 0,
        layer=adapter.layer,
        rate=adapter.rate,
    )


def _dimms(shape: Shape, seed: int) -> list[Dimm]:
    slots, size = shape.machine.dimms
    rng = stream(shape.node_type, seed, "dimms")
    if shape.virtual:
        return [Dimm(f"DIMM {slot}", size, "Not Specified") for slot in range(slots)]
    return [
        Dimm(f"{'AB'[slot * 2 // slots]}{slot % (slots // 2) + 1}", size, f"{rng.getrandbits(32):08X}")
        for slot in range(slots)
    ]
