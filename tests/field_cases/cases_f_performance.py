"""Section F: clocks, power, temperature and performance."""

import json
from itertools import chain, count, repeat

import pytest
from edits import SICK, TEXT, XML, copied, document, given, measured, tag
from field_case import LOAD, Proof, advises, cannot, case, fails, passes, scene, unverified

_FP16 = "compute.matmul-fp16"


def _older_words(files):
    """The document of a driver before 535.54, which calls clock events throttle reasons."""
    assert b"clocks_event_reason" in files[XML]
    for old, new in (
        (b"clocks_event_reason_", b"clocks_throttle_reason_"),
        (b"clocks_event_reasons>", b"clocks_throttle_reasons>"),
    ):
        files[XML] = files[XML].replace(old, new)
    files.pop(TEXT, None)


def _no_words(files):
    """The document has no clock events under either name."""
    import re

    files[XML], done = re.subn(rb"<clocks_event_reasons>.*?</clocks_event_reasons>", b"", files[XML], flags=re.DOTALL)
    assert done
    files.pop(TEXT, None)


def _rates_leave_the_warm_up_out():
    """The batches of a cold GPU are run until the rate is steady, and are in no figure."""
    from nodeready.probes import gpu_clock, matmul

    cold, warm = 0.005, 0.010
    times = chain([cold] * 10, repeat(warm))
    assert gpu_clock.warm_up(times, 0.001)
    figures = matmul.rate_figures(gpu_clock.collect(times, 0.0), 4, 8192)
    assert figures["tflops"] == pytest.approx(4 * 2 * 8192**3 / warm / 1e12)


def _warm_up_lasts_until_the_rate_is_steady():
    """A GPU that gets slower from batch to batch is not warm yet, and one that stays as it is is."""
    from nodeready.probes import gpu_clock

    assert not gpu_clock.warm_up((0.005 * 1.01**number for number in count()), 0.001)
    assert gpu_clock.warm_up(repeat(0.010), 0.001)


_ALLOCATED_TOO_LITTLE = {
    "DCGM Diagnostic": {
        "test_categories": [
            {
                "category": "Hardware",
                "tests": [
                    {
                        "name": "memory",
                        "test_summary": {"status": "Pass"},
                        "results": [
                            {
                                "entity_group": "GPU",
                                "entity_group_id": 1,
                                "entity_id": 4,
                                "status": "Pass",
                                "warnings": [{"warning": "GPU 4: less memory allocated than wanted", "error_id": 29}],
                            }
                        ],
                    }
                ],
            }
        ]
    }
}

