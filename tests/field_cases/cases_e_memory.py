"""Section E: ECC, row remapping and Xid errors."""

from edits import JOURNAL, left_out, logged, tag, together
from field_case import advises, case, fails, passes, scene, unverified

_PENDING_OFF = "ecc-pending-off"
_FELL_OFF = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1234, name=python3, GPU has fallen off the bus."
_NONFATAL = "NVRM: Xid (PCI:0000:9b:00): 145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)"
_SMOOTHING_OFF = "NVRM: Xid (PCI:0000:9b:00): 163, PSHC disengaged"
_SMOOTHING_ON = "NVRM: Xid (PCI:0000:9b:00): 162, PSHC engaged"
_UNCONTAINED = "NVRM: Xid (PCI:0000:9b:00): 95, pid={}, name=python3, Uncontained: FBHUB"
_TORN_DOWN = "NVRM: Xid (PCI:0000:9b:00): 45, pid=4711, name=python3, Ch {:08x}"
_VOLATILE = "volatile"


def _remapped(**rows):
    """So many rows of one GPU were remapped."""
    return together(*(tag(f"remapped_row_{cause}", number) for cause, number in rows.items()))


def _journal_of(files):
    """The journal holds the log too, and one line more."""
    files[JOURNAL] = files["dmesg"] + f"[93100.100000] {_FELL_OFF}\n".encode()


def _syslog(files):
    """The log with dates of syslog, which have no year, written in the night of the new year."""
    lines = [line.partition(b"] ")[2] for line in files["dmesg"].splitlines()]
    dated = [b"Dec 31 23:59:5%d gpu-node kernel: %s\n" % (number % 10, line) for number, line in enumerate(lines)]
    files["dmesg"] = b"".join(dated) + f"Jan  1 00:00:02 gpu-node kernel: {_FELL_OFF}\n".encode()


def _early(line):
    """A line that was logged an hour after boot, and the log goes on for a day."""

    def edit(files):
        files["dmesg"] += f"[ 3600.000000] {line}\n[93000.000000] systemd[1]: Started a daily task.\n".encode()

    return edit


