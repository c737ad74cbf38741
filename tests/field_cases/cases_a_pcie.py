"""Section A: PCI Express."""

import os

from edits import LSPCI, SICK, SYSFS, copied, document, failed, left_out, logged, replaced, smi, tag, together  # noqa: F401
from field_case import Proof, absent, advises, case, fails, passes, scene, unverified

_DCGM_PASSED = {"dcgmi_diag_-j": "dcgmi/01-diag-r1-json-pass-dcgm2-schema.txt"}
_LINK_AT = "(<pcie_gen>.*?<current_link_gen>)[^<]*(</current_link_gen>)"
_XE9680 = {"lspci_-vvv": "lspci/01-hgx-h100x8-xe9680-lspci-vvv.txt"}


def _memory_is_taken_beside_the_gpu(tmp_path):
    """A probe of copies moves to the processors beside its GPU first, and says where it could not."""
    from nodeready.probes import gpu_host

    mine = os.sched_getaffinity(0)
    beside, elsewhere = min(mine), max(mine) + 1000
    for bus_id, cpus in (("0000:1b:00.0", f"{beside}"), ("0000:9b:00.0", f"{elsewhere}")):
        (tmp_path / bus_id).mkdir()
        (tmp_path / bus_id / "local_cpulist").write_text(f"{cpus}\n")
    try:
        assert gpu_host.stand_beside("0000:1B:00.0", str(tmp_path)) == str(beside)
        assert os.sched_getaffinity(0) == {beside}
    finally:
        os.sched_setaffinity(0, mine)
    assert gpu_host.stand_beside("0000:9B:00.0", str(tmp_path)) is None
    assert gpu_host.stand_beside("0000:33:00.0", str(tmp_path)) is None
    assert os.sched_getaffinity(0) == mine


