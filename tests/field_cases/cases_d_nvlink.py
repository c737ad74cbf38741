"""Section D: NVLink and NVSwitch."""

from edits import NVLINK, failed, given, logged, replaced
from field_case import advises, case, fails, passes, scene, unverified

_DCGM_PASSED = {"dcgmi_diag_-j": "dcgmi/01-diag-r1-json-pass-dcgm2-schema.txt"}

# of the eighteen, those that no bridge of this card uses
_UNUSED = (4, 5, 10, 11, 16, 17)
_REFUSED_LINKS = tuple(f"gpu {gpu} link {link} state -1" for gpu in range(2) for link in _UNUSED)

CASES = (
    case(
        "D1",
        "all links are down, and the maker's diagnostic passes",
        scene(
            fails("nvlink.links-active", "gpu4", "is 0"),
            passes("health.dcgm-diag", "node", 0),
            faults="nvlink-all-down",
            captures=_DCGM_PASSED,
            failing="nvlink.links-active",
        ),
        # cards that were bought with bridges say so in their site's baseline
        scene(
            fails("nvlink.links-active", "gpu0", "is 0"),
            fails("nvlink.links-active", "gpu1", "is 0"),
            faults="bridge-missing",
            node_type="nvl",
            settings=("nvlink.links-active=12",),
        ),
    ),
    case(
        "D2",
        "links are reported down on a card without a bridge",
        scene(
            passes("nvlink.links-active", "gpu0", 0),
            passes("nvlink.links-active", "gpu1", 0),
            faults="bridge-missing",
            node_type="nvl",
            acceptance="accepted",
        ),
        scene(passes("nvlink.links-active", "gpu0", 0), node_type="pcie", acceptance="accepted"),
    ),
    case(
        "D3",
        "twelve links of eighteen, as bridges have them",
        scene(passes("nvlink.links-active", "gpu0", 12), node_type="nvl", acceptance="accepted"),
        scene(fails("nvlink.links-active", "gpu0", "is 6"), node_type="nvl", faults="half-bridge"),
    ),
    case(
        "D4",
        "a link with a higher number is not supported",
        scene(
            passes("nvlink.links-active", "gpu0", 12),
            node_type="nvl",
            nvml=tuple(f"gpu {gpu} link {link} state -1" for gpu in range(2) for link in (16, 17)),
        ),
        scene(passes("nvlink.links-active", "gpu0", 0), node_type="pcie", nvml=("gpu 0 link 0 state -1",)),
        scene(fails("nvlink.links-active", "gpu0", "is 11"), node_type="nvl", nvml=("gpu 0 link 15 state 0",)),
    ),
    case(
        "D5",
        "links are counted by capability, which says yes for links that do not exist",
        scene(
            passes("nvlink.links-active", "gpu0", 12),
            node_type="nvl",
            nvml=_REFUSED_LINKS,
        ),
        scene(
            fails("nvlink.links-active", "gpu0", "is 11"),
            node_type="nvl",
            nvml=(*_REFUSED_LINKS, "gpu 0 link 0 state 0"),
        ),
    ),
    case(
        "D6",
        "the older counters of link errors answer 0 whatever happens",
        scene(unverified("nvlink.errors", "gpu4"), nvml=("gpu 4 link 9 replay 12", "gpu 4 link 9 recovery 1")),
        scene(fails("nvlink.errors", "gpu4"), faults="nvlink-replays-grow", failing="nvlink.errors"),
    ),
    case(
        "D7",
        "nvidia-smi says in a sentence that all links are inactive",
        *(
            scene(
                fails("nvlink.links-active", "gpu4", "is 0"),
                faults="nvlink-all-down",
                edit=replaced(NVLINK, "inActive", word),
                failing="nvlink.links-active",
            )
            for word in ("inactive", "INACTIVE")
        ),
        scene(fails("nvlink.links-active", "gpu4", "is 0"), faults="nvlink-all-down"),
    ),
    case(
        "D8",
        "nvidia-smi fails, and its output is searched for inactive links",
        scene(
            unverified("nvlink.links-active", "gpu4", "exited 9"),
            edit=failed(NVLINK, 9),
            failing="",
            acceptance="incomplete",
        ),
    ),
    case(
        "D9",
        "the list of links is empty with one driver and a sentence with another",
        scene(passes("nvlink.links-active", "gpu0", 0), node_type="pcie", driver="580"),
        scene(passes("nvlink.links-active", "gpu0", 0), node_type="pcie", driver="595"),
        scene(unverified("nvlink.links-active", "gpu0"), node_type="pcie", edit=given(NVLINK, ""), failing=""),
    ),
    case(
        "D10",
        "the list of links is empty on a board with NVSwitches",
        scene(
            unverified("nvlink.links-active", "gpu0", "nothing"),
            faults="nvlink-printed-nothing",
            acceptance="incomplete",
        ),
    ),
    case(
        "D11",
        "the switches' multicast fails as soon as all GPUs use it at once",
        scene(
            unverified("nvlink.all-reduce", "node", "Failed to bind NVLink SHARP (NVLS) Multicast memory"),
            faults="nvls-does-not-bind",
            acceptance="incomplete",
            failing="",
        ),
        scene(fails("nvlink.all-reduce/nvls", "node", "NCCL_NVLS_ENABLE=0"), faults="nvls-off"),
    ),
    case(
        "D12",
        "a link does not train at boot: a line without an Xid",
        scene(fails("nvlink.log", "node", "1"), faults="nvlink-training-fault", failing="nvlink.log"),
        scene(
            fails("nvlink.log", "node", "postRxDetLinkMask"),
            edit=logged(
                "NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!",
            ),
            failing="nvlink.log",
        ),
    ),
    case(
        "D13",
        "an SXid that calls itself non-fatal",
        scene(
            advises("health.sxid/warning", "node", "12028", "Non-fatal"),
            passes("health.sxid", "node", 0),
            faults="sxid-nonfatal",
            failing="",
        ),
        scene(fails("health.sxid", "node", "20034"), faults="sxid-fatal"),
        scene(
            fails("health.sxid", "node", "12028", "Fatal"),
            edit=logged("nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 12028, Fatal, Link 61 egress error (First)"),
        ),
    ),
    case(
        "D14",
        "counters of link errors that were left from training",
        scene(
            passes("nvlink.errors", "gpu4", 0),
            passes("nvlink.errors/crc", "gpu4", 0.0),
            faults="nvlink-old-errors",
            acceptance="accepted",
        ),
        scene(advises("nvlink.errors/crc", "gpu4"), faults="nvlink-crc-drizzle", failing=""),
    ),
    case(
        "D15",
        "a version of NVLink taken for its speed, and both directions for one",
        scene(
            passes("nvlink.links-active", "gpu4", 18),
            passes("nvlink.links-active/slow", "gpu4", 0),
            nvml=("gpu 4 nvlink_version 5",),
        ),
        scene(fails("nvlink.links-active/slow", "gpu4", "18"), nvml=("gpu 4 nvlink_speed_mbps 25000",)),
        scene(fails("nvlink.links-active/slow", "gpu4"), faults="nvlink-slow-link"),
    ),
    case(
        "D16",
        "a transfer over NVLink stalls, and no error is told",
        scene(
            unverified("nvlink.all-reduce", "node", "no answer within 96 s while measuring all-reduce"),
            faults="all-reduce-hangs",
            acceptance="incomplete",
            failing="",
        ),
        # every pair has a time of its own, so the part is named, and the others are measured
        scene(
            unverified("nvlink.bandwidth", "gpu4", "its process was ended"),
            passes("pcie.bandwidth/to-host", "gpu5", 55.1766),
            faults="copies-hang-on-one",
            acceptance="incomplete",
            failing="",
        ),
    ),
)
