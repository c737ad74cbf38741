"""Where the tools of a driver are that a container installed: they are on nobody's PATH."""

from __future__ import annotations

import os
import shutil

# the root of the GPU operator's driver container: its tools run with its own libraries, below it
DRIVER_ROOT = "/run/nvidia/driver"
# folders of driver installers of clouds, with bin and lib64; their libraries are on no search path either
DRIVER_FOLDERS = ("/usr/local/nvidia", "/home/kubernetes/bin/nvidia")
_TOOLS = frozenset(("nvidia-smi", "nv-fabricmanager"))


def way_to(
    program: str, path: str, *, as_root: bool, root: str = DRIVER_ROOT, folders: tuple[str, ...] = DRIVER_FOLDERS
) -> tuple[str, ...]:
    """What is put before a driver's tool that is not on PATH and is there all the same; else nothing.

    Only root can change into the driver container's root.

    >>> way_to("lspci", "", as_root=True), way_to("nvidia-smi", "", as_root=True, root="/no", folders=())
    ((), ())
    """
    if program not in _TOOLS or shutil.which(program, path=path):
        return ()
    for folder in folders:
        if shutil.which(program, path=f"{folder}/bin"):
            return ("env", f"LD_LIBRARY_PATH={folder}/lib64", f"PATH={folder}/bin{os.pathsep}{path}")
    return ("chroot", root) if as_root and shutil.which(program, path=f"{root}/usr/bin") else ()
