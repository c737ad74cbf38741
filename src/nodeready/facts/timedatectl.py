"""Whether the clock follows a time server, from `timedatectl show`."""

from __future__ import annotations

import re

from nodeready.evidence.probe import command
from nodeready.facts.text import lines
from nodeready.reading import Known, Reading, Unknown

TIMEDATECTL = command("timedatectl", "show", family="systemd", serves=("host.time-sync",))

_ANSWER = re.compile(r"NTPSynchronized=(yes|no)")


def parse(data: bytes) -> Reading[bool]:
    r"""Whether the kernel calls the clock synchronised, by whichever daemon.

    >>> parse(b"Timezone=Etc/UTC\nNTP=yes\nNTPSynchronized=yes\n").value
    True
    >>> parse(b"Timezone=Etc/UTC\n").reason
    'timedatectl does not say whether the clock is synchronised'
    """
    found = {match[1] for line in lines(data) if (match := _ANSWER.fullmatch(line.strip()))}
    if len(found) != 1:
        return Unknown("timedatectl does not say whether the clock is synchronised")
    return Known(found == {"yes"})
