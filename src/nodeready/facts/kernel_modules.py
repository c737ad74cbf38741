"""What lines of the kernel log say of NVIDIA's module that was not let in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodeready.facts.kernel_host import said

if TYPE_CHECKING:
    from collections.abc import Iterable

# words that every line below holds one of: the pattern is not tried on the rest of a log of megabytes
_WORDS = ("odule", "PKCS#7", "nvidia:", "bound to")
_REFUSED = re.compile(
    r"Lockdown: \S{1,40}: unsigned module loading is restricted|Loading of .{0,60}module.{0,60} is rejected"
    r"|PKCS#7 signature not signed with a trusted key"
    r"|\bnvidia: (?:version magic|disagrees about version of symbol|Unknown symbol|exports duplicate symbol)"
    r"|NVRM: GPU .{1,40} is already bound to"
)


def refused_modules(text: Iterable[str]) -> tuple[str, ...]:
    """Why the kernel did not take a module, or the module not its GPUs, in its own words; each once, in their order.

    The kernel does not say which module it refused for its signature. One that it took all the same, and says
    so ("tainting kernel"), was not refused; what audit records quote is another's word.

    >>> refused_modules(["[    9.100000] nvidia: module verification failed: signature missing - tainting kernel",
    ... "[   12.345678] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7"])
    ('Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7',)
    """
    some = (line for line in text if any(word in line for word in _WORDS))
    return tuple(dict.fromkeys(said(line) for line in some if _REFUSED.search(line) and "audit" not in line))
