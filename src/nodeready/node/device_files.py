"""Whether programs find the files that the driver is reached by; one that CUDA could not do without is a cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.facts import device_files, torch_info
from nodeready.node.catalogue import TORCH
from nodeready.reading import Known, Reading, Unknown

if TYPE_CHECKING:
    from nodeready.node.sources import Sources

CONTROL, UVM = "nvidiactl", "nvidia-uvm"
# what CUDA's first call says where it can't open that file: no device, an error of the system, an unknown error
_NOT_OPENED = re.compile(r"cuInit: error (?:100|304|999)\b")


def missing_device_files(sources: Sources) -> Reading[str]:
    """The files that are missing, `none` where none is.

    The first CUDA program has that of nvidia-uvm made where nvidia-modprobe may: where the torch probe then
    used a GPU nothing is missing, and where CUDA refused to start the missing file is a defect.
    """
    found = sources.documents.read(device_files.DEVICE_FILES, device_files.parse)
    if isinstance(found, Unknown):
        return found
    name = device_files.DEVICE_FILES.name
    missing = [file for file in (CONTROL, UVM) if file not in found.names]
    due = min(len(sources.listed_bus_ids()), sources.terms.gpu_count)
    if not due:
        without = f", and there is no {' and no '.join(missing)}" if missing else ""
        return Unknown(f"the driver lists no GPU{without}", recordings=(name,), causes=("driver.responds", "gpu.count"))
    absent = [file for file in (f"nvidia{minor}" for minor in range(due)) if file not in found.gpus]
    missing += absent[: max(0, due - len(found.gpus))]
    words = ", ".join(f"/dev/{file}" for file in missing) or "none"
    if UVM not in missing:
        return Known(words, recordings=(name,))
    info = sources.documents.read(TORCH, torch_info.parse)
    if isinstance(info, Unknown):
        return Known(words, note="the first CUDA program may have it made", recordings=(name,))
    cited = (name, TORCH.name)
    if missing == [UVM] and any(isinstance(reading, Known) for reading in info.devices.values()):
        return Known("none", note=f"/dev/{UVM} was made for the first CUDA program", recordings=cited)
    defect = f"CUDA did not start without it: {info.error}" if _NOT_OPENED.match(info.error) else ""
    return Known(words, recordings=cited if defect else (name,), defect=defect)
