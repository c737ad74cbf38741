"""Errors of PCI Express: between two looks, in the kernel log, as replays; and where they are not told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.simulate.faults.bus import port_above
from nodeready.simulate.faults.fault import (
    ADVISORY,
    FAIL,
    UNVERIFIED,
    Fault,
    bare_metal,
    logged,
    nothing,
    on_every_gpu,
    on_node,
    on_victim,
    together,
    victim,
)
from nodeready.simulate.faults.pcie import fall_off, lost

if TYPE_CHECKING:
    from nodeready.simulate.model import Node

_ERRORS, _LOGGED = "pcie.gpu-errors", "pcie.errors-logged"


def _mend_all_the_time(node: Node) -> None:
    node.pci.errors[port_above(node)] = (60, 0, 0)


def _mend_once(node: Node) -> None:
    node.pci.errors[port_above(node)] = (1, 0, 0)


def _break(node: Node) -> None:
    node.pci.errors[victim(node).bus_id] = (0, 1, 0)


def _leave_it_to_the_firmware(node: Node) -> None:
    node.pci.reports = False


def _forget_the_second_look(node: Node) -> None:
    node.spoilers["pci-files-later"] = lambda _: None


def _forget_the_files(node: Node) -> None:
    node.spoilers["pci-files"] = lambda _: None


def _log_errors(node: Node, bus_id: str, severity: str, times: int = 1) -> None:
    layer = "Data Link Layer, (Receiver ID)" if severity == "Corrected" else "Transaction Layer, (Requester ID)"
    announced = {"Corrected": "Corrected error", "Uncorrected (Non-Fatal)": "Uncorrected (Non-Fatal) error"}[severity]
    logged(
        node,
        *(
            f"pcieport {bus_id}: AER: {announced} received: {bus_id}",
            f"pcieport {bus_id}: PCIe Bus Error: severity={severity}, type={layer}",
            f"pcieport {bus_id}:   device [1000:c030] error status/mask=00000040/00002000",
        )
        * times,
    )


def _log_one(node: Node) -> None:
    _log_errors(node, victim(node).bus_id if node.shape.virtual else port_above(node), "Uncorrected (Non-Fatal)")


def _log_many(node: Node) -> None:
    _log_errors(node, victim(node).bus_id, "Corrected", 600)


def _log_elsewhere(node: Node) -> None:
    _log_errors(node, "0000:01:00.0", "Uncorrected (Non-Fatal)")


def _report_by_firmware(node: Node) -> None:
    logged(
        node,
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 514",
        "{1}[Hardware Error]: event severity: recoverable",
        "{1}[Hardware Error]:  Error 0, type: recoverable",
        "{1}[Hardware Error]:   section_type: PCIe error",
        "{1}[Hardware Error]:   port_type: 4, root port",
        f"{{1}}[Hardware Error]:   device_id: {victim(node).bus_id}",
    )


def _fall_off_with_errors(node: Node) -> None:
    _log_errors(node, victim(node).bus_id, "Uncorrected (Non-Fatal)", 3)
    fall_off(node)


def _send_again(node: Node) -> None:
    victim(node).replays = 41_870


FAULTS = (
    Fault(
        "pcie-errors-corrected",
        "The port above one GPU mends errors all the time: a bad contact.",
        _mend_all_the_time,
        on_victim(ADVISORY, _ERRORS),
        case="A2",
        can_have=bare_metal,
    ),
    Fault(
        "pcie-error-corrected-once",
        "One error was mended while the gate looked: chance, no fault.",
        _mend_once,
        nothing,
        can_have=bare_metal,
    ),
    Fault(
        "pcie-error-uncorrected",
        "One GPU reported an error that nothing mended while the gate looked.",
        _break,
        on_victim(FAIL, _ERRORS),
        can_have=bare_metal,
    ),
    Fault(
        "pcie-errors-kept-by-firmware",
        "The firmware keeps PCIe errors to itself: the kernel's counters would stay at 0 whatever happens.",
        _leave_it_to_the_firmware,
        on_every_gpu(UNVERIFIED, _ERRORS),
        can_have=bare_metal,
    ),
    Fault(
        "pci-second-look-missing",
        "The error counters were read once only: how fast they grow is not known.",
        _forget_the_second_look,
        on_every_gpu(UNVERIFIED, _ERRORS),
        can_have=bare_metal,
    ),
    Fault(
        "pci-files-missing",
        "The evidence holds neither the kernel's options nor its error counters.",
        _forget_the_files,
        together(on_node(UNVERIFIED, "pcie.iommu"), on_every_gpu(UNVERIFIED, _ERRORS, "pcie.replays")),
    ),
    Fault(
        "pcie-error-logged",
        "The kernel log holds one error that nothing mended, of the port above a GPU.",
        _log_one,
        on_node(FAIL, _LOGGED),
    ),
    Fault(
        "pcie-error-logged-by-firmware",
        "The firmware reported an error of one GPU to the kernel, in a record of its own.",
        _report_by_firmware,
        on_node(FAIL, _LOGGED),
    ),
    Fault(
        "pcie-errors-logged-corrected",
        "The kernel log is full of mended errors of one GPU.",
        _log_many,
        on_node(ADVISORY, _LOGGED),
    ),
    Fault(
        "pcie-error-logged-elsewhere",
        "The kernel log holds an error of the on-board network chip: no fault of a GPU.",
        _log_elsewhere,
        nothing,
        can_have=bare_metal,
    ),
    Fault(
        "gpu-fell-off-with-pcie-errors",
        "A GPU fell off the bus, and its PCIe errors and its Xid tell the same: one part, one ticket.",
        _fall_off_with_errors,
        lost,
        case="A14",
    ),
    Fault(
        "pcie-replays",
        "One GPU had to send forty thousand packets again since boot.",
        _send_again,
        on_victim(ADVISORY, "pcie.replays"),
    ),
)
