"""A run that is told to end, by a scheduler or a closed session, ends its probes first."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP interrupt as Ctrl-C does; outside of the main thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