CASES = (
    case(
        "E1",
        "a row remap waits for a reset",
        scene(
            fails("health.row-remap-pending", "gpu4", "Yes", remedy=("Reset the GPU",)),
            passes("health.row-remap-failure", "gpu4", "No"),
            faults="row-remap-pending",
        ),
    ),
    case(
        "E2",
        "a row remap failed: no spare rows are left",
        scene(
            fails("health.row-remap-failure", "gpu4", "Yes", remedy=("Exchange the GPU",)),
            fails("health.xid", "node", "Xid 64"),
            faults="row-remap-failure",
        ),
    ),
    case(
        "E3",
        "600 remapped rows that a threshold of 512 misses",
        *(
            scene(
                fails("health.row-remaps/uncorrected", "gpu4", f"is {rows}"),
                edit=_remapped(unc=rows),
                in_service=in_service,
            )
            for rows, in_service in ((600, False), (600, True), (513, True))
        ),
    ),
    case(
        "E4",
        "a few remapped rows, and more than ten",
        scene(advises("health.row-remaps/corrected", "gpu4", "is 5"), edit=_remapped(corr=5), failing=""),
        scene(fails("health.row-remaps/corrected", "gpu4", "is 12", "<= 10"), faults="row-remaps-corrected-12"),
        scene(
            advises("health.row-remaps/uncorrected", "gpu4", "is 5"),
            edit=_remapped(unc=5),
            in_service=True,
            failing="",
        ),
        scene(
            fails("health.row-remaps/uncorrected", "gpu4", "is 11", "<= 10"),
            edit=_remapped(unc=11),
            in_service=True,
        ),
    ),
    case(
        "E5",
        "counts that hold a 0, such as 10 and 100, are filtered away",
        *(
            scene(
                fails("health.ecc-uncorrected/dram", "gpu4", f"is {count}"),
                edit=tag("dram_uncorrectable", count, within=_VOLATILE),
            )
            for count in (10, 20, 100)
        ),
    ),
    case(
        "E6",
        "five uncorrected SRAM errors in a GPU's life, none since the driver was loaded",
        scene(
            fails("health.ecc-uncorrected/sram-lifetime", "gpu4", "is 5"),
            passes("health.ecc-uncorrected/sram", "gpu4", 0),
            faults="sram-lifetime-5",
            failing="health.ecc-uncorrected/sram-lifetime",
        ),
    ),
    case(
        "E7",
        "thousands of corrected errors a second under load, and none while idle",
        scene(
            advises("gpu.memory-patterns/ecc-corrected", "gpu4", "4647"),
            faults="corrected-under-patterns",
            failing="",
        ),
        scene(fails("gpu.memory-patterns/ecc", "gpu4"), faults="uncorrectable-under-patterns"),
    ),
    case(
        "E8",
        "ECC is off, or will be after the next reset",
        scene(
            fails("health.ecc-mode", "gpu4", "Disabled"),
            unverified("health.ecc-uncorrected/dram", "gpu4", by="health.ecc-mode@gpu4"),
            faults="ecc-off",
        ),
        scene(
            fails("health.ecc-mode/pending", "gpu4", "Disabled"),
            passes("health.ecc-mode", "gpu4", "Enabled"),
            faults=_PENDING_OFF,
        ),
    ),
    case(
        "E9",
        "thousands of Xid 45 after a job was torn down",
        scene(
            advises("health.xid/warning", "node", "11760 times Xid 45", "gpu4"),
            passes("health.xid", "node", 0),
            edit=logged(_TORN_DOWN, times=11760),
            failing="",
            acceptance="accepted-with-advisories",
        ),
    ),
    case(
        "E10",
        "an Xid of the application, once and again and again",
        scene(
            passes("health.xid", "node", 0),
            passes("health.xid/warning", "node", 0),
            faults="application-xid-13-once",
            acceptance="accepted",
        ),
        scene(
            advises("health.xid/warning", "node", "3 times Xid 13", "gpu4"),
            faults="application-xid-13-often",
            failing="",
        ),
    ),
    case(
        "E11",
        "Xid 63 tells that a row was remapped",
        scene(
            passes("health.xid", "node", 0),
            passes("health.row-remap-pending", "gpu4", "No"),
            advises("health.row-remaps/corrected", "gpu4", "is 1"),
            faults="row-remap-done",
            failing="",
        ),
        scene(fails("health.xid", "node", "Xid 63"), faults="row-remap-pending"),
    ),
    case(
        "E12",
        "an Xid of NVLink that calls itself non-fatal",
        scene(
            advises("health.xid/warning", "node", "Xid 145", "RLW_SRC_TRACK Nonfatal", "link 13"),
            passes("health.xid", "node", 0),
            edit=logged(_NONFATAL),
            failing="",
        ),
        scene(
            fails("health.xid", "node", "Xid 145", "RLW_SRC_TRACK Fatal"),
            edit=logged(_NONFATAL.replace("Nonfatal", "Fatal")),
        ),
    ),
    case(
        "E13",
        "one error fills the log, and each line names another process",
        scene(
            fails("health.xid", "node", "20000 times Xid 95 on gpu4"),
            edit=logged(_UNCONTAINED, times=20000),
            failing="health.xid",
        ),
    ),
    case(
        "E14",
        "an old Xid that keeps a node out for days",
        scene(fails("health.xid", "node", "Xid 79"), edit=_early(_FELL_OFF)),
        scene(
            passes("health.xid", "node", 0),
            edit=_early(_FELL_OFF),
            settings=("health.xid-window=12 h",),
            failing="",
        ),
        scene(fails("health.xid", "node", "Xid 79"), edit=logged(_FELL_OFF), settings=("health.xid-window=12 h",)),
    ),
    case(
        "E15",
        "the Xid stands in one of two logs only",
        scene(fails("health.xid", "node", "Xid 79 on gpu4"), edit=_journal_of),
        scene(advises("health.xid/log", "node"), faults="kernel-log-wrapped", failing=""),
    ),
    case(
        "E16",
        "there is no kernel log to look into",
        scene(
            unverified("health.xid", "node", "dmesg was not recorded"),
            edit=left_out("dmesg"),
            failing="",
            acceptance="incomplete",
        ),
    ),
    case(
        "E17",
        "dates without a year in the night of the new year",
        *(
            scene(fails("health.xid", "node", "Xid 79 on gpu4"), edit=_syslog, settings=settings)
            for settings in ((), ("health.xid-window=24 h",))
        ),
    ),
    case(
        "E18",
        "power smoothing went off and came back",
        scene(
            passes("health.xid", "node", 0),
            passes("health.xid/warning", "node", 0),
            edit=logged(_SMOOTHING_OFF, _SMOOTHING_ON),
            acceptance="accepted",
        ),
        scene(advises("health.xid/warning", "node", "Xid 163"), edit=logged(_SMOOTHING_ON, _SMOOTHING_OFF)),
    ),
    case(
        "E19",
        "a plain user may not read the kernel log",
        scene(
            unverified("health.xid", "node", "Operation not permitted"),
            faults="kernel-log-denied",
            acceptance="incomplete",
            failing="",
        ),
    ),
    case(
        "E20",
        "corrected errors in bulk",
        scene(
            passes("health.ecc-corrected/dram", "gpu4", 9_999_999),
            edit=tag("dram_correctable", 9_999_999, within=_VOLATILE),
            acceptance="accepted",
        ),
        scene(
            advises("health.ecc-corrected/dram", "gpu4", "25114902"),
            faults="correctable-errors-by-the-million",
            failing="",
        ),
    ),
)
