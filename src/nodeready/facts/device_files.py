"""Which device files of NVIDIA's driver are there: what programs open to reach a GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nodeready.evidence.probe import command
from nodeready.facts import small_files
from nodeready.reading import Unknown

# the second folder is that of a driver in a container; the shell asks of each file what it is, and opens none
_FOLDERS = ("/dev", "/run/nvidia/driver/dev")

DEVICE_FILES = command(
    "sh",
    "-c",
    f'for f in {" ".join(f"{folder}/nvidia*" for folder in _FOLDERS)}; do [ ! -c "$f" ] || echo "device:$f"; done; '
    f"echo {small_files.END}",
    name="device-files",
    serves=("driver.device-files",),
)

_PATH = re.compile(rf"(?:{'|'.join(_FOLDERS)})/(nvidia[a-z0-9-]{{0,40}})")
_OF_A_GPU = re.compile(r"nvidia[0-9]{1,4}")


@dataclass(frozen=True)
class DeviceFiles:
    """The names of the character devices, such as `nvidiactl`; a folder or a plain file of such a name is none."""

    names: frozenset[str]

    @property
    def gpus(self) -> frozenset[str]:
        """Those of single GPUs: `nvidia0` and so on."""
        return frozenset(name for name in self.names if _OF_A_GPU.fullmatch(name))


def parse(data: bytes) -> DeviceFiles | Unknown:
    r"""The device files of a whole list; unknown where it was cut, or holds what the probe does not print.

    >>> sorted(parse(b"device:/dev/nvidia0\ndevice:/dev/nvidiactl\nend:\n").names)
    ['nvidia0', 'nvidiactl']
    >>> parse(b"device:/dev/nvidia0\n").reason
    'the list of device files was cut before its end'
    """
    files = small_files.parse(data)
    if isinstance(files, Unknown):
        return files
    if not files.whole:
        return Unknown("the list of device files was cut before its end")
    strange = files.values.keys() - {"device"}
    if strange:
        return Unknown(f"the list of device files reads {min(strange)[:80]!r}")
    names = set()
    for path in files.values.get("device", ()):
        match = _PATH.fullmatch(path)
        if match is None:
            return Unknown(f"{path[:80]!r} is no device file of the driver")
        names.add(match[1])
    return DeviceFiles(frozenset(names))
