"""Rule 1 by campaign over what was measured under load: every figure of every entry is taken away and made no value.

The documents of the load probes are JSON. Whatever a figure becomes that it cannot be, the check that hangs on it does
not pass as a whole; where the figure is bad, it fails or advises.
"""

import json

from nodeready.check import load_checks

CHECKS = load_checks()
GONE = ...
BAD_RATES = (None, GONE, "", "fast", "[N/A]", -1, 0, 0.001, float("nan"), float("inf"), 1e9, True, [], {})
BAD_YES = (None, GONE, False, "true", 1, 0, "yes", [])
BAD_NONE = (None, GONE, 1, -1, "0", "none", True, 0.5, [])
PRODUCTS = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "tf32": "tf32",
    "float32": "fp32",
    "float64": "fp64",
}
COPIES = {
    "device": "gpu.memory-bandwidth",
    "to-device": "pcie.bandwidth",
    "to-host": "pcie.bandwidth",
    "to-peer": "nvlink.bandwidth",
}
HUGE = 8 << 30


def of_product(entry):
    """Which check hangs on which figure of a matrix product: rows of path, check, values, and whether of the node."""
    check = f"compute.matmul-{PRODUCTS[entry['dtype']]}"
    yield ("tflops",), check, BAD_RATES
    yield ("verified",), check, BAD_YES
    yield ("error",), check, ("CUDA error: an illegal memory access", "", 5)
    yield ("bus_id",), check, ("0000:01:00.0",)
    yield ("dtype",), check, ("int8", None)
    yield ("size",), check, (1024, None, "8192")
    yield ("repeatable",), "compute.repeatable", BAD_YES
    yield ("events", "margin_c", "min"), "thermal.margin", (None, GONE, -2, -20, "hot", True)
    yield ("events", "reasons"), "health.clock-events", (None, GONE, [], {"0x40": 9}, {"0x80": 1}, {"x": 1}, "none")
    if (entry["dtype"], entry["size"]) == ("float16", 16384):
        yield ("events", "power_w", "median"), "power.draw", (None, GONE, 0, 1, -700, "700 W", True)
    yield ("digest",), "consistency.products", ("0123456789abcdef", None, GONE, 5, "")


def of_copy(entry):
    """The same of a copy."""
    check = COPIES[entry["copy"]]
    yield ("gb_s",), check, BAD_RATES
    yield ("verified",), check, BAD_YES
    yield ("counted",), check, (None, GONE, 3, True, "1")
    yield ("p5",), check, (None, GONE, 1e9, "fast")
    yield ("cv",), check, (None, GONE, 0.5, -1, "steady")
    yield ("error",), check, ("CUDA error: unspecified launch failure", "", 5)
    yield ("copy",), check, ("sideways", None)
    yield ("bus_id",), check, ("0000:01:00.0",)


def of_patterns(entry):
    """The same of the patterns in a GPU's memory."""
    check = "gpu.memory-patterns"
    assert entry["wrong_words"] == 0
    yield ("wrong_words",), check, BAD_NONE
    yield ("verified",), check, BAD_YES
    yield ("covered_bytes",), check, (None, GONE, 0, -1, 1 << 30, "all", 1 << 50, True)
    yield ("patterns",), check, (None, GONE, [], ["zeros"], "all")
    yield ("rounds",), check, (None, GONE, 0, -1, 100, "many")
    yield ("checked_bytes",), check, (None, GONE, 0, -1, 1 << 40, "all")
    yield ("ecc", "after", "uncorrected"), check, BAD_NONE
    yield ("ecc", "after", "corrected"), check, BAD_NONE
    yield ("ecc", "after"), check, (None, GONE, {}, [])
    yield ("error",), check, ("CUDA error: uncorrectable ECC error encountered", "", 5)
    yield ("bus_id",), check, ("0000:01:00.0",)


def of_rank(entry):
    """The same of one rank of the all-reduce; the small message is told of, and only its sums are judged."""
    check = "nvlink.all-reduce"
    yield ("verified",), check, BAD_YES
    if entry["size"] == HUGE:
        yield ("bus_id",), check, ("0000:01:00.0",)
        yield ("busbw_gb_s",), check, BAD_RATES
        yield ("error",), check, ("NCCL error: unhandled system error", "", 5)
        yield ("ranks",), check, (None, GONE, 1, 4096, "all")
        yield ("bytes",), check, (None, GONE, 1024, "8 GiB")