CASES = (
    case(
        "F1",
        "a floor of 900 TFLOPS that no healthy GPU reaches",
        scene(passes(_FP16, "gpu0", 738.227), passes(f"{_FP16}/16384", "gpu0", 673.238), acceptance="accepted"),
        scene(unverified(_FP16, "gpu4", "954", "plausible 900 TFLOPS"), faults="implausibly-fast", failing=""),
    ),
    case(
        "F2",
        "a PCIe card judged by the floor of a board",
        scene(passes(_FP16, "gpu0", 440.492), node_type="pcie", acceptance="accepted"),
        scene(fails("gpu.product", "gpu0", "10de:2331"), node_type="pcie", judged_as="sxm", settings=("gpu.count=1",)),
    ),
    case(
        "F3",
        "the first products of a cold GPU are the fastest",
        Proof(_warm_up_lasts_until_the_rate_is_steady),
        scene(unverified(_FP16, "gpu4", "not steady"), edit=measured(4, cv=0.6), failing=""),
        scene(unverified(_FP16, "gpu4", "not steady"), edit=measured(4, steady=False, cv=0.31), failing=""),
        scene(unverified(_FP16, "gpu4", "not steady", "warm-up"), edit=measured(4, steady=False), failing=""),
        scene(passes(_FP16, "gpu4", 738.0), edit=measured(4, tflops=738.0, p5=690.0, cv=0.04), acceptance="accepted"),
    ),
    case(
        "F4",
        "rates forty-five times too high, since nobody waited for the GPU",
        scene(
            unverified(_FP16, "gpu4", "33000", "measurement itself failed"),
            edit=measured(4, tflops=33000.0, p5=32000.0),
            failing="",
            acceptance="incomplete",
        ),
    ),
    case("F5", "the time of a rate holds the warm-up too", Proof(_rates_leave_the_warm_up_out)),
    case(
        "F6",
        "products of zeros are faster",
        scene(
            unverified(_FP16, "gpu4", "zeros"),
            edit=document("matmul", lambda whole: whole.update(inputs="zeros")),
            failing="",
        ),
    ),
    case(
        "F7",
        "one GPU of a healthy node is five per cent slower",
        scene(passes(_FP16, "gpu4", 701.0), edit=measured(4, tflops=701.0, p5=690.0), acceptance="accepted"),
        scene(fails(_FP16, "gpu4", "601.4", ">= 620"), faults="slow-gpu"),
    ),
    cannot(
        "F8",
        "each GPU is fast alone, and slow beside the others",
        LOAD,
        "power and air that GPUs share show only on real ones; the probe loads all at once, which its own test proves",
    ),
    case(
        "F9",
        "a node is two per cent slower on a hot day",
        scene(
            *(passes(_FP16, f"gpu{index}", 723.5) for index in range(8)),
            edit=measured(None, tflops=723.5, p5=715.0),
            acceptance="accepted",
        ),
    ),
    case(
        "F10",
        "the software power cap, as under any full load",
        scene(
            passes("health.clock-events", "gpu4", "none"),
            passes("health.clock-events/load", "gpu4", "none"),
            faults="sw-power-cap",
            acceptance="accepted",
        ),
        scene(fails("health.clock-events", "gpu4", "SW thermal"), faults="sw-thermal-at-idle"),
        *(
            scene(
                fails("health.clock-events/load", "gpu4", word),
                edit=measured(4, events={"samples": 50, "reasons": {"0x4": 50, bit: 5}}),
            )
            for bit, word in (
                ("0x8", "HW slowdown"),
                ("0x40", "HW thermal"),
                ("0x80", "power brake"),
                ("0x20", "SW thermal"),
            )
        ),
    ),
    case(
        "F11",
        "several clock events at once",
        scene(passes("health.clock-events", "gpu4", "none"), nvml=("gpu 4 clocks_event_reasons 0x5",)),
        scene(
            fails("health.clock-events", "gpu4", "HW thermal slowdown"),
            nvml=("gpu 4 clocks_event_reasons 0x45",),
        ),
    ),
    case(
        "F12",
        "a constant of thermal slowdown that lost a digit",
        scene(fails("health.clock-events", "gpu4", "HW thermal slowdown"), nvml=("gpu 4 clocks_event_reasons 0x40",)),
        scene(passes("health.clock-events", "gpu4", "none"), nvml=("gpu 4 clocks_event_reasons 0x4",)),
    ),
    case(
        "F13",
        "the driver names clock events otherwise than the checker",
        scene(fails("health.clock-events", "gpu4", "HW thermal"), faults="hw-thermal-slowdown", edit=_older_words),
        scene(passes("health.clock-events", "gpu4", "none"), edit=_older_words, failing=""),
        scene(unverified("health.clock-events", "gpu4"), faults="hw-thermal-slowdown", edit=_no_words),
    ),
    case(
        "F14",
        "slowdowns are logged, and nobody fails for them",
        scene(
            fails("health.clock-events", "gpu4", "HW thermal slowdown"),
            faults="hw-thermal-slowdown",
            acceptance="rejected",
        ),
    ),
    case(
        "F15",
        "a power brake in a few samples of many",
        scene(
            fails("health.clock-events/load", "gpu4", "power brake", "6% of the samples"),
            passes("health.clock-events", "gpu4", "none"),
            faults="power-brake-under-load",
        ),
    ),
    case(
        "F16",
        "one GPU is slowed down for heat under load",
        scene(
            fails("health.clock-events/load", "gpu4", "HW thermal slowdown", "62%", remedy=("cold plate",)),
            passes("health.clock-events/load", "gpu3", "none"),
            faults="hw-thermal-under-load",
        ),
    ),
    case(
        "F17",
        "GPUs above 90 degrees for months, below the point of slowdown",
        scene(fails("thermal.margin/load", "gpu4", "under load is -2 degC"), faults="hot-under-load"),
        scene(advises("thermal.margin/load", "gpu4", "2 degC"), faults="warm-under-load", failing=""),
    ),
    case(
        "F18",
        "a GPU is capped far below its rated power",
        scene(
            fails("power.limit", "gpu4", "0000:9b:00.0"),
            passes("power.limit", "gpu3", 700),
            faults="power-capped",
            failing="power.limit",
        ),
        scene(
            fails("power.limit", "gpu4", "is 240"),
            edit=tag("current_power_limit", "240.00 W", within="gpu_power_readings"),
        ),
    ),
    case(
        "F19",
        "the tenant before left the clocks low",
        scene(
            fails("gpu.application-clocks", "gpu4", "1200 MHz instead of 1980 MHz"),
            faults="application-clocks-low",
            failing="gpu.application-clocks",
        ),
    ),
    case(
        "F20",
        "rates of copies vary from run to run",
        # neither a good nor a bad rate is believed of batches that differ like that
        scene(
            unverified("pcie.bandwidth/to-device", "gpu4", "the rate was not steady (cv 0.35)"),
            edit=copied(SICK, "to-device", cv=0.35),
            failing="",
        ),
        scene(
            unverified("pcie.bandwidth/to-device", "gpu4", "the rate was not steady (cv 0.35)"),
            edit=copied(SICK, "to-device", cv=0.35, gb_s=20.0, p5=9.0),
            failing="",
        ),
    ),
    cannot(
        "F21",
        "the maker's diagnostic fails right after a burn, and passes alone",
        LOAD,
        "the suite starts no diagnostic; how long a node rests between loads is a matter of those loads",
    ),
    case(
        "F22",
        "a test of the maker's diagnostic could not allocate, and is called passed",
        scene(
            advises("health.dcgm-diag/warning", "node", "memory", "less memory allocated"),
            edit=given("dcgmi_diag_-j", json.dumps(_ALLOCATED_TOO_LITTLE)),
            failing="",
        ),
    ),
    cannot(
        "F23",
        "slow only where computing and communication overlap",
        LOAD,
        "it needs a probe that does both at once on eight real GPUs",
    ),
    case(
        "F24",
        "most defects show in the network's loopback, fewest in matrix products",
        scene(
            fails("network.write-bandwidth", "node", "wrote 180 of 400 Gb/s"),
            passes(_FP16, "gpu4", 729.346),
            faults="port-writes-slowly",
            failing="network.write-bandwidth",
        ),
    ),
    case(
        "F25",
        "wrong products at full speed, without an error",
        scene(
            fails(f"{_FP16}/correct", "gpu4", "False"),
            passes(f"{_FP16}/correct", "gpu3", True),
            faults="wrong-products",
            failing=f"{_FP16}/correct",
        ),
    ),
)
