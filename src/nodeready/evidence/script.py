"""A probe script as it travels: its text, and where it has siblings in its folder, all of them as one zip."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# a script that stands alone imports its siblings in the branch for that, so the line is indented
_NAMED = re.compile(r"^    (?:from|import) (\w+)", re.MULTILINE)


def gathered(name: str, read: Callable[[str], str | None]) -> dict[str, str]:
    r"""The texts of a script and of the siblings it imports, by file name; `read` gives None where no such file is.

    Raises `FileNotFoundError` where the script itself is not there.

    >>> folder = {"a.py": "    from b import x\\n    import json\\n", "b.py": "x = 1\\n", "c.py": ""}
    >>> sorted(gathered("a.py", folder.get))
    ['a.py', 'b.py']
    """
    found: dict[str, str] = {}
    wanted = [name]
    while wanted:
        file = wanted.pop()
        text = None if file in found else read(file)
        if text is not None:
            found[file] = text
            wanted += [f"{sibling}.py" for sibling in _NAMED.findall(text)]
    if name not in found:
        raise FileNotFoundError(name)
    return found


def runnable(name: str, read: Callable[[str], str | None]) -> bytes:
    """What a Python runs: the text of a script that stands alone, else a zip with it as `__main__.py`."""
    texts = gathered(name, read)
    if len(texts) == 1:
        return texts[name].encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file, text in texts.items():
            archive.writestr("__main__.py" if file == name else file, text)
    return buffer.getvalue()