def of_port(_):
    """The same of an RDMA port."""
    check = "network.write-bandwidth"
    yield ("gbits",), check, BAD_RATES
    yield ("rate_gbits",), check, (None, GONE, 0, -1, "400", float("nan"))
    yield ("bytes",), check, (None, GONE, 64, "8 MiB")
    yield ("iterations",), check, (None, GONE, 0, "many")
    yield ("memory",), check, (None, GONE, "tape")
    yield ("error",), check, ("Failed to modify QP to RTR", "", 5)
    yield ("device",), check, (None, GONE, "mlx5_99", 5)


def of_drive(_):
    """The same of a drive."""
    check = "storage.read-rate"
    yield ("gb_s",), check, BAD_RATES
    yield ("link_gts",), check, (None, GONE, 0, -1, 17, "16")
    yield ("link_width",), check, (None, GONE, 0, 3, "x4")
    yield ("blocks",), check, (None, GONE, 0, "many")
    yield ("read_errno",), check, (5, 61, "EIO")
    yield ("error",), check, ("open: Input/output error", "", 5)
    yield ("device",), check, (None, GONE, 5)
    yield ("bus_id",), check, ("0000:01:00.0",)


LOADS = {
    "matmul": of_product,
    "copies": of_copy,
    "patterns": of_patterns,
    "allreduce": of_rank,
    "rdma-write": of_port,
    "drive-read": of_drive,
}


def changed(document, index, path, value):
    """The document with one figure of one entry set, or taken away."""
    entry = document["results"][index]
    inside = [entry]
    for name in path[:-1]:
        inside.append(dict(inside[-1][name]))
    if value is GONE:
        inside[-1] = {name: kept for name, kept in inside[-1].items() if name != path[-1]}
    else:
        inside[-1] = {**inside[-1], path[-1]: value}
    for name, outer in zip(reversed(path[:-1]), reversed(range(len(inside) - 1)), strict=True):
        inside[outer] = {**inside[outer], name: inside[outer + 1]}
    return {**document, "results": [*document["results"][:index], inside[0], *document["results"][index + 1 :]]}


def chosen(document, count):
    """The entries that are tried: those of the last GPU with the first as its peer, or the last port or drive."""
    entries, of_gpus = document["results"], any(entry["device"].startswith("cuda:") for entry in document["results"])
    for index, entry in enumerate(entries):
        last = entry["device"] == f"cuda:{count - 1}" if of_gpus else entry is entries[-1]
        if last and entry.get("peer_device") in (None, "cuda:0"):
            yield index, entry


def escapes(bench, name, tried):
    """Each mutation after which all that its check demands still passes."""
    document = json.loads(bench.evidence.recordings[name].stdout)
    gpus = {gpu.bus_id.upper(): gpu.subject for gpu in bench.judging({}).node.gpus}
    demanded = {demand.check: demand.per for demand in bench.plan.demands.values() if not demand.absent}
    for index, entry in chosen(document, bench.plan.baseline.gpu_count):
        for path, check, values in LOADS[name](entry):
            if check not in demanded or (check == "consistency.products" and len(gpus) == 1):
                continue
            subject = "node" if demanded[check] == "node" else gpus[entry["bus_id"].upper()]
            for value in values:
                tried.append(check)
                mutant = json.dumps(changed(document, index, path, value)).encode()
                judging = bench.judging({name: mutant})
                judging.run(CHECKS[check], subject)
                assert not judging.errors, judging.errors
                found = [f.verdict.value for (_, at), f in judging.found.items() if at == subject]
                if set(found) <= {"pass", "not-applicable"}:
                    yield f"{bench.node_type} {check} {subject}: {'.'.join(path)} of {entry['device']} = {value!r}"


def test_no_figure_that_cannot_be_is_accepted(bench, node_type):
    healthy, tried = bench(node_type), []
    escaped = [line for name in LOADS if name in healthy.evidence.recordings for line in escapes(healthy, name, tried)]
    print(f"{node_type}: {len(tried)} mutations of what was measured under load, {len(escaped)} passed")
    assert not escaped, "\n".join([*escaped[:40], f"{len(escaped)} in all"])
    assert len(tried) > 400