CASES = (
    case(
        "A1",
        "the link of an idle GPU is read at generation 1",
        scene(
            unverified("pcie.gpu-link-generation", "gpu4", "is 1", "P8", "under load"),
            passes("pcie.gpu-link-generation", "gpu3", 5),
            faults="pcie-idle-link-without-load",
            acceptance="incomplete",
            failing="",
        ),
        scene(
            passes("pcie.gpu-link-generation", "gpu4", 5),
            faults="pcie-idle-link",
            acceptance="accepted",
            failing="",
        ),
    ),
    case(
        "A2",
        "a link changes its speed all the time, and the one look at it falls into a good moment",
        scene(fails("pcie.gpu-link-generation", "gpu4", "3 (under load)"), faults="link-drops-under-load"),
        # the slowest of the looks during the copies counts, though the rate is that of a good link
        scene(
            fails("pcie.gpu-link-generation", "gpu4", "1 (under load)"),
            edit=copied(SICK, "to-host", link={"generation": {"min": 1, "median": 5, "max": 5}, "width": None}),
            failing="pcie.gpu-link-generation",
        ),
    ),
    case(
        "A3",
        "a GPU that works at generation 2 for hours, its maximum is 5 and no error is logged",
        scene(
            fails("pcie.gpu-link-generation", "gpu4", "0000:9b:00.0", "is 2", "in P0", ">= 5"),
            edit=together(smi(_LINK_AT, r"\g<1>2\g<2>"), tag("gpu_util", "100 %"), left_out("copies")),
            failing="pcie.gpu-link-generation",
        ),
    ),
    case(
        "A4",
        "a link at generation 3 that the maker's diagnostic passes",
        scene(
            fails("pcie.gpu-link-generation", "gpu4", "is 3"),
            passes("health.dcgm-diag", "node", 0),
            faults="pcie-gen3-link",
            captures=_DCGM_PASSED,
            acceptance="rejected",
        ),
    ),
    case(
        "A5",
        "four lanes of generation 5 that carry more than a low floor of bandwidth",
        scene(
            fails("pcie.gpu-link-width", "gpu4", "is 4", ">= 16"),
            passes("pcie.gpu-link-generation", "gpu4", 5),
            edit=tag("current_link_width", "4x"),
        ),
    ),
    case(
        "A6",
        "lspci without root shows no links",
        scene(
            unverified("pcie.access-control", "node", "needs root"),
            passes("pcie.gpu-link-width", "gpu4", 16),
            passes("pcie.gpu-bridges", "gpu4", 0),
            faults="lspci-as-plain-user",
            acceptance="accepted-with-advisories",
        ),
        scene(
            unverified("pcie.gpu-bridges", "gpu4"),
            unverified("pcie.adapter-links", "node"),
            faults="lspci-as-plain-user",
            edit=left_out(SYSFS),
        ),
    ),
    case(
        "A7",
        "an old lspci that has no name for 32 GT/s",
        scene(
            passes("pcie.adapter-links", "node", 0),
            passes("pcie.gpu-bridges", "gpu4", 0),
            faults="pciutils-old",
            acceptance="accepted",
        ),
        scene(
            unverified("pcie.adapter-links", "node"),
            faults="pciutils-old",
            edit=left_out(SYSFS),
            failing="",
        ),
    ),
    case(
        "A8",
        "a network adapter that gets half of the lanes, at a bridge above it",
        scene(
            fails("pcie.adapter-links", "node", "mlx5_4", "0000:9c:00.0", "0000:99:02.0", "x8"),
            faults="adapter-x8",
            failing="pcie.adapter-links",
        ),
        scene(
            fails("pcie.gpu-bridges", "gpu4", "0000:98:00.0", "0000:97:01.0", "x8"),
            faults="switch-uplink-x8",
            failing="pcie.gpu-bridges",
        ),
        # the on-board chip of this machine runs at half of its lanes too, and no job uses it
        scene(passes("pcie.adapter-links", "node", 0), captures=_XE9680, bare=True, failing=""),
    ),
    case(
        "A9",
        "lspci lists a GPU with rev ff",
        scene(
            fails("pcie.gpu-present", "node", "is 7", "0000:9b:00.0", "unreadable (rev ff)"),
            fails("health.xid", "node", "0000:9b:00.0", "no Xid"),
            faults="gpu-rev-ff",
        ),
    ),
    case(
        "A10",
        "figures of one device read from the block of another",
        scene(
            *(passes("pcie.gpu-link-width", f"gpu{index}", 16) for index in range(8)),
            *(passes("pcie.gpu-link-generation", f"gpu{index}", 5) for index in range(8)),
            captures=_XE9680,
            bare=True,
            failing="",
        ),
        scene(
            fails("pcie.gpu-link-width", "gpu2", "0000:4c:00.0", "is 8"),
            passes("pcie.gpu-link-width", "gpu1", 16),
            passes("pcie.gpu-link-width", "gpu3", 16),
            captures=_XE9680,
            bare=True,
            edit=replaced("lspci_-vvv", r"(?s)(\n4c:00\.0 .*?LnkSta:[^\n]*Width x)16", r"\g<1>8", count=1),
        ),
    ),
    case(
        "A11",
        "peers write to each other and nothing arrives: ports redirect, and the IOMMU translates",
        scene(
            fails("pcie.access-control", "node", "0000:99:01.0", "vanish", remedy=("iommu=pt",)),
            advises("pcie.iommu", "node", "translating"),
            faults="acs-redirects-and-iommu-translates",
        ),
        scene(advises("pcie.access-control", "node", "0000:99:01.0"), faults="acs-redirects", failing=""),
        scene(absent("pcie.access-control", "node"), node_type="sxm-1", acceptance="accepted"),
    ),
    case(
        "A12",
        "nothing is found of access control, since nothing was asked",
        scene(
            unverified("pcie.access-control", "node"),
            edit=replaced(LSPCI, r"(?m)^.*ACS(?:Cap|Ctl):.*\n", ""),
            failing="",
        ),
    ),
    case(
        "A13",
        "copies are slow from the far socket",
        scene(
            unverified("pcie.bandwidth/to-device", "gpu4", "could not run on the processors beside the GPU"),
            faults="host-memory-far",
            failing="",
        ),
        scene(fails("pcie.bandwidth/to-device", "gpu4", "27.8"), faults="host-copies-halved"),
        Proof(_memory_is_taken_beside_the_gpu, ("tmp_path",)),
    ),
    case(
        "A14",
        "PCIe errors, an Xid 79 and a missing GPU are one part",
        scene(
            fails("pcie.gpu-present", "node", "missing: gpu4"),
            fails("health.xid", "node", "Xid 79", "gpu4"),
            faults="gpu-fell-off-with-pcie-errors",
            failing="gpu.count pcie.gpu-present health.xid",
        ),
    ),
)
